/* SPDX-License-Identifier: MIT */
/*
 * A page of a drawing: boxes, lines and text as SVG; the lines about the GPU at its head, words,
 * the legend of tenants.
 */
#ifndef GPUPART_CLI_DRAW_PAGE_H
#define GPUPART_CLI_DRAW_PAGE_H

#include <math.h>
#include "cli/draw/palette.h"
#include "cli/draw/picture.h"

#define MARGIN		16
#define BIG		15	/* sizes of text */
#define NORMAL		13
#define SMALL		11
#define TINY		10

/* Styles: more attributes of an element, from a blank on, or "". */
#define BOLD		" font-weight=\"bold\""
#define MIDDLE		" text-anchor=\"middle\""
#define END		" text-anchor=\"end\""
#define THIN		" stroke=\"" PALETTE_EDGE "\" stroke-width=\"0.5\""
#define DOTTED		THIN " stroke-dasharray=\"2 3\""

/* @text as it may stand in XML: any bytes. */
void svg_escape(FILE *file, const char *text);

/* @y is the base line. Of no text nothing. */
void svg_text(FILE *file, double x, double y, double size, const char *style, const char *text);

/* @fill and @stroke as SVG has them. */
void svg_rect(FILE *file, double x, double y, double width, double height, const char *fill,
	      const char *stroke, const char *style);

void svg_line(FILE *file, double x1, double y1, double x2, double y2, const char *style);

/* A tenant's letter around (@x, @y), on a plate in its colour. */
void svg_tag(FILE *file, double x, double y, unsigned int tenant);

struct page {
	FILE *file;
	double width, y;	/* where the next thing goes */
	char *body;		/* what was drawn */
	size_t len;
};

double page_text_width(unsigned int columns, double size);

/* @text from @x on, in as many lines as it takes. */
void page_words(struct page *page, double x, double size, const char *style, const char *text);

/* The title, and the same lines about the GPU that the text form begins with. */
void page_head(struct page *page, const struct picture *picture);

/* A line of the legend: colour, letter, name, then @text. */
void page_legend(struct page *page, unsigned int tenant, const char *name, const char *text);

/* Begins a page whose height is known at its end. */
void page_begin(struct page *page);

/* Writes it to @out and frees it: @nr tenants are in it. */
void page_end(struct page *page, struct out *out, const char *title, unsigned int nr);

#endif
