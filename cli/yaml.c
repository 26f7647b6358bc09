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

/* NULL, and said: it cannot be read, or is too long. */
static char *read_all(struct yaml *yaml, size_t *len)
{
	FILE *file = fopen(yaml->path, "r");
	char *text = NULL;

	if (!file) {
		yaml_fail(yaml, NULL, "%s", strerror(errno));
		return NULL;
	}
	text = malloc(YAML_MAX_BYTES + 1);
	*len = text ? fread(text, 1, YAML_MAX_BYTES + 1, file) : 0;
	if (!text)
		yaml_fail(yaml, NULL, "no memory");
	else if (ferror(file))
		yaml_fail(yaml, NULL, "%s", strerror(errno));
	else if (*len > YAML_MAX_BYTES)
		yaml_fail(yaml, NULL, "is longer than %d bytes", YAML_MAX_BYTES);
	fclose(file);
	if (yaml->failed) {
		free(text);
		return NULL;
	}
	return text;
}

static void parse(struct yaml *yaml, const char *text, size_t len)
{
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser)) {
		yaml_fail(yaml, NULL, "no memory");
		return;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &yaml->document)) {
		yaml->failed = true;
		cmd_fail(yaml->cmd, EXIT_USAGE, "%s:%zu: %s", yaml->path,
			 parser.problem_mark.line + 1, parser.problem ? parser.problem : "no YAML");
	}
	yaml_parser_delete(&parser);
}

int yaml_open(struct yaml *yaml, const char *cmd, const char *path)
{
	char *text;
	size_t len;

	*yaml = (struct yaml){ .cmd = cmd, .path = path };
	text = read_all(yaml, &len);
	if (text)
		parse(yaml, text, len);
	free(text);
	if (yaml->failed)
		return EXIT_USAGE;
	if (!yaml_root(yaml))
		yaml_fail(yaml, NULL, "is empty");
	if (yaml->failed)
		yaml_close(yaml);
	return yaml->failed ? EXIT_USAGE : -1;
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
	for (i = 0; yaml_entry(yaml, node, i, &key, &value); i++) {
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
	if (!value || value->type != YAML_SCALAR_NODE)
		return NULL;
	*from += len;
	return (const char *)value->data.scalar.value;
}

bool yaml_text(struct yaml *yaml, const yaml_node_t *node, const char *what, char *text)
{
	const char *from, *put;
	size_t used = 0, len;

	if (node->type != YAML_SCALAR_NODE) {
		yaml_fail(yaml, node, "%s: wants one value", what);
		return false;
	}
	for (from = (const char *)node->data.scalar.value; *from && used < YAML_TEXT; ) {
		put = from;
		len = 1;
		if (*from == '$') {
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

/* "1.5" and what stands after it; false: no number, or one below 0. */
static bool read_number(const char *text, double *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text) || (text[0] == '0' && (text[1] | 32) == 'x'))
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
	if (!isdigit((unsigned char)*text) || *end || errno || *value > most)
		yaml_fail(yaml, node, "%s: '%.60s' is no whole number from 0 to %llu", key, text,
			  (unsigned long long)most);
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
