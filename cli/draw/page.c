// SPDX-License-Identifier: MIT
/*
 * Writes the elements of a drawing: the head, the text and the legend. Also writes the SVG file
 * that contains these elements.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/draw/page.h"
#include "cli/util/alloc.h"

#define SWATCH_WIDTH	44
#define SWATCH_HEIGHT	16
#define NAME_WIDTH	130	/* space for a name in the legend */

void svg_escape(FILE *file, const char *text)
{
	char *clean = alloc_text("%s", text);

	out_clean(clean);
	for (const char *c = clean; *c; c++) {
		/*
		 * The codes U+FFFE and U+FFFF are not characters. XML does not permit these codes.
		 */
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

const char *page_number(double value, char text[32])
{
	char digits[32];
	size_t len, at = 0;

	if (fabs(value) < 1000 || fabs(value) >= 1e15) {
		snprintf(text, 32, "%.5g", value);
		return text;
	}
	snprintf(digits, sizeof(digits), "%.0f", value);
	len = strlen(digits);
	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0 && digits[i - 1] != '-')
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = '\0';
	return text;
}

void svg_rect(FILE *file, double x, double y, double width, double height, const char *fill,
	      const char *stroke, const char *style)
{
	fprintf(file,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
		"stroke=\"%s\"%s/>\n",
		x, y, width, height, fill, stroke, style);
}

void svg_line(FILE *file, double x1, double y1, double x2, double y2, const char *style)
{
	fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"%s/>\n", x1, y1, x2, y2,
		style);
}

void svg_tag(FILE *file, double x, double y, unsigned int tenant)
{
	const struct palette_colour *colour = palette_tenant(tenant);
	char style[64], tag[PICTURE_TAG_LEN];
	double width = page_text_width(strlen(picture_tag(tenant, tag)), SMALL) + 4;

	svg_rect(file, x - width / 2, y - 6, width, 12, colour->fill, "none", " rx=\"2\"");
	snprintf(style, sizeof(style), BOLD MIDDLE " fill=\"%s\"", colour->ink);
	svg_text(file, x, y + 4, SMALL, style, tag);
}

double page_text_width(unsigned int columns, double size)
{
	return columns * size * PALETTE_COLUMN;
}

void page_text(struct page *page, double x, double size, const char *style, const char *text)
{
	unsigned int columns = (page->width - MARGIN - x) / (size * PALETTE_COLUMN);
	char line[4096];

	do {
		text = picture_line(text, columns, line, sizeof(line));
		page->y += size + 5;
		svg_text(page->file, x, page->y, size, style, line);
	} while (*text);
}

void page_head(struct page *page, const struct picture *picture)
{
	char *text = NULL, *line, *rest;
	size_t len = 0;
	struct out plain = { alloc_file(&text, &len), .bold = "", .dim = "", .red = "",
			     .plain = "" };

	out_gpu_text(&plain, picture->topo);
	alloc_file_close(plain.file);
	page->y = MARGIN - 4;
	if (picture->title)
		page_text(page, MARGIN, 18, BOLD, picture->title);
	rest = text;
	for (unsigned int i = 0; (line = strsep(&rest, "\n")) && *line; i++)
		page_text(page, MARGIN, NORMAL, i || picture->title ? "" : BOLD, line);
	page->y += 10;
	free(text);
}

void page_legend(struct page *page, unsigned int tenant, const char *name, const char *text)
{
	double top = page->y, x = MARGIN + SWATCH_WIDTH + 10;
	char fill[16];

	svg_rect(page->file, MARGIN, top, SWATCH_WIDTH, SWATCH_HEIGHT, palette_fill(tenant, fill),
		 PALETTE_INK, " class=\"tenant\"");
	svg_tag(page->file, MARGIN + SWATCH_WIDTH / 2.0, top + SWATCH_HEIGHT / 2.0, tenant);
	page->y = top - 4;
	page_text(page, x, SMALL, BOLD, *name ? name : "(no name)");
	x += fmax(NAME_WIDTH, page_text_width(picture_columns(name) + 2, SMALL));
	/* The text fits on the line of the name. So put the text to the right of the name. */
	if (page->y < top + 13 && x < page->width / 2)
		page->y = top - 4;
	else
		x = MARGIN + SWATCH_WIDTH + 10;
	if (*text)
		page_text(page, x, SMALL, "", text);
	page->y = fmax(page->y + 8, top + SWATCH_HEIGHT + 6);
}

void page_begin(struct page *page)
{
	page->file = alloc_file(&page->body, &page->len);
}

void page_end(struct page *page, struct out *out, const char *title, unsigned int nr)
{
	double height = page->y + MARGIN;
	FILE *file = out->file;

	alloc_file_close(page->file);
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\" font-family=\"" PALETTE_FONT "\" role=\"img\">\n<title>",
		page->width, height, page->width, height);
	svg_escape(file, title);
	fputs("</title>\n", file);
	palette_write(file, nr);
	/* Draw a background. Otherwise a viewer with a dark page would show black text on black. */
	svg_rect(file, 0, 0, page->width, height, PALETTE_PAPER, "none", "");
	fwrite(page->body, 1, page->len, file);
	fputs("</svg>\n", file);
	free(page->body);
}
