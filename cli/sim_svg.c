// SPDX-License-Identifier: MIT
/*
 * Which block ran on which SM, and when, as SVG: a row an SM, SMs by TPC and GPC, time to the
 * right; a kernel has a colour, lines over it, a letter and its name where there is room. Too
 * many blocks are drawn as sums. Knows no scheduling.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "axis.h"
#include "page.h"
#include "sim_blocks.h"

#define PLOT_LEFT	(MARGIN + 150)	/* GPC, TPC and SMs stand before it */
#define TPC_LEFT	(MARGIN + 62)
#define SM_LEFT		(MARGIN + 90)
#define PLOT_WIDTH	840
#define RIGHT		40
#define MANY_ROWS	48
#define SLICES		280		/* three wide each */
#define TINY		10
#define LABEL_SIZE	9
#define LABEL_HEIGHT	(LABEL_SIZE + 2)
#define MIN_LABELLED	9		/* height of a TPC that has room for text */
#define MAX_HEIGHT	1800
#define MAX_ROW		26
#define MIN_HIGH	1.1		/* of a block */
#define LITTLE		360		/* rows of a small GPU take so much together */
#define KIND_LABELS	3		/* of a kernel in a GPC */
#define NAME_WIDTH	130		/* in the legend */

struct plot {
	struct page page;
	const struct sim_blocks *blocks;
	double row;			/* an SM's height */
	bool sums;			/* blocks are too many, or too thin */
	const struct sim_row *before;	/* the last that was placed */
	double *tops;			/* of the rows */
	int8_t *longest;		/* kinds, by row and slice; -1 none, or there is a label */
};

static double x_of(const struct plot *plot, uint64_t ns)
{
	const struct sim_blocks *b = plot->blocks;

	return PLOT_LEFT + (double)(ns - b->from) / (b->to - b->from) * PLOT_WIDTH;
}

static enum svg_lines lines_of(unsigned int kind)
{
	return kind % SVG_NR_LINES;
}

/* ------------------------------------------------------------------------ row by row */

/* Idle TPCs of a large GPU are not drawn, only named. */
static bool is_left_out(const struct plot *plot, unsigned int row)
{
	return plot->blocks->nr_rows > MANY_ROWS && sim_blocks_idle(plot->blocks, row);
}

static double height_of(const struct plot *plot, unsigned int row)
{
	bool engine = plot->blocks->rows[row].smid == SIM_BLOCKS_NO_SM;

	return engine ? page_larger(plot->row, TINY + 2) : plot->row;
}

/* Text beside one TPC's rows, or a copy engine's. */
static void draw_names(struct plot *plot, unsigned int row, unsigned int nr)
{
	const struct sim_blocks *b = plot->blocks;
	double height = nr * height_of(plot, row), size = height > TINY ? TINY : height - 1;
	double base = plot->tops[row] + height / 2 + size * 0.35;
	char text[64], list[64] = "";
	unsigned int sms[PIPE_MAX_SMS];
	FILE *file = plot->page.file;

	svg_rect(file, PLOT_LEFT, plot->tops[row], PLOT_WIDTH, height,
		 b->rows[row].tpc % 2 ? "#f3f3f3" : "#fafafa", "none", "");
	if (b->rows[row].smid == SIM_BLOCKS_NO_SM) {
		snprintf(text, sizeof(text), "copy engine %u", b->rows[row].engine);
		svg_text(file, PLOT_LEFT - 8, base, size, END, text);
		return;
	}
	if (height < MIN_LABELLED)
		return;
	snprintf(text, sizeof(text), "%u", b->rows[row].tpc);
	svg_text(file, TPC_LEFT + 18, base, size, END, text);
	for (unsigned int i = 0; i < nr; i++) {
		sms[i] = b->rows[row + i].smid;
		out_append(list, sizeof(list), "%s%u", i ? "," : "", sms[i]);
	}
	if (nr > 2)
		out_numbers(list, sizeof(list), sms, nr);
	svg_text(file, SM_LEFT, base, size, " fill=\"#555555\"", list);
}

