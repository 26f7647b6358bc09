// SPDX-License-Identifier: MIT
/*
 * Tenants in words (--tenant) as the document that a file of them would be: one reader for
 * both. Must not know what a key means, but for those that a file has in "goal".
 */
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "qos.h"

#define TEXT	1024	/* of one --tenant */

struct writer {
	yaml_document_t *document;
	unsigned int line;		/* which --tenant, from 0 */
	bool full;			/* no memory */
};

/* A node that was made, which tells where it is from. 0: none was. */
static int made(struct writer *w, int node)
{
	yaml_node_t *new = node ? yaml_document_get_node(w->document, node) : NULL;

	if (new)
		new->start_mark.line = w->line;
	else
		w->full = true;
	return node;
}

static int scalar(struct writer *w, const char *text, size_t len)
{
	return made(w, yaml_document_add_scalar(w->document, NULL, (const yaml_char_t *)text, len,
						YAML_ANY_SCALAR_STYLE));
}

static int mapping(struct writer *w)
{
	return made(w, yaml_document_add_mapping(w->document, NULL, YAML_ANY_MAPPING_STYLE));
}

static void pair(struct writer *w, int map, int key, int value)
{
	if (!w->full && !yaml_document_append_mapping_pair(w->document, map, key, value))
		w->full = true;
}

static void pair_text(struct writer *w, int map, const char *key, const char *value)
{
	pair(w, map, scalar(w, key, strlen(key)), scalar(w, value, strlen(value)));
}

static bool is_of_goal(const char *key)
{
	static const char *const keys[] = { "alpha", "rate", "latency", "percentile", "alone" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

/* "floor=8", "goal.." of a file by its own words. -1, or a status. */
static int add_demand(struct writer *w, const char *cmd, const char *option, char *word, int map,
		      int *goal)
{
	char *value = strchr(word, '=');

	if (!value || value == word)
		return cmd_fail(cmd, EXIT_USAGE, "--tenant %s: '%s': wants KEY=VALUE", option,
				word);
	*value++ = 0;
	if (!is_of_goal(word)) {
		pair_text(w, map, word, value);
		return -1;
	}
	if (!*goal) {
		*goal = mapping(w);
		pair(w, map, scalar(w, "goal", 4), *goal);
	}
	pair_text(w, *goal, word, value);
	return -1;
}

/* That it has one: its words are bytes, and no YAML. */
static void add_program(struct writer *w, int map)
{
	int list = made(w, yaml_document_add_sequence(w->document, NULL,
						      YAML_ANY_SEQUENCE_STYLE));
	int word = scalar(w, "program", 7);

	if (!w->full && !yaml_document_append_sequence_item(w->document, list, word))
		w->full = true;
	pair(w, map, scalar(w, "program", 7), list);
}

/* What is none no document takes. */
static bool is_utf8(const char *text)
{
	json_t *string = json_string(text);

	json_decref(string);
	return string;
}

/* NAME:KEY=VALUE,.. and, *@program, what nobody before it was given. */
static int add_tenant(struct writer *w, const char *cmd, const char *option, int tenants,
		      char ***program)
{
	char text[TEXT], *save = NULL, *demands;
	int map = mapping(w), goal = 0, status = -1;
	bool runs = false;

	if (strlen(option) >= sizeof(text))
		return cmd_fail(cmd, EXIT_USAGE, "--tenant %.60s..: is longer than %d letters",
				option, TEXT - 1);
	if (!is_utf8(option))
		return cmd_fail(cmd, EXIT_USAGE, "--tenant %s: is no UTF-8", option);
	strcpy(text, option);
	demands = strchr(text, ':');
	if (demands)
		*demands++ = 0;
	pair(w, tenants, scalar(w, text, strlen(text)), map);
	for (char *word = demands ? strtok_r(demands, ",", &save) : NULL; word && status < 0;
	     word = strtok_r(NULL, ",", &save)) {
		runs |= !strncmp(word, "job=", 4) || !strncmp(word, "pid=", 4);
		status = add_demand(w, cmd, option, word, map, &goal);
	}
	if (status < 0 && !runs && *program) {
		add_program(w, map);
		*program = NULL;
	}
	return status;
}

int qos_words_open(struct yaml *yaml, const char *cmd, const struct qos_options *options,
		   char **program)
{
	struct writer w = { .document = &yaml->document };
	char **left = program && program[0] ? program : NULL;
	int root, tenants, status = -1;

	*yaml = (struct yaml){ .cmd = cmd, .path = "--tenant" };
	if (options->epoch && !is_utf8(options->epoch))
		return cmd_fail(cmd, EXIT_USAGE, "--epoch %s: is no UTF-8", options->epoch);
	if (!yaml_document_initialize(&yaml->document, NULL, NULL, NULL, 1, 1))
		return cmd_fail(cmd, EXIT_FAILED, "no memory");
	root = mapping(&w);
	tenants = mapping(&w);
	if (options->epoch)
		pair_text(&w, root, "epoch", options->epoch);
	pair(&w, root, scalar(&w, "tenants", 7), tenants);
	for (; w.line < options->tenants.nr && status < 0; w.line++)
		status = add_tenant(&w, cmd, options->tenants.texts[w.line], tenants, &left);
	if (status < 0 && w.full)
		status = cmd_fail(cmd, EXIT_FAILED, "no memory");
	else if (status < 0 && left)
		status = cmd_fail(cmd, EXIT_USAGE,
				  "'%s': each --tenant has a job or a pid: wants one without",
				  left[0]);
	if (status >= 0)
		yaml_close(yaml);
	return status;
}

bool qos_words_program(struct qos_setup *setup, char **program)
{
	unsigned int nr = 0;

	while (program && program[nr])
		nr++;
	for (unsigned int i = 0; i < setup->nr && nr; i++) {
		char ***words = &setup->specs[i].program;

		if (!*words)
			continue;
		for (char **word = *words; *word; word++)
			free(*word);
		free(*words);
		*words = calloc(nr + 1, sizeof(**words));
		for (unsigned int w = 0; *words && w < nr; w++) {
			(*words)[w] = strdup(program[w]);
			if (!(*words)[w])
				return false;
		}
		return *words;
	}
	return true;
}
