/* SPDX-License-Identifier: MIT */
/* gpupart top: frames of the model of jobs and programs, and the terminal. */
#ifndef GPUPART_CLI_TOP_TOP_H
#define GPUPART_CLI_TOP_TOP_H

#include "cli/target/model.h"
#include "cli/target/nvml.h"

/* The state of a GPU of the model, from NVIDIA's management library. */
struct top_gpu {
	bool told;
	struct nvml_state state;
	uint64_t memory_used, memory;	/* @memory 0: not known */
};

struct top {
	int (*set)(int argc, char **argv);	/* 'gpupart set' */
	struct model model;
	struct top_gpu gpus[MODEL_MAX_GPUS];
	unsigned int nr_gpus;		/* of them */
	unsigned int nr_letters;	/* one above the highest */
};

#define TOP_LISTS_AGE 2	/* seconds, of jobs and tenants: they change seldom */

/*
 * Takes the model anew, with jobs and tenants at most @age seconds old, gives letters and asks what
 * GPUs do: 0, or an error.
 */
int top_take(struct top *top, double age);

/* ------------------------------------------------------------- frames: frame.c */

enum top_sort {
	TOP_BY_LETTER, TOP_BY_BUSY, TOP_BY_LAUNCHES, TOP_BY_MEMORY, TOP_BY_SCORE, TOP_BY_NAME,
	TOP_BY_USER,
	TOP_NR_SORTS,
};

enum top_page { TOP_LIST, TOP_DETAILS, TOP_HELP };

/* Styles of a cell; from TOP_TENANT on the colour of a job. */
enum top_style { TOP_PLAIN, TOP_BOLD, TOP_DIM, TOP_RED, TOP_REVERSE, TOP_TENANT };

/* The user's choices, and a frame. */
struct top_view {
	unsigned int gpu;
	enum top_sort sort;
	bool reverse;
	enum top_page page;
	char filter[64];
	char key[MODEL_KEY_STRLEN];	/* the chosen row, or "" */
	unsigned int row, first, room;	/* its place; the row at the top; rows that fit */
	bool has_scores;		/* a row here has one */
	char footer[512];		/* a question or a message; "": the keys */
	bool stale;			/* something was changed: look again at once */

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
		       const struct model_row ***shown);

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

/* Shows @top until a key or signal ends it, or for @count looks (0: no end): 0, or an error. */
int top_show(struct top *top, double seconds, unsigned long count);

/* Handles a key. False: top ends. */
bool top_key(struct top *top, struct top_view *view, int key);

#endif
