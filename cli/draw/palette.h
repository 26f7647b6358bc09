/* SPDX-License-Identifier: MIT */
/* The typeface and the colours of all pictures. */
#ifndef GPUPART_CLI_DRAW_PALETTE_H
#define GPUPART_CLI_DRAW_PALETTE_H

#include <stdio.h>

/*
 * The generic monospace font is the only one whose width is known without it: a column is at
 * most this part of the size.
 */
#define PALETTE_FONT	"monospace"
#define PALETTE_COLUMN	0.61

/* What is no tenant's. A dark page has others for each. */
#define PALETTE_PAPER	"#ffffff"
#define PALETTE_BAND	"#f4f4f4"	/* a row, a free TPC */
#define PALETTE_BOX	"#e3e3e3"	/* a box that has boxes in it */
#define PALETTE_EDGE	"#777777"	/* thin lines */
#define PALETTE_NOTE	"#444444"	/* secondary text */
#define PALETTE_INK	"#000000"	/* text, frames */

/*
 * The tenants' colours: distinct to colour-blind people and in their lightness, so in
 * grey as well.
 */
#define PALETTE_TENANTS 8

struct palette_colour {
	const char *fill, *ink;		/* ink is legible on fill, on a dark page too */
	int terminal_fill, terminal_ink;	/* of a terminal's 256 */
};

const struct palette_colour *palette_tenant(unsigned int tenant);

/*
 * What stands at the head of a picture: the colours of a dark page, which a viewer without style
 * sheets ignores; a hatching, PALETTE_OFF; the first @nr_fills of palette_fill().
 */
void palette_write(FILE *file, unsigned int nr_fills);
#define PALETTE_OFF	"url(#off)"

/* A tenant's colour, from its second use on with lines over it, which are others each time. */
#define PALETTE_FILLS	(5 * PALETTE_TENANTS)

/* "url(#k12)". Returns @fill. */
const char *palette_fill(unsigned int tenant, char fill[16]);

#endif
