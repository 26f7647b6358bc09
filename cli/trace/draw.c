// SPDX-License-Identifier: MIT
/* Draws a trace. The SVG has a row for each SM. The text has 80 columns and a row for each TPC. */
#include <string.h>
#include "cli/draw/timeline.h"
#include "cli/trace/trace.h"

#define TEXT_SLICES	64
/* height of a block, which is TIMELINE_UNITS / maximum number of blocks on an SM of most GPUs */
#define BLOCK_UNITS	4
#define MAX_NAME	72	/* columns for the name of a set */

/* Adds a row for each SM of a GPC, ordered by TPC. Returns the index after these rows. */
static unsigned int add_rows(struct timeline *t, const struct trace *trace,
			     const struct picture_panel *panel, unsigned int row)
{
	for (int tpc = gpupart_tpcset_next(&panel->tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&panel->tpcs, tpc + 1)) {
		const struct gpupart_tpc *info = gpupart_topology_tpc(trace->picture.topo, tpc);

		for (unsigned int i = 0; i < info->nr_sms; i++, row++) {
			struct timeline_row *r = &t->rows[row];

			*r = (struct timeline_row){
				.group = panel->gpc, .unit = tpc, .smid = info->sms[i],
			};
			snprintf(r->name, sizeof(r->name), "GPC %u", panel->gpc);
			if (panel->ugpu >= 0)
				snprintf(r->head, sizeof(r->head), "uGPU %d", panel->ugpu);
		}
	}
	return row;
}

static void add_blocks(struct timeline *t, const struct trace *trace)
{
	for (unsigned int i = 0; i < trace->nr_records; i++) {
		const struct trace_block *b = &trace->records[i];
		unsigned int row = 0;

		while (row < t->nr_rows && t->rows[row].smid != (int)b->smid)
			row++;
		if (row < t->nr_rows)
			timeline_add(t, (struct timeline_block){
				.start = b->start_ns, .end = b->end_ns, .launch = b->launch,
				.block = b->block, .row = row, .kind = b->set,
				.high = BLOCK_UNITS,
			});
	}
}

/* Fills in *t. The caller frees it with timeline_free(). */
static void make(struct timeline *t, const struct trace *trace, unsigned int nr_slices)
{
	struct picture_layout layout;
	unsigned int row = 0;

	*t = (struct timeline){
		.to = trace->span_ns + 1, .when = "since the first block began", .sets = true,
		.nr_kinds = trace->picture.nr_tenants,
	};
	timeline_make(t, gpupart_topology_nr_sms(trace->picture.topo), nr_slices);
	picture_layout(&layout, trace->picture.topo);
	for (unsigned int i = 0; i < t->nr_kinds; i++)
		t->names[i] = trace->picture.tenants[i].name;
	for (unsigned int i = 0; i < layout.nr_panels; i++)
		row = add_rows(t, trace, &layout.panels[i], row);
	add_blocks(t, trace);
}

/*
 * Describes the launches, the blocks and the SMs of a set, and the times of its first and last
 * block.
 */
static void describe_set(const struct trace *trace, unsigned int set, char *text, size_t len)
{
	unsigned int nr_outside = 0, nr_sms = 0;
	uint64_t first = UINT64_MAX, last = 0, unit_ns;
	uint64_t seen[GPUPART_MAX_TPCS * GPUPART_MAX_SMS_PER_TPC / 64] = { 0 };
	char from[32], to[32];
	const char *unit;

	for (unsigned int i = 0; i < trace->nr_records; i++) {
		const struct trace_block *b = &trace->records[i];

		if (b->set != set)
			continue;
		first = b->start_ns < first ? b->start_ns : first;
		last = b->end_ns > last ? b->end_ns : last;
		nr_outside += !gpupart_tpcset_has(&trace->picture.tenants[set].set, b->tpc);
		nr_sms += !(seen[b->smid / 64] >> b->smid % 64 & 1);
		seen[b->smid / 64] |= 1ull << b->smid % 64;
	}
	unit_ns = timeline_unit(timeline_step(trace->span_ns, 10), &unit);
	snprintf(text, len, "%u launch%s of %u block%s on %u SM%s, %s to %s %s, ",
		 trace->nr_launches, trace->nr_launches == 1 ? "" : "es", trace->blocks[set],
		 trace->blocks[set] == 1 ? "" : "s", nr_sms, nr_sms == 1 ? "" : "s",
		 timeline_number(from, sizeof(from), first, unit_ns),
		 timeline_number(to, sizeof(to), last, unit_ns), unit);
	if (nr_outside)
		out_append(text, len, "%u blocks OUTSIDE its TPCs", nr_outside);
	else
		out_append(text, len, "all inside its TPCs");
}

