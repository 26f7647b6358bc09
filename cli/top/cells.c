// SPDX-License-Identifier: MIT
/* The cells of a frame: text into them, and out of them. */
#include <stdarg.h>
#include <string.h>
#include "cli/top/top.h"

unsigned int top_put(struct top_view *view, unsigned int y, unsigned int x, unsigned int style,
		     const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (const char *c = text; *c && x < view->width && y < view->height; x++) {
		struct top_cell *cell = &view->cells[y * view->width + x];
		unsigned int len = 1;

		while (len < 3 && (c[len] & 0xc0) == 0x80)
			len++;
		memcpy(cell->bytes, c, len);
		cell->bytes[len] = 0;
		cell->style = style;
		c += len;
	}
	return x;
}

void top_print(struct out *out, const struct top_view *view)
{
	unsigned int nr_blank = 0;

	for (unsigned int y = 0; y < view->height; y++) {
		const struct top_cell *line = &view->cells[y * view->width];
		unsigned int end = view->width;

		while (end && (!*line[end - 1].bytes || !strcmp(line[end - 1].bytes, " ")))
			end--;
		nr_blank += !end;
		for (; end && nr_blank; nr_blank--)
			fputc('\n', out->file);
		for (unsigned int x = 0; x < end; x++)
			fputs(*line[x].bytes ? line[x].bytes : " ", out->file);
		if (end)
			fputc('\n', out->file);
	}
}
