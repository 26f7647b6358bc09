// SPDX-License-Identifier: MIT
/*
 * A trace for a terminal, in 80 columns: a row a TPC, a column a slice of time, a set's
 * letter where its blocks were longest. Must not know how a trace is made.
 */
#include <stdlib.h>
#include <string.h>
#include "trace.h"

#define LABEL	12	/* "GPC 0   12 " and a blank less */
#define SLICES	64
#define TICKS	6
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

static void print_slice(const struct rows *rows, int set, int before)
{
	const struct picture_colour *colour;
	FILE *file = rows->out->file;
	char tag[PICTURE_TAG_LEN];

	if (*rows->out->plain && set != before) {
		fputs(rows->out->plain, file);
		if (set >= 0) {
			colour = picture_colour(set);
			fprintf(file, "\033[48;5;%d;38;5;%dm", colour->terminal_fill,
				colour->terminal_ink);
		}
	}
	fputc(set < 0 ? '.' : *picture_tag(set, tag), file);
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
		print_slice(rows, longest[i], before);
		before = longest[i];
	}
	fprintf(rows->out->file, "%s\n", before >= 0 ? rows->out->plain : "");
	return true;
}

/* The times above the columns, the first of a number over its column. */
static void print_axis(const struct rows *rows)
{
	char line[SLICES + 32], number[32];
	unsigned int at = 0;
	uint64_t unit_ns, step;
	const char *unit;

	step = trace_step(rows->trace->span_ns, TICKS, &unit, &unit_ns);
	memset(line, ' ', sizeof(line));
	for (uint64_t ns = 0; ns <= rows->trace->span_ns; ns += step) {
		at = ns / rows->slice_ns;
		trace_number(number, sizeof(number), ns, unit_ns);
		if (at + strlen(number) > SLICES)
			break;
		memcpy(line + at, number, strlen(number));
		at += strlen(number);
	}
	line[at] = 0;
	fprintf(rows->out->file, "%*s%s since the first block began\n%*s%s\n", LABEL, "", unit,
		LABEL, "", line);
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
	print_axis(&rows);
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
