/* SPDX-License-Identifier: MIT */
/* Writes results as text or as JSON (schema "gpupart/1"). */
#ifndef GPUPART_CLI_UTIL_OUT_H
#define GPUPART_CLI_UTIL_OUT_H

#include <stdbool.h>
#include <stdio.h>
#include <jansson.h>
#include <gpupart_manage.h>
#include "cli/util/message.h"

struct args;

/* ------------------------------------------------------------ opening: out.c */

struct out {
	FILE *file;
	const char *path;	/* -o, or NULL for stdout */
	int err;		/* errno of the first failure of out_flush(), or 0 */
	const char *bold, *dim, *red, *plain;	/* escape sequences; "" without colour */
	bool utf8;
};

/* Opens the file of -o. If -o is absent or @args is NULL, uses stdout. Returns 0 or an error. */
int out_open(struct out *out, const struct args *args);

/*
 * Checks whether out_open() can later open the file of -o. Creates and changes no file. Returns 0
 * or an error.
 */
int out_check(const char *path);

/* Uses the open file @file for the output. */
void out_use(struct out *out, const struct args *args, FILE *file);

/* Writes the buffered output. An error is reported by out_close(). */
void out_flush(struct out *out);

/*
 * Closes the output. If a part of the output could not be written, returns an error. Otherwise
 * returns 0.
 */
int out_close(struct out *out);

/* Returns whether @path ends with ".svg". If @path is NULL, returns false. */
bool out_is_svg(const char *path);

/* -------------------------------------------------------- text: out_text.c */

#define OUT_COLUMNS 80
#define OUT_NOT_REPORTED "not reported by this source"
#define OUT_SET_STRLEN (GPUPART_TPCSET_STRLEN + 256)

/*
 * Formats a set and the whole GPCs in the set. Examples are "0-7,16", "4,12,20 (GPC 0)" and
 * "0,4,12,20 (GPC 0 and 1 TPC)". Returns @text.
 */
const char *out_set(char *text, size_t len, const struct gpupart_topology *topo,
		    const struct gpupart_tpcset *set);

/*
 * Appends text to the string @text. The buffer has @len bytes. If the result is too long, truncates
 * it.
 */
__attribute__((format(printf, 3, 4)))
void out_append(char *text, size_t len, const char *fmt, ...);

/*
 * Prints " LABEL text", wrapped to 80 columns. The second and later lines are indented to the
 * column of the text. Breaks a line after a blank. If the line has no blank, breaks it after a
 * comma.
 */
void out_wrap(struct out *out, int indent, const char *label, const char *text);

/* Prints a few lines about the GPU: name, PCI address, driver, chip, number of SMs, and source. */
void out_gpu_text(struct out *out, const struct gpupart_topology *topo);

/*
 * Prints a row of verify or doctor, wrapped to 100 columns. A row has a word in colour, a name, a
 * sentence and details.
 */
void out_row(struct out *out, const char *word, bool bad, const char *name, const char *what,
	     const char *detail);

/* Prints advice below a row. */
void out_advice(struct out *out, const char *advice);

/* Prints the counters of launches. */
void out_counters_text(struct out *out, const struct gpupart_counters *counters);

/*
 * Formats ascending numbers as a list. For example, the numbers are SM numbers or positions, but
 * not TPC numbers.
 */
void out_numbers(char *text, size_t len, const unsigned int *numbers, unsigned int nr);

/* -------------------------------------------------------- JSON: out_json.c */

/* After this call, the command ends if JSON functions get no memory. */
void out_json_alloc(void);

/* Creates an object with "schema", "command" and "simulated". */
json_t *out_json_new(const char *command, bool simulated);

/* If @value is negative or @text is empty, these functions return null. */
json_t *out_json_index(json_int_t value);
json_t *out_json_text(const char *text);
/* If @value is 0, returns null. */
json_t *out_json_count(unsigned int value);

json_t *out_json_gpu(const struct gpupart_gpu_info *info);
json_t *out_json_set(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);
/*
 * Returns the same object as out_json_set(), but without "hex" and "whole_gpcs". These two keys
 * need a topology. If the set is empty, returns null.
 */
json_t *out_json_tpcs(const struct gpupart_tpcset *set);
json_t *out_json_counters(const struct gpupart_counters *counters);

/* Writes @root and releases it. */
void out_json_write(struct out *out, json_t *root);

/*
 * Creates an object with out_json_new(), adds the list @rows with the key @key, and writes the
 * object. If @rows is NULL, does nothing.
 */
void out_json_list(struct out *out, const char *command, bool simulated, const char *key,
		   json_t *rows);

#endif
