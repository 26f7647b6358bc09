// SPDX-License-Identifier: MIT
/* Reads the demands of tenants from options and from files. Both use the same table of keys. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "cli/plan/demands.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/yaml.h"
#include "lib/private.h"

#define NONE ((size_t)-1)
#define MAX_PATTERN	255 /* the limit of gpupart_rule_set() */

enum form { NUMBER, FLAG, UNFLAG, NAMES, SIZE, SHAPE };

/*
 * Each key has the offset of the member that stores its value. The key "mem" is not a demand on a
 * plan.
 */
static const struct key {
	const char *name;
	enum form form;
	size_t at, also;
	unsigned int most;
} keys[] = {
	{ "min", NUMBER, offsetof(struct gpupart_demand, min_tpcs), NONE, GPUPART_MAX_TPCS },
	{ "max", NUMBER, offsetof(struct gpupart_demand, max_tpcs), NONE, GPUPART_MAX_TPCS },
	{ "tpcs", NUMBER, offsetof(struct gpupart_demand, min_tpcs),
	  offsetof(struct gpupart_demand, max_tpcs), GPUPART_MAX_TPCS },
	{ "cluster", NUMBER, offsetof(struct gpupart_demand, cluster), NONE, 128 },
	{ "weight", NUMBER, offsetof(struct gpupart_demand, weight), NONE, 1000 },
	{ "gpcs", FLAG, offsetof(struct gpupart_demand, gpcs), NONE, 0 },
	{ "spread", FLAG, offsetof(struct gpupart_demand, spread), NONE, 0 },
	{ "pack", UNFLAG, offsetof(struct gpupart_demand, spread), NONE, 0 },
	{ "shape", SHAPE, 0, NONE, 0 },
	{ "same", NAMES, 0, NONE, 0 },
	{ "apart", NAMES, 1, NONE, 0 },
	{ "mem", SIZE, 0, NONE, 0 },
};

#define KEY_NAMES "min, max, tpcs, gpcs, cluster, same, apart, weight, shape, spread, pack or mem"

/* The source of a demand, for error messages. */
struct where {
	char text[300];		/* "FILE:3: " or "--tenant TEXT: " */
	uint32_t given;	/* one bit for each key, in the order of the table; 1: the key was given */
};

__attribute__((format(printf, 2, 3)))
static int wrong(const struct where *where, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	usage_error("%s%s", where->text, len < 0 ? "no memory" : text);
	if (len >= 0)
		free(text);
	return EXIT_USAGE;
}

static const struct key *find_key(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strlen(keys[i].name) == len && !strncmp(keys[i].name, name, len))
			return &keys[i];
	return NULL;
}

static int take_number(struct gpupart_demand *d, const struct key *key, const char *value,
		       const struct where *where)
{
	char *end;
	unsigned long nr;

	/* YAML 1.1 reads a number with a leading 0 as octal, and YAML 1.2 reads it as decimal. */
	if (*value == '0' && value[1])
		return wrong(where, "%s=%s: must be a number from 1 to %u without a leading 0",
			     key->name, value, key->most);
	errno = 0;
	nr = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || !nr || nr > key->most)
		return wrong(where, "%s=%s: must be a number from 1 to %u",
			     key->name, value, key->most);
	*(unsigned int *)((char *)d + key->at) = nr;
	if (key->also != NONE)
		*(unsigned int *)((char *)d + key->also) = nr;
	return 0;
}

/* Compares @value with the spellings of @word that YAML 1.1 and 1.2 allow: word, Word and WORD. */
static bool is_spelled(const char *value, const char *word)
{
	size_t len = strlen(word), nr = 0;

	if (strcasecmp(value, word))
		return false;
	for (const char *c = value; *c; c++)
		nr += *c >= 'A' && *c <= 'Z';
	return !nr || nr == len || (nr == 1 && *value >= 'A' && *value <= 'Z');
}

static bool is_null(const char *value)
{
	return !*value || !strcmp(value, "~") || is_spelled(value, "null");
}

