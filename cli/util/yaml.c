// SPDX-License-Identifier: MIT
/*
 * Reads small YAML files with libyaml. Each mapping has a table. The table lists the keys, the
 * types of the values, and where to store the values. Error messages name the file, the line and
 * the key.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/util/input.h"
#include "cli/util/message.h"
#include "cli/util/yaml.h"

#define MOST_NS		1e14	/* maximum time: about 28 hours */

int yaml_line(const yaml_node_t *node)
{
	return node ? (int)node->start_mark.line + 1 : 0;
}

static void fail_at(struct yaml *yaml, size_t line, const char *what, const char *text)
{
	if (!yaml->failed && line)
		usage_error("%s:%zu: %s%s", yaml->path, line, what, text);
	else if (!yaml->failed)
		usage_error("%s: %s%s", yaml->path, what, text);
	yaml->failed = true;
}

void yaml_fail(struct yaml *yaml, const yaml_node_t *node, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fail_at(yaml, yaml_line(node), "", text);
}

/* --------------------------------------------------------------------- the file */

static void not_yaml(struct yaml *yaml, const yaml_parser_t *parser)
{
	fail_at(yaml, parser->problem_mark.line + 1, "not valid YAML: ",
		parser->problem ? parser->problem : "it cannot be read");
}

/*
 * Checks each event of the text. Without this check, libyaml takes minutes to load deeply nested
 * lists.
 */
static void check(struct yaml *yaml, yaml_parser_t *parser)
{
	unsigned int depth = 0, documents = 0;
	yaml_event_type_t type = YAML_NO_EVENT;
	yaml_event_t event;
	size_t line;

	while (type != YAML_STREAM_END_EVENT && !yaml->failed) {
		if (!yaml_parser_parse(parser, &event)) {
			not_yaml(yaml, parser);
			return;
		}
		type = event.type;
		line = event.start_mark.line + 1;
		if (type == YAML_DOCUMENT_START_EVENT)
			documents++;
		else if (documents == 2)
			fail_at(yaml, line, "a second document: only one is allowed", "");
		depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
		depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
		if (depth > YAML_MAX_DEPTH)
			fail_at(yaml, line, "lists and mappings are nested too deeply", "");
		yaml_event_delete(&event);
	}
}

int yaml_open_text(struct yaml *yaml, const char *path, const char *text, size_t len)
{
	yaml_parser_t parser;

	*yaml = (struct yaml){ .path = path };
	for (int pass = 0; pass < 2 && !yaml->failed; pass++) {
		if (!yaml_parser_initialize(&parser))
			return failure("%s: no memory", path);
		yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
		if (!pass)
			check(yaml, &parser);
		else if (!yaml_parser_load(&parser, &yaml->document))
			not_yaml(yaml, &parser);
		yaml_parser_delete(&parser);
	}
	return yaml->failed ? EXIT_USAGE : 0;
}

int yaml_open(struct yaml *yaml, const char *option, const char *path, const char *what)
{
	const char *why;
	FILE *file = input_open(path, &why);
	int err = errno, status;
	struct stat st;
	char *text;
	size_t len;

	if (!file)
		return error_of(-err, "%s%s: %s", option, path, why);
	/* The length of a pipe is not known. So try to read one byte more than allowed. */
	text = malloc(YAML_MAX_BYTES + 1);
	len = text ? fread(text, 1, YAML_MAX_BYTES + 1, file) : 0;
	if (!fstat(fileno(file), &st) && S_ISDIR(st.st_mode))
		status = usage_error("%s%s: is not a file", option, path);
	else if (!text || ferror(file))
		status = failure("%s%s: %s", option, path, text ? strerror(errno) : "no memory");
	else if (len > YAML_MAX_BYTES)
		status = usage_error("%s%s: must be %s of at most %d bytes", option, path, what,
				     YAML_MAX_BYTES);
	else
		status = yaml_open_text(yaml, path, text, len);
	fclose(file);
	free(text);
	return status;
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
	if (node && node->type == YAML_MAPPING_NODE)
		return node->data.mapping.pairs.top - node->data.mapping.pairs.start;
	if (node && node->type == YAML_SEQUENCE_NODE)
		return node->data.sequence.items.top - node->data.sequence.items.start;
	return 0;
}

bool yaml_entry(struct yaml *yaml, const yaml_node_t *node, unsigned int i, yaml_node_t **key,
		yaml_node_t **value)
{
	bool list = node && node->type == YAML_SEQUENCE_NODE;
	const yaml_node_pair_t *pair;

	if (yaml->failed || i >= yaml_size(node))
		return false;
	pair = list ? NULL : &node->data.mapping.pairs.start[i];
	*key = list ? NULL : yaml_document_get_node(&yaml->document, pair->key);
	*value = yaml_document_get_node(&yaml->document,
					list ? node->data.sequence.items.start[i] : pair->value);
	return true;
}

