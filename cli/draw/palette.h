/* SPDX-License-Identifier: MIT */
/* The typeface and the colours of all pictures. */
#ifndef GPUPART_CLI_DRAW_PALETTE_H
#define GPUPART_CLI_DRAW_PALETTE_H

#include <stdio.h>

/*
 * The generic monospace font is the only one whose width is known in advance: a column is at
 * most PALETTE_COLUMN times the font size.
 */
#define PALETTE_FONT	"monospace"
#define PALETTE_COLUMN	0.61

/* Colours of everything but tenants. A dark page replaces each of them. */
#define PALETTE_PAPER	"#ffffff"
#define PALETTE_BAND	"#f4f4f4"	/* a row, a free TPC */
#define PALETTE_BOX	"#e3e3e3"	/* a box that contains boxes */
#define PALETTE_EDGE	"#777777"	/* thin lines */
#define PALETTE_NOTE	"#444444"	/* secondary text */
#define PALETTE_INK	"#000000"	/* text, frames */

/*
 * The colours of tenants: they differ for colour-blind people and in lightness, so they can be
 * distinguished in grey as well.
 */
#define PALETTE_TENANTS 8

struct palette_colour {
	const char *fill, *ink;		/* ink is legible on fill, also on a dark page */
	int terminal_fill, terminal_ink;	/* numbers in a terminal's palette of 256 */
};

const struct palette_colour *palette_tenant(unsigned int tenant);

/*
 * Writes the head of a picture: the colours for a dark page, which a viewer without style
 * sheets ignores; the hatching PALETTE_OFF; the first @nr_fills of palette_fill().
 */
void palette_write(FILE *file, unsigned int nr_fills);
#define PALETTE_OFF	"url(#off)"

/*
 * A tenant's colour. When a colour is used again, it has lines over it, with a different
 * pattern each time.
 */
#define PALETTE_FILLS	(5 * PALETTE_TENANTS)

/* Returns @fill: "url(#k12)". */
const char *palette_fill(unsigned int tenant, char fill[16]);

#endif
