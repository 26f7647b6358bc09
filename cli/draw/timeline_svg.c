// SPDX-License-Identifier: MIT
/*
 * Draws blocks over time as SVG. A drawing has rows, boxes, names in boxes, a legend, charts of
 * values, and axes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/draw/timeline.h"
#include "cli/util/alloc.h"

#define TAGS_LEFT	(TIMELINE_LEFT + TIMELINE_PLOT + 16)	/* position of the sets' letters */
#define TPC_RIGHT	(MARGIN + 80)
#define SM_LEFT		(MARGIN + 90)
#define MANY_ROWS	48	/* idle TPCs are omitted if there are more rows */
#define MIN_LABELLED	10	/* minimum height of a TPC that has text */
#define LABEL_SIZE	9	/* size of a name on an area */
#define LABEL_HEIGHT	(LABEL_SIZE + 2)
#define MAX_HEIGHT	1800
#define MAX_ROW		26
#define MIN_HIGH	1.1	/* minimum height of a block */
#define LITTLE		360	/* height of all rows together for a small GPU */
#define MOST_TICKS	12

/* ---------------------------------------------------------------------- axis */

static double scale_x(uint64_t ns, uint64_t from, uint64_t to)
{
	return TIMELINE_LEFT + (double)(ns - from) / (to - from) * TIMELINE_PLOT;
}

/*
 * Draws lines at round times. Writes the times below the lines. If @both is true, also writes the
 * times above the lines. If @when is NULL, omits the name of the unit.
 */
static void draw_axis(FILE *file, uint64_t from, uint64_t to, double above, double below, bool both,
		      const char *when)
{
	uint64_t step = timeline_step(to - from, MOST_TICKS), unit_ns;
	const char *unit;
	char text[160];

	unit_ns = timeline_unit(step, &unit);
	for (uint64_t ns = timeline_first(from, step); ns <= to; ns += step) {
		double x = scale_x(ns, from, to);

		svg_line(file, x, above, x, below, DOTTED);
		timeline_number(text, sizeof(text), ns, unit_ns);
		if (both)
			svg_text(file, x, above - 4, SMALL, MIDDLE, text);
		svg_text(file, x, below + 13, SMALL, MIDDLE, text);
	}
	snprintf(text, sizeof(text), "time in %s %s", unit, when ? when : "");
	if (when)
		svg_text(file, TIMELINE_LEFT + TIMELINE_PLOT / 2.0, below + 29, SMALL, MIDDLE,
			 text);
}

/* ------------------------------------------------------------------------------- rows */

struct plot {
	const struct timeline *t;
	struct page *page;
	FILE *file;
	double row;			/* height of an SM */
	const char *head;		/* the heading that was drawn last */
	double *tops;			/* upper edges of the rows; 0: the row is omitted */
};

static bool is_engine(const struct timeline *t, unsigned int row)
{
	return t->rows[row].smid < 0;
}

/* Idle TPCs of a large GPU are omitted. */
static bool is_left_out(const struct timeline *t, unsigned int row)
{
	return t->nr_rows > MANY_ROWS && timeline_is_idle(t, row);
}

static double height_of(const struct plot *plot, unsigned int row)
{
	return is_engine(plot->t, row) ? fmax(plot->row, TINY + 2) : plot->row;
}

/*
 * Lists the kinds that had blocks in the rows, such as "AC". If there are more than two kinds,
 * writes text such as "A+".
 */
static void format_tags(const struct timeline *t, unsigned int row, unsigned int nr, char tags[8])
{
	char tag[PICTURE_TAG_LEN];

	*tags = 0;
	for (unsigned int kind = 0; kind < t->nr_kinds && strlen(tags) < 3; kind++)
		if (timeline_has(t, row, nr, kind))
			strcat(tags, picture_tag(kind, tag));
	if (strlen(tags) > 2)
		strcpy(tags + 1, "+");
}

/* Draws the text on the left of a TPC or a copy engine. */
static void draw_names(struct plot *plot, unsigned int row, unsigned int nr)
{
	const struct timeline *t = plot->t;
	double height = nr * height_of(plot, row), top = plot->tops[row];
	double size = height > TINY ? TINY : height - 1;
	double base = top + height / 2 + size * 0.35;
	char text[64], list[64] = "", tags[8];
	unsigned int sms[64], nr_sms = nr < 64 ? nr : 64;

	svg_rect(plot->file, TIMELINE_LEFT, top + 0.5, TIMELINE_PLOT, height - 1, PALETTE_BAND,
		 "none", "");
	if (is_engine(t, row)) {
		snprintf(text, sizeof(text), "copy engine %u", t->rows[row].unit);
		svg_text(plot->file, TIMELINE_LEFT - 8, base, size, END, text);
		return;
	}
	if (height < MIN_LABELLED)
		return;
	snprintf(text, sizeof(text), "%u", t->rows[row].unit);
	svg_text(plot->file, TPC_RIGHT, base, size, END, text);
	for (unsigned int i = 0; i < nr_sms; i++) {
		sms[i] = t->rows[row + i].smid;
		out_append(list, sizeof(list), "%s%u", i ? "," : "", sms[i]);
	}
	if (nr > 2)
		out_numbers(list, sizeof(list), sms, nr_sms);
	svg_text(plot->file, SM_LEFT, base, size, " fill=\"" PALETTE_NOTE "\"", list);
	if (!t->sets)
		return;
	format_tags(t, row, nr, tags);
	svg_text(plot->file, TAGS_LEFT, base, size, BOLD, tags);
}

