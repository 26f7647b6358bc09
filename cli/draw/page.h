/* SPDX-License-Identifier: MIT */
/*
 * A page with a drawing, as SVG. A page has boxes, lines, text, a legend, and a description of the
 * GPU. Lengths are in SVG units.
 */
#ifndef GPUPART_CLI_DRAW_PAGE_H
#define GPUPART_CLI_DRAW_PAGE_H

#include <math.h>
#include "cli/draw/palette.h"
#include "cli/draw/picture.h"

#define MARGIN		16
#define BIG		15	/* font sizes */
#define NORMAL		13
#define SMALL		11
#define TINY		10

/*
 * Styles. A style contains more attributes for an element. Each attribute begins with a blank. The
 * style "" has no attributes.
 */
#define BOLD		" font-weight=\"bold\""
#define MIDDLE		" text-anchor=\"middle\""
#define END		" text-anchor=\"end\""
#define THIN		" stroke=\"" PALETTE_EDGE "\" stroke-width=\"0.5\""
#define DOTTED		THIN " stroke-dasharray=\"2 3\""

/* Converts @text to XML text and writes the result. Any bytes are allowed in @text. */
void svg_escape(FILE *file, const char *text);

/* @y is the base line of the text. Writes nothing if @text is empty. */
void svg_text(FILE *file, double x, double y, double size, const char *style, const char *text);

/* Formats a number for a reader, such as "1,234,567" or "0.25". Returns @text. */
const char *page_number(double value, char text[32]);

/* @fill and @stroke are values of the SVG attributes. */
void svg_rect(FILE *file, double x, double y, double width, double height, const char *fill,
	      const char *stroke, const char *style);

void svg_line(FILE *file, double x1, double y1, double x2, double y2, const char *style);

/*
 * Draws the letter of a tenant at (@x, @y). Behind the letter, draws a box in the tenant's colour.
 */
void svg_tag(FILE *file, double x, double y, unsigned int tenant);

struct page {
	FILE *file;
	double width, y;	/* width of the page; y of the next element */
	char *body;		/* all elements so far */
	size_t len;
};

double page_text_width(unsigned int columns, double size);

/* Writes @text on one or more lines. Each line begins at @x. */
void page_text(struct page *page, double x, double size, const char *style, const char *text);

/*
 * Writes the title and the description of the GPU. A drawing as text begins with the same
 * description.
 */
void page_head(struct page *page, const struct picture *picture);

/* Writes a line of the legend: the colour, the letter, the name, and @text. */
void page_legend(struct page *page, unsigned int tenant, const char *name, const char *text);

/* Begins a page. At the end, the member @y is the height of the page. */
void page_begin(struct page *page);

/* Writes the page to @out, and frees the page. Defines the colours of @nr tenants. */
void page_end(struct page *page, struct out *out, const char *title, unsigned int nr);

#endif
