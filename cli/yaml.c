// SPDX-License-Identifier: MIT
/*
 * A small YAML file that people write, by libyaml: values by key, errors that name file,
 * line and key. Knows no command's keys.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cmd.h"
#include "yaml.h"

#define MOST_NS		1e14	/* a day and a bit */

int yaml_line(const yaml_node_t *node)
{
	return node ? (int)node->start_mark.line + 1 : 0;
}

void yaml_fail(struct yaml *yaml, const yaml_node_t *node, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	if (yaml->failed)
		return;
	yaml->failed = true;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (node)
		cmd_fail(yaml->cmd, EXIT_USAGE, "%s:%d: %s", yaml->path, yaml_line(node), text);
	else
		cmd_fail(yaml->cmd, EXIT_USAGE, "%s: %s", yaml->path, text);
}

/* --------------------------------------------------------------------- the file */

/* A pipe does not tell how long it is: one byte more than there may be. */
static char *read_all(FILE *file, size_t *len)
{
	char *text = malloc(YAML_MAX_BYTES + 1);

	*len = text ? fread(text, 1, YAML_MAX_BYTES + 1, file) : 0;
	return text;
}

static void no_yaml(struct yaml *yaml, const yaml_parser_t *parser)
{
	yaml->failed = true;
	cmd_fail(yaml->cmd, EXIT_USAGE, "%s:%zu: no YAML: %s", yaml->path,
		 parser->problem_mark.line + 1,
		 parser->problem ? parser->problem : "it cannot be read");
}

/* An event of the file: how deep it leads, how many documents there are. */
static void look_at(struct yaml *yaml, const yaml_event_t *event, unsigned int *depth,
		    unsigned int *documents)
{
	const char *why = NULL;

	if (event->type == YAML_DOCUMENT_START_EVENT)
		++*documents;
	else if (*documents == 2)
		why = "a second document: wants one";
	if (event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT)
		++*depth;
	if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT)
		--*depth;
	if (*depth > YAML_MAX_DEPTH)
		why = "too many lists and mappings in each other";
	if (!why)
		return;
	yaml->failed = true;
	cmd_fail(yaml->cmd, EXIT_USAGE, "%s:%zu: %s", yaml->path, event->start_mark.line + 1, why);
}

/* Event by event before it is loaded: libyaml takes for ever over what is nested deeply. */
static void check(struct yaml *yaml, const char *text, size_t len)
{
	unsigned int depth = 0, documents = 0;
	yaml_parser_t parser;
	yaml_event_t event;
	bool end = false;

	if (!yaml_parser_initialize(&parser)) {
		yaml_fail(yaml, NULL, "no memory");
		return;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	while (!end && !yaml->failed) {
		if (!yaml_parser_parse(&parser, &event)) {
			no_yaml(yaml, &parser);
			break;
		}
		end = event.type == YAML_STREAM_END_EVENT;
		look_at(yaml, &event, &depth, &documents);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
}

static void load(struct yaml *yaml, const char *text, size_t len)
{
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser)) {
		yaml_fail(yaml, NULL, "no memory");
		return;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &yaml->document))
		no_yaml(yaml, &parser);
	yaml_parser_delete(&parser);
}

/* What can be read: -1 to go on, or a status. */
static int open_file(const struct yaml *yaml, const char *option, FILE **file)
{
	struct stat st;
	int err;

	*file = fopen(yaml->path, "re");
	err = errno;
	if (!*file)
		return cmd_fail(yaml->cmd, cmd_status(-err), "%s%s: %s", option, yaml->path,
				strerror(err));
	if (!fstat(fileno(*file), &st) && !S_ISDIR(st.st_mode))
		return -1;
	fclose(*file);
	return cmd_fail(yaml->cmd, EXIT_USAGE, "%s%s: is no file", option, yaml->path);
}

int yaml_open(struct yaml *yaml, const char *cmd, const char *option, const char *path,
	      const char *what)
{
	char *text = NULL;
	FILE *file;
	size_t len;
	int status;

	*yaml = (struct yaml){ .cmd = cmd, .path = path };
	status = open_file(yaml, option, &file);
	if (status >= 0)
		return status;
	text = read_all(file, &len);
	if (!text || ferror(file))
		status = cmd_fail(cmd, EXIT_FAILED, "%s%s: %s", option, path,
				  text ? strerror(errno) : "no memory");
	else if (len > YAML_MAX_BYTES)
		status = cmd_fail(cmd, EXIT_USAGE, "%s%s: wants %s, at most %d bytes", option,
				  path, what, YAML_MAX_BYTES);
	fclose(file);
	if (status < 0)
		check(yaml, text, len);
	if (status < 0 && !yaml->failed)
		load(yaml, text, len);
	free(text);
	return yaml->failed ? EXIT_USAGE : status;
}