static int take_flag(struct gpupart_demand *d, const struct key *key, const char *value,
		     const struct where *where)
{
	static const char *const yes[] = { "", "true", "yes", "on", "y" };
	static const char *const no[] = { "false", "no", "off", "n" };
	int is = -1;

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (is_spelled(value, yes[i]))
			is = 1;
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (is_spelled(value, no[i]))
			is = 0;
	if (is < 0)
		return wrong(where, "%s=%s: must be true or false", key->name, value);
	*(bool *)((char *)d + key->at) = key->form == FLAG ? is : !is;
	return 0;
}

static int take_names(struct demands *demands, const struct key *key, const char *value,
		      const struct where *where)
{
	unsigned int i = demands->nr - 1;
	char *text = key->at ? demands->texts[i].apart : demands->texts[i].same;

	if (!*value)
		return wrong(where, "%s= must list names of tenants, joined by +", key->name);
	if (strlen(text) + strlen(value) + 2 > DEMANDS_TEXT)
		return wrong(where, "%s=%s: there are more names than tenants in the largest plan",
			     key->name, value);
	if (*text)
		strcat(text, "+");
	strcat(text, value);
	if (key->at)
		demands->list[i].apart = text;
	else
		demands->list[i].same = text;
	return 0;
}

static int take_size(struct demands *demands, const struct key *key, const char *value,
		     const struct where *where)
{
	int status = 0;

	if (gpupart_memory_parse(cmd_gp, value, &demands->mem[demands->nr - 1]))
		status = wrong(where, "%s=%s: %s", key->name, value, gpupart_error(cmd_gp));
	return status;
}

static int take_shape(struct gpupart_demand *d, const char *value, const struct where *where)
{
	enum gpupart_shape shape;

	if (gpupart_shape_parse(cmd_gp, value, &shape))
		return wrong(where, "shape=%s: %s", value, gpupart_error(cmd_gp));
	d->gpcs = shape == GPUPART_SHAPE_GPCS || shape == GPUPART_SHAPE_BALANCED;
	d->spread = shape == GPUPART_SHAPE_SPREAD || shape == GPUPART_SHAPE_BALANCED;
	return 0;
}

