/* SPDX-License-Identifier: MIT */
/* gpupart top: frames of the model of jobs and programs, and the terminal. */
#ifndef GPUPART_CLI_TOP_TOP_H
#define GPUPART_CLI_TOP_TOP_H

#include <signal.h>
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
	unsigned int nr_gpus;		/* number of used entries of @gpus */
	unsigned int nr_letters;	/* 1 + the highest letter in use */
};

#define TOP_LISTS_AGE 2	/* maximum age in seconds of lists that seldom change: jobs, tenants */

/*
 * Updates the model, assigns letters to its jobs and reads the state of the GPUs. The lists of
 * jobs and tenants may be up to @age seconds old. Returns 0 or an error.
 */
int top_take(struct top *top, double age);

/* ------------------------------------------------------------- frames: frame.c */

enum top_sort {
	TOP_BY_LETTER, TOP_BY_BUSY, TOP_BY_LAUNCHES, TOP_BY_MEMORY, TOP_BY_SCORE, TOP_BY_NAME,
	TOP_BY_USER,
	TOP_NR_SORTS,
};

enum top_page { TOP_LIST, TOP_DETAILS, TOP_HELP };

/* Styles of a cell. TOP_TENANT and higher values are the colours of jobs. */
enum top_style { TOP_PLAIN, TOP_BOLD, TOP_DIM, TOP_RED, TOP_REVERSE, TOP_TENANT };

/* The choices of the user, and the cells of one frame. */
struct top_view {
	unsigned int gpu;
	enum top_sort sort;
	bool reverse;
	enum top_page page;
	char filter[64];
	char key[MODEL_KEY_STRLEN];	/* the chosen row, or "" */
	/* index of the chosen row; index of the top row; number of rows that fit */
	unsigned int row, first, room;
	bool has_scores;		/* at least one row has a score */
	char footer[512];		/* a question or a message; "": list the keys */
	bool stale;			/* a key changed something: update the model at once */

	unsigned int width, height;
	struct top_cell {
		char bytes[4];		/* one character of one column; "" is a blank */
		unsigned char style;
	} *cells;
};

#define TOP_LEAST_WIDTH		30
#define TOP_LEAST_HEIGHT	8

/* Draws a frame of @width columns and @height lines into view->cells. */
void top_frame(struct top_view *view, const struct top *top, unsigned int width,
	       unsigned int height);

/* Stores the rows that the list shows in *shown, which the caller frees. Returns their number. */
unsigned int top_shown(const struct top_view *view, const struct top *top,
		       const struct model_row ***shown);

/*
 * Writes text into line @y, from column @x up to the edge of the frame. Returns the column after
 * the text.
 */
__attribute__((format(printf, 5, 6)))
unsigned int top_put(struct top_view *view, unsigned int y, unsigned int x, unsigned int style,
		     const char *fmt, ...);

/* Prints the frame without the blank lines at its end. */
void top_print(struct out *out, const struct top_view *view);

/* ------------------------------------------------------------- map.c */

/*
 * Draws the map from line @y, in at most @lines lines. Returns the number of lines that it uses,
 * or 0 if there is not enough room.
 */
unsigned int top_map(struct top_view *view, const struct top *top, unsigned int y,
		     unsigned int lines);

/* ------------------------------------------------------------- the terminal: screen.c, keys.c */

/* A signal of top_end_on() has arrived. */
extern volatile sig_atomic_t top_ended;
void top_end_on(int sig);

/* Returns whether stdin and stdout are a terminal that can show frames. */
bool top_has_screen(void);

/*
 * Shows @top and updates it every @seconds, until a key or a signal ends it, or after @count
 * updates (0: no limit). Returns 0 or an error.
 */
int top_show(struct top *top, double seconds, unsigned long count);

/* Handles a key. Returns false if the key ends top. */
bool top_key(struct top *top, struct top_view *view, int key);

#endif