void yaml_close(struct yaml *yaml)
{
	yaml_document_delete(&yaml->document);
}

yaml_node_t *yaml_root(struct yaml *yaml)
{
	return yaml_document_get_root_node(&yaml->document);
}

/* --------------------------------------------------------------------- structure */

unsigned int yaml_size(const yaml_node_t *node)
{
	if (!node)
		return 0;
	if (node->type == YAML_MAPPING_NODE)
		return node->data.mapping.pairs.top - node->data.mapping.pairs.start;
	if (node->type == YAML_SEQUENCE_NODE)
		return node->data.sequence.items.top - node->data.sequence.items.start;
	return 0;
}

bool yaml_entry(struct yaml *yaml, const yaml_node_t *node, unsigned int i, yaml_node_t **key,
		yaml_node_t **value)
{
	const yaml_node_pair_t *pair;

	if (i >= yaml_size(node))
		return false;
	*key = NULL;
	if (node->type == YAML_SEQUENCE_NODE) {
		*value = yaml_document_get_node(&yaml->document,
						node->data.sequence.items.start[i]);
		return true;
	}
	pair = &node->data.mapping.pairs.start[i];
	*key = yaml_document_get_node(&yaml->document, pair->key);
	*value = yaml_document_get_node(&yaml->document, pair->value);
	return true;
}

static bool is_text(const yaml_node_t *node, const char *text)
{
	return node->type == YAML_SCALAR_NODE && strlen(text) == node->data.scalar.length &&
	       !memcmp(node->data.scalar.value, text, node->data.scalar.length);
}

yaml_node_t *yaml_get(struct yaml *yaml, const yaml_node_t *map, const char *key)
{
	yaml_node_t *name, *value;
	unsigned int i;

	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (i = 0; yaml_entry(yaml, map, i, &name, &value); i++)
		if (is_text(name, key))
			return value;
	return NULL;
}

bool yaml_is_map(struct yaml *yaml, const yaml_node_t *node, const char *what)
{
	if (node->type != YAML_MAPPING_NODE)
		yaml_fail(yaml, node, "%s: wants keys with values", what);
	return !yaml->failed;
}

bool yaml_is_list(struct yaml *yaml, const yaml_node_t *node, const char *what)
{
	if (node->type != YAML_SEQUENCE_NODE)
		yaml_fail(yaml, node, "%s: wants a list", what);
	return !yaml->failed;
}

static bool is_known(const yaml_node_t *key, const char *const *known)
{
	for (; *known; known++)
		if (is_text(key, *known))
			return true;
	return false;
}

bool yaml_only(struct yaml *yaml, const yaml_node_t *node, const char *what,
	       const char *const *known)
{
	yaml_node_t *key, *value, *other;
	unsigned int i, j;

	if (!yaml_is_map(yaml, node, what))
		return false;
	/* Each is held against all before it. */
	if (yaml_size(node) > YAML_MAX_KEYS)
		yaml_fail(yaml, node, "%s: has more than %d keys", what, YAML_MAX_KEYS);
	for (i = 0; !yaml->failed && yaml_entry(yaml, node, i, &key, &value); i++) {
		if (key->type != YAML_SCALAR_NODE) {
			yaml_fail(yaml, key, "%s: a key is no word", what);
			return false;
		}
		if (known && !is_known(key, known))
			yaml_fail(yaml, key, "%s: the key '%.60s' is not known", what,
				  key->data.scalar.value);
		for (j = 0; j < i && yaml_entry(yaml, node, j, &other, &value); j++)
			if (is_text(other, (const char *)key->data.scalar.value))
				yaml_fail(yaml, key, "%s: the key '%.60s' is there twice", what,
					  key->data.scalar.value);
	}
	return !yaml->failed;
}

/* ------------------------------------------------------------------------ scalars */

const char *yaml_scalar(const yaml_node_t *node)
{
	const char *text = node->type == YAML_SCALAR_NODE ?
			   (const char *)node->data.scalar.value : NULL;

	return text && strlen(text) == node->data.scalar.length ? text : NULL;
}

/* What $NAME at *@from stands for; moves on past it. NULL: a variable that is not there. */
static const char *variable(struct yaml *yaml, const char **from)
{
	char name[64];
	const yaml_node_t *value;
	size_t len = 1;

	while (isalnum((unsigned char)(*from)[len]) || (*from)[len] == '_')
		len++;
	if (len == 1 || len > sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)len - 1, *from + 1);
	value = yaml_get(yaml, yaml->variables, name);
	if (!value || !yaml_scalar(value))
		return NULL;
	*from += len;
	return yaml_scalar(value);
}

