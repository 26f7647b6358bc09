// SPDX-License-Identifier: MIT
/*
 * Checks three criteria for sharing a GPU. A program never uses more than its share. Confinement
 * costs little. A neighbour does not slow a program down.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli/bench/bench.h"

#define BLOCK_NS	4000
#define COST_US		1000
#define VICTIM_US	400
#define NEIGHBOUR_US	2000
/* maximum slowdown next to other programs; the part "protect" has the same maximum */
#define BESIDE_MOST	1.05

/*
 * Makes launches in random sets of any size and form. Counts the launches that had a block outside
 * their set.
 */
static int measure_share(struct bench *b, json_t *report)
{
	unsigned int nr = bench_count(b, 200, 40), nr_tpcs = gpupart_topology_nr_tpcs(b->topo),
		     nr_outside = 0, nr_exact = 0, seed = 1;
	struct slots slots;
	void *stream = NULL;
	int err;

	err = slots_open(b, &slots, 1) ?: bench_stream(b, NULL, &stream);
	for (unsigned int i = 0; !err && i < nr; i++) {
		struct gpupart_tpcset set = { { 0 } }, ran, out;
		struct kernel kernel = { .code = BENCH_HOLD, .threads = 1024, .n = BLOCK_NS };
		unsigned int size = 1 + i % nr_tpcs;

		while (gpupart_tpcset_count(&set) < size)
			gpupart_tpcset_add(&set, rand_r(&seed) % nr_tpcs);
		kernel.blocks = topology_nr_sms(b->topo, &set) * 4;
		err = bench_stream_set(b, stream, &set) ?:
		      slots_clear(&slots) ?:
		      kernel_launch(b, stream, &kernel, &slots, 0) ?:
		      CU(b, cuStreamSynchronize, stream) ?:
		      slots_fetch(&slots);
		ran = slot_tpcs(b, &slots.host[0]);
		out = gpupart_tpcset_andnot(&ran, &set);
		nr_outside += !gpupart_tpcset_empty(&out);
		nr_exact += gpupart_tpcset_equal(&ran, &set);
	}
	if (err)
		return err;
	report_check(report, true, "launches in random sets with a block outside their set",
		     nr_outside,
		     REPORT_AT_MOST, 0);
	report_mean(report, "A launch never uses more than its set. Of %u launches in random sets "
		    "of 1 to %u TPCs, %u used exactly their set, and %u had a block outside their "
		    "set.", nr,
		    nr < nr_tpcs ? nr : nr_tpcs, nr_exact, nr_outside);
	return 0;
}

#define MOST_TURNS	15

struct turns {
	/*
	 * The results of each turn: the median without a set, the median with all TPCs, and their
	 * ratio.
	 */
	double none[MOST_TURNS + 1], every[MOST_TURNS], ratio[MOST_TURNS];
	double mhz_none, mhz_every;
	unsigned int nr;
};

/*
 * Measures launches without a set (A) and launches with the set of all TPCs (B). The order is A B A
 * B A. Compares each B with the previous A and the next A.
 */
static int take_turns(struct meter *m, const struct kernel *kernel, struct turns *t)
{
	struct gpupart_tpcset all = gpupart_topology_all(m->b->topo);
	struct stats s;
	int err = 0;

	for (unsigned int i = 0; !err && i <= t->nr; i++) {
		err = meter_alone(m, kernel, NULL, &s, &t->mhz_none);
		if (err)
			break;
		t->none[i] = s.median;
		if (i)
			t->ratio[i - 1] = t->none[i] > 0 ?
				2 * t->every[i - 1] / (t->none[i] + t->none[i - 1]) : 0;
		if (i == t->nr)
			break;
		err = meter_alone(m, kernel, &all, &s, &t->mhz_every);
		t->every[i] = s.median;
	}
	return err;
}

static int measure_cost_of(struct meter *m, enum work work, json_t *table, double *ratio)
{
	struct gpupart_tpcset all = gpupart_topology_all(m->b->topo);
	struct turns t = { .nr = bench_count(m->b, MOST_TURNS, 5) };
	struct kernel kernel;
	int err;

	err = bench_stream_set(m->b, m->victim, NULL) ?:
	      workload_victim(&m->work, work, topology_nr_sms(m->b->topo, &all), m->victim, COST_US,
			      &kernel) ?:
	      take_turns(m, &kernel, &t);
	if (!err) {
		*ratio = stats_median(t.ratio, t.nr);
		report_row(table, "[s,f,f,f,f,f]", work_name[work],
			   stats_median(t.none, t.nr + 1), stats_median(t.every, t.nr), *ratio,
			   t.mhz_none, t.mhz_every);
	}
	return err;
}

