/* SPDX-License-Identifier: MIT */
/*
 * A page of a drawing: the lines about the GPU at its head, words, the legend of sets. Knows
 * not what is drawn between them.
 */
#ifndef GPUPART_CLI_PAGE_H
#define GPUPART_CLI_PAGE_H

#include "picture.h"
#include "svg.h"

#define MARGIN		16
#define BIG		15	/* sizes of text */
#define NORMAL		13
#define SMALL		11

#define BOLD	" font-weight=\"bold\""
#define MIDDLE	" text-anchor=\"middle\""
#define END	" text-anchor=\"end\""

#define SWATCH_WIDTH	44
#define SWATCH_HEIGHT	26

struct page {
	FILE *file;
	double width, y;	/* where the next thing goes */
};

double page_text_width(unsigned int columns, double size);
double page_larger(double a, double b);

/* @text from @x on, in as many lines as it takes. */
void page_words(struct page *page, double x, double size, const char *style, const char *text);

/* The title, and the same lines about the GPU that the text form begins with. 0 or -ENOMEM. */
int page_head(struct page *page, const struct picture *picture);

/* The frame that tells a colour's second, third.. use from its first. */
void page_frame(struct page *page, unsigned int tenant, double x, double y, double width,
		double height);

/* A line of the legend: colour, tag, name; below the name @text. */
void page_tenant(struct page *page, const struct picture *picture, unsigned int tenant, double x,
		 const char *text);

/*
 * Begins a page whose height is known at its end: what is drawn is kept in *@body. 0 or
 * -ENOMEM.
 */
int page_begin(struct page *page, char **body, size_t *len);

/* Writes it to @out, unless @err, and frees it. 0, @err or -ENOMEM. */
int page_end(struct page *page, struct out *out, const char *title, char **body,
	     const size_t *len, int err);

#endif
