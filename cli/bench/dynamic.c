// SPDX-License-Identifier: MIT
/*
 * Makes 38 launches in 17 different sets on two streams. Checks that each launch uses its own set.
 * Checks the order of the launches on each stream.
 */
#include <errno.h>
#include <stdio.h>
#include "cli/bench/bench.h"
#include "cli/util/alloc.h"

#define NR_LAUNCHES	38
#define NR_SETS		17
#define BLOCK_NS	20000
#define THREADS		1024

struct dynamic {
	struct bench *b;
	struct gpupart_tpcset sets[NR_SETS];
	void *stream[2];
	struct slots slots;
};

/*
 * Returns set number @at. The sets have different sizes. Some sets have holes, and some sets
 * overlap.
 */
static struct gpupart_tpcset a_set(const struct gpupart_topology *topo, unsigned int at)
{
	unsigned int nr = gpupart_topology_nr_tpcs(topo), first = at * 7 % nr,
		     stride = 1 + at % 4, size = 2 + (at * 5) % (nr / 2 + 1);
	struct gpupart_tpcset set = { { 0 } };

	if (at < gpupart_topology_nr_gpcs(topo) && at < NR_SETS / 2)
		return gpupart_topology_gpc(topo, at)->tpcs;
	for (unsigned int i = 0; i < size; i++)
		gpupart_tpcset_add(&set, (first + i * stride) % nr);
	return set;
}

static int start_all(struct dynamic *d)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < NR_LAUNCHES; i++) {
		const struct gpupart_tpcset *set = &d->sets[i % NR_SETS];
		struct kernel kernel = { .code = BENCH_HOLD, .threads = THREADS, .n = BLOCK_NS,
					 .blocks = topology_nr_sms(d->b->topo, set) * 4 };

		err = bench_library(d->b, gpupart_next_set(cmd_gp, d->b->gpu, set)) ?:
		      kernel_launch(d->b, d->stream[i % 2], &kernel, &d->slots, i);
	}
	if (!err)
		err = CU(d->b, cuCtxSynchronize);
	return err ? err : slots_fetch(&d->slots);
}

static void tell(struct dynamic *d, json_t *report)
{
	json_t *table = report_table(report, "Launches (us since the first block)",
				     "launch|stream|set|TPCs|TPCs that ran blocks|outside the set|"
				     "start|end"),
	       *chart = report_chart(report, "dynamic.svg", REPORT_TIMELINE,
				     "38 launches in 17 sets on two streams",
				     "us since the first block", "launch", false),
	       *series[2] = { report_series(chart, "stream 0"), report_series(chart, "stream 1") };
	unsigned int nr_outside = 0, nr_exact = 0, nr_early = 0;
	uint64_t zero = d->slots.host[0].start;

	for (unsigned int i = 1; i < NR_LAUNCHES; i++)
		zero = d->slots.host[i].start < zero ? d->slots.host[i].start : zero;
	for (unsigned int i = 0; i < NR_LAUNCHES; i++) {
		const struct gpupart_tpcset *set = &d->sets[i % NR_SETS];
		const struct slot *slot = &d->slots.host[i];
		struct gpupart_tpcset ran = slot_tpcs(d->b, slot),
				      out = gpupart_tpcset_andnot(&ran, set);
		double start = (slot->start - zero) / 1e3, end = (slot->end - zero) / 1e3;
		char list[GPUPART_TPCSET_STRLEN], row[16];

		gpupart_tpcset_format_list(set, list, sizeof(list));
		snprintf(row, sizeof(row), "%u", i + 1);
		report_row(table, "[i,i,s,i,i,i,f,f]", i + 1, i % 2, list,
			   gpupart_tpcset_count(set), gpupart_tpcset_count(&ran),
			   gpupart_tpcset_count(&out), start, end);
		report_chart_row(chart, row);
		report_span(series[i % 2], row, start, end);
		nr_outside += !gpupart_tpcset_empty(&out);
		nr_exact += gpupart_tpcset_equal(&ran, set);
		nr_early += i >= 2 && slot->start < d->slots.host[i - 2].end;
	}
	report_check(report, true, "launches with a block outside their set", nr_outside,
		     REPORT_AT_MOST, 0);
	report_check(report, true, "launches that began before the previous one on their "
		     "stream had ended", nr_early, REPORT_AT_MOST, 0);
	report_mean(report, "Each launch can have a different set. Of %d launches, %u ran on "
		    "exactly the TPCs of their set, and %u had a block outside their set. Of the "
		    "same launches, %u began before the previous launch on their stream had ended.",
		    NR_LAUNCHES, nr_exact, nr_outside, nr_early);
	report_note(report, "Figure 10 of \"Hardware Compute Partitioning on NVIDIA GPUs\".");
}

int bench_dynamic(struct bench *b, json_t *report)
{
	static struct dynamic all, *d = &all;
	int err;

	d->b = b;
	if (gpupart_topology_nr_tpcs(b->topo) < 4)
		return bench_fail(b, -EOPNOTSUPP, "this GPU has too few TPCs");
	for (unsigned int i = 0; i < NR_SETS; i++)
		d->sets[i] = a_set(b->topo, i);
	err = slots_open(b, &d->slots, NR_LAUNCHES);
	for (int s = 0; !err && s < 2; s++)
		err = bench_stream(b, NULL, &d->stream[s]);
	if (!err)
		err = start_all(d);
	if (!err)
		tell(d, report);
	return err;
}
