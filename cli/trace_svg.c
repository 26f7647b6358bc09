// SPDX-License-Identifier: MIT
/*
 * A trace as SVG: a row an SM, SMs by GPC and TPC, time from left to right. Must not know
 * how a trace is made.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "axis.h"
#include "page.h"
#include "trace.h"

#define PLOT_LEFT	(MARGIN + 170)	/* GPC, TPC and SMs stand before it */
#define TPC_LEFT	(MARGIN + 62)
#define SM_LEFT		(MARGIN + 96)
#define PLOT_WIDTH	840
#define TAGS_LEFT	(PLOT_LEFT + PLOT_WIDTH + 24)	/* the sets' letters behind it */
#define TAGS_WIDTH	30
#define TINY		10		/* size of text beside the rows */
#define MIN_LABELLED	10		/* height of a TPC that has room for text of 9 */
#define MAX_HEIGHT	2600
#define MAX_LANES	16

struct plot {
	struct page page;
	const struct trace *trace;
	struct picture_layout layout;
	struct trace_block *blocks;	/* by SM and start */
	unsigned char *lanes;		/* of each: which of the places on its SM */
	unsigned int nr_lanes;
	double row;			/* an SM's height */
	double top;			/* of the rows */
};

static int by_sm_and_start(const void *a, const void *b)
{
	const struct trace_block *left = a, *right = b;

	if (left->smid != right->smid)
		return left->smid < right->smid ? -1 : 1;
	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

/* Blocks that are on an SM together get places of their own in its row. */
static void find_lanes(struct plot *plot)
{
	uint64_t ends[MAX_LANES] = { 0 };

	for (unsigned int i = 0; i < plot->trace->nr_records; i++) {
		const struct trace_block *b = &plot->blocks[i];
		unsigned int lane = 0;

		if (!i || b->smid != plot->blocks[i - 1].smid)
			memset(ends, 0, sizeof(ends));
		while (lane + 1 < plot->nr_lanes && ends[lane] > b->start_ns)
			lane++;
		ends[lane] = b->end_ns;
		plot->lanes[i] = lane;
	}
}

static int sort_blocks(struct plot *plot)
{
	const struct trace *trace = plot->trace;
	unsigned int nr_sms = gpupart_topology_nr_sms(trace->picture.topo);

	plot->blocks = malloc(trace->nr_records * sizeof(*plot->blocks));
	plot->lanes = calloc(trace->nr_records, 1);
	if (!plot->blocks || !plot->lanes)
		return -ENOMEM;
	memcpy(plot->blocks, trace->records, trace->nr_records * sizeof(*plot->blocks));
	qsort(plot->blocks, trace->nr_records, sizeof(*plot->blocks), by_sm_and_start);
	plot->nr_lanes = trace->max_resident < MAX_LANES ? trace->max_resident : MAX_LANES;
	plot->row = page_larger(7, 3 * plot->nr_lanes);
	while (plot->row > 3 && plot->row * nr_sms > MAX_HEIGHT)
		plot->row--;
	find_lanes(plot);
	return 0;
}

static double x_of(const struct plot *plot, uint64_t ns)
{
	return PLOT_LEFT + (double)ns / plot->trace->span_ns * PLOT_WIDTH;
}

static void draw_block(struct plot *plot, unsigned int i, double y)
{
	const struct trace_block *b = &plot->blocks[i];
	const struct picture_colour *colour = picture_colour(b->set);
	double left = x_of(plot, b->start_ns), width = x_of(plot, b->end_ns) - left;
	double height = (plot->row - 1) / plot->nr_lanes;
	FILE *file = plot->page.file;

	/* Paper between one block and the next shows where each begins. */
	width = page_larger(width - 0.8, 0.6);
	fprintf(file,
		"<rect class=\"block\" data-sm=\"%u\" data-set=\"%u\" x=\"%.2f\" y=\"%.2f\" "
		"width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>SM %u, TPC %u: ",
		b->smid, b->set, left, y + plot->lanes[i] * height, width,
		page_larger(height - 0.2, 0.8), colour->fill, b->smid, b->tpc);
	svg_escape(file, plot->trace->picture.tenants[b->set].name);
	fprintf(file, ", launch %u, block %u: %" PRIu64 " to %" PRIu64 " ns</title></rect>\n",
		b->launch, b->block, b->start_ns, b->end_ns);
}

/* All blocks of one SM. */
static void draw_sm(struct plot *plot, unsigned int smid, double y)
{
	unsigned int low = 0, high = plot->trace->nr_records;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (plot->blocks[middle].smid < smid)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < plot->trace->nr_records && plot->blocks[low].smid == smid; low++)
		draw_block(plot, low, y);
}

