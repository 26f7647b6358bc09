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
	const char *bold, *dim, *red, *plain;	/* escape sequences; "" without colour */
	bool utf8;
};

/*
 * Opens the file of -o or, without -o, stdout. Opens stdout if @args is NULL. Returns 0 or an
 * error.
 */
int out_open(struct out *out, const struct args *args);

/*
 * Checks that out_open() can open the file of -o later. Creates and changes no file. Returns 0 or
 * an error.
 */
int out_check(const char *path);

/* Uses @file, which is open already, as the output. */
void out_use(struct out *out, const struct args *args, FILE *file);

/* Closes the output. Returns 0, or an error if a part of the output could not be written. */
int out_close(struct out *out);

/* Returns whether @path ends with .svg. Returns false if @path is NULL. */
bool out_is_svg(const char *path);

/* -------------------------------------------------------- text: out_text.c */

#define OUT_COLUMNS 80
#define OUT_NOT_REPORTED "not reported by this source"
#define OUT_SET_STRLEN (GPUPART_TPCSET_STRLEN + 256)

/*
 * Formats a set, followed by its whole GPCs. Examples: "0-7,16", "4,12,20 (GPC 0)", "0,4,12,20 (GPC
 * 0 and 1 TPC)". Returns @text.
 */
const char *out_set(char *text, size_t len, const struct gpupart_topology *topo,
		    const struct gpupart_tpcset *set);

/*
 * Appends to the string @text, which is in a buffer of @len bytes. Truncates the result if needed.
 */
__attribute__((format(printf, 3, 4)))
void out_append(char *text, size_t len, const char *fmt, ...);

/*
 * Prints " LABEL text" wrapped to 80 columns. Further lines begin below the text. Breaks a line
 * after a blank. If the line has no blank, breaks it after a comma.
 */
void out_wrap(struct out *out, int indent, const char *label, const char *text);

/* Prints the GPU in a few lines: name, PCI address, driver, chip, numbers of SMs, source. */
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
 * Formats ascending numbers in list form. The numbers are not the numbers of TPCs but, for
 * example, of SMs or positions.
 */
void out_numbers(char *text, size_t len, const unsigned int *numbers, unsigned int nr);

/* -------------------------------------------------------- JSON: out_json.c */

/* After this call, the command ends if there is no memory for JSON. */
void out_json_alloc(void);

/* Creates an object with "schema", "command" and "simulated". */
json_t *out_json_new(const char *command, bool simulated);

/* Return null if @value is negative or @text is empty. */
json_t *out_json_index(json_int_t value);
json_t *out_json_text(const char *text);
/* Returns null if @value is 0. */
json_t *out_json_count(unsigned int value);

json_t *out_json_gpu(const struct gpupart_gpu_info *info);
json_t *out_json_set(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);
/*
 * Returns the same object as out_json_set(), but without "hex" and "whole_gpcs", because these
 * keys need a topology. Returns null for an empty set.
 */
json_t *out_json_tpcs(const struct gpupart_tpcset *set);
json_t *out_json_counters(const struct gpupart_counters *counters);

/* Writes @root and releases it. */
void out_json_write(struct out *out, json_t *root);

/* Writes an object of out_json_new() with the list @rows as @key. Does nothing if @rows is NULL. */
void out_json_list(struct out *out, const char *command, bool simulated, const char *key,
		   json_t *rows);

#endif
