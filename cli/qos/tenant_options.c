// SPDX-License-Identifier: MIT
/*
 * Converts each --tenant option to a YAML line of a file of tenants, so that file.c can read
 * both options and files.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/qos/qos.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"

#define MOST_TEXT	1024	/* maximum number of bytes of one --tenant option */

/*
 * Prints a string in quotes, in the syntax of JSON and YAML. If the string is not UTF-8, returns
 * false.
 */
static bool print_string(FILE *to, const char *text, size_t len)
{
	json_t *string = json_stringn(text, len);
	bool good = string && !json_dumpf(string, to, JSON_ENCODE_ANY);

	json_decref(string);
	return good;
}

/* Returns whether @word begins with KEY=, where KEY is a key of a goal or "alone". */
static bool is_goal_word(const char *word)
{
	static const char *const keys[] = {
		"alpha=", "rate=", "latency=", "percentile=", "alone=",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strncmp(word, keys[i], strlen(keys[i])))
			return true;
	return false;
}

/*
 * If @goal is true, prints the KEY=VALUE pairs of @demands that belong to the goal. Otherwise
 * prints all other pairs. Returns the number of printed pairs, or -1 if a pair is invalid.
 */
static int print_demands(FILE *to, const struct qos_options *options, const char *option,
			 const char *demands, bool goal)
{
	bool good;
	int nr = 0;

	for (size_t len, key; *demands; demands += len + (demands[len] == ',')) {
		len = strcspn(demands, ",");
		key = strcspn(demands, "=,");
		/* Other keys do not change a measurement, or would replace the program. */
		if (len && options->goal &&
		    (!is_goal_word(demands) || !strncmp(demands, "alone=", 6))) {
			usage_error("--goal %s: must be alpha=, rate= or latency=; latency= can "
				    "also have percentile=", options->goal);
			return -1;
		}
		if (!len || is_goal_word(demands) != goal)
			continue;
		if (!key || key == len) {
			usage_error("--tenant %s: '%.*s': must be KEY=VALUE", option, (int)len,
				    demands);
			return -1;
		}
		fputs(goal && !nr++ ? "goal: {" : "", to);
		good = print_string(to, demands, key);
		fputs(": ", to);
		if (!print_string(to, demands + key + 1, len - key - 1) || !good) {
			usage_error("--tenant %s: is not UTF-8", option);
			return -1;
		}
		fputs(", ", to);
	}
	fputs(nr ? "}, " : "", to);
	return nr;
}

/* Prints NAME:KEY=VALUE,.. as a line. Returns 0 or an exit status. */
static int print_tenant(FILE *to, const struct qos_options *options, const char *option,
			bool *program)
{
	const char *demands = option + strcspn(option, ":"), *word;
	bool runs = false;

	if (strlen(option) >= MOST_TEXT)
		return usage_error("--tenant %.60s..: is longer than %d letters", option,
				   MOST_TEXT - 1);
	if (!print_string(to, option, demands - option))
		return usage_error("--tenant %s: is not UTF-8", option);
	demands += *demands == ':';
	for (word = demands; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL)
		runs |= !strncmp(word, "job=", 4) || !strncmp(word, "pid=", 4);
	fputs(": {", to);
	if (print_demands(to, options, option, demands, false) < 0 ||
	    print_demands(to, options, option, demands, true) < 0)
		return EXIT_USAGE;
	if (options->goal)
		fprintf(to, "job: '%.*s', ", (int)strcspn(option, ":"), option);
	/*
	 * YAML does not allow arbitrary bytes, so qos_options_program() copies the program's
	 * arguments.
	 */
	fputs(!runs && *program ? "program: [program]},\n" : "},\n", to);
	*program &= runs;
	return 0;
}

int qos_options_open(struct yaml *yaml, const struct qos_options *options, char **program)
{
	bool left = program && program[0];
	int status = 0;
	char *text = NULL;
	size_t len = 0;
	FILE *to = alloc_file(&text, &len);

	fputs("{", to);
	if (options->epoch) {
		fputs("epoch: ", to);
		if (!print_string(to, options->epoch, strlen(options->epoch)))
			status = usage_error("--epoch %s: is not UTF-8", options->epoch);
		fputs(", ", to);
	}
	fputs("tenants: {", to);
	for (unsigned int i = 0; i < options->tenants.nr && !status; i++)
		status = print_tenant(to, options, options->tenants.texts[i], &left);
	fputs("}}", to);
	alloc_file_close(to);
	if (!status && left)
		status =
			usage_error("no tenant can run the program '%s': each --tenant names a job "
				    "or a pid",
				    program[0]);
	if (!status)
		status = yaml_open_text(yaml, options->goal ? "--goal" : "--tenant", text, len);
	free(text);
	return status;
}

void qos_options_program(struct qos_setup *setup, char **program)
{
	unsigned int i = 0;

	while (i < setup->nr && !setup->specs[i].program)
		i++;
	if (i < setup->nr && program && program[0])
		qos_spec_program(&setup->specs[i], program);
}
