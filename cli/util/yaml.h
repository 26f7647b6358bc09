/* SPDX-License-Identifier: MIT */
/*
 * Reads small YAML files with libyaml. Each mapping has a table. The table lists the keys, the
 * types of the values, and where to store the values. Error messages name the file, the line and
 * the key.
 */
#ifndef GPUPART_CLI_UTIL_YAML_H
#define GPUPART_CLI_UTIL_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#define YAML_MAX_BYTES	(1 << 20)
#define YAML_TEXT	512	/* maximum size of a value after the expansion of variables */
#define YAML_MAX_DEPTH	128	/* maximum depth of nested lists and mappings */
#define YAML_MAX_KEYS	4096	/* maximum number of keys of a mapping */

struct yaml {
	const char *path;
	yaml_document_t document;
	yaml_node_t *variables;		/* mapping with the values of $NAME, or NULL */
	bool verbatim;			/* do not expand variables */
	bool failed;			/* an error was printed */
	void *context;			/* for the functions that tables name */
};

enum yaml_form {
	YAML_OTHER,	/* take() reads the value; if take is NULL, a function outside the table
			 * reads it */
	YAML_NUMBER,	/* a whole number */
	YAML_DECIMAL,	/* "0.6", in units of @unit thousandths */
	YAML_PERCENT,	/* "12.5%", in units of @unit thousandths of a percent */
	YAML_TIME,	/* "10us" (ns, us, ms, s), in ns */
	YAML_BYTES,	/* "64K"; K, M and G are powers of 1024 */
	YAML_BOOL,	/* yes or no */
	YAML_WORD,	/* index in @with, an array of strings that ends with NULL */
	YAML_CHARS,	/* text of 1 or more characters, stored in an array of char */
	YAML_MAP,	/* a mapping with the keys of the table @with */
};

/* A key of a mapping. A row without a name ends the table. */
struct yaml_key {
	const char *name;
	enum yaml_form form;
	size_t at, size;		/* place of the value, from YAML_AT() */
	uint64_t least, most;		/* if most is 0, there is no limit */
	const char *wants;		/* error message for a value that is out of range */
	void (*take)(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to);
	const void *with;
	unsigned int unit;
	/* NULL: the key is optional; else "" or a hint for the error message */
	const char *required;
	bool always;			/* if the key is missing, take() gets a NULL @node */
};

#define YAML_AT(type, member) .at = offsetof(type, member), .size = sizeof(((type *)0)->member)

/*
 * Opens the file at @path. Messages contain @option, which is "-f " or "", and the file's name.
 * They also contain @what, which names the kind of file, for example "a scenario". Returns 0 or an
 * error.
 */
int yaml_open(struct yaml *yaml, const char *option, const char *path, const char *what);
/* Opens text in memory in the same way as yaml_open(). */
int yaml_open_text(struct yaml *yaml, const char *path, const char *text, size_t len);
void yaml_close(struct yaml *yaml);
/* Returns the top node, or NULL if the file is empty. */
yaml_node_t *yaml_root(struct yaml *yaml);

/* Prints "gpupart CMD: FILE:LINE: ...". Prints only the first error. */
__attribute__((format(printf, 3, 4)))
void yaml_fail(struct yaml *yaml, const yaml_node_t *node, const char *fmt, ...);
int yaml_line(const yaml_node_t *node);

/*
 * Reads the mapping @map into @to. Checks the keys of the mapping. Then reads the values in the
 * order of the table. In messages, @what is the name of the mapping. After an error, prints a
 * message and returns false.
 */
bool yaml_read(struct yaml *yaml, yaml_node_t *map, const char *what, const struct yaml_key *keys,
	       void *to);
/* Reads one value in the same way as yaml_read(). */
void yaml_read_value(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to);
/* Checks the keys without reading values. If @keys is NULL, any key is allowed. */
bool yaml_only(struct yaml *yaml, const yaml_node_t *node, const char *what,
	       const struct yaml_key *keys);

/* Returns the value of @key. If the key is missing or @map is not a mapping, returns NULL. */
yaml_node_t *yaml_get(struct yaml *yaml, const yaml_node_t *map, const char *key);
/*
 * Reads entry @i of a mapping or a list. For a list, *key is NULL. If there is no entry @i, or
 * after an error, returns false.
 */
bool yaml_entry(struct yaml *yaml, const yaml_node_t *node, unsigned int i, yaml_node_t **key,
		yaml_node_t **value);
unsigned int yaml_size(const yaml_node_t *node);
/* If @node is not a list, prints an error message and returns false. */
bool yaml_is_list(struct yaml *yaml, const yaml_node_t *node, const char *what);

/*
 * Returns the text of a scalar. If the node is not a scalar or the text contains a zero byte,
 * returns NULL.
 */
const char *yaml_scalar(const yaml_node_t *node);
/*
 * Copies the text of a scalar to @text. The buffer has YAML_TEXT bytes. Expands the variables in
 * the text.
 */
bool yaml_text(struct yaml *yaml, const yaml_node_t *node, const char *what, char *text);

/* Reads a time such as "10us". The result is in ns. If @text is not a time, returns false. */
bool yaml_read_time(const char *text, uint64_t *ns);

#endif
