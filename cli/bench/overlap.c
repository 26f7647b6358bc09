// SPDX-License-Identifier: MIT
/*
 * Runs two kernels on overlapping sets, in both orders. Reports which kernel gets the shared TPCs
 * first.
 */
#include <errno.h>
#include <stdio.h>
#include "cli/bench/bench.h"

#define BLOCK_NS	200000
#define WAVES		4
#define THREADS		1024	/* two blocks for each SM, on any GPU */
#define MAX_ROUNDS	32

struct overlap {
	struct bench *b;
	struct gpupart_tpcset set[2];	/* the sets of K1 and K2 */
	void *stream[2];
	struct slots slots;
	struct kernel kernel[2];
	/* in us; indices: first kernel, kernel, start or end */
	double times[2][2][2][MAX_ROUNDS];
};

static void choose_sets(struct overlap *o)
{
	unsigned int nr = o->b->sets.nr_tpcs, half = nr / 2;
	struct gpupart_tpcset longer = sets_packed(o->b->topo, nr + half),
			      left = sets_packed(o->b->topo, half);

	o->set[0] = sets_packed(o->b->topo, nr);
	o->set[1] = gpupart_tpcset_andnot(&longer, &left);
}

static int once(struct overlap *o, int first, unsigned int round)
{
	uint64_t zero = UINT64_MAX;
	int err = slots_clear(&o->slots);

	for (int i = 0; !err && i < 2; i++) {
		int k = i ? !first : first;

		err = kernel_launch(o->b, o->stream[k], &o->kernel[k], &o->slots, k);
	}
	if (!err)
		err = CU(o->b, cuCtxSynchronize) ?: slots_fetch(&o->slots);
	for (int k = 0; k < 2; k++)
		zero = o->slots.host[k].start < zero ? o->slots.host[k].start : zero;
	for (int k = 0; !err && k < 2; k++) {
		o->times[first][k][0][round] = (o->slots.host[k].start - zero) / 1e3;
		o->times[first][k][1][round] = (o->slots.host[k].end - zero) / 1e3;
	}
	return err;
}

static void tell(struct overlap *o, json_t *report, unsigned int nr_rounds)
{
	json_t *table = report_table(report, "Medians, us since the first block",
				     "order|kernel|start|end"),
	       *chart = report_chart(report, "overlap.svg", REPORT_TIMELINE,
				     "Two kernels on overlapping sets, in both orders",
				     "us since the first block", "", false),
	       *series[2] = { report_series(chart, "K1"), report_series(chart, "K2") };
	char list[2][GPUPART_TPCSET_STRLEN];
	unsigned int nr_first = 0;

	for (int first = 0; first < 2; first++) {
		double end[2];

		for (int k = 0; k < 2; k++) {
			double start = stats_median(o->times[first][k][0], nr_rounds);
			char row[32];

			end[k] = stats_median(o->times[first][k][1], nr_rounds);
			snprintf(row, sizeof(row), "K%d first: K%d", first + 1, k + 1);
			report_row(table, "[s,s,f,f]", first ? "K2 first" : "K1 first",
				   k ? "K2" : "K1", start, end[k]);
			report_chart_row(chart, row);
			report_span(series[k], row, start, end[k]);
		}
		nr_first += end[first] <= end[!first];
	}
	for (int k = 0; k < 2; k++)
		gpupart_tpcset_format_list(&o->set[k], list[k], sizeof(list[k]));
	report_mean(report, "Two equal kernels were launched on overlapping sets, in both orders. "
		    "In %u of the 2 orders, the kernel that was launched first also ended first, "
		    "because the other kernel waited for the shared TPCs.", nr_first);
	report_note(report, "Figure 11 of \"Hardware Compute Partitioning on NVIDIA GPUs\". "
		    "Kernel K1 has TPCs %s, and kernel K2 has TPCs %s. Each kernel has %d waves "
		    "of blocks that run for %d us. Each order is measured in %u rounds.", list[0],
		    list[1], WAVES, BLOCK_NS / 1000, nr_rounds);
}

int bench_overlap(struct bench *b, json_t *report)
{
	unsigned int nr_rounds = bench_count(b, MAX_ROUNDS - 1, 9);
	static struct overlap all, *o = &all;
	int err;

	o->b = b;
	if (b->sets.nr_tpcs < 2)
		return bench_fail(b, -EOPNOTSUPP, "this GPU has too few TPCs");
	choose_sets(o);
	err = slots_open(b, &o->slots, 2);
	for (int k = 0; !err && k < 2; k++) {
		o->kernel[k] = (struct kernel){
			.code = BENCH_HOLD, .threads = THREADS, .n = BLOCK_NS,
			.blocks = topology_nr_sms(b->topo, &o->set[k]) * 2 * WAVES,
		};
		err = bench_stream(b, &o->set[k], &o->stream[k]);
	}
	for (unsigned int round = 0; !err && round < nr_rounds; round++)
		for (int first = 0; !err && first < 2; first++)
			err = once(o, first, round);
	if (!err)
		tell(o, report, nr_rounds);
	return err;
}
