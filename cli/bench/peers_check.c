// SPDX-License-Identifier: MIT
/*
 * Checks the options of the part peers before anything is measured, and the lines that its programs
 * print.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include "cli/bench/bench.h"
#include "cli/bench/peers.h"
#include "cli/qos/qos.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/number.h"

static const char families[] =
	"alone,slices,mps,mps-percent,priority,green,packed,gpcs,balanced,spread,overlap,qos,"
	"lending";

bool peers_is_in(const char *list, const char *word)
{
	bool found = false;
	char *part;

	for (unsigned int i = 0; !found && (part = alloc_part(list, ',', i)); i++) {
		found = !strcmp(part, word);
		free(part);
	}
	return found;
}

/*
 * Reads the goal in the same way as `qos run`. The goal is written between braces into one line of
 * a file, so the characters that could end the braces or the line are refused. No valid goal
 * contains them.
 */
static int check_goal(struct peers_options *options)
{
	const char *goal = options->goal;
	struct qos_setup setup = { 0 };
	char *path, *text;
	struct yaml yaml;
	int status;

	if (!goal)
		return 0;
	if (strpbrk(goal, "{}[]#\n"))
		return usage_error("--goal '%s': must be a goal such as 'latency: 8ms'", goal);
	path = alloc_text("--goal '%s'", goal);
	text = alloc_text("tenants: { a: { goal: { %s }, program: [a] } }", goal);
	status = yaml_open_text(&yaml, path, text, strlen(text));
	if (!status) {
		if (!qos_setup_read(&setup, &yaml, yaml_root(&yaml), QOS_FILE_PROGRAMS))
			status = EXIT_USAGE;
		options->has_latency = setup.tenants[0].goal == QOS_LATENCY;
		qos_setup_free(&setup);
		yaml_close(&yaml);
	}
	free(text);
	free(path);
	return status;
}

/* Checks that @family exists, and that the options have what it needs. */
static int check_family(const struct peers_options *options, const char *family)
{
	const char *only = options->only;

	if (!peers_is_in(families, family))
		return usage_error("--only %s: '%s' is not one of %s", only, family, families);
	if (peers_is_in("qos,lending", family) && !options->goal)
		return usage_error("--only %s: %s needs --goal GOAL", only, family);
	if (peers_is_in("priority,green", family) && !options->both)
		return usage_error("--only %s: %s needs --both PROGRAM", only, family);
	if (!strcmp(family, "lending") && !options->has_latency)
		return usage_error(
			"--only %s: lending needs a latency goal, and --goal '%s' is not one", only,
			options->goal);
	return 0;
}

int peers_check(struct peers_options *options)
{
	int status = check_goal(options);
	char *word;

	for (unsigned int i = 0; options->only && !status &&
	     (word = alloc_part(options->only, ',', i)); i++) {
		status = check_family(options, word);
		free(word);
	}
	return status;
}

bool peers_read_time(const char *line, const char *way, char program, bool *refused, float *ms)
{
	double value;
	char *end;

	if (number_decimal(line, &value) && value <= FLT_MAX && (float)value > 0) {
		*ms = value;
		return true;
	}
	strtod(line, &end);
	if (!*refused && end != line && !*end) {
		*refused = true;
		remark(
			"peers: %s: %c printed '%s', which is not a positive time in ms: such lines are ignored",
			way, program, line);
	}
	return false;
}