/* A line over the rows of a GPU, where there are several, and of a uGPU. */
static void draw_heads(struct plot *plot, const struct sim_row *row)
{
	const struct sim_blocks *b = plot->blocks;
	const struct sim_row *before = plot->before;
	bool first = !before || row->gpu != before->gpu;
	char text[256] = "";

	plot->before = row;
	if (row->smid == SIM_BLOCKS_NO_SM)
		return;
	if (first && b->run->scenario.pipe.nr_gpus > 1)
		sim_blocks_gpu(b, row->gpu, text, sizeof(text));
	if (sim_blocks_gpcs_known(b, row->gpu) && (first || row->ugpu != before->ugpu))
		out_append(text, sizeof(text), "%suGPU %u", *text ? ", " : "", row->ugpu);
	if (!*text)
		return;
	plot->page.y += before ? 6 : 0;
	svg_text(plot->page.file, MARGIN, plot->page.y + SMALL, SMALL, BOLD, text);
	plot->page.y += SMALL + 5;
}

/* The rows of a GPC, and its name; idle TPCs of a large GPU have none. */
static void place_gpc(struct plot *plot, unsigned int row, unsigned int end)
{
	const struct sim_row *first = &plot->blocks->rows[row];
	double top = 0;
	unsigned int nr;
	char text[32];

	for (; row < end; row += nr) {
		nr = sim_blocks_tpc_rows(plot->blocks, row);
		if (is_left_out(plot, row))
			continue;
		if (top <= 0) {
			draw_heads(plot, first);
			top = plot->page.y;
		}
		for (unsigned int j = 0; j < nr; j++, plot->page.y += height_of(plot, row))
			plot->tops[row + j] = plot->page.y;
		draw_names(plot, row, nr);
	}
	if (top <= 0)
		return;
	if (first->smid != SIM_BLOCKS_NO_SM && sim_blocks_gpcs_known(plot->blocks, first->gpu)) {
		snprintf(text, sizeof(text), "GPC %u", first->gpc);
		svg_text(plot->page.file, MARGIN, top + SMALL, SMALL, BOLD, text);
		plot->page.y = page_larger(plot->page.y, top + SMALL + 3);
	}
	plot->page.y += 5;
}

static void place_rows(struct plot *plot)
{
	unsigned int nr;

	for (unsigned int row = 0; row < plot->blocks->nr_rows; row += nr) {
		nr = sim_blocks_gpc_rows(plot->blocks, row);
		place_gpc(plot, row, row + nr);
	}
}

/* ---------------------------------------------------------------------- blocks, sums */

struct box {
	double x, y, width, height;
};

static struct box box_of(const struct plot *plot, const struct sim_one *one)
{
	const struct sim_blocks *b = plot->blocks;
	bool engine = b->rows[one->row].smid == SIM_BLOCKS_NO_SM;
	double high = height_of(plot, one->row);
	double unit = (high - (high > 4)) / (engine ? SIM_BLOCKS_UNITS : b->units);
	double x = x_of(plot, one->start), y = plot->tops[one->row];

	/* Paper between one block and the next shows where each begins. */
	return (struct box){
		x, y + one->at * unit, page_larger(x_of(plot, one->end) - x - 0.8, 0.6),
		page_larger(one->high * unit - 0.3, 0.6),
	};
}

static void draw_block(struct plot *plot, const struct sim_one *one)
{
	const struct sim_row *row = &plot->blocks->rows[one->row];
	struct box box = box_of(plot, one);
	FILE *file = plot->page.file;

	fprintf(file, "<rect class=\"block\" data-gpu=\"%u\" data-sm=\"%d\" x=\"%.2f\" "
		"y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>", row->gpu,
		(int)row->smid, box.x, box.y, box.width, box.height,
		picture_colour(one->kind)->fill);
	if (row->smid == SIM_BLOCKS_NO_SM)
		fprintf(file, "copy engine %u: ", row->engine);
	else
		fprintf(file, "SM %u, TPC %u: ", row->smid, row->tpc);
	svg_escape(file, sim_blocks_name(plot->blocks, one->kind));
	fprintf(file, ", launch %" PRIu64 ", block %" PRIu64 ": %" PRIu64 " to %" PRIu64
		" ns</title></rect>\n", one->launch, one->block, one->start, one->end);
}