/* Places the rows and the name of a group. If the GPU is large, its idle TPCs get no rows. */
static void place_group(struct plot *plot, unsigned int row, unsigned int end)
{
	const struct timeline_row *first = &plot->t->rows[row];
	struct page *page = plot->page;
	double top = 0;
	unsigned int nr;

	for (; row < end; row += nr) {
		nr = timeline_unit_rows(plot->t, row);
		if (is_left_out(plot->t, row))
			continue;
		if (top <= 0 && *first->head && strcmp(first->head, plot->head)) {
			page->y += *plot->head ? 6 : 0;
			svg_text(plot->file, MARGIN, page->y + SMALL, SMALL, BOLD, first->head);
			page->y += SMALL + 5;
			plot->head = first->head;
		}
		top = top > 0 ? top : page->y;
		for (unsigned int i = 0; i < nr; i++, page->y += height_of(plot, row))
			plot->tops[row + i] = page->y;
		draw_names(plot, row, nr);
	}
	if (top <= 0)
		return;
	svg_text(plot->file, MARGIN, top + SMALL, SMALL, BOLD, first->name);
	page->y = fmax(page->y, *first->name ? top + SMALL + 3 : 0) + 5;
}

/* --------------------------------------------------------------------- boxes */

static void draw_box(struct plot *plot, const struct timeline_block *one, const char *attributes)
{
	const struct timeline *t = plot->t;
	double high = height_of(plot, one->row), x = scale_x(one->start, t->from, t->to);
	double unit = (high - (high > 4)) /
		      (t->sums || is_engine(t, one->row) ? TIMELINE_UNITS : t->units);
	char fill[16];

	/* Leave a thin gap between blocks, so that the start of each block is visible. */
	fprintf(plot->file, "<rect class=\"%s x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
		"height=\"%.2f\" fill=\"%s\"", attributes, x, plot->tops[one->row] + one->at * unit,
		fmax(scale_x(one->end, t->from, t->to) - x - (t->sums ? 0 : 0.8), 0.6),
		fmax(one->high * unit - (t->sums ? 0 : 0.3), 0.6),
		palette_fill(one->kind, fill));
}

static void draw_block(struct plot *plot, const struct timeline_block *one)
{
	const struct timeline_row *row = &plot->t->rows[one->row];
	char text[96];

	snprintf(text, sizeof(text), "block\" data-gpu=\"%u\" data-sm=\"%d\" data-set=\"%u\"",
		 row->gpu, row->smid, one->kind);
	draw_box(plot, one, text);
	if (row->smid < 0)
		fprintf(plot->file, "><title>copy engine %u: ", row->unit);
	else
		fprintf(plot->file, "><title>SM %d, TPC %u: ", row->smid, row->unit);
	svg_escape(plot->file, plot->t->names[one->kind]);
	fprintf(plot->file, ", launch %" PRIu64 ", block %" PRIu64 ": %" PRIu64 " to %" PRIu64
		" ns</title></rect>\n", one->launch, one->block, one->start, one->end);
}

/* Sums the use of each SM in each slice. Returns the largest sum in ns. */
static double find_fullest(const struct timeline *t)
{
	double full = 0, sum;

	for (unsigned int row = 0; row < t->nr_rows; row++)
		for (unsigned int i = 0; i < t->nr_slices && t->rows[row].smid >= 0; i++) {
			sum = 0;
			for (unsigned int kind = 0; kind < t->nr_kinds; kind++)
				sum += timeline_cell(t, row, i)[kind];
			full = sum > full ? sum : full;
		}
	return full;
}

/*
 * Draws the sums of a row's slices. In a slice, the sums are drawn one above the other. If
 * consecutive slices have equal sums, draws one box.
 */
