/* SPDX-License-Identifier: MIT */
/*
 * Draws blocks over time, as SVG and as text. Each SM has a row, and time runs from left to right.
 * Charts of values can use the same time axis. If a picture has few blocks, each block is drawn. If
 * it has many blocks, slices of time show sums of blocks. All times are in ns.
 */
#ifndef GPUPART_CLI_DRAW_TIMELINE_H
#define GPUPART_CLI_DRAW_TIMELINE_H

#include "cli/draw/page.h"

#define TIMELINE_KINDS		PICTURE_SHORT_TAGS	/* one letter for each kind */
#define TIMELINE_UNITS		64	/* height of a row in units; @high of a block is in units */
#define TIMELINE_BLOCKS		20000	/* if there are more blocks, sums are drawn */
#define TIMELINE_SVG_SLICES	280	/* slices of three SVG units each */
#define TIMELINE_LEFT		(MARGIN + 150)	/* space for labels left of the plot */
#define TIMELINE_PLOT		840
#define TIMELINE_WIDTH		(TIMELINE_LEFT + TIMELINE_PLOT + 60)	/* width of the page */

/*
 * The rows of one TPC are consecutive and have the same @unit. The rows of one GPC have the same
 * @group.
 */
struct timeline_row {
	unsigned int gpu, group, unit;
	int smid;		/* -1: @unit is a copy engine */
	char head[256];	/* text above the row; of consecutive rows with the same text, only the
			 * first row shows the text */
	char name[16];		/* name of the group: "GPC 3", or "" */
};

struct timeline_block {
	uint64_t start, end, launch, block;
	unsigned int row, kind;
	uint16_t high;		/* height in units */
	uint16_t at;		/* units below the row's upper edge; timeline_svg() sets it */
};

struct timeline {
	/* The caller sets these members before timeline_make(). */
	uint64_t from, to;
	const char *when;	/* the text that follows "time in ms " */
	unsigned int nr_kinds;	/* at most TIMELINE_KINDS */
	bool sets;		/* the kinds are sets, whose letters the SVG shows after each TPC */
	bool lists;		/* TPCs of a group with the same text share one row of text */
	/* The caller sets these members before drawing. */
	const char *names[TIMELINE_KINDS];	/* the name of each kind */
	struct timeline_row *rows;

	/* The functions below set these members. */
	unsigned int nr_rows, nr_slices;
	double slice_ns;
	double *cells;		/* share of a row times ns, indexed by [row][slice][kind] */
	uint64_t nr_all;	/* number of blocks between @from and @to */
	unsigned int nr_blocks;
	struct timeline_block *blocks;	/* the first TIMELINE_BLOCKS of the nr_all blocks */
	unsigned int units;	/* maximum number of units that a row needs */
	unsigned int least;	/* units of the smallest block */
	bool sums;	/* there are too many blocks, or they are too small, to draw each block as
			 * a box */
};

/* Allocates rows and blocks. The caller then fills in the rows. */
void timeline_make(struct timeline *t, unsigned int nr_rows, unsigned int nr_slices);
void timeline_free(struct timeline *t);

/* Adds the part of a block that is between @t->from and @t->to. */
void timeline_add(struct timeline *t, struct timeline_block block);

/* Returns the TPCs of @gpu on which no block ran. */
struct gpupart_tpcset timeline_idle(const struct timeline *t, unsigned int gpu);

/* Draws the rows with their axis at page->y. */
void timeline_svg(struct timeline *t, struct page *page);

/*
 * Prints rows [@row, @end) in 80 columns, below the time axis. The text has a row for each TPC and
 * a column for each slice of time. The letter in a column is the letter of the kind that used most
 * of the slice.
 */
void timeline_text(const struct timeline *t, struct out *out, unsigned int row, unsigned int end);

/*
 * Writes the lines of the legend that explain rows and boxes. @block is the word that the legend
 * uses for a block.
 */
void timeline_words(const struct timeline *t, struct page *page, const char *block);

/* ---------------------------------------------------------- charts of values over time */

struct timeline_panel {
	struct page *page;
	uint64_t from, to;
	double top, height;
	uint64_t most;		/* the value at the upper edge */
};

/* Begins a chart below the present content of the page, with @title above the chart. */
void timeline_panel(struct timeline_panel *panel, double height, uint64_t most, const char *title);
double timeline_panel_x(const struct timeline_panel *panel, uint64_t ns);
double timeline_panel_y(const struct timeline_panel *panel, uint64_t value);
/*
 * Draws a horizontal line at @value, with @text to the left of the line. The line is dotted if
 * @style is "".
 */
void timeline_panel_mark(const struct timeline_panel *panel, uint64_t value, const char *text,
			 const char *style);
/* Draws the box of a kind between two values. Adds the kind's letter if it fits. */
void timeline_panel_box(const struct timeline_panel *panel, unsigned int kind, uint64_t from,
			uint64_t to, uint64_t low, uint64_t high);
/* Draws the time axis below the chart. Omits the name of the unit if @when is NULL. */
void timeline_panel_axis(const struct timeline_panel *panel, const char *when);

/* ------------------------------------------------------------------------------ numbers */

/*
 * Returns a step that divides @span into at most @max steps. The step is 1, 2 or 5 times a power
 * of ten.
 */
uint64_t timeline_step(uint64_t span, unsigned int max);

/* Returns the first multiple of @step that is not less than @from. */
uint64_t timeline_first(uint64_t from, uint64_t step);

/*
 * Selects the unit ("ns" to "s") for an axis with steps of @step_ns. Returns the length of the
 * unit in ns.
 */
uint64_t timeline_unit(uint64_t step_ns, const char **unit);

/* Writes the time @ns in the unit @unit_ns to @text, such as "12.5". Returns @text. */
const char *timeline_number(char *text, size_t len, uint64_t ns, uint64_t unit_ns);

/* -------------------------------------------------------- parts of both forms: timeline.c */

/*
 * timeline_group_rows() returns how many rows, from @row on, belong to the group of @row.
 * timeline_unit_rows() returns how many of these rows belong to the TPC or the copy engine of
 * @row.
 */
unsigned int timeline_group_rows(const struct timeline *t, unsigned int row);
unsigned int timeline_unit_rows(const struct timeline *t, unsigned int row);

/*
 * Returns an array with a value for each kind. The value is the share of the row that blocks of the
 * kind used in the slice, multiplied by the time in ns that they used it.
 */
double *timeline_cell(const struct timeline *t, unsigned int row, unsigned int slice);

/*
 * Returns the kind that used most of a slice in the @nr rows from @row on, or -1 if no kind used
 * the slice.
 */
int timeline_longest(const struct timeline *t, unsigned int row, unsigned int nr,
		     unsigned int slice);

/*
 * timeline_has() returns whether a block of @kind ran in one of the @nr rows from @row on.
 * timeline_is_idle() returns whether no block ran on the TPC whose first row is @row.
 */
bool timeline_has(const struct timeline *t, unsigned int row, unsigned int nr, unsigned int kind);
bool timeline_is_idle(const struct timeline *t, unsigned int row);

/*
 * Places the blocks of each SM in its row so that blocks that ran at the same time do not
 * overlap.
 */
void timeline_place(struct timeline *t);

#endif
