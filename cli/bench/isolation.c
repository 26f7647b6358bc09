// SPDX-License-Identifier: MIT
/*
 * Measures each kind of victim next to each kind of neighbour, in several arrangements of sets. In
 * some arrangements, the sets share more parts of the GPU than in others.
 */
#include <errno.h>
#include <stdio.h>
#include "cli/bench/bench.h"

#define VICTIM_US	200
#define NEIGHBOUR_US	2000

struct isolation {
	struct bench *b;
	struct meter meter;
	struct kernel victims[WORK_NR];
	json_t *details;
	double slowdown[SETS_NR][WORK_NR][WORK_NR];	/* 0: not measured */
	double least_share;
	struct cell rest;		/* compute victim; compute neighbour on all other TPCs */
};

static bool is_neighbour(enum work work)
{
	return work != WORK_CHASE;
}

/*
 * A victim does the same amount of work in every set. The amount is suitable for a set of one whole
 * GPC.
 */
static int size_victims(struct isolation *i)
{
	const struct sets *sets = &i->b->sets;
	const struct gpupart_tpcset *set = &sets->of[SETS_REST].victim;
	int err;

	if (*sets->of[SETS_REST].why_not)
		set = &sets->of[SETS_INTERLEAVED].victim;
	err = bench_stream_set(i->b, i->meter.victim, set);
	for (int work = 0; !err && work < WORK_NR; work++)
		err = workload_victim(&i->meter.work, work, topology_nr_sms(i->b->topo, set),
				      i->meter.victim, VICTIM_US, &i->victims[work]);
	return err;
}

static void note_cell(struct isolation *i, enum arrangement where, enum work victim,
		      enum work neighbour, const struct cell *cell)
{
	i->slowdown[where][victim][neighbour] = cell->slowdown;
	if (cell->share < i->least_share)
		i->least_share = cell->share;
	if (where == SETS_REST && victim == WORK_FMA && neighbour == WORK_FMA)
		i->rest = *cell;
	report_row(i->details, "[s,s,s,f,f,f,f,f,f,f,f,i,i,i]", sets_name[where], work_name[victim],
		   work_name[neighbour], cell->alone.median, cell->beside.median,
		   cell->beside.p99, cell->slowdown, cell->mhz_alone > 0 ?
		   cell->slowdown * cell->mhz_beside / cell->mhz_alone : 0, cell->share,
		   cell->mhz_alone, cell->mhz_beside, cell->nvml[0], cell->nvml[1], cell->nvml[2]);
}

static int measure_beside(struct isolation *i, enum arrangement where, enum work neighbour)
{
	const struct gpupart_tpcset *victim_set = &i->b->sets.of[where].victim,
				    *set = &i->b->sets.of[where].neighbour;
	struct kernel kernel;
	struct cell cell;
	int err;

	err = bench_stream_set(i->b, i->meter.neighbour.streams[0], set) ?:
	      workload_neighbour(&i->meter.work, neighbour, topology_nr_sms(i->b->topo, set),
				 i->meter.neighbour.streams[0], NEIGHBOUR_US, &kernel);
	for (int victim = 0; !err && victim < WORK_NR; victim++) {
		err = meter_cell(&i->meter, &i->victims[victim], victim_set, &kernel, set, &cell);
		if (!err)
			note_cell(i, where, victim, neighbour, &cell);
	}
	return err;
}

static void tell_sets(struct isolation *i, json_t *report)
{
	json_t *table = report_table(report, "Sets", "arrangement|victim|neighbour");

	for (int where = 0; where < SETS_NR; where++) {
		char victim[OUT_SET_STRLEN], neighbour[OUT_SET_STRLEN];

		if (*i->b->sets.of[where].why_not) {
			report_note(report, "%s: skipped: %s", sets_name[where],
				    i->b->sets.of[where].why_not);
			continue;
		}
		report_row(table, "[s,s,s]", sets_name[where],
			   out_set(victim, sizeof(victim), i->b->topo,
				   &i->b->sets.of[where].victim),
			   out_set(neighbour, sizeof(neighbour), i->b->topo,
				   &i->b->sets.of[where].neighbour));
	}
}