static int measure_cost(struct meter *m, json_t *report)
{
	json_t *table = report_table(report, "Cost of confinement (us, medians)",
				     "kernel|no set|set of all TPCs|ratio|MHz|MHz in the set");
	static const enum work works[] = { WORK_FMA, WORK_L2, WORK_DRAM };
	char what[128];
	double ratio = 0, worst = 0;
	int err = 0;

	for (int i = 0; !err && i < 3; i++) {
		err = measure_cost_of(m, works[i], table, &ratio);
		if (err)
			break;
		snprintf(what, sizeof(what), "%s: time in the set of all TPCs relative to no set",
			 work_name[works[i]]);
		report_check(report, !m->b->simulated, what, ratio, REPORT_AT_MOST, 1.005);
		worst = ratio > worst ? ratio : worst;
	}
	if (!err)
		report_mean(report, "Confinement itself costs a kernel little: with the set of all "
			    "TPCs, a kernel takes at most %.4f times as long as without a set.",
			    worst);
	return err;
}

/*
 * Sets do not partition DRAM. Therefore the report shows a pointer chase next to a DRAM stream, but
 * does not judge this result. If the programs cannot have separate uGPUs, L2 reads are not
 * isolated. In this case, only results of compute kernels are judged.
 */
static void judge_beside(struct meter *m, json_t *report, enum arrangement where, enum work work,
			 const struct cell *beside)
{
	double worst = work == WORK_CHASE ? 0 : beside[2].slowdown;
	char what[128];

	for (int n = 0; n < 2; n++)
		worst = beside[n].slowdown > worst ? beside[n].slowdown : worst;
	if (work != WORK_FMA && where != SETS_UGPU)
		return;
	snprintf(what, sizeof(what), "%s next to %s: worst slowdown, %s", work_name[work],
		 work == WORK_CHASE ? "compute and L2 reads" : "any neighbour", sets_name[where]);
	report_check(report, !m->b->simulated, what, worst, REPORT_AT_MOST, BESIDE_MOST);
}

/*
 * Measures each kind of program next to each kind of neighbour. The program and the neighbour have
 * two sets that share as little of the board as possible.
 */
static int measure_beside(struct meter *m, json_t *report)
{
	const struct sets *sets = &m->b->sets;
	enum arrangement where = *sets->of[SETS_UGPU].why_not ? *sets->of[SETS_GPC].why_not ?
				 SETS_INTERLEAVED : SETS_GPC : SETS_UGPU;
	const struct gpupart_tpcset *own = &sets->of[where].victim,
				    *other = &sets->of[where].neighbour;
	json_t *table = report_table(report, "Next to a neighbour and alone (us, medians)",
				     "program|alone|next to compute|next to L2 reads|"
				     "next to a DRAM stream|worst slowdown"),
	       *chart = report_chart(report, "criteria.svg", REPORT_BARS,
				     "Slowdown next to a neighbour, in sets of their own", "",
				     "time relative to solo time", false),
	       *series[3];
	static const enum work works[] = { WORK_FMA, WORK_L2, WORK_DRAM };
	struct kernel kernel, beside;
	double worst[WORK_NR] = { 0 };
	struct cell cell[3];
	int err = 0;

	for (int n = 0; n < 3; n++)
		series[n] = report_series(chart, work_name[works[n]]);
	for (int work = 0; !err && work < WORK_NR; work++) {
		err = bench_stream_set(m->b, m->victim, own) ?:
		      workload_victim(&m->work, work, topology_nr_sms(m->b->topo, own), m->victim,
				      VICTIM_US, &kernel);
		for (int n = 0; !err && n < 3; n++) {
			err = bench_stream_set(m->b, m->neighbour.streams[0], other) ?:
			      workload_neighbour(&m->work, works[n],
						 topology_nr_sms(m->b->topo, other),
						 m->neighbour.streams[0], NEIGHBOUR_US, &beside) ?:
			      meter_cell(m, &kernel, own, &beside, other, &cell[n]);
			if (err)
				return err;
			report_bar(series[n], work_name[work], cell[n].slowdown);
			if (cell[n].slowdown > worst[work])
				worst[work] = cell[n].slowdown;
		}
		if (err)
			return err;
		judge_beside(m, report, where, work, cell);
		report_row(table, "[s,f,f,f,f,f]", work_name[work], cell[0].alone.median,
			   cell[0].beside.median, cell[1].beside.median, cell[2].beside.median,
			   worst[work]);
	}
	report_mean(report, "Next to a neighbour (%s), the longest times relative to the solo time "
		    "are %.3f for compute, %.3f for L2 reads, %.3f for a pointer chase, and %.3f "
		    "for a DRAM stream.",
		    sets_name[where], worst[WORK_FMA], worst[WORK_L2], worst[WORK_CHASE],
		    worst[WORK_DRAM]);
	return 0;
}

int bench_criteria(struct bench *b, json_t *report)
{
	static struct meter meter;

	if (!b->sets.nr_tpcs)
		return bench_fail(b, -EOPNOTSUPP, "this GPU has only one TPC");
	return measure_share(b, report) ?:
	       meter_open(b, &meter, bench_count(b, 30, 10)) ?:
	       measure_cost(&meter, report) ?:
	       measure_beside(&meter, report);
}
