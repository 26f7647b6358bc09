/* SPDX-License-Identifier: MIT */
/* Writes results, as text for people or as JSON ("gpupart/1") for programs. */
#ifndef GPUPART_CLI_UTIL_OUT_H
#define GPUPART_CLI_UTIL_OUT_H

#include <stdbool.h>
#include <stdio.h>
#include <jansson.h>
#include <gpupart_manage.h>
#include "cli/util/message.h"

struct args;

/* ------------------------------------------------------------ where to: out.c */

struct out {
	FILE *file;
	const char *path;	/* -o, or NULL: stdout */
	const char *bold, *dim, *red, *plain;	/* "" where there is no colour */
	bool utf8;
};

/* @args may be NULL (stdout). 0, or an error. */
int out_open(struct out *out, const struct args *args);

/* The same with -o's file, stdout or stderr, open already. */
void out_use(struct out *out, const struct args *args, FILE *file);

/*
 * 0, or an error: something that was written since out_open() did not arrive. @cmd may be NULL.
 */
int out_close(struct out *out);

/* Whether @path, which may be NULL, ends as a drawing's: without --of it is one. */
bool out_is_svg(const char *path);

/* -------------------------------------------------------- text: out_text.c */

#define OUT_COLUMNS 80
#define OUT_NOT_TOLD "not reported by this source"
#define OUT_SET_STRLEN (GPUPART_TPCSET_STRLEN + 256)

/*
 * "0-7,16", with the GPCs it covers whole after it: "4,12,20 (GPC 0)", "0,4,12,20 (GPC 0 and
 * 1 TPC)". Returns @text.
 */
const char *out_set(char *text, size_t len, const struct gpupart_topology *topo,
		    const struct gpupart_tpcset *set);

/* Adds to the string @text of @len bytes; what does not fit is cut. */
__attribute__((format(printf, 3, 4)))
void out_append(char *text, size_t len, const char *fmt, ...);

/*
 * "    LABEL text" in 80 columns, on with the text below itself where a line is full:
 * after a blank or, where it has none, a comma.
 */
void out_wrap(struct out *out, int indent, const char *label, const char *text);

/* The GPU in a line or two: name, PCI address, driver, chip; source; simulated. */
void out_gpu_text(struct out *out, const struct gpupart_topology *topo);

/*
 * A row of verify or doctor: a word in colour, a name, a sentence, details; what is
 * wider than 100 columns goes on below the sentence.
 */
void out_row(struct out *out, const char *word, bool bad, const char *name, const char *what,
	     const char *detail);

/* What to do about the row above. */
void out_advice(struct out *out, const char *advice);

/* What became of launches. */
void out_counters_text(struct out *out, const struct gpupart_counters *counters);

/* Numbers that are no TPCs (SMs, positions) in the same list form; they rise. */
void out_numbers(char *text, size_t len, const unsigned int *numbers, unsigned int nr);

/* -------------------------------------------------------- JSON: out_json.c */

/* JSON for which there is no memory ends the command from here on. */
void out_json_alloc(void);

/* An object with "schema", "command" and "simulated" in it. */
json_t *out_json_new(const char *command, bool simulated);

/* null where @value is negative or @text is empty. */
json_t *out_json_index(json_int_t value);
json_t *out_json_text(const char *text);
/* null where @value is 0. */
json_t *out_json_count(unsigned int value);

json_t *out_json_gpu(const struct gpupart_gpu_info *info);
json_t *out_json_set(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);
/* The same without "hex" and "whole_gpcs", which need a topology; null if empty. */
json_t *out_json_tpcs(const struct gpupart_tpcset *set);
json_t *out_json_counters(const struct gpupart_counters *counters);

/* Writes @root and drops it. */
void out_json_write(struct out *out, json_t *root);

#endif