/*
 * Fills the table of slowdowns. Each pair of a victim and a neighbour has a row. Each arrangement
 * has a column.
 */
static void report_slowdowns(struct isolation *i, json_t *report)
{
	json_t *table = report_table(report, "Slowdown relative to the solo time in the same set "
				     "(medians)",
				     "victim|neighbour|no partition|interleaved|own GPC|own uGPU|"
				     "all the rest"),
	       *chart = report_chart(report, "isolation.svg", REPORT_BARS,
				     "Slowdown of a victim next to a neighbour (victim / "
				     "neighbour)", "",
				     "slowdown, times the solo time", true),
	       *series[SETS_NR];

	for (int where = 0; where < SETS_NR; where++)
		series[where] = report_series(chart, sets_name[where]);
	for (int victim = 0; victim < WORK_NR; victim++)
		for (int neighbour = 0; neighbour < WORK_NR; neighbour++) {
			json_t *cells[SETS_NR];
			char pair[64];

			if (!is_neighbour(neighbour))
				continue;
			snprintf(pair, sizeof(pair), "%s / %s", work_name[victim],
				 work_name[neighbour]);
			for (int where = 0; where < SETS_NR; where++) {
				double value = i->slowdown[where][victim][neighbour];

				cells[where] = value > 0 ? json_real(value) : json_null();
				if (value > 0)
					report_bar(series[where], pair, value);
			}
			report_row(table, "[s,s,o,o,o,o,o]", work_name[victim],
				   work_name[neighbour], cells[0], cells[1], cells[2], cells[3],
				   cells[4]);
		}
}

static void check_slowdown(struct isolation *i, json_t *report, enum arrangement where,
			   enum work victim, enum work neighbour, enum report_relation relation,
			   double limit)
{
	double value = i->slowdown[where][victim][neighbour];
	char what[160];

	if (!(value > 0))
		return;
	snprintf(what, sizeof(what), "slowdown of %s next to %s, %s", work_name[victim],
		 work_name[neighbour], sets_name[where]);
	report_check(report, !i->b->simulated, what, value, relation, limit);
}

static void check_all(struct isolation *i, json_t *report)
{
	check_slowdown(i, report, SETS_UGPU, WORK_L2, WORK_L2, REPORT_AT_MOST, 1.02);
	check_slowdown(i, report, SETS_INTERLEAVED, WORK_L2, WORK_L2, REPORT_AT_LEAST, 1.5);
	check_slowdown(i, report, SETS_INTERLEAVED, WORK_FMA, WORK_FMA, REPORT_AT_MOST, 1.01);
	check_slowdown(i, report, SETS_GPC, WORK_FMA, WORK_FMA, REPORT_AT_MOST, 1.01);
	check_slowdown(i, report, SETS_UGPU, WORK_FMA, WORK_FMA, REPORT_AT_MOST, 1.01);
	check_slowdown(i, report, SETS_NONE, WORK_FMA, WORK_FMA, REPORT_AT_LEAST, 5);
	report_check(report, !i->b->simulated, "share of the victims' time during which the "
		     "neighbour ran",
		     i->least_share, REPORT_AT_LEAST, 0.9999);
}

/* Adds sentences that explain the measured figures. */
static void explain_cores(struct isolation *i, json_t *report)
{
	const struct cell *rest = &i->rest;

	if (i->slowdown[SETS_INTERLEAVED][WORK_FMA][WORK_FMA] > 0)
		report_mean(
			report,
			"Next to a compute neighbour, a compute kernel takes %.2f times "
			"its solo time without a partition. In its own set, it takes %.3f times "
			"its solo time, even if both sets are in the same GPCs: blocks of the "
			"neighbour do not run on the kernel's SMs.",
			i->slowdown[SETS_NONE][WORK_FMA][WORK_FMA],
			i->slowdown[SETS_INTERLEAVED][WORK_FMA][WORK_FMA]);
	if (rest->slowdown > 0)
		report_mean(report, "Next to a compute neighbour on all other TPCs, a compute "
			    "kernel takes %.3f times its solo time. The clock changes from %.0f "
			    "to %.0f MHz. After a correction for the clock, the kernel takes "
			    "%.3f times its solo time.",
			    rest->slowdown, rest->mhz_alone, rest->mhz_beside, rest->mhz_alone > 0 ?
			    rest->slowdown * rest->mhz_beside / rest->mhz_alone : 0);
}