/* If an earlier key contradicts @key, returns the earlier key. Otherwise returns NULL. */
static const struct key *contradicted(const struct where *where, const struct key *key)
{
	static const char *const pairs[][2] = {
		{ "pack", "spread" }, { "tpcs", "min" }, { "tpcs", "max" },
		{ "shape", "gpcs" }, { "shape", "spread" }, { "shape", "pack" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (int j = 0; j < 2; j++) {
			const struct key *other = find_key(pairs[i][!j], strlen(pairs[i][!j]));

			if (!strcmp(pairs[i][j], key->name) &&
			    where->given & 1u << (other - keys))
				return other;
		}
	return NULL;
}

static int take_key(struct demands *demands, const char *name, size_t len, const char *value,
		    struct where *where)
{
	struct gpupart_demand *d = &demands->list[demands->nr - 1];
	const struct key *key = find_key(name, len);
	uint32_t bit = key ? 1u << (key - keys) : 0;

	if (!key)
		return wrong(where, "'%.*s' is not a key: must be " KEY_NAMES, (int)len, name);
	if (where->given & bit)
		return wrong(where, "the key %s is given twice", key->name);
	if (contradicted(where, key))
		return wrong(where, "%s and %s: use only one of them",
			     contradicted(where, key)->name,
			     key->name);
	where->given |= bit;
	switch (key->form) {
	case NUMBER:
		return take_number(d, key, value, where);
	case NAMES:
		return take_names(demands, key, value, where);
	case SIZE:
		return take_size(demands, key, value, where);
	case SHAPE:
		return take_shape(d, value, where);
	default:
		return take_flag(d, key, value, where);
	}
}

static int take_tenant(struct demands *demands, const char *name, size_t len,
		       struct where *where)
{
	char *to;

	if (demands->nr == GPUPART_PLAN_MAX_TENANTS)
		return wrong(where, "tenant %.*s: a plan has at most %d tenants", (int)len, name,
			     GPUPART_PLAN_MAX_TENANTS);
	to = demands->texts[demands->nr].name;
	if (!len || len >= sizeof(demands->texts[0].name))
		return wrong(where, "tenant '%.*s': a name must have 1 to %zu characters",
			     (int)len, name,
			     sizeof(demands->texts[0].name) - 1);
	memcpy(to, name, len);
	to[len] = 0;
	where->given = 0;
	demands->list[demands->nr++].name = to;
	return 0;
}

/* Checks a tenant after all its keys were read. */
static int check_tenant(const struct demands *demands, const struct where *where)
{
	const struct gpupart_demand *d = &demands->list[demands->nr - 1];

	if (d->gpcs && d->spread && !(where->given & 1u << (find_key("shape", 5) - keys)))
		return wrong(where, "gpcs and spread: use only one of them, or use shape=balanced");
	return 0;
}

/* Reads "KEY=VALUE,KEY,..", which may be empty. */
static int take_words(struct demands *demands, const char *words, struct where *where)
{
	int status = 0;

	while (*words && !status) {
		size_t len = strcspn(words, ","), key_len = strcspn(words, "=,");
		char *value = alloc_text("%.*s", key_len < len ? (int)(len - key_len - 1) : 0,
					 words + key_len + (words[key_len] == '='));

		if (key_len < len && !*value)
			status = wrong(where, "%.*s= has no value", (int)key_len, words);
		else
			status = take_key(demands, words, key_len, value, where);
		free(value);
		words += len;
		if (*words && !*++words && !status)
			status = wrong(where, "a key must follow the last comma");
	}
	return status ?: check_tenant(demands, where);
}

int demands_add(struct demands *demands, const char *text)
{
	struct where where = { 0 };
	size_t len = strcspn(text, ":");
	int status;

	snprintf(where.text, sizeof(where.text), "--tenant %.200s: ", *text ? text : "''");
	status = take_tenant(demands, text, len, &where);
	if (!status && text[len])
		status = take_words(demands, text + len + 1, &where);
	return status;
}

/* -------------------------------------------------------------------- files */

struct file {
	struct demands *demands;
	struct yaml yaml;
	struct where where;
};

/* Error messages now name the line of @node. If @key is not NULL, they also name the key. */
static void point(struct file *f, const yaml_node_t *node, const char *tenant, const char *key)
{
	snprintf(f->where.text, sizeof(f->where.text), "%.150s:%d: %.64s%s%.64s%s", f->yaml.path,
		 yaml_line(node), tenant ? tenant : "", key ? "." : "", key ? key : "",
		 tenant ? ": " : "");
}

/* Text in quotes is never null. */
static bool is_null_node(const yaml_node_t *node)
{
	return yaml_scalar(node) && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       is_null(yaml_scalar(node));
}

/* Reads one value. The value "same: [a, b]" is read as "a+b". */
static int take_value(struct file *f, const struct key *key, const yaml_node_t *value)
{
	bool list = key->form == NAMES && value->type == YAML_SEQUENCE_NODE;
	char names[DEMANDS_TEXT] = "";
	const char *text = list ? names : yaml_scalar(value), *name;
	yaml_node_t *none, *item;

	for (unsigned int i = 0; list && yaml_entry(&f->yaml, value, i, &none, &item); i++) {
		name = yaml_scalar(item);
		if (!name || !*name || strlen(names) + strlen(name) + 2 > sizeof(names))
			return wrong(&f->where, "the value must be a list of names of tenants");
		strcat(strcat(names, *names ? "+" : ""), name);
	}
	if (!text)
		return wrong(&f->where, "must have one value%s",
			     key->form == NAMES ? " or a list of names" : "");
	if (!list && (!*text || is_null_node(value)))
		return wrong(&f->where, "has no value");
	return take_key(f->demands, key->name, strlen(key->name), text, &f->where);
}

const char *demands_rule_fault(const char *rule)
{
	const char *end = strchr(rule, '=');

	if (!end || end == rule || !end[1 + strspn(end + 1, " ")])
		return "must be PATTERN=SET, such as '*copy*=-n 4'";
	if (end - rule > MAX_PATTERN || memchr(rule, '\n', end - rule))
		return "a pattern must have at most 255 characters and no line feed";
	return NULL;
}

/* Reads "rules: [PATTERN=SET, ..]", in the syntax of 'run --rule'. */
static int take_rules(struct file *f, const yaml_node_t *value)
{
	struct args_texts *rules = &f->demands->rules[f->demands->nr - 1];
	yaml_node_t *none, *item;
	const char *text, *fault;

	if (value->type != YAML_SEQUENCE_NODE)
		return wrong(&f->where, "the value must be a list of rules such as '*copy*=-n 4'");
	for (unsigned int i = 0; yaml_entry(&f->yaml, value, i, &none, &item); i++) {
		text = yaml_scalar(item) ?: "";
		fault = demands_rule_fault(text);
		if (fault)
			return wrong(&f->where, "rule '%.80s': %s", text, fault);
		if (rules->nr == DEMANDS_MAX_RULES)
			return wrong(&f->where, "rule '%.80s': at most %d rules are possible", text,
				     DEMANDS_MAX_RULES);
		rules->texts[rules->nr++] = alloc_text("%s", text);
	}
	return 0;
}

static int take_node(struct file *f, const yaml_node_t *name, const yaml_node_t *demand)
{
	const char *tenant = yaml_scalar(name), *words = yaml_scalar(demand), *text;
	yaml_node_t *node, *value;
	const struct key *key;
	int status;

	point(f, name, tenant, NULL);
	if (!tenant)
		return wrong(&f->where, "a tenant's name is not text");
	for (unsigned int i = 0; i < f->demands->nr; i++)
		if (!strcmp(f->demands->list[i].name, tenant))
			return wrong(&f->where, "this tenant is defined twice");
	status = take_tenant(f->demands, tenant, strlen(tenant), &f->where);
	point(f, demand, tenant, NULL);
	if (!status && words)
		return take_words(f->demands, is_null_node(demand) ? "" : words, &f->where);
	if (!status && demand->type != YAML_MAPPING_NODE)
		return wrong(&f->where, "this tenant must have keys: " KEY_NAMES);
	for (int i = 0; !status && yaml_entry(&f->yaml, demand, i, &node, &value); i++) {
		text = yaml_scalar(node);
		key = text ? find_key(text, strlen(text)) : NULL;
		point(f, key ? value : node, tenant, key ? text : NULL);
		status = key ? take_value(f, key, value) :
			 text && !strcmp(text, "rules") ? take_rules(f, value) :
			 wrong(&f->where, "'%s' is not a key: must be rules, " KEY_NAMES,
			       text ? text : "?");
	}
	point(f, demand, tenant, NULL);
	return status ?: check_tenant(f->demands, &f->where);
}

static int take_document(struct file *f)
{
	yaml_node_t *root = yaml_root(&f->yaml), *key, *tenants = NULL, *value;
	int status = 0;

	snprintf(f->where.text, sizeof(f->where.text), "%.200s: ", f->yaml.path);
	if (root)
		point(f, root, NULL, NULL);
	if (root && root->type != YAML_MAPPING_NODE)
		return wrong(&f->where,
			     "the file must have the key 'tenants', with the names of tenants as keys below it");
	for (unsigned int i = 0; yaml_entry(&f->yaml, root, i, &key, &value); i++) {
		const char *name = yaml_scalar(key);

		point(f, key, NULL, NULL);
		if (!name || strcmp(name, "tenants"))
			return wrong(&f->where,
				     "'%s' is not a key of the file: the only key is 'tenants'",
				     name ? name : "?");
		if (tenants)
			return wrong(&f->where, "the key 'tenants' is given twice");
		tenants = value;
	}
	if (!tenants)
		return wrong(&f->where, "the file is empty: it must have 'tenants:'");
	point(f, tenants, "tenants", NULL);
	if (tenants->type != YAML_MAPPING_NODE)
		return wrong(&f->where,
			     "below this key, list the name of each tenant with its demands");
	for (unsigned int i = 0; !status && yaml_entry(&f->yaml, tenants, i, &key, &value); i++)
		status = take_node(f, key, value);
	return status;
}

int demands_read(struct demands *demands, const char *path)
{
	struct file f = { .demands = demands };
	int status = yaml_open(&f.yaml, "-f ", path, "a file of demands");

	if (status)
		return status;
	status = take_document(&f);
	yaml_close(&f.yaml);
	return status;
}
