/* SPDX-License-Identifier: MIT */
/*
 * How results are written: as text for people, as JSON ("gpupart/1") for programs.
 * Knows no command's logic.
 */
#ifndef GPUPART_CLI_OUT_H
#define GPUPART_CLI_OUT_H

#include <stdbool.h>
#include <stdio.h>
#include <jansson.h>
#include <gpupart.h>

struct args;

/* ------------------------------------------------------------ where to: out.c */

struct out {
	FILE *file;
	const char *path;	/* -o, or NULL: stdout */
	const char *bold, *dim, *red, *plain;	/* "" where there is no colour */
	bool utf8;
};

/* @args may be NULL (stdout). A status with the line written, or -1 to go on. */
int out_open(struct out *out, const struct args *args);

/* The same with -o's file, or stdout, open already. */
void out_use(struct out *out, const struct args *args, FILE *file);

/*
 * Says on stderr if anything written since out_open() did not arrive: EXIT_DONE or
 * EXIT_FAILED. @cmd may be NULL.
 */
int out_close(struct out *out, const char *cmd);

/* Says so and ends the command: half a result looks like a whole one. */
void out_no_memory(void) __attribute__((noreturn));

/* Whether @path, which may be NULL, ends as a drawing's: without --of it is one. */
bool out_is_svg(const char *path);

/*
 * Puts a '?' in the place of every byte of @text that is a control character, a part of
 * one, or no UTF-8. Returns @text.
 */
char *out_clean(char *text);

/* -------------------------------------------------------- text: out_text.c */

#define OUT_SET_STRLEN (GPUPART_TPCSET_STRLEN + 256)

/* "0-7,16", with the GPCs it covers whole after it: "4,12,20 (GPC 0)". Returns @text. */
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
 * After an empty line a row a GPC: its TPCs, its fuse positions beside them. Nothing
 * where that is wider than 80 columns.
 */
void out_picture(struct out *out, const struct gpupart_topology *topo);

/* All of it. */
void out_topology_text(struct out *out, const struct gpupart_topology *topo);

/*
 * A sign a TPC in the order of uGPUs and GPCs, GPCs apart where the line has room for
 * it: which of them are in @set. @label takes up to 10 columns.
 */
void out_strip(struct out *out, const struct gpupart_topology *topo, const char *label,
	       const struct gpupart_tpcset *set);

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

/* Whether @tpc is a virtual GPC of its own beside those that GPCs are. */
bool out_is_singleton(const struct gpupart_topology *topo, unsigned int tpc);

/* GPCs in the order they are shown: by uGPU, then by number. Returns how many. */
unsigned int out_order_gpcs(const struct gpupart_topology *topo,
			    unsigned int order[GPUPART_MAX_GPCS]);

/* The virtual GPC that a GPC's TPCs are in, singletons apart; -1 not told. */
int out_main_vgpc(const struct gpupart_topology *topo, const struct gpupart_gpc *gpc);

/* Numbers that are no TPCs (SMs, positions) in the same list form; they rise. */
void out_numbers(char *text, size_t len, const unsigned int *numbers, unsigned int nr);

/* The SMs of a set. */
unsigned int out_nr_sms(const struct gpupart_topology *topo, const struct gpupart_tpcset *tpcs);

/*
 * Physical GPCs that are floorswept: how many, those that are known by name in @gpcs. -1
 * where the source does not tell.
 */
int out_floorswept_gpcs(const struct gpupart_topology *topo, unsigned int gpcs[GPUPART_MAX_GPCS],
			unsigned int *nr_known);

/* -------------------------------------------------------- JSON: out_json.c */

/* An object with "schema", "command" and "simulated" in it. */
json_t *out_json_new(const char *command, bool simulated);

/* null where @value is negative or @text is empty. */
json_t *out_json_index(int value);
json_t *out_json_text(const char *text);

json_t *out_json_gpu(const struct gpupart_gpu_info *info);
json_t *out_json_set(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);
json_t *out_json_counters(const struct gpupart_counters *counters);
void out_json_topology(json_t *root, const struct gpupart_topology *topo);

/* Writes @root and drops it. */
void out_json_write(struct out *out, json_t *root);

#endif