/* How high the sum of a kind is in a slice of a row, in quarters, so that neighbours join. */
static double sum_height(const struct plot *plot, unsigned int row, unsigned int slice,
			 unsigned int kind)
{
	const struct sim_blocks *b = plot->blocks;
	double full = b->rows[row].smid == SIM_BLOCKS_NO_SM ? b->slice_ns : b->full;
	double part = full > 0 ? sim_blocks_cell(b, row, slice)[kind] / full : 0;

	if (part <= 0)
		return 0;
	return page_larger((int)(part * (height_of(plot, row) - 0.5) * 4 + 0.5) / 4.0, 0.25);
}

/* A box for each kind that has a part of the slices from @slice to before @end. */
static void draw_sums(struct plot *plot, unsigned int row, unsigned int slice, unsigned int end,
		      FILE *lines, unsigned int only)
{
	double y = plot->tops[row] + height_of(plot, row) - 0.5, height;
	double x = PLOT_LEFT + (double)slice * PLOT_WIDTH / plot->blocks->nr_slices;
	double width = (double)(end - slice) * PLOT_WIDTH / plot->blocks->nr_slices;

	for (unsigned int kind = 0; kind <= SIM_BLOCKS_COPY; kind++) {
		height = sum_height(plot, row, slice, kind);
		y -= height;
		if (height > 0 && lines && kind == only)
			svg_lines(lines, lines_of(kind), x, y, width, height);
		else if (height > 0 && !lines)
			fprintf(plot->page.file, "<rect class=\"sum\" x=\"%.2f\" y=\"%.2f\" "
				"width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y, width,
				height, picture_colour(kind)->fill);
	}
}

static bool same_sums(const struct plot *plot, unsigned int row, unsigned int x, unsigned int y)
{
	for (unsigned int kind = 0; kind <= SIM_BLOCKS_COPY; kind++)
		if (sum_height(plot, row, x, kind) != sum_height(plot, row, y, kind))
			return false;
	return true;
}

static void draw_row_sums(struct plot *plot, unsigned int row, FILE *lines, unsigned int only)
{
	unsigned int from = 0, i;

	for (i = 1; i <= plot->blocks->nr_slices; i++) {
		if (i < plot->blocks->nr_slices && same_sums(plot, row, from, i))
			continue;
		draw_sums(plot, row, from, i, lines, only);
		from = i;
	}
}

static bool has_kind(const struct sim_blocks *b, unsigned int row, unsigned int kind)
{
	for (unsigned int slice = 0; slice < b->nr_slices; slice++)
		if (sim_blocks_cell(b, row, slice)[kind] > 0)
			return true;
	return false;
}

static void begin_lines(FILE *file, unsigned int kind)
{
	fprintf(file, "<path class=\"lines\" fill=\"none\" stroke=\"%s\" stroke-width=\"0.7\" "
		"stroke-opacity=\"0.75\" d=\"M0 0", picture_colour(kind)->ink);
}

/* The lines over all boxes of a kind: one path. */
static void draw_lines(struct plot *plot, unsigned int kind)
{
	const struct sim_blocks *b = plot->blocks;
	FILE *file = plot->page.file;

	if (lines_of(kind) == SVG_NONE)
		return;
	begin_lines(file, kind);
	for (unsigned int i = 0; !plot->sums && i < b->nr_blocks; i++) {
		struct box box = box_of(plot, &b->blocks[i]);

		if (b->blocks[i].kind == kind)
			svg_lines(file, lines_of(kind), box.x, box.y, box.width, box.height);
	}
	for (unsigned int row = 0; plot->sums && row < b->nr_rows; row++)
		if (has_kind(b, row, kind))
			draw_row_sums(plot, row, file, kind);
	fputs("\"/>\n", file);
}