static void draw_words(const struct timeline *t, struct page *page, const struct trace *trace)
{
	const struct gpupart_topology *topo = trace->picture.topo;
	struct gpupart_tpcset idle = timeline_idle(t, 0);
	char text[OUT_SET_STRLEN + 256], list[OUT_SET_STRLEN];

	for (unsigned int i = 0; i < trace->picture.nr_tenants; i++) {
		snprintf(text, sizeof(text), "TPCs %s: ",
			 out_set(list, sizeof(list), topo, &trace->picture.tenants[i].set));
		describe_set(trace, i, text + strlen(text), sizeof(text) - strlen(text));
		page_legend(page, i, t->names[i], text);
	}
	timeline_words(t, page, "blocks");
	page_text(page, MARGIN, SMALL, "", "Times are %globaltimer at a block's start and end. "
		   "Letters at the right edge name the sets with a block on that TPC; + means "
		   "more than two.");
	snprintf(text, sizeof(text), "No block on TPCs %s",
		 out_set(list, sizeof(list), topo, &idle));
	if (!gpupart_tpcset_empty(&idle))
		page_text(page, MARGIN, SMALL, "", text);
}

void trace_svg(struct out *out, const struct trace *trace)
{
	struct page page = { .width = TIMELINE_WIDTH };
	struct timeline t;

	make(&t, trace, TIMELINE_SVG_SLICES);
	page_begin(&page);
	page_head(&page, &trace->picture);
	timeline_svg(&t, &page);
	draw_words(&t, &page, trace);
	page_end(&page, out, "Blocks on SMs over time", t.nr_kinds);
	timeline_free(&t);
}

static void print_sets(struct out *out, const struct trace *trace)
{
	char text[OUT_SET_STRLEN], tag[PICTURE_TAG_LEN], name[4 * MAX_NAME + 1];

	for (unsigned int i = 0; i < trace->picture.nr_tenants; i++) {
		const struct picture_tenant *t = &trace->picture.tenants[i];
		const char *rest = picture_line(t->name, MAX_NAME, name, sizeof(name));

		fprintf(out->file, "%s%-3s%s%s%s\n", out->bold, picture_tag(i, tag),
			out_clean(name), *rest ? "..." : "", out->plain);
		out_wrap(out, 3, "TPCs", out_set(text, sizeof(text), trace->picture.topo, &t->set));
		describe_set(trace, i, text, sizeof(text));
		out_wrap(out, 2, "", text);
	}
}

void trace_text(struct out *out, const struct trace *trace)
{
	struct gpupart_tpcset idle;
	char text[OUT_SET_STRLEN];
	struct timeline t;

	make(&t, trace, TEXT_SLICES);
	idle = timeline_idle(&t, 0);
	out_gpu_text(out, trace->picture.topo);
	fputc('\n', out->file);
	print_sets(out, trace);
	fputc('\n', out->file);
	timeline_text(&t, out, 0, t.nr_rows);
	if (!gpupart_tpcset_empty(&idle))
		out_wrap(out, 0, "No block on TPCs",
			 out_set(text, sizeof(text), trace->picture.topo, &idle));
	timeline_free(&t);
}
