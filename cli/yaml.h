/* SPDX-License-Identifier: MIT */
/*
 * A small YAML file that people write, by libyaml: values by key, errors that name file,
 * line and key. Knows no command's keys.
 */
#ifndef GPUPART_CLI_YAML_H
#define GPUPART_CLI_YAML_H

#include <stdbool.h>
#include <stdint.h>
#include <yaml.h>

#define YAML_MAX_BYTES	(1 << 20)
#define YAML_TEXT	512	/* the longest value, with its variables put in */
#define YAML_MAX_DEPTH	128	/* lists and mappings in each other */
#define YAML_MAX_KEYS	4096	/* of a mapping */

struct yaml {
	const char *cmd, *path;
	yaml_document_t document;
	yaml_node_t *variables;		/* a mapping: what $NAME stands for; NULL: nothing */
	bool verbatim;			/* it has none: a "$" stands for itself */
	bool failed;			/* a line was written */
};

/*
 * -1 to go on, or a status, the line on stderr written. @option is what stands before the
 * file's name where it is told ("-f " or ""), @what what the file should be ("a scenario").
 */
int yaml_open(struct yaml *yaml, const char *cmd, const char *option, const char *path,
	      const char *what);
void yaml_close(struct yaml *yaml);
/* NULL: there is nothing in it. */
yaml_node_t *yaml_root(struct yaml *yaml);

/* "gpupart CMD: FILE:LINE: ..." once; what comes after the first error is not said. */
__attribute__((format(printf, 3, 4)))
void yaml_fail(struct yaml *yaml, const yaml_node_t *node, const char *fmt, ...);
int yaml_line(const yaml_node_t *node);

/* The value of @key in a mapping; NULL: it has none. */
yaml_node_t *yaml_get(struct yaml *yaml, const yaml_node_t *map, const char *key);
/* Entry @i of a mapping or a sequence: *key NULL in the latter. False past the end. */
bool yaml_entry(struct yaml *yaml, const yaml_node_t *node, unsigned int i, yaml_node_t **key,
		yaml_node_t **value);
unsigned int yaml_size(const yaml_node_t *node);
/* @node is a mapping with no other keys than those of @known, each once. @what names it. */
bool yaml_only(struct yaml *yaml, const yaml_node_t *node, const char *what,
	       const char *const *known);
/* It is a mapping (a sequence), or that is said. */
bool yaml_is_map(struct yaml *yaml, const yaml_node_t *node, const char *what);
bool yaml_is_list(struct yaml *yaml, const yaml_node_t *node, const char *what);

/* A scalar's text as it stands; NULL: it is none, or has a zero byte in it. */
const char *yaml_scalar(const yaml_node_t *node);

/*
 * A scalar's text, variables put in: @text of YAML_TEXT bytes. False, and said: it is none.
 */
bool yaml_text(struct yaml *yaml, const yaml_node_t *node, const char *what, char *text);

/*
 * Values of a key that may be missing: then *value stays. Numbers are 0 .. @most; times are
 * "10us" (ns, us, ms, s), sizes "64K" (K, M, G: of 1024), both with decimals; yes or no.
 */
void yaml_number(struct yaml *yaml, const yaml_node_t *map, const char *key, uint64_t most,
		 uint64_t *value);
void yaml_time(struct yaml *yaml, const yaml_node_t *map, const char *key, uint64_t *ns);
void yaml_bytes(struct yaml *yaml, const yaml_node_t *map, const char *key, uint64_t most,
		uint64_t *bytes);
void yaml_bool(struct yaml *yaml, const yaml_node_t *map, const char *key, bool *value);

/* A number has a 0 before it: 010 is octal to YAML 1.1, decimal to 1.2, and refused. */
bool yaml_has_zero(const char *text);

/* "10us" alone; false: it is no time. */
bool yaml_read_time(const char *text, uint64_t *ns);

#endif