bool yaml_text(struct yaml *yaml, const yaml_node_t *node, const char *what, char *text)
{
	const char *from, *put;
	size_t used = 0, len;

	if (!yaml_scalar(node)) {
		yaml_fail(yaml, node, node->type == YAML_SCALAR_NODE ?
			  "%s: has a zero byte in it" : "%s: wants one value", what);
		return false;
	}
	for (from = yaml_scalar(node); *from && used < YAML_TEXT; ) {
		put = from;
		len = 1;
		if (*from == '$' && !yaml->verbatim) {
			put = variable(yaml, &from);
			if (!put) {
				yaml_fail(yaml, node, "%s: '%.60s': no run has that variable", what,
					  from);
				return false;
			}
			len = strlen(put);
		} else {
			from++;
		}
		if (used + len < YAML_TEXT)
			memcpy(text + used, put, len);
		used += len;
	}
	if (used >= YAML_TEXT) {
		yaml_fail(yaml, node, "%s: is longer than %d bytes", what, YAML_TEXT - 1);
		return false;
	}
	text[used] = '\0';
	return true;
}

bool yaml_has_zero(const char *text)
{
	return text[0] == '0' && isdigit((unsigned char)text[1]);
}

/* "1.5" and what stands after it; false: no number, or one below 0. */
static bool read_number(const char *text, double *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text) || (text[0] == '0' && (text[1] | 32) == 'x') ||
	    yaml_has_zero(text))
		return false;
	errno = 0;
	*value = strtod(text, &end);
	*rest = end;
	return !errno && isfinite(*value);
}

bool yaml_read_time(const char *text, uint64_t *ns)
{
	static const struct { const char *name; double ns; } units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
	};
	const char *rest;
	double value;

	if (!read_number(text, &value, &rest))
		return false;
	for (unsigned int i = 0; i < 4; i++)
		if (!strcmp(rest, units[i].name) && value * units[i].ns <= MOST_NS) {
			*ns = llround(value * units[i].ns);
			return true;
		}
	return false;
}

void yaml_time(struct yaml *yaml, const yaml_node_t *map, const char *key, uint64_t *ns)
{
	const yaml_node_t *node = yaml_get(yaml, map, key);
	char text[YAML_TEXT];

	if (!node || !yaml_text(yaml, node, key, text))
		return;
	if (!yaml_read_time(text, ns))
		yaml_fail(yaml, node, "%s: '%.60s' is no time such as 10us (ns, us, ms, s)", key,
			  text);
}

void yaml_number(struct yaml *yaml, const yaml_node_t *map, const char *key, uint64_t most,
		 uint64_t *value)
{
	const yaml_node_t *node = yaml_get(yaml, map, key);
	char text[YAML_TEXT], *end;

	if (!node || !yaml_text(yaml, node, key, text))
		return;
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || *value > most ||
	    yaml_has_zero(text))
		yaml_fail(yaml, node, "%s: '%.60s' is no whole number from 0 to %llu%s", key, text,
			  (unsigned long long)most,
			  yaml_has_zero(text) ? " without a 0 before it" : "");
}

void yaml_bytes(struct yaml *yaml, const yaml_node_t *map, const char *key, uint64_t most,
		uint64_t *bytes)
{
	const yaml_node_t *node = yaml_get(yaml, map, key);
	const char *units = "KMG", *unit, *rest;
	char text[YAML_TEXT];
	double value;

	if (!node || !yaml_text(yaml, node, key, text))
		return;
	if (read_number(text, &value, &rest)) {
		unit = *rest ? strchr(units, *rest) : NULL;
		if (unit)
			value *= 1024.0 * (1ull << 10 * (unit - units));
		if ((unit ? !rest[1] : !*rest) && value <= most) {
			*bytes = value;
			return;
		}
	}
	yaml_fail(yaml, node, "%s: '%.60s' is no size such as 64K (K, M, G) up to %llu bytes", key,
		  text, (unsigned long long)most);
}

void yaml_bool(struct yaml *yaml, const yaml_node_t *map, const char *key, bool *value)
{
	const yaml_node_t *node = yaml_get(yaml, map, key);
	char text[YAML_TEXT];

	if (!node || !yaml_text(yaml, node, key, text))
		return;
	*value = !strcmp(text, "yes") || !strcmp(text, "true");
	if (!*value && strcmp(text, "no") && strcmp(text, "false"))
		yaml_fail(yaml, node, "%s: '%.60s' is neither yes nor no", key, text);
}