static void draw_sums(struct plot *plot, unsigned int row, double full)
{
	const struct timeline *t = plot->t;
	struct timeline_block boxes[TIMELINE_KINDS] = { 0 };
	double part;

	for (unsigned int i = 0; i <= t->nr_slices; i++) {
		unsigned int below = 0;

		for (unsigned int kind = 0; kind < t->nr_kinds; kind++) {
			struct timeline_block *box = &boxes[kind], next = {
				.start = t->from + i * t->slice_ns, .row = row, .kind = kind,
			};

			part = i < t->nr_slices ? timeline_cell(t, row, i)[kind] / full : 0;
			next.high = part > 0 ? 2 * (int)(part * TIMELINE_UNITS / 2 + 0.5) : 0;
			next.high += part > 0 && !next.high;
			below += next.high;
			next.at = below < TIMELINE_UNITS ? TIMELINE_UNITS - below : 0;
			if (i && next.high == box->high && next.at == box->at)
				continue;
			box->end = next.start;
			if (box->high) {
				draw_box(plot, box, "sum\"");
				fputs("/>\n", plot->file);
			}
			*box = next;
		}
	}
}

struct label {
	double area, x, y;	/* area 0: no label */
	bool named;		/* true: the name of the kind; false: its letter */
};

/*
 * Finds out whether a place is better for a kind's name than @best. The place is in the slices from
 * @from up to but not including @to, on a TPC of height @height.
 */
static void check_area(const struct plot *plot, unsigned int kind, double top, double height,
		       unsigned int from, unsigned int to, struct label *best)
{
	double each = (double)TIMELINE_PLOT / plot->t->nr_slices, width = (to - from) * each;
	struct label label = {
		.x = TIMELINE_LEFT + (from + to) / 2.0 * each, .y = top + height / 2,
		.area = width * height,
	};

	label.named = page_text_width(picture_columns(plot->t->names[kind]), LABEL_SIZE) + 6 <=
		      width;
	if (height < LABEL_HEIGHT || width < page_text_width(1, LABEL_SIZE) + 6)
		return;
	if (label.named > best->named || (label.named == best->named && label.area > best->area))
		*best = label;
}

/* Writes the name or the letter of each kind. The place is the kind's largest area in a group. */
static void label_group(struct plot *plot, unsigned int row, unsigned int end)
{
	const struct timeline *t = plot->t;
	struct label best[TIMELINE_KINDS] = { 0 };
	unsigned int from, to, rows;
	char tag[PICTURE_TAG_LEN];
	int kind, next;

	for (; row < end; row += rows) {
		rows = timeline_unit_rows(t, row);
		kind = timeline_longest(t, row, rows, 0);
		for (from = 0; from < t->nr_slices && plot->tops[row] > 0; from = to, kind = next) {
			for (to = from + 1, next = kind; to < t->nr_slices; to++)
				if ((next = timeline_longest(t, row, rows, to)) != kind)
					break;
			if (kind >= 0)
				check_area(plot, kind, plot->tops[row], rows * height_of(plot, row),
					   from, to, &best[kind]);
		}
	}
	for (unsigned int i = 0; i < t->nr_kinds; i++) {
		const char *text = best[i].named ? t->names[i] : picture_tag(i, tag);
		double width = page_text_width(picture_columns(text), LABEL_SIZE) + 3;

		if (best[i].area <= 0)
			continue;
		svg_rect(plot->file, best[i].x - width / 2, best[i].y - LABEL_HEIGHT / 2.0, width,
			 LABEL_HEIGHT, PALETTE_PAPER, "none", " fill-opacity=\"0.88\" rx=\"2\"");
		svg_text(plot->file, best[i].x, best[i].y + LABEL_SIZE * 0.36, LABEL_SIZE, MIDDLE,
			 text);
	}
}

/* ------------------------------------------------------------------- drawing */

/* Returns the height of a row. With this height, the smallest block is visible. */
static double row_height(const struct timeline *t)
{
	unsigned int nr = 0, rows;
	double height = fmax(7, t->nr_all <= TIMELINE_BLOCKS ?
				    2.0 * t->units / t->least : 0);

	for (unsigned int row = 0; row < t->nr_rows; row += rows) {
		rows = timeline_unit_rows(t, row);
		nr += is_left_out(t, row) ? 0 : rows;
	}
	nr += !nr;
	height = fmax(height, LITTLE / nr);
	if (height > fmax(MAX_ROW, 2 * LITTLE / nr))
		height = fmax(MAX_ROW, 2 * LITTLE / nr);
	while (height > 3 && height * nr > MAX_HEIGHT)
		height--;
	return height;
}

