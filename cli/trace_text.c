// SPDX-License-Identifier: MIT
/*
 * A trace for a terminal, in 80 columns: a row a TPC, a column a slice of time, a set's
 * letter where its blocks were longest. Must not know how a trace is made.
 */
#include <stdlib.h>
#include <string.h>
#include "axis.h"
#include "trace.h"

#define LABEL	12	/* "GPC 0   12 " and a blank less */
#define SLICES	64
#define MAX_NAME 72	/* columns of a set's name */

struct rows {
	struct out *out;
	const struct trace *trace;
	double slice_ns;
};

/* Which set was longest on @tpc in each slice of time; -1 none. */
static void fill_row(const struct rows *rows, unsigned int tpc, int longest[SLICES])
{
	const struct trace *trace = rows->trace;
	double most[SLICES] = { 0 }, sum[SLICES] = { 0 };
	unsigned int set = TRACE_MAX_SETS;

	for (unsigned int i = 0; i < SLICES; i++)
		longest[i] = -1;
	for (unsigned int i = 0; i < trace->nr_records; i++) {
		const struct trace_block *b = &trace->records[i];
		unsigned int s = b->start_ns / rows->slice_ns;

		if (b->tpc != tpc)
			continue;
		if (b->set != set)	/* records are by sets: the next one's sums begin */
			memset(sum, 0, sizeof(sum));
		set = b->set;
		for (; s < SLICES && s * rows->slice_ns <= b->end_ns; s++) {
			double from = s * rows->slice_ns, to = from + rows->slice_ns;

			from = from > b->start_ns ? from : b->start_ns;
			to = to < b->end_ns ? to : b->end_ns;
			sum[s] += to - from;
			if (sum[s] <= most[s])
				continue;
			most[s] = sum[s];
			longest[s] = set;
		}
	}
}

/* Whether there was a block on it. */
static bool print_row(const struct rows *rows, const char *label, unsigned int tpc)
{
	int longest[SLICES], before = -1;
	char tags[8];

	if (!*trace_tags(rows->trace, tpc, tags))
		return false;
	fill_row(rows, tpc, longest);
	fprintf(rows->out->file, "%-7s%4u ", label, tpc);
	for (unsigned int i = 0; i < SLICES; i++) {
		picture_slice(rows->out, longest[i], before);
		before = longest[i];
	}
	fprintf(rows->out->file, "%s\n", before >= 0 ? rows->out->plain : "");
	return true;
}

static void print_sets(const struct rows *rows)
{
	const struct trace *trace = rows->trace;
	char text[OUT_SET_STRLEN], tag[PICTURE_TAG_LEN];

	for (unsigned int i = 0; i < trace->picture.nr_tenants; i++) {
		const struct picture_tenant *t = &trace->picture.tenants[i];
		char name[4 * MAX_NAME + 1];
		const char *rest = picture_line(t->name, MAX_NAME, name, sizeof(name));

		fprintf(rows->out->file, "%s%-3s%s%s%s\n", rows->out->bold, picture_tag(i, tag),
			out_clean(name), *rest ? "..." : "", rows->out->plain);
		out_wrap(rows->out, 3, "TPCs", out_set(text, sizeof(text), trace->picture.topo,
						       &t->set));
		trace_words(trace, i, text, sizeof(text));
		out_wrap(rows->out, 2, "", text);
	}
}

void trace_text(struct out *out, const struct trace *trace)
{
	struct rows rows = { .out = out, .trace = trace };
	struct gpupart_tpcset idle = { { 0 } };
	struct picture_layout layout;
	char label[16], text[OUT_SET_STRLEN];

	/* The last end is in the last slice. */
	rows.slice_ns = (trace->span_ns + 1) / (double)SLICES;
	out_gpu_text(out, trace->picture.topo);
	fputc('\n', out->file);
	print_sets(&rows);
	fputc('\n', out->file);
	axis_text(out->file, LABEL, SLICES, rows.slice_ns, 0, "since the first block began");
	picture_layout(&layout, trace->picture.topo);
	for (unsigned int i = 0; i < layout.nr_panels; i++) {
		const struct gpupart_tpcset *tpcs = &layout.panels[i].tpcs;

		snprintf(label, sizeof(label), "GPC %u", layout.panels[i].gpc);
		for (int tpc = gpupart_tpcset_next(tpcs, 0); tpc >= 0;
		     tpc = gpupart_tpcset_next(tpcs, tpc + 1)) {
			if (print_row(&rows, label, tpc))
				*label = 0;
			else
				gpupart_tpcset_add(&idle, tpc);
		}
	}
	if (!gpupart_tpcset_empty(&idle))
		out_wrap(out, 0, "No block on TPCs",
			 out_set(text, sizeof(text), trace->picture.topo, &idle));
}