static void draw_blocks(struct plot *plot)
{
	const struct sim_blocks *b = plot->blocks;

	for (unsigned int i = 0; !plot->sums && i < b->nr_blocks; i++)
		draw_block(plot, &b->blocks[i]);
	for (unsigned int row = 0; plot->sums && row < b->nr_rows; row++)
		draw_row_sums(plot, row, NULL, 0);
	for (unsigned int kind = 0; kind < b->nr_kinds; kind++)
		draw_lines(plot, kind);
	if (b->others)
		draw_lines(plot, SIM_BLOCKS_KINDS);
	if (b->run->copies.nr)
		draw_lines(plot, SIM_BLOCKS_COPY);
}

/* -------------------------------------------------------------------- names on blocks */

static int8_t *longest_at(const struct plot *plot, unsigned int row, unsigned int slice)
{
	return &plot->longest[(size_t)row * plot->blocks->nr_slices + slice];
}

static bool all_of_kind(const struct plot *plot, unsigned int row, unsigned int from,
			unsigned int to, int kind)
{
	for (unsigned int i = from; i < to; i++)
		if (*longest_at(plot, row, i) != kind)
			return false;
	return true;
}

/* The area that has a label now has no other. */
static void take_area(struct plot *plot, unsigned int row, unsigned int end, unsigned int slice)
{
	unsigned int from, to;
	int kind = *longest_at(plot, row, slice);

	for (; row < end && *longest_at(plot, row, slice) == kind; row++) {
		for (from = slice; from && *longest_at(plot, row, from - 1) == kind; from--)
			;
		for (to = slice; to < plot->blocks->nr_slices &&
		     *longest_at(plot, row, to) == kind; to++)
			;
		memset(longest_at(plot, row, from), -1, to - from);
	}
}

static void draw_label(struct plot *plot, double x, double y, const char *text)
{
	double width = page_text_width(picture_columns(text), LABEL_SIZE) + 3;
	FILE *file = plot->page.file;

	svg_rect(file, x - width / 2, y - LABEL_HEIGHT / 2.0, width, LABEL_HEIGHT, "#ffffff",
		 "none", " fill-opacity=\"0.88\" rx=\"2\"");
	svg_text(file, x, y + LABEL_SIZE * 0.36, LABEL_SIZE, MIDDLE, text);
}

/*
 * The name of the kind that has slices [@from, @to) of @row, or its letter where that is
 * wider, in the middle of as many rows as have it there; false: there is no room.
 */
static bool label_area(struct plot *plot, unsigned int row, unsigned int end, unsigned int from,
		       unsigned int to)
{
	const struct sim_blocks *b = plot->blocks;
	int kind = *longest_at(plot, row, from);
	double each = (double)PLOT_WIDTH / b->nr_slices, width = 0;
	unsigned int middle = (from + to) / 2, half, last = row;
	char tag[PICTURE_TAG_LEN];
	const char *text = sim_blocks_name(b, kind);

	for (unsigned int i = 0; i < 2; i++, text = picture_tag(kind, tag)) {
		width = page_text_width(picture_columns(text), LABEL_SIZE) + 4;
		if (width <= (to - from) * each)
			break;
	}
	if (width > (to - from) * each)
		return false;
	half = width / each / 2;
	half = half > middle - from ? middle - from : half;
	while (last + 1 < end && all_of_kind(plot, last + 1, middle - half, middle + half + 1 > to ?
					     to : middle + half + 1, kind))
		last++;
	if (plot->tops[last] + height_of(plot, last) - plot->tops[row] < LABEL_HEIGHT - 2)
		return false;
	draw_label(plot, PLOT_LEFT + (from + to) / 2.0 * each,
		   (plot->tops[row] + plot->tops[last] + height_of(plot, last)) / 2, text);
	take_area(plot, row, end, middle);
	return true;
}

/* Rows [@row, @end) of a GPC. */
static void label_gpc(struct plot *plot, unsigned int row, unsigned int end)
{
	unsigned int nr_of[SIM_BLOCKS_COPY + 1] = { 0 }, from, to, nr = plot->blocks->nr_slices;
	int kind;

	for (; row < end; row++)
		for (from = 0; from < nr; from = to) {
			kind = *longest_at(plot, row, from);
			for (to = from + 1; to < nr && *longest_at(plot, row, to) == kind; to++)
				;
			if (kind >= 0 && nr_of[kind] < KIND_LABELS)
				nr_of[kind] += label_area(plot, row, end, from, to);
		}
}