static bool is_text(const yaml_node_t *node, const char *text)
{
	return node->type == YAML_SCALAR_NODE && strlen(text) == node->data.scalar.length &&
	       !memcmp(node->data.scalar.value, text, node->data.scalar.length);
}

yaml_node_t *yaml_get(struct yaml *yaml, const yaml_node_t *map, const char *key)
{
	yaml_node_pair_t *pair;

	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++)
		if (is_text(yaml_document_get_node(&yaml->document, pair->key), key))
			return yaml_document_get_node(&yaml->document, pair->value);
	return NULL;
}

bool yaml_is_list(struct yaml *yaml, const yaml_node_t *node, const char *what)
{
	if (node->type != YAML_SEQUENCE_NODE)
		yaml_fail(yaml, node, "%s: must be a list", what);
	return !yaml->failed;
}

bool yaml_only(struct yaml *yaml, const yaml_node_t *node, const char *what,
	       const struct yaml_key *keys)
{
	const struct yaml_key *known;
	yaml_node_t *key, *value, *other;
	const char *text;

	if (node->type != YAML_MAPPING_NODE)
		yaml_fail(yaml, node, "%s: must be keys with values", what);
	/* The following loop compares all pairs of keys. */
	if (yaml_size(node) > YAML_MAX_KEYS)
		yaml_fail(yaml, node, "%s: has more than %d keys", what, YAML_MAX_KEYS);
	for (unsigned int i = 0; yaml_entry(yaml, node, i, &key, &value); i++) {
		text = (const char *)key->data.scalar.value;
		if (key->type != YAML_SCALAR_NODE) {
			yaml_fail(yaml, key, "%s: a key is not a word", what);
			return false;
		}
		for (known = keys; known && known->name && !is_text(key, known->name); )
			known++;
		if (known && !known->name)
			yaml_fail(yaml, key, "%s: the key '%.60s' is not known", what, text);
		for (unsigned int j = 0; j < i && yaml_entry(yaml, node, j, &other, &value); j++)
			if (is_text(other, text))
				yaml_fail(yaml, key, "%s: the key '%.60s' is given twice", what,
					  text);
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

/*
 * Returns the value of the variable $NAME at *from, and moves *from past $NAME. If the variable is
 * not defined, returns NULL.
 */
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
			  "%s: contains a zero byte" : "%s: must be a single value", what);
		return false;
	}
	for (from = yaml_scalar(node); *from && used < YAML_TEXT; ) {
		put = from;
		len = 1;
		if (*from == '$' && !yaml->verbatim) {
			put = variable(yaml, &from);
			if (!put) {
				yaml_fail(yaml, node, "%s: '%.60s': this variable is not defined",
					  what, from);
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

/*
 * Returns whether a number has a leading 0. Such a number is rejected. For example, 010 is octal in
 * YAML 1.1 but decimal in YAML 1.2.
 */
static bool has_zero(const char *text)
{
	return text[0] == '0' && isdigit((unsigned char)text[1]);
}

/*
 * Reads a number such as "1.5". Sets *rest to the text after the number. If @text does not begin
 * with a number, or if the number is negative, returns false.
 */
static bool read_number(const char *text, double *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text) || (text[0] == '0' && (text[1] | 32) == 'x') ||
	    has_zero(text))
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

static bool read_bytes(const char *text, uint64_t most, uint64_t *bytes)
{
	const char *units = "KMG", *unit, *rest;
	double value;

	if (!read_number(text, &value, &rest))
		return false;
	unit = *rest ? strchr(units, *rest) : NULL;
	if (unit)
		value *= 1024.0 * (1ull << 10 * (unit - units));
	if ((unit ? rest[1] : *rest) || value > most)
		return false;
	*bytes = value;
	return true;
}

static bool read_whole(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end && !errno && !has_zero(text);
}

/*
 * Reads a number with at most three decimals. The text @sign must follow the number. Stores the
 * number in thousandths.
 */
static bool read_decimal(const char *text, const char *sign, uint64_t *value)
{
	size_t len = strspn(text, "0123456789."), whole = strcspn(text, ".");
	const char *rest;
	double number;

	if (!read_number(text, &number, &rest) || rest != text + len || rest[-1] == '.' ||
	    (whole < len && len - whole > 4) || strcmp(rest, sign) || number > 1e15)
		return false;
	*value = llround(number * 1000);
	return true;
}

static bool read_word(const char *text, const char *const *words, uint64_t *value)
{
	for (*value = 0; words[*value]; ++*value)
		if (!strcmp(text, words[*value]))
			return true;
	return false;
}

static const char *const bools[] = { "no", "yes", "false", "true", NULL };

/*
 * Converts @text to the type of @key. If @text does not have the form of this type, returns false.
 */
static bool read_form(const struct yaml_key *key, const char *text, uint64_t *value)
{
	uint64_t most = key->most ? key->most : UINT64_MAX, unit = key->unit ? key->unit : 1;
	bool good;

	switch (key->form) {
	case YAML_NUMBER:
		return read_whole(text, value) && *value <= most;
	case YAML_TIME:
		return yaml_read_time(text, value);
	case YAML_BYTES:
		return read_bytes(text, most, value);
	case YAML_BOOL:
		good = read_word(text, bools, value);
		*value %= 2;
		return good;
	case YAML_WORD:
		return read_word(text, key->with, value);
	default:
		good = read_decimal(text, key->form == YAML_PERCENT ? "%" : "", value) &&
		       !(*value % unit);
		*value /= unit;
		return good && *value >= key->least && *value <= most;
	}
}

static void refuse(struct yaml *yaml, const struct yaml_key *key, const yaml_node_t *node,
		   const char *text)
{
	const char *zero = has_zero(text) ? " without a leading 0" : "";
	unsigned long long most = key->most;

	if (key->form == YAML_NUMBER)
		yaml_fail(yaml, node, "%s: '%.60s' is not a whole number from %llu to %llu%s",
			  key->name, text, (unsigned long long)key->least, most, zero);
	else if (key->form == YAML_TIME)
		yaml_fail(yaml, node, "%s: '%.60s' is not a time such as 10us (ns, us, ms, s)",
			  key->name, text);
	else if (key->form == YAML_BYTES)
		yaml_fail(yaml, node,
			  "%s: '%.60s' must be a size of at most %llu bytes, for example 64K, 2M or 1G",
			  key->name, text, most);
	else
		yaml_fail(yaml, node, "%s: '%.60s'%s%s%s", key->name, text,
			  key->form == YAML_BOOL ? " must be yes or no" : key->wants,
			  *zero ? "," : "", zero);
}

static void read_chars(struct yaml *yaml, const struct yaml_key *key, const yaml_node_t *node,
		       const char *text, char *to)
{
	if (*text && strlen(text) < key->size)
		strcpy(to, text);
	else
		yaml_fail(yaml, node, "%s: '%.60s': must be 1 to %zu characters", key->name, text,
			  key->size - 1);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low bytes are the first ones");

static void read_scalar(struct yaml *yaml, const struct yaml_key *key, const yaml_node_t *node,
			void *to)
{
	char text[YAML_TEXT];
	uint64_t value = 0;

	if (!yaml_text(yaml, node, key->name, text))
		return;
	if (key->form == YAML_CHARS)
		read_chars(yaml, key, node, text, to);
	else if (!read_form(key, text, &value))
		refuse(yaml, key, node, text);
	else if (value >= key->least && (!key->most || value <= key->most))
		memcpy(to, &value, key->size);
	else if (key->wants)
		yaml_fail(yaml, node, "%s: %.60s: %s", key->name, text, key->wants);
	else
		yaml_fail(yaml, node, "%s: %llu is too small: must be at least %llu", key->name,
			  (unsigned long long)value, (unsigned long long)key->least);
}

/* ------------------------------------------------------------------------- tables */

void yaml_read_value(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to)
{
	to = (char *)to + key->at;
	if (key->form == YAML_MAP)
		yaml_read(yaml, node, key->name, key->with, to);
	else if (key->form != YAML_OTHER)
		read_scalar(yaml, key, node, to);
	else if (key->take)
		key->take(yaml, key, node, to);
}

bool yaml_read(struct yaml *yaml, yaml_node_t *map, const char *what, const struct yaml_key *keys,
	       void *to)
{
	yaml_node_t *node;

	yaml_only(yaml, map, what, keys);
	for (; keys->name && !yaml->failed; keys++) {
		node = yaml_get(yaml, map, keys->name);
		if (node || keys->always)
			yaml_read_value(yaml, keys, node, to);
		else if (keys->required)
			yaml_fail(yaml, map, "%s: is missing%s%s", keys->name,
				  *keys->required ? ": " : "", keys->required);
	}
	return !yaml->failed;
}