static void draw(struct plot *plot)
{
	const struct timeline *t = plot->t;
	struct page *page = plot->page;
	double above = page->y += 16, full = t->sums ? find_fullest(t) : 0;
	unsigned int nr;

	svg_text(plot->file, TPC_RIGHT, above - 4, SMALL, END, "TPC");
	svg_text(plot->file, SM_LEFT, above - 4, SMALL, "", "SMs");
	svg_text(plot->file, TAGS_LEFT, above - 4, SMALL, "", t->sets ? "sets" : "");
	for (unsigned int row = 0; row < t->nr_rows; row += nr)
		place_group(plot, row, row + (nr = timeline_group_rows(t, row)));
	for (unsigned int i = 0; i < t->nr_blocks && !t->sums; i++)
		draw_block(plot, &t->blocks[i]);
	for (unsigned int row = 0; row < t->nr_rows && t->sums; row++)
		if (plot->tops[row] > 0)
			draw_sums(plot, row, is_engine(t, row) ? t->slice_ns : full);
	draw_axis(plot->file, t->from, t->to, above, page->y, true, t->when);
	for (unsigned int row = 0; row < t->nr_rows; row += nr)
		label_group(plot, row, row + (nr = timeline_group_rows(t, row)));
	page->y += 46;
}

void timeline_svg(struct timeline *t, struct page *page)
{
	struct plot plot = { .t = t, .page = page, .file = page->file, .head = "" };

	plot.tops = alloc_zeroed(t->nr_rows, sizeof(*plot.tops));
	if (t->nr_all <= TIMELINE_BLOCKS)
		timeline_place(t);
	plot.row = row_height(t);
	t->sums = t->nr_all > TIMELINE_BLOCKS || plot.row * t->least < MIN_HIGH * t->units;
	draw(&plot);
	free(plot.tops);
}

/* -------------------------------------------------------------------- legend */

void timeline_words(const struct timeline *t, struct page *page, const char *block)
{
	char text[512], slice[32];
	const char *unit;
	uint64_t unit_ns = timeline_unit(t->slice_ns, &unit);

	if (!t->sums)
		snprintf(text, sizeof(text), "Each row is an SM, each box in it one of %" PRIu64
			 " %s, as high as its share of the SM. A full row is the most that was "
			 "on an SM.",
			 t->nr_all, block);
	else
		snprintf(text, sizeof(text), "Each row is an SM. %" PRIu64 " %s are too many, or "
			 "too small, to be drawn one by one: a column is %s %s, filled by the "
			 "share of the SM that blocks used. A full column is the highest share "
			 "of any.",
			 t->nr_all, block,
			 timeline_number(slice, sizeof(slice), t->slice_ns, unit_ns), unit);
	page_text(page, MARGIN, SMALL, "", text);
}

/* ---------------------------------------------------------- panels of values */

void timeline_panel(struct timeline_panel *p, double height, uint64_t most, const char *title)
{
	p->page->y += 32;
	svg_text(p->page->file, TIMELINE_LEFT, p->page->y - 6, NORMAL, BOLD, title);
	p->top = p->page->y;
	p->height = height;
	p->most = most ? most : 1;
	svg_rect(p->page->file, TIMELINE_LEFT, p->top, TIMELINE_PLOT, height, PALETTE_BAND,
		 PALETTE_EDGE, " stroke-width=\"0.6\"");
	p->page->y += height;
}

double timeline_panel_x(const struct timeline_panel *p, uint64_t ns)
{
	return scale_x(ns, p->from, p->to);
}

double timeline_panel_y(const struct timeline_panel *p, uint64_t value)
{
	double part = (double)value / p->most;

	return p->top + p->height * (1 - (part > 1 ? 1 : part));
}

void timeline_panel_mark(const struct timeline_panel *p, uint64_t value, const char *text,
			 const char *style)
{
	double y = timeline_panel_y(p, value);

	svg_line(p->page->file, TIMELINE_LEFT, y, TIMELINE_LEFT + TIMELINE_PLOT, y,
		 *style ? style : DOTTED);
	svg_text(p->page->file, TIMELINE_LEFT - 6, y + SMALL * 0.35, SMALL, END, text);
}

void timeline_panel_box(const struct timeline_panel *p, unsigned int kind, uint64_t from,
			uint64_t to, uint64_t low, uint64_t high)
{
	double left = timeline_panel_x(p, from), width = timeline_panel_x(p, to) - left;
	double top = timeline_panel_y(p, high), height = timeline_panel_y(p, low) - top;
	char fill[16];

	if (high <= low)
		return;
	svg_rect(p->page->file, left, top, width, height, palette_fill(kind, fill), PALETTE_PAPER,
		 " stroke-width=\"0.4\" class=\"share\"");
	if (width > 24 && height > 12)
		svg_tag(p->page->file, left + width / 2, top + height / 2, kind);
}

void timeline_panel_axis(const struct timeline_panel *p, const char *when)
{
	double below = p->top + p->height;

	draw_axis(p->page->file, p->from, p->to, below, below + 4, false, when);
	p->page->y = below + (when ? 34 : 20);
}
