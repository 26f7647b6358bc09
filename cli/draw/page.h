/* SPDX-License-Identifier: MIT */
/*
 * A page of a drawing as SVG. It has boxes, lines, text, a head that describes the GPU, and a
 * legend. Lengths are SVG units.
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

/*
 * Styles. A style consists of further attributes of an element, each with a leading blank. The
 * style "" has no attributes.
 */
#define BOLD		" font-weight=\"bold\""
#define MIDDLE		" text-anchor=\"middle\""
#define END		" text-anchor=\"end\""
#define THIN		" stroke=\"" PALETTE_EDGE "\" stroke-width=\"0.5\""
#define DOTTED		THIN " stroke-dasharray=\"2 3\""

/* Writes @text, which may contain any bytes, as XML text. */
void svg_escape(FILE *file, const char *text);

/* @y is the base line of the text. Writes nothing if @text is empty. */
void svg_text(FILE *file, double x, double y, double size, const char *style, const char *text);

/* Formats a number for a reader, such as "1,234,567" or "0.25". Returns @text. */
const char *page_number(double value, char text[32]);

/* @fill and @stroke are values of the SVG attributes. */
void svg_rect(FILE *file, double x, double y, double width, double height, const char *fill,
	      const char *stroke, const char *style);

void svg_line(FILE *file, double x1, double y1, double x2, double y2, const char *style);

/* Draws the letter of a tenant at (@x, @y), on a plate in the tenant's colour. */
void svg_tag(FILE *file, double x, double y, unsigned int tenant);

struct page {
	FILE *file;
	double width, y;	/* width of the page; y of the next element */
	char *body;		/* the elements that were written so far */
	size_t len;
};

double page_text_width(unsigned int columns, double size);

/* Writes @text from @x on, in as many lines as the text needs. */
void page_text(struct page *page, double x, double size, const char *style, const char *text);

/*
 * Writes the title and the description of the GPU. The text form begins with the same description.
 */
void page_head(struct page *page, const struct picture *picture);

/* Writes a line of the legend: the colour, the letter and the name, and then @text. */
void page_legend(struct page *page, unsigned int tenant, const char *name, const char *text);

/* Begins a page. The height of the page is its final @y. */
void page_begin(struct page *page);

/* Writes the page to @out and frees the page. The page uses the colours of @nr tenants. */
void page_end(struct page *page, struct out *out, const char *title, unsigned int nr);

#endif
