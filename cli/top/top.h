/* SPDX-License-Identifier: MIT */
/* What gpupart top shows: GPUs, jobs and their programs; frames of it; the terminal. */
#ifndef GPUPART_CLI_TOP_TOP_H
#define GPUPART_CLI_TOP_TOP_H

#include "cli/target/look.h"
#include "cli/target/nvml.h"
#include "cli/target/usage.h"

/* ------------------------------------------------------------- what there is: model.c */

#define TOP_MAX_GPUS	64
#define TOP_KEY_STRLEN	160

struct top_gpu {
	char pci[20], source[512];
	bool simulated;
	bool told;		/* NVIDIA's management library is asked about it */
	const struct gpupart_topology *topo;	/* NULL: not known */
	struct nvml_state state;
	uint64_t memory_used, memory;	/* @memory 0: not known */
};

/* A job on one GPU, or a program of it. A program that is in no job is one of its own too. */
struct top_row {
	char key[TOP_KEY_STRLEN];	/* no other row's */
	char id[GPUPART_JOB_STRLEN], name[64];
	unsigned int uid, gpu, letter;	/* letter as in picture_tag() */
	int job;			/* place of a program's job; -1: this is a job */
	unsigned int nr;		/* programs */
	const struct gpupart_process *process;	/* the program, of a job the last; NULL: none */
	const struct usage_row *usage;	/* of a program */
	bool open;			/* a job's programs are shown */
	bool limited;			/* else @set is all TPCs */
	struct gpupart_tpcset set;
	/* Of a job the sums of its programs; below 0: not known. */
	double busy, gpu_busy, launches_per_s;	/* @busy 0 to 1; @gpu_busy of the whole GPU */
	bool partial;			/* there were launches that are not in @busy */
	uint64_t launches, outside, quota;
	int64_t memory;
	const char *problem;		/* why one is not confined, or "" */
};

struct top {
	int (*set)(int argc, char **argv);	/* 'gpupart set' */
	struct look look;
	struct usage usage;
	struct gpupart_process *processes;	/* one for each GPU of a process */
	unsigned int nr_processes, nr_gpus, nr_rows, nr_looks;
	struct top_gpu gpus[TOP_MAX_GPUS];
	struct top_row *rows;
	unsigned int nr_letters;	/* one above the highest */
};

/* Finds this machine's GPUs, or the simulated one that @args means. @top begins as all zero. */
void top_begin(struct top *top, const struct args *args);
/* Replaces all rows by those of now: 0, or an error. */
int top_take(struct top *top);
void top_end(struct top *top);

struct top_row *top_find(const struct top *top, const char *key);

/* The name of user @uid, or its number; printable ASCII. */
const char *top_user(unsigned int uid);

/* ------------------------------------------------------------- frames: frame.c */

enum top_sort {
	TOP_BY_LETTER, TOP_BY_BUSY, TOP_BY_LAUNCHES, TOP_BY_MEMORY, TOP_BY_NAME, TOP_BY_USER,
	TOP_NR_SORTS,
};

enum top_page { TOP_LIST, TOP_DETAILS, TOP_HELP };

/* Styles of a cell; from TOP_TENANT on the colour of a job. */
enum top_style { TOP_PLAIN, TOP_BOLD, TOP_DIM, TOP_RED, TOP_REVERSE, TOP_TENANT };

/* What is chosen, and a frame of it. */
struct top_view {
	unsigned int gpu;
	enum top_sort sort;
	bool reverse;
	enum top_page page;
	char filter[64];
	char key[TOP_KEY_STRLEN];	/* the chosen row, or "" */
	unsigned int row, first, room;	/* its place; the row at the top; rows that fit */
	char footer[512];		/* a question or a message; "": the keys */
	bool stale;			/* something was changed: another look is wanted */

	unsigned int width, height;
	struct top_cell {
		char bytes[4];		/* of one character in one column; "" is a blank */
		unsigned char style;
	} *cells;
};

#define TOP_LEAST_WIDTH		30
#define TOP_LEAST_HEIGHT	8

/* Draws a frame of @width columns and @height lines into view->cells. */
void top_frame(struct top_view *view, const struct top *top, unsigned int width,
	       unsigned int height);

/* The rows that the list shows. The caller frees *shown. Returns how many. */
unsigned int top_shown(const struct top_view *view, const struct top *top,
		       const struct top_row ***shown);

/* ------------------------------------------------------------- cells.c */

/* Text from column @x of line @y on, cut at the frame's edge. Returns the column behind it. */
__attribute__((format(printf, 5, 6)))
unsigned int top_put(struct top_view *view, unsigned int y, unsigned int x, unsigned int style,
		     const char *fmt, ...);

/* Without the blank lines at its end. */
void top_print(struct out *out, const struct top_view *view);

/* ------------------------------------------------------------- map.c */

/* The map from line @y on, in at most @lines lines. Returns how many it takes; 0: no room. */
unsigned int top_map(struct top_view *view, const struct top *top, unsigned int y,
		     unsigned int lines);

/* ------------------------------------------------------------- the terminal: screen.c, keys.c */

/* Whether stdin and stdout are a terminal that can show it. */
bool top_has_screen(void);

/* Shows it until a key or signal ends it, or for @count looks (0: no end): 0, or an error. */
int top_show(struct top *top, double seconds, unsigned long count);

/* Does what the key says. False: it ends. */
bool top_key(struct top *top, struct top_view *view, int key);

#endif
