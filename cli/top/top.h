/* SPDX-License-Identifier: MIT */
/* Declarations of `gpupart top`: the state of the command, frames, and the terminal. */
#ifndef GPUPART_CLI_TOP_TOP_H
#define GPUPART_CLI_TOP_TOP_H

#include <signal.h>
#include "cli/target/model.h"
#include "cli/target/nvml.h"

/* The state of a GPU. NVIDIA's management library reports the state. */
struct top_gpu {
	bool reported;
	struct nvml_state state;
	int64_t memory_used, memory;	/* bytes; -1: not known */
};

struct top {
	int (*set)(int argc, char **argv);	/* 'gpupart set' */
	struct model model;
	struct top_gpu gpus[MODEL_MAX_GPUS];
	unsigned int nr_gpus;		/* number of used entries of @gpus */
	unsigned int nr_letters;	/* 1 + the number of the highest used letter */
};

#define TOP_LISTS_AGE 2	/* maximum age, in seconds, of the lists of jobs and tenants */

/*
 * Updates the model. Assigns letters to jobs, and reads the states of the GPUs. The lists of jobs
 * and tenants may be @age seconds old. Returns 0 or an error.
 */
int top_take(struct top *top, double age);

/* ------------------------------------------------------------- frames: frame.c */

enum top_sort {
	TOP_BY_LETTER, TOP_BY_BUSY, TOP_BY_LAUNCHES, TOP_BY_MEMORY, TOP_BY_SCORE, TOP_BY_NAME,
	TOP_BY_USER,
	TOP_NR_SORTS,
};

enum top_page { TOP_LIST, TOP_DETAILS, TOP_HELP };

/* Styles of a cell. The values from TOP_TENANT on are the colours of jobs. */
enum top_style { TOP_PLAIN, TOP_BOLD, TOP_DIM, TOP_RED, TOP_REVERSE, TOP_TENANT };

/* The choices of the user, and the cells of one frame. */
struct top_view {
	unsigned int gpu;
	enum top_sort sort;
	bool reverse;
	enum top_page page;
	char filter[64];
	char key[MODEL_KEY_STRLEN];	/* the chosen row, or "" */
	/* indexes of chosen row and top row; number of visible rows */
	unsigned int row, first, room;
	bool has_scores;		/* at least one row has a score */
	char footer[512];		/* a question or a message; "": list the keys */
	bool stale;			/* a key made a change: update the model now */

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

/*
 * Stores the visible rows of the list in *shown. The caller frees *shown. Returns the number of
 * these rows.
 */
unsigned int top_shown(const struct top_view *view, const struct top *top,
		       const struct model_row ***shown);

/*
 * Writes text into line @y, beginning in column @x. Cuts the text at the edge of the frame. Returns
 * the column after the text.
 */
__attribute__((format(printf, 5, 6)))
unsigned int top_put(struct top_view *view, unsigned int y, unsigned int x, unsigned int style,
		     const char *fmt, ...);

/* Prints the frame without the blank lines at its end. */
void top_print(struct out *out, const struct top_view *view);

/* ------------------------------------------------------------- map.c */

/*
 * Draws the map, beginning in line @y, in at most @lines lines. Returns the number of lines. If
 * there is not enough room, returns 0.
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
 * Shows @top, and updates @top every @seconds seconds. A key, a signal or the number of updates
 * @count ends the display. If @count is 0, the number of updates has no limit. Returns 0 or an
 * error.
 */
int top_show(struct top *top, double seconds, unsigned long count);

/* Handles a key. If the key ends the command, returns false. */
bool top_key(struct top *top, struct top_view *view, int key);

#endif