static void draw_labels(struct plot *plot)
{
	const struct sim_blocks *b = plot->blocks;
	unsigned int nr;

	for (unsigned int row = 0; row < b->nr_rows; row++)
		for (unsigned int slice = 0; slice < b->nr_slices; slice++)
			*longest_at(plot, row, slice) = sim_blocks_longest(b, row, 1, slice);
	for (unsigned int row = 0; row < b->nr_rows; row += nr) {
		nr = sim_blocks_gpc_rows(b, row);
		label_gpc(plot, row, row + nr);
	}
}

/* ---------------------------------------------------------------------------- legend */

static void draw_kind(struct plot *plot, unsigned int kind)
{
	const struct picture_colour *colour = picture_colour(kind);
	char style[64], tag[PICTURE_TAG_LEN], text[2048];
	double top = plot->page.y, x = MARGIN + SWATCH_WIDTH + 10;
	FILE *file = plot->page.file;
	const char *name = sim_blocks_name(plot->blocks, kind);

	svg_rect(file, MARGIN, top, SWATCH_WIDTH, 14, colour->fill, "#000000",
		 " class=\"kernel\"");
	begin_lines(file, kind);
	svg_lines(file, lines_of(kind), MARGIN, top, SWATCH_WIDTH, 14);
	fputs("\"/>\n", file);
	svg_rect(file, MARGIN + SWATCH_WIDTH / 2.0 - 7, top + 1.5, 14, 11, colour->fill, "none",
		 "");
	snprintf(style, sizeof(style), BOLD MIDDLE " fill=\"%s\"", colour->ink);
	svg_text(file, MARGIN + SWATCH_WIDTH / 2.0, top + 11, SMALL, style,
		 picture_tag(kind, tag));
	svg_text(file, x, top + 11, SMALL, BOLD, name);
	sim_blocks_words(plot->blocks, kind, text, sizeof(text));
	plot->page.y = top - 5;
	x += page_larger(NAME_WIDTH, page_text_width(picture_columns(name) + 2, SMALL));
	if (*text)
		page_words(&plot->page, x, SMALL, "", text);
	plot->page.y = page_larger(plot->page.y + 9, top + 20);
}

static void draw_legend(struct plot *plot)
{
	const struct sim_blocks *b = plot->blocks;
	char text[4096] = "Streams: ", slice[32];
	unsigned int gpus = b->run->scenario.pipe.nr_gpus;

	for (unsigned int i = 0; i < b->nr_kinds; i++)
		draw_kind(plot, i);
	if (b->others)
		draw_kind(plot, SIM_BLOCKS_KINDS);
	if (b->run->copies.nr)
		draw_kind(plot, SIM_BLOCKS_COPY);
	sim_blocks_streams(b, text + strlen(text), sizeof(text) - strlen(text));
	page_words(&plot->page, MARGIN, SMALL, "", text);
	if (!plot->sums)
		snprintf(text, sizeof(text), "A row is an SM, a box in it one of %" PRIu64
			 " simulated blocks, as high as its part of the SM: one of as many as fit "
			 "on it. A full row is the most that was on an SM.", b->nr_all);
	else
		snprintf(text, sizeof(text), "A row is an SM. %" PRIu64 " blocks, simulated, are "
			 "too many, or too small, to be drawn one by one: a column is %s, and so much of it is "
			 "filled as blocks had of the SM. A full one is the most that was had.",
			 b->nr_all, sim_time(slice, b->slice_ns));
	page_words(&plot->page, MARGIN, SMALL, "", text);
	for (unsigned int i = 0; i < gpus; i++)
		if (b->run->scenario.pipe.nr_processes > 1 && !b->run->scenario.pipe.gpus[i].mps) {
			page_words(&plot->page, MARGIN, SMALL, "", "Processes have a GPU in turn: "
				   "a box goes on while its process waits for it.");
			break;
		}
	for (unsigned int i = 0; b->nr_rows > MANY_ROWS && i < gpus; i++) {
		snprintf(text, sizeof(text), "No block%s%s on TPCs ", gpus > 1 ? " of GPU " : "",
			 gpus > 1 ? b->run->scenario.gpu_names[i] : "");
		sim_blocks_idle_list(b, i, text + strlen(text), sizeof(text) - strlen(text));
		if (text[strlen(text) - 1] != ' ')
			page_words(&plot->page, MARGIN, SMALL, "", text);
	}
	for (unsigned int i = 0; i < gpus; i++)
		if (!sim_blocks_gpcs_known(b, i)) {
			page_words(&plot->page, MARGIN, SMALL, "", "Which TPCs are one GPC is not "
				   "known of this board: rows are in the order of TPCs.");
			return;
		}
}