static void mean_memory(struct isolation *i, json_t *report)
{
	double l2 = i->slowdown[SETS_UGPU][WORK_L2][WORK_L2], least = 0;

	if (l2 > 0)
		report_mean(report,
			    "A kernel and its neighbour both read the L2. The kernel takes %.2f "
			    "times its solo time in interleaved sets, %.3f times its solo time in "
			    "its own GPC, and %.3f times its solo time in a GPC of another uGPU.",
			    i->slowdown[SETS_INTERLEAVED][WORK_L2][WORK_L2],
			    i->slowdown[SETS_GPC][WORK_L2][WORK_L2], l2);
	for (int where = SETS_INTERLEAVED; where < SETS_NR; where++) {
		double value = i->slowdown[where][WORK_CHASE][WORK_DRAM];

		if (value > 0 && (least <= 0 || value < least))
			least = value;
	}
	if (least > 1.1)
		report_mean(report, "A pointer chase in the L2 next to a DRAM stream takes at "
			    "least %.2f times its solo time in every arrangement: no partition "
			    "of TPCs prevents this slowdown.", least);
	else if (least > 0)
		report_mean(report, "A pointer chase in the L2 next to a DRAM stream takes at "
			    "least %.3f times its solo time.",
			    least);
}

static void tell(struct isolation *i, json_t *report)
{
	report_slowdowns(i, report);
	tell_sets(i, report);
	check_all(i, report);
	explain_cores(i, report);
	mean_memory(i, report);
	report_note(report, "In 'no partition' both programs use two GPCs of different uGPUs. In "
		    "'interleaved' each program has half of the TPCs of each of two GPCs. In "
		    "'own GPC' each program has its own GPC, and both GPCs are in the same uGPU. "
		    "In 'own uGPU' each program has a GPC in a different uGPU. In 'all the rest' "
		    "the victim has one GPC, and the neighbour has all other TPCs of the GPU.");
	report_note(report,
		    "Each figure comes from %u consecutive launches of the victim, and the GPU "
		    "measures their time. The victim runs first alone, then next to the "
		    "neighbour, and then alone again, always in the same set. Each program has "
		    "%u TPCs. The neighbour launches on two streams without a gap, with grids "
		    "that fill the SMs of its set. It records the times at which it ran. The "
		    "clock is read from the victim's own cycle counter, and from NVML before, "
		    "during and after the launches (-1 means unknown).",
		    i->meter.nr, i->b->sets.nr_tpcs);
}

int bench_isolation(struct bench *b, json_t *report)
{
	static struct isolation i = { .least_share = 1 };
	int err;

	i.b = b;
	if (!b->sets.nr_tpcs)
		return bench_fail(b, -EOPNOTSUPP, "this GPU has only one TPC");
	err = meter_open(b, &i.meter, bench_count(b, 100, 30));
	if (err)
		return err;
	/*
	 * Create this table first, because measurements add rows to it. In the report, this table
	 * is the last table.
	 */
	i.details = json_incref(report_table(report, "All cells (us, MHz)",
		"arrangement|victim|neighbour|alone|shared|shared 99%|slowdown|at the same "
		"clock|neighbour ran|MHz alone|MHz shared|NVML before|NVML during|NVML after"));
	json_array_remove(json_object_get(report, "tables"), 0);
	err = size_victims(&i);
	for (int where = 0; !err && where < SETS_NR; where++)
		for (int neighbour = 0; !err && neighbour < WORK_NR; neighbour++)
			if (!*b->sets.of[where].why_not && is_neighbour(neighbour))
				err = measure_beside(&i, where, neighbour);
	if (!err)
		tell(&i, report);
	json_array_append_new(json_object_get(report, "tables"), i.details);
	return err;
}
