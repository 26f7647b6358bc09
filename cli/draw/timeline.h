/* SPDX-License-Identifier: MIT */
/*
 * Draws blocks over time, as SVG and as text. Each SM has a row, and time runs from left to right.
 * Charts of values can use the same time axis. If there are few blocks, each block is drawn. If
 * there are many blocks, the picture shows sums of blocks in slices of time. All times are in ns.
 */
#ifndef GPUPART_CLI_DRAW_TIMELINE_H
#define GPUPART_CLI_DRAW_TIMELINE_H

#include "cli/draw/page.h"

#define TIMELINE_KINDS		PICTURE_SHORT_TAGS	/* one letter for each kind */
#define TIMELINE_UNITS		64	/* height of a row in units */
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
	char head[256];	/* text above the row; a row does not repeat the text of the row above */
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
	const char *when;	/* the text after "time in ms " */
	unsigned int nr_kinds;	/* at most TIMELINE_KINDS */
	bool sets;		/* kinds are sets; SVG has letters after each TPC */
	bool lists;		/* if TPCs of a group have the same text, print it once */
	/* The caller sets these members before drawing. */
	const char *names[TIMELINE_KINDS];	/* the name of each kind */
	struct timeline_row *rows;

	/* The functions below set these members. */
	unsigned int nr_rows, nr_slices;
	double slice_ns;
	double *cells;		/* share of a row, multiplied by ns; index: [row][slice][kind] */
	uint64_t nr_all;	/* number of blocks between @from and @to */
	unsigned int nr_blocks;
	struct timeline_block *blocks;	/* the first TIMELINE_BLOCKS of the nr_all blocks */
	unsigned int units;	/* maximum number of units that a row needs */
	unsigned int least;	/* units of the smallest block */
	bool sums;	/* the blocks are too many or too small for separate boxes */
};

/* Allocates rows and blocks. The caller then fills in the rows. */
void timeline_make(struct timeline *t, unsigned int nr_rows, unsigned int nr_slices);
void timeline_free(struct timeline *t);

/* Adds a block. Ignores the parts of the block before @t->from and after @t->to. */
void timeline_add(struct timeline *t, struct timeline_block block);

/* Returns the TPCs of @gpu on which no block ran. */
struct gpupart_tpcset timeline_idle(const struct timeline *t, unsigned int gpu);

/* Draws the rows with their axis at page->y. */
void timeline_svg(struct timeline *t, struct page *page);

/*
 * Prints the time axis, and then rows from @row up to but not including @end, in 80 columns. The
 * text has a row for each TPC and a column for each slice of time. A column shows the letter of the
 * kind that used most of the slice.
 */
void timeline_text(const struct timeline *t, struct out *out, unsigned int row, unsigned int end);

/*
 * Writes the lines of the legend that explain rows and boxes. The legend uses the word @block for a
 * block.
 */
void timeline_words(const struct timeline *t, struct page *page, const char *block);

/* ---------------------------------------------------------- charts of values over time */

struct timeline_panel {
	struct page *page;
	uint64_t from, to;
	double top, height;
	uint64_t most;		/* the value at the upper edge */
};

/* Begins a chart below the present content of the page. Writes @title above the chart. */
void timeline_panel(struct timeline_panel *panel, double height, uint64_t most, const char *title);
double timeline_panel_x(const struct timeline_panel *panel, uint64_t ns);
double timeline_panel_y(const struct timeline_panel *panel, uint64_t value);
/*
 * Draws a horizontal line at @value. Writes @text on the left of the line. If @style is "", the
 * line is dotted.
 */
void timeline_panel_mark(const struct timeline_panel *panel, uint64_t value, const char *text,
			 const char *style);
/*
 * Draws the box of a kind between two values. If there is room, writes the kind's letter in the
 * box.
 */
void timeline_panel_box(const struct timeline_panel *panel, unsigned int kind, uint64_t from,
			uint64_t to, uint64_t low, uint64_t high);
/* Draws the time axis below the chart. If @when is NULL, omits the name of the unit. */
void timeline_panel_axis(const struct timeline_panel *panel, const char *when);

/* ------------------------------------------------------------------------------ numbers */

/*
 * Returns the size of a step. The span @span contains at most @max steps. The size is 1, 2 or 5
 * times a power of ten.
 */
uint64_t timeline_step(uint64_t span, unsigned int max);

/* Returns the first multiple of @step that is not less than @from. */
uint64_t timeline_first(uint64_t from, uint64_t step);

/*
 * Selects the unit, from "ns" to "s", for an axis with steps of @step_ns. Returns the length of the
 * unit in ns.
 */
uint64_t timeline_unit(uint64_t step_ns, const char **unit);

/*
 * Divides the time @ns by the unit @unit_ns. Writes the result, such as "12.5", to @text. Returns
 * @text.
 */
const char *timeline_number(char *text, size_t len, uint64_t ns, uint64_t unit_ns);

/* -------------------------------------------------------- parts of both forms: timeline.c */

/*
 * These functions count rows from @row on. The first function counts rows in the group of @row. The
 * second function counts rows of the TPC or the copy engine of @row.
 */
unsigned int timeline_group_rows(const struct timeline *t, unsigned int row);
unsigned int timeline_unit_rows(const struct timeline *t, unsigned int row);

/*
 * Returns an array with a value for each kind. The value is the sum over the kind's blocks in the
 * slice. Each block contributes its share of the row, multiplied by its time in ns.
 */
double *timeline_cell(const struct timeline *t, unsigned int row, unsigned int slice);

/*
 * Examines a slice in the @nr rows from @row on. Returns the kind that used most of the slice. If
 * no kind used the slice, returns -1.
 */
int timeline_longest(const struct timeline *t, unsigned int row, unsigned int nr,
		     unsigned int slice);

/*
 * The first function returns whether a block of @kind ran in one of the @nr rows from @row on. The
 * second function returns whether the TPC with the first row @row ran no block.
 */
bool timeline_has(const struct timeline *t, unsigned int row, unsigned int nr, unsigned int kind);
bool timeline_is_idle(const struct timeline *t, unsigned int row);

/* Places blocks in the rows of their SMs. Blocks that ran at the same time do not overlap. */
void timeline_place(struct timeline *t);

#endif
