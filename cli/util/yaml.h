/* SPDX-License-Identifier: MIT */
/*
 * Small YAML files that people write, by libyaml: a table a mapping says which keys it has, what
 * their values are and where they are stored. Errors name file, line and key.
 */
#ifndef GPUPART_CLI_UTIL_YAML_H
#define GPUPART_CLI_UTIL_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#define YAML_MAX_BYTES	(1 << 20)
#define YAML_TEXT	512	/* the longest value, with its variables put in */
#define YAML_MAX_DEPTH	128	/* lists and mappings in each other */
#define YAML_MAX_KEYS	4096	/* of a mapping */

struct yaml {
	const char *path;
	yaml_document_t document;
	yaml_node_t *variables;		/* a mapping with the value of each $NAME; NULL: none */
	bool verbatim;			/* a "$" is an ordinary character */
	bool failed;			/* an error was written */
	void *context;			/* of the functions in tables */
};

enum yaml_form {
	YAML_OTHER,	/* take() reads it; NULL: another function does */
	YAML_NUMBER,	/* a whole number */
	YAML_DECIMAL,	/* "0.6", in units of @unit thousandths */
	YAML_PERCENT,	/* "12.5%", likewise */
	YAML_TIME,	/* "10us" (ns, us, ms, s), in ns */
	YAML_BYTES,	/* "64K" (K, M, G: of 1024) */
	YAML_BOOL,	/* yes or no */
	YAML_WORD,	/* one of @with, an array that ends with NULL: its index */
	YAML_CHARS,	/* 1 or more characters, for an array of char */
	YAML_MAP,	/* a mapping with the keys of the table @with */
};

/* A key of a mapping. A table ends with a row without a name. */
struct yaml_key {
	const char *name;
	enum yaml_form form;
	size_t at, size;		/* YAML_AT(): where the value is stored */
	uint64_t least, most;		/* most 0: no limit */
	const char *wants;		/* in the error about a value that is out of range */
	void (*take)(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to);
	const void *with;
	unsigned int unit;
	const char *required;		/* the key must be there: "" or a question */
	bool always;			/* take() is called without it too, @node NULL */
};

#define YAML_AT(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)

/*
 * 0, or an error. @option stands before the file's name in errors
 * ("-f " or ""), @what names the kind of file ("a scenario").
 */
int yaml_open(struct yaml *yaml, const char *option, const char *path, const char *what);
/* The same with the file's text. */
int yaml_open_text(struct yaml *yaml, const char *path, const char *text, size_t len);
void yaml_close(struct yaml *yaml);
/* NULL: the file is empty. */
yaml_node_t *yaml_root(struct yaml *yaml);

/* "gpupart CMD: FILE:LINE: ..."; errors after the first one are not written. */
__attribute__((format(printf, 3, 4)))
void yaml_fail(struct yaml *yaml, const yaml_node_t *node, const char *fmt, ...);
int yaml_line(const yaml_node_t *node);

/*
 * Reads the mapping @map into @to: first its keys are checked, then values are read in the order
 * of the table. @what names the mapping in errors. False: an error was written.
 */
bool yaml_read(struct yaml *yaml, yaml_node_t *map, const char *what, const struct yaml_key *keys,
	       void *to);
/* One value, as yaml_read() does. */
void yaml_read_value(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to);
/* The same checks without reading. @keys NULL: any. */
bool yaml_only(struct yaml *yaml, const yaml_node_t *node, const char *what,
	       const struct yaml_key *keys);

/* The value of @key in a mapping; NULL: the key is not there, or @map is no mapping. */
yaml_node_t *yaml_get(struct yaml *yaml, const yaml_node_t *map, const char *key);
/* Entry @i of a mapping or a list, *key NULL in the latter. False: past the end, or an error. */
bool yaml_entry(struct yaml *yaml, const yaml_node_t *node, unsigned int i, yaml_node_t **key,
		yaml_node_t **value);
unsigned int yaml_size(const yaml_node_t *node);
/* False: @node is no list, which was written. */
bool yaml_is_list(struct yaml *yaml, const yaml_node_t *node, const char *what);

/* A scalar's text as it stands; NULL: it is no scalar, or has a zero byte in it. */
const char *yaml_scalar(const yaml_node_t *node);
/* A scalar's text with variables put in, of YAML_TEXT bytes. False: an error was written. */
bool yaml_text(struct yaml *yaml, const yaml_node_t *node, const char *what, char *text);

/* "10us" alone; false: it is no time. */
bool yaml_read_time(const char *text, uint64_t *ns);

#endif
