/* SPDX-License-Identifier: MIT */
/* The typeface and the colours of all pictures. */
#ifndef GPUPART_CLI_DRAW_PALETTE_H
#define GPUPART_CLI_DRAW_PALETTE_H

#include <stdio.h>

/*
 * The generic monospace font is the only font whose width is known in advance. A column is at most
 * PALETTE_COLUMN times as wide as the font size.
 */
#define PALETTE_FONT	"monospace"
#define PALETTE_COLUMN	0.61

/* All colours except the colours of tenants. A dark page replaces each of these colours. */
#define PALETTE_PAPER	"#ffffff"
#define PALETTE_BAND	"#f4f4f4"	/* a row, a free TPC */
#define PALETTE_BOX	"#e3e3e3"	/* a box that contains other boxes */
#define PALETTE_EDGE	"#777777"	/* thin lines */
#define PALETTE_NOTE	"#444444"	/* secondary text */
#define PALETTE_INK	"#000000"	/* text, frames */

/*
 * The colours of tenants. Colour-blind people can distinguish them. They differ in lightness, so
 * they can be distinguished in grey, too.
 */
#define PALETTE_TENANTS 8

struct palette_colour {
	const char *fill, *ink;		/* text in the colour ink is legible on the colour fill,
					 * even on a dark page */
	int terminal_fill, terminal_ink;	/* numbers in a palette of 256 colours */
};

const struct palette_colour *palette_tenant(unsigned int tenant);

/*
 * Writes the head of a picture. The head has the colours for a dark page, the hatching PALETTE_OFF,
 * and the first @nr_fills of palette_fill(). A viewer without style sheets ignores the colours for
 * a dark page.
 */
void palette_write(FILE *file, unsigned int nr_fills);
#define PALETTE_OFF	"url(#off)"

/*
 * Number of different fills. If tenants share a colour, the fill of each further tenant has lines
 * in a different pattern.
 */
#define PALETTE_FILLS	(5 * PALETTE_TENANTS)

/* Writes a fill such as "url(#k12)" to @fill. Returns @fill. */
const char *palette_fill(unsigned int tenant, char fill[16]);

#endif
