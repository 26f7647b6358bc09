/* SPDX-License-Identifier: MIT */
/*
 * Blocks over time: a row an SM, time from left to right, as SVG and as text; and panels of values
 * over the same axis. Blocks are drawn one by one if they are few, else as sums in slices of time.
 * All times are ns.
 */
#ifndef GPUPART_CLI_DRAW_TIMELINE_H
#define GPUPART_CLI_DRAW_TIMELINE_H

#include "cli/draw/page.h"

#define TIMELINE_KINDS		PICTURE_SHORT_TAGS	/* a letter each */
#define TIMELINE_UNITS		64	/* of a row: a block has @high of them */
#define TIMELINE_BLOCKS		20000	/* more are drawn as sums */
#define TIMELINE_SVG_SLICES	280	/* three wide each */
#define TIMELINE_LEFT		(MARGIN + 150)	/* GPC, TPC and SMs stand before it */
#define TIMELINE_PLOT		840
#define TIMELINE_WIDTH		(TIMELINE_LEFT + TIMELINE_PLOT + 60)	/* of a page */

/* Rows of one TPC are neighbours and have the same unit, those of one GPC the same group. */
struct timeline_row {
	unsigned int gpu, group, unit;
	int smid;		/* -1: @unit is a copy engine */
	char head[256];		/* a line over the first row that has another than the one before */
	char name[16];		/* the group's: "GPC 3", or "" */
};

struct timeline_block {
	uint64_t start, end, launch, block;
	unsigned int row, kind;
	uint16_t high;		/* of TIMELINE_UNITS */
	uint16_t at;		/* from the row's upper edge: found by timeline_svg() */
};

struct timeline {
	/* The caller's, before timeline_make(). */
	uint64_t from, to;
	const char *when;	/* follows "time in ms " */
	unsigned int nr_kinds;	/* at most TIMELINE_KINDS */
	bool sets;		/* kinds are sets: SVG has their letters behind each TPC */
	bool lists;		/* TPCs of a group that look alike share a row of text */
	/* Before it is drawn. */
	const char *names[TIMELINE_KINDS];	/* of kinds */
	struct timeline_row *rows;

	/* Set by the functions below. */
	unsigned int nr_rows, nr_slices;
	double slice_ns;
	double *cells;		/* part of a row times ns: [row][slice][kind] */
	uint64_t nr_all;	/* blocks in that time */
	unsigned int nr_blocks;
	struct timeline_block *blocks;	/* the first TIMELINE_BLOCKS of them */
	unsigned int units;	/* that the fullest row needs */
	unsigned int least;	/* units of the smallest block */
	bool sums;		/* blocks are too many, or too small, to be drawn one by one */
};

/* Makes room for rows, which the caller fills in, and blocks. */
void timeline_make(struct timeline *t, unsigned int nr_rows, unsigned int nr_slices);
void timeline_free(struct timeline *t);

/* What of the block is between @t->from and @t->to becomes a part of the picture. */
void timeline_add(struct timeline *t, struct timeline_block block);

/* The TPCs of @gpu that had no block. */
struct gpupart_tpcset timeline_idle(const struct timeline *t, unsigned int gpu);

/* The rows with their axis, at @page's y. */
void timeline_svg(struct timeline *t, struct page *page);

/*
 * Rows [@row, @end) in 80 columns and the axis over them: a row a TPC, a column a slice of time
 * with the letter of the kind that had most of it.
 */
void timeline_text(const struct timeline *t, struct out *out, unsigned int row, unsigned int end);

/* Lines of the legend: what a row and a box are; @block is what a box is called. */
void timeline_words(const struct timeline *t, struct page *page, const char *block);

/* ---------------------------------------------------------- panels of values over time */

struct timeline_panel {
	struct page *page;
	uint64_t from, to;
	double top, height;
	uint64_t most;		/* the value at its upper edge */
};

/* A frame with @title over it, below what the page has. */
void timeline_panel(struct timeline_panel *panel, double height, uint64_t most, const char *title);
double timeline_panel_x(const struct timeline_panel *panel, uint64_t ns);
double timeline_panel_y(const struct timeline_panel *panel, uint64_t value);
/* A line across it at @value, @text before it; @style "": dotted. */
void timeline_panel_mark(const struct timeline_panel *panel, uint64_t value, const char *text,
			 const char *style);
/* A kind's box between two values; its letter in it if there is room. */
void timeline_panel_box(const struct timeline_panel *panel, unsigned int kind, uint64_t from,
			uint64_t to, uint64_t low, uint64_t high);
/* Times below it; @when NULL: without the unit. */
void timeline_panel_axis(const struct timeline_panel *panel, const char *when);

/* ------------------------------------------------------------------------------ numbers */

/* 1, 2 or 5 times a power of ten: a step that makes at most @max of @span. */
uint64_t timeline_step(uint64_t span, unsigned int max);

/* The first multiple of @step from @from on. */
uint64_t timeline_first(uint64_t from, uint64_t step);

/* The unit ("ns" to "s") in which an axis with that step is best written: so many ns. */
uint64_t timeline_unit(uint64_t step_ns, const char **unit);

/* "12.5" of @ns in @unit_ns. Returns @text. */
const char *timeline_number(char *text, size_t len, uint64_t ns, uint64_t unit_ns);

/* -------------------------------------------------- what both forms are made of: timeline.c */

/* How many rows from @row on are of its group; of its TPC, or copy engine. */
unsigned int timeline_group_rows(const struct timeline *t, unsigned int row);
unsigned int timeline_unit_rows(const struct timeline *t, unsigned int row);

/* What blocks of a kind had of a row in a slice: their parts of it, times ns. */
double *timeline_cell(const struct timeline *t, unsigned int row, unsigned int slice);

/* The kind that had most of a slice in rows @row and the @nr - 1 after it; -1: none had any. */
int timeline_longest(const struct timeline *t, unsigned int row, unsigned int nr,
		     unsigned int slice);

/* Whether those rows had a block of @kind; whether the TPC that begins at @row had none. */
bool timeline_has(const struct timeline *t, unsigned int row, unsigned int nr, unsigned int kind);
bool timeline_is_idle(const struct timeline *t, unsigned int row);

/* Gives blocks that are on an SM together places of their own in its row. */
void timeline_place(struct timeline *t);

#endif
