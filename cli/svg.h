/* SPDX-License-Identifier: MIT */
/* The parts that SVG pictures are made of. Knows nothing of GPUs. */
#ifndef GPUPART_CLI_SVG_H
#define GPUPART_CLI_SVG_H

#include <stddef.h>
#include <stdio.h>

/*
 * All text is in the generic monospace font, the only one whose width can be told
 * without it: a column is at most this part of the size.
 */
#define SVG_COLUMN 0.61

/* The head and the end of a file; @title is what a reader of the picture is told of it. */
void svg_begin(FILE *file, double width, double height, const char *title);
void svg_end(FILE *file);

/* @text as it may stand in XML: any bytes. */
void svg_escape(FILE *file, const char *text);

/* @style: more attributes, from a blank on, or "". @y is the base line. Of no text nothing. */
void svg_text(FILE *file, double x, double y, double size, const char *style, const char *text);

/* @fill and @stroke as SVG has them; @style as above. */
void svg_rect(FILE *file, double x, double y, double width, double height, const char *fill,
	      const char *stroke, const char *style);

/* A hatched box: lines that every viewer draws, no pattern. */
void svg_hatch(FILE *file, double x, double y, double width, double height, const char *style);

/* Lines over a box that tell it from others of its colour; the same ones go on in the next box. */
enum svg_lines { SVG_NONE, SVG_RISING, SVG_FALLING, SVG_UPRIGHT, SVG_CROSSED, SVG_NR_LINES };

/* Path data for such a box: what stands in a path's d. */
void svg_lines(FILE *file, enum svg_lines lines, double x, double y, double width, double height);

#endif
