/* SPDX-License-Identifier: MIT */
/* The font and the colours of all pictures. */
#ifndef GPUPART_CLI_DRAW_PALETTE_H
#define GPUPART_CLI_DRAW_PALETTE_H

#include <stdio.h>

/*
 * The width of text must be known in advance. Only the generic monospace font has a known width.
 * The width of a column is at most PALETTE_COLUMN times the font size.
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
 * The colours of tenants. Colour-blind people can distinguish these colours. The colours differ in
 * lightness, so they can also be distinguished in grey.
 */
#define PALETTE_TENANTS 8

struct palette_colour {
	const char *fill, *ink;		/* text in @ink is legible on @fill */
	int terminal_fill, terminal_ink;	/* indexes in the terminal palette of 256 colours */
};

const struct palette_colour *palette_tenant(unsigned int tenant);

/*
 * Writes the head of a picture. The head has the colours for a dark page, the hatching PALETTE_OFF,
 * and the first @nr_fills fills of palette_fill(). If a viewer does not support style sheets, it
 * ignores the colours for a dark page.
 */
void palette_write(FILE *file, unsigned int nr_fills);
#define PALETTE_OFF	"url(#off)"

/*
 * The number of different fills. Several tenants may share a colour. Then the fills of these
 * tenants have different patterns of lines.
 */
#define PALETTE_FILLS	(5 * PALETTE_TENANTS)

/* Writes a fill such as "url(#k12)" to @fill. Returns @fill. */
const char *palette_fill(unsigned int tenant, char fill[16]);

#endif