/* ------------------------------------------------------------------------------ all */

static void draw_head(struct plot *plot, const char *title)
{
	const struct sim_run *run = plot->blocks->run;
	char text[512];

	plot->page.y = MARGIN - 4;
	if (title && *title)
		page_words(&plot->page, MARGIN, 18, BOLD, title);
	if (run->name) {
		snprintf(text, sizeof(text), "run %s", run->name);
		page_words(&plot->page, MARGIN, NORMAL, BOLD, text);
	}
	for (unsigned int i = 0; i < run->scenario.pipe.nr_gpus; i++) {
		sim_blocks_gpu(plot->blocks, i, text, sizeof(text));
		page_words(&plot->page, MARGIN, NORMAL, "", text);
	}
	plot->page.y += 10;
}

static void draw(struct plot *plot, const char *title)
{
	FILE *file = plot->page.file;
	struct axis_svg axis = {
		.left = PLOT_LEFT, .width = PLOT_WIDTH, .from = plot->blocks->from,
		.to = plot->blocks->to, .words = "(simulated) since the scenario began",
	};

	draw_head(plot, title);
	plot->page.y += 16;
	axis.above = plot->page.y;
	svg_text(file, TPC_LEFT + 18, axis.above - 4, SMALL, END, "TPC");
	svg_text(file, SM_LEFT, axis.above - 4, SMALL, "", "SMs");
	place_rows(plot);
	axis.below = plot->page.y;
	draw_blocks(plot);
	axis_svg(file, &axis);
	draw_labels(plot);
	plot->page.y += 46;
	draw_legend(plot);
}

static int make(struct plot *plot)
{
	const struct sim_blocks *b = plot->blocks;
	unsigned int nr = 0, tpc;

	for (unsigned int row = 0; row < b->nr_rows; row += tpc) {
		tpc = sim_blocks_tpc_rows(b, row);
		nr += is_left_out(plot, row) ? 0 : tpc;
	}
	nr += !nr;

	plot->page.width = PLOT_LEFT + PLOT_WIDTH + RIGHT;
	/* A block of the smallest is as high as can be seen. */
	plot->row = b->one_by_one ? page_larger(7, 2.0 * b->units / b->least) : 7;
	plot->row = page_larger(plot->row, LITTLE / nr);
	if (plot->row > page_larger(MAX_ROW, 2 * LITTLE / nr))
		plot->row = page_larger(MAX_ROW, 2 * LITTLE / nr);
	while (plot->row > 3 && plot->row * nr > MAX_HEIGHT)
		plot->row--;
	plot->sums = !b->one_by_one || plot->row * b->least < MIN_HIGH * b->units;
	plot->tops = malloc(b->nr_rows * sizeof(*plot->tops));
	plot->longest = malloc((size_t)b->nr_rows * b->nr_slices);
	return plot->tops && plot->longest ? 0 : -ENOMEM;
}

int sim_svg(struct out *out, const struct sim_run *run, const char *title, uint64_t from,
	    uint64_t to)
{
	struct sim_blocks blocks;
	struct plot plot = { .blocks = &blocks };
	char *body;
	size_t len;
	int err = sim_blocks_make(&blocks, run, from, to, SLICES);

	if (!err)
		err = make(&plot);
	if (!err)
		err = page_begin(&plot.page, &body, &len);
	if (!err) {
		draw(&plot, title);
		err = page_end(&plot.page, out, "Blocks on SMs over time (simulated)", &body, &len,
			       0);
	}
	free(plot.tops);
	free(plot.longest);
	sim_blocks_free(&blocks);
	return err;
}