static double draw_tpc(struct plot *plot, unsigned int tpc, double y)
{
	const struct gpupart_tpc *t = gpupart_topology_tpc(plot->trace->picture.topo, tpc);
	double height = t->nr_sms * plot->row, base = y + height / 2 + TINY * 0.35;
	double size = height > TINY ? TINY : height - 1;
	char text[64], tags[8], list[48] = "";
	FILE *file = plot->page.file;

	svg_rect(file, PLOT_LEFT, y, PLOT_WIDTH, height, tpc % 2 ? "#f3f3f3" : "#fafafa", "none",
		 "");
	if (height >= MIN_LABELLED) {
		snprintf(text, sizeof(text), "%u", tpc);
		svg_text(file, TPC_LEFT + 24, base, size, END, text);
		for (unsigned int i = 0; i < t->nr_sms; i++)
			out_append(list, sizeof(list), "%s%u", i ? "," : "", t->sms[i]);
		if (t->nr_sms > 2)
			out_numbers(list, sizeof(list), t->sms, t->nr_sms);
		svg_text(file, SM_LEFT, base, size, " fill=\"#555555\"", list);
		svg_text(file, TAGS_LEFT, base, size, BOLD,
			 trace_tags(plot->trace, tpc, tags));
	}
	for (unsigned int i = 0; i < t->nr_sms; i++)
		draw_sm(plot, t->sms[i], y + i * plot->row);
	return height;
}

static void draw_gpc(struct plot *plot, const struct picture_panel *panel)
{
	double top = plot->page.y, y = top;
	char text[32];

	for (int tpc = gpupart_tpcset_next(&panel->tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&panel->tpcs, tpc + 1))
		y += draw_tpc(plot, tpc, y);
	snprintf(text, sizeof(text), "GPC %u", panel->gpc);
	svg_text(plot->page.file, MARGIN, top + SMALL, SMALL, BOLD, text);
	plot->page.y = page_larger(y, top + SMALL + 3) + 5;
}

static void draw_rows(struct plot *plot)
{
	const struct picture_layout *layout = &plot->layout;
	char text[32];

	plot->top = plot->page.y;
	for (unsigned int i = 0; i < layout->nr_panels; i++) {
		int ugpu = layout->panels[i].ugpu;

		if (ugpu >= 0 && (!i || ugpu != layout->panels[i - 1].ugpu)) {
			snprintf(text, sizeof(text), "uGPU %d", ugpu);
			plot->page.y += i ? 6 : 0;
			svg_text(plot->page.file, MARGIN, plot->page.y + SMALL, SMALL, BOLD, text);
			plot->page.y += SMALL + 5;
		}
		draw_gpc(plot, &layout->panels[i]);
	}
}

static void draw_axis(struct plot *plot, double above, double below)
{
	const struct axis_svg axis = {
		.left = PLOT_LEFT, .width = PLOT_WIDTH, .above = above, .below = below,
		.to = plot->trace->span_ns, .words = "since the first block began",
	};

	axis_svg(plot->page.file, &axis);
}

static void draw_legend(struct plot *plot)
{
	const struct trace *trace = plot->trace;
	char text[OUT_SET_STRLEN + 256], list[OUT_SET_STRLEN];

	for (unsigned int i = 0; i < trace->picture.nr_tenants; i++) {
		snprintf(text, sizeof(text), "TPCs %s: ",
			 out_set(list, sizeof(list), trace->picture.topo,
				 &trace->picture.tenants[i].set));
		trace_words(trace, i, text + strlen(text), sizeof(text) - strlen(text));
		page_tenant(&plot->page, &trace->picture, i, MARGIN, text);
	}
	page_words(&plot->page, MARGIN, SMALL, "",
		   "A row is an SM, a box in it a block of the set's launches, from %globaltimer "
		   "at its start to that at its end.");
}

static void draw(struct plot *plot)
{
	FILE *file = plot->page.file;
	double above;

	plot->page.y += 16;
	above = plot->page.y;
	svg_text(file, MARGIN, above - 4, SMALL, "", "GPC");
	svg_text(file, TPC_LEFT + 24, above - 4, SMALL, END, "TPC");
	svg_text(file, SM_LEFT, above - 4, SMALL, "", "SMs");
	svg_text(file, TAGS_LEFT, above - 4, SMALL, "", "set");
	draw_rows(plot);
	draw_axis(plot, above, plot->page.y);
	plot->page.y += 42;
	draw_legend(plot);
}

int trace_svg(struct out *out, const struct trace *trace)
{
	struct plot plot = { .trace = trace };
	char *body;
	size_t len;
	int err;

	plot.page.width = TAGS_LEFT + TAGS_WIDTH + MARGIN;
	picture_layout(&plot.layout, trace->picture.topo);
	err = sort_blocks(&plot);
	if (!err)
		err = page_begin(&plot.page, &body, &len);
	if (!err) {
		err = page_head(&plot.page, &trace->picture);
		if (!err)
			draw(&plot);
		err = page_end(&plot.page, out, "Blocks on SMs over time", &body, &len, err);
	}
	free(plot.blocks);
	free(plot.lanes);
	return err;
}
