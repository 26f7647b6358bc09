// SPDX-License-Identifier: MIT
/* What every drawing has around it: head, words, legend. Must not know what it shows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "page.h"

double page_text_width(unsigned int columns, double size)
{
	return columns * size * SVG_COLUMN;
}

double page_larger(double a, double b)
{
	return a > b ? a : b;
}

void page_words(struct page *page, double x, double size, const char *style, const char *text)
{
	unsigned int columns = (page->width - MARGIN - x) / (size * SVG_COLUMN);
	char line[4096];

	do {
		text = picture_line(text, columns, line, sizeof(line));
		page->y += size + 5;
		svg_text(page->file, x, page->y, size, style, line);
	} while (*text);
}

int page_head(struct page *page, const struct picture *picture)
{
	struct out plain = { .bold = "", .dim = "", .red = "", .plain = "" };
	char *text = NULL, *line, *rest;
	size_t len = 0;

	plain.file = open_memstream(&text, &len);
	if (!plain.file)
		return -ENOMEM;
	out_gpu_text(&plain, picture->topo);
	if (fclose(plain.file)) {
		free(text);
		return -ENOMEM;
	}
	page->y = MARGIN - 4;
	if (picture->title)
		page_words(page, MARGIN, 18, BOLD, picture->title);
	rest = text;
	for (unsigned int i = 0; (line = strsep(&rest, "\n")) && *line; i++)
		page_words(page, MARGIN, NORMAL, i || picture->title ? "" : BOLD, line);
	page->y += 10;
	free(text);
	return 0;
}

void page_frame(struct page *page, unsigned int tenant, double x, double y, double width,
		double height)
{
	static const char *const dashes[] = { "5 3", "1.5 2.5", "9 2 2 2" };
	unsigned int round = tenant / PICTURE_COLOURS;
	char style[96];

	if (!round)
		return;
	snprintf(style, sizeof(style), " stroke-width=\"2.4\" stroke-dasharray=\"%s\"",
		 dashes[(round - 1) % 3]);
	svg_rect(page->file, x + 2, y + 2, width - 4, height - 4, "none",
		 picture_colour(tenant)->ink, style);
}

void page_tenant(struct page *page, const struct picture *picture, unsigned int tenant, double x,
		 const char *text)
{
	const struct picture_tenant *t = &picture->tenants[tenant];
	const struct picture_colour *colour = picture_colour(tenant);
	char style[64], tag[PICTURE_TAG_LEN];
	double top = page->y;

	svg_rect(page->file, x, top, SWATCH_WIDTH, SWATCH_HEIGHT, colour->fill, "#000000",
		 " class=\"tenant\"");
	page_frame(page, tenant, x, top, SWATCH_WIDTH, SWATCH_HEIGHT);
	snprintf(style, sizeof(style), BOLD MIDDLE " fill=\"%s\"", colour->ink);
	svg_text(page->file, x + SWATCH_WIDTH / 2.0, top + 18, BIG, style,
		 picture_tag(tenant, tag));
	page->y = top - 6;
	page_words(page, x + SWATCH_WIDTH + 10, NORMAL, BOLD, *t->name ? t->name : "(no name)");
	page_words(page, x + SWATCH_WIDTH + 10, NORMAL, "", text);
	page->y = page_larger(page->y + 12, top + SWATCH_HEIGHT + 8);
}

int page_begin(struct page *page, char **body, size_t *len)
{
	*body = NULL;
	*len = 0;
	page->file = open_memstream(body, len);
	return page->file ? 0 : -ENOMEM;
}

int page_end(struct page *page, struct out *out, const char *title, char **body,
	     const size_t *len, int err)
{
	if (fclose(page->file) && !err)
		err = -ENOMEM;
	if (!err) {
		svg_begin(out->file, page->width, page->y + MARGIN, title);
		fwrite(*body, 1, *len, out->file);
		svg_end(out->file);
	}
	free(*body);
	return err;
}
