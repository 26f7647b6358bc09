// SPDX-License-Identifier: MIT
/*
 * Text, boxes and hatching as SVG, so that any viewer draws them: no style sheet, no
 * script, no pattern. Must not know what is drawn.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "out.h"
#include "svg.h"

#define FONT "monospace"

void svg_begin(FILE *file, double width, double height, const char *title)
{
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"" FONT "\" role=\"img\">\n<title>",
		width, height, width, height);
	svg_escape(file, title);
	fputs("</title>\n", file);
	/* Paper: a viewer in the dark would show black on black. */
	svg_rect(file, 0, 0, width, height, "#ffffff", "none", "");
}

void svg_end(FILE *file)
{
	fputs("</svg>\n", file);
}

void svg_escape(FILE *file, const char *text)
{
	char *clean = strdup(text);

	if (!clean)
		out_no_memory();
	out_clean(clean);
	for (const char *c = clean; *c; c++) {
		/* No characters, and XML has no form for them: U+FFFE, U+FFFF. */
		if (!strncmp(c, "\xef\xbf\xbe", 3) || !strncmp(c, "\xef\xbf\xbf", 3)) {
			fputc('?', file);
			c += 2;
			continue;
		}
		switch (*c) {
		case '&': fputs("&amp;", file); break;
		case '<': fputs("&lt;", file); break;
		case '>': fputs("&gt;", file); break;
		case '"': fputs("&quot;", file); break;
		case '\'': fputs("&#39;", file); break;
		default: fputc(*c, file);
		}
	}
	free(clean);
}

void svg_text(FILE *file, double x, double y, double size, const char *style, const char *text)
{
	if (!*text)
		return;
	fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\"%s>", x, y, size, style);
	svg_escape(file, text);
	fputs("</text>\n", file);
}

void svg_rect(FILE *file, double x, double y, double width, double height, const char *fill,
	      const char *stroke, const char *style)
{
	fprintf(file,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
		"stroke=\"%s\"%s/>\n",
		x, y, width, height, fill, stroke, style);
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

void svg_hatch(FILE *file, double x, double y, double width, double height, const char *style)
{
	enum { STEP = 7 };

	svg_rect(file, x, y, width, height, "#ffffff", "#888888", style);
	fputs("<path fill=\"none\" stroke=\"#999999\" stroke-width=\"1.2\" d=\"", file);
	/* Lines x + y = c, cut to the box. */
	for (double c = STEP; c < width + height; c += STEP) {
		double right = smaller(c, width), bottom = smaller(c, height);

		fprintf(file, "M%.1f %.1fL%.1f %.1f", x + right, y + c - right, x + c - bottom,
			y + bottom);
	}
	fputs("\"/>\n", file);
}

enum { LINES_STEP = 6 };

/* The part of x + y = c in a box; of x - y = c where @falling. */
static void slanted(FILE *file, double c, bool falling, double x, double y, double width,
		    double height)
{
	double sign = falling ? -1 : 1;		/* y = (c - x) * sign */
	double from = falling ? c + y : c - y - height, to = from + height;

	from = from > x ? from : x;
	to = smaller(to, x + width);
	if (to - from > 0.2)
		fprintf(file, "M%.1f %.1fL%.1f %.1f", from, (c - from) * sign, to,
			(c - to) * sign);
}

void svg_lines(FILE *file, enum svg_lines lines, double x, double y, double width, double height)
{
	double c, low;

	if (lines == SVG_RISING || lines == SVG_CROSSED)
		for (c = ceil((x + y) / LINES_STEP) * LINES_STEP; c < x + y + width + height;
		     c += LINES_STEP)
			slanted(file, c, false, x, y, width, height);
	if (lines == SVG_FALLING || lines == SVG_CROSSED) {
		low = x - y - height;
		for (c = ceil(low / LINES_STEP) * LINES_STEP; c < x - y + width; c += LINES_STEP)
			slanted(file, c, true, x, y, width, height);
	}
	if (lines == SVG_UPRIGHT)
		for (c = ceil(x / LINES_STEP) * LINES_STEP; c < x + width; c += LINES_STEP)
			fprintf(file, "M%.1f %.1fv%.1f", c, y, height);
}
