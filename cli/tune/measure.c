// SPDX-License-Identifier: MIT
/* Measures the candidates of `gpupart tune` on running programs. */
#include <math.h>
#include "cli/qos/lend.h"
#include "cli/tune/tune.h"

#define LEAST_CANDIDATES 8
#define BEST		3		/* this number of candidates is measured again */
#define REPORTS		8		/* a candidate is measured for at least this number of
					 * report intervals; without progress for this number of
					 * intervals, a program has stalled */
#define LOOK_NS		2000000ull
/* time limit for a report; without a report, the completed launches of a program are measured */
#define RECORDS_NS	2000000000ull
#define STALL_NS	500000000ull	/* a program that has stalled also makes no progress for
					 * this time */
/* a stalled program must make progress with its old set within this time */
#define RESUME_NS	10000000000ull

/* Waits for LOOK_NS. Handles signals, ended programs and progress. Returns 0 or an exit status. */
static int watch(struct tune *tune)
{
	struct live *live = &tune->c.live;

	control_wait(&tune->c, process_now_ns() + LOOK_NS);
	if (tune->c.ended_by)
		return CMD_ENDED | (128 + tune->c.ended_by);
	live_read(live);
	live_find(live, false);
	live_print_new_others(live, "TPCs of other programs, which candidates do not use:");
	for (unsigned int i = 0; i < tune->nr; i++)
		if (live->tenants[i].gone)
			return failure("%s ended before all candidates were measured",
				       live->tenants[i].name);
	return 0;
}

/*
 * Finds a program without progress for so long that its smaller set cannot be the reason. If
 * @since_ns is not 0, also finds a program without progress since @since_ns. If there is no such
 * program, returns -1.
 */
static int find_stalled(const struct tune *tune, uint64_t since_ns)
{
	const struct live_tenant *t = tune->c.live.tenants;
	uint64_t now = process_now_ns();

	for (unsigned int i = 0; i < tune->nr; i++)
		if (t[i].moved_ns <= since_ns || now - t[i].moved_ns > tune->stall_ns[i])
			return i;
	return -1;
}

/*
 * Finds out whether program @i makes reports. If it makes no reports, measures its completed
 * launches. Also finds the interval between the reports or the launches. Refuses a borrower.
 * Returns 0 or an exit status.
 */
static int find_measure(struct tune *tune, unsigned int i)
{
	struct live_tenant *t = &tune->c.live.tenants[i];
	uint64_t begin = process_now_ns(), ns = 0;
	struct gpupart_lending lending;
	int status = 0;

	t->by_records = true;
	while (!status && (t->since_change < 3 || (t->by_records && ns < RECORDS_NS))) {
		if (ns > tune->wait * 1e9)
			return failure(
				"%s made no report in %g s, and none of its launches was recorded, "
				"so the program cannot be measured: see 'gpupart doctor'",
				t->name, tune->wait);
		status = watch(tune);
		ns = process_now_ns() - begin;
		if (t->by_records && t->ever_told) {
			t->by_records = false;
			t->since_change = 0;
			begin = process_now_ns();
		}
	}
	tune->each_ns[i] = ns / (t->since_change ?: 1);
	/* The speed of a borrower is not the speed of its set. */
	if (!status && lend_borrows(t, &lending))
		return failure("%s borrows TPCs of %s, so its speed is not the speed of its set: "
			       "start it without --lend and without 'gpupart qos'",
			       t->name, lending.lender);
	return status;
}

/*
 * Ends a slice of @ns. Each program has two histograms in @times: the times of its requests, and
 * the times between its reports.
 */
static void take_slice(struct tune *tune, struct tune_candidate *x,
		       uint64_t (*times)[2][GPUPART_NR_LATENCIES], uint64_t ns)
{
	struct qos_measured m;

	for (unsigned int i = 0; i < tune->nr; i++) {
		const struct live_tenant *t = &tune->c.live.tenants[i];
		const struct qos_spec *spec = &tune->c.setup.specs[i];
		uint64_t nr[2] = { 0 };

		for (unsigned int b = 0; b < GPUPART_NR_LATENCIES; b++) {
			nr[0] += times[i][0][b] += t->latencies[b];
			nr[1] += times[i][1][b] += t->pauses[b];
		}
		x->nr_times[i] = nr[!nr[0]];
		x->time_ns[i] = live_percentile(times[i][!nr[0]], nr[!nr[0]], spec->percentile);
		live_take(&tune->c.live, i, &tune->c.setup.tenants[i], spec, ns, &m);
		x->slices[i][x->nr_slices] = m.work * 1e6 / ns;
	}
	x->nr_slices++;
	tune_compute(tune, x);
}

/*
 * Restores the old sets of all programs. Waits until the stalled program @t makes progress. If the
 * program makes no progress, returns an exit status. Otherwise returns 0.
 */
static int resume(struct tune *tune, const struct live_tenant *t)
{
	int status = 0;

	control_give(&tune->c, tune->c.old);
	while (!status && !t->since_change && process_now_ns() - t->changed_ns < RESUME_NS)
		status = watch(tune);
	return status ?: t->since_change ? 0 :
	       failure("%s makes no progress even with its old set", t->name);
}

/*
 * Measures candidate @x for @ns, after at most a quarter of which the launches with the previous
 * sets have ended. If @whole is true, does not stop early when other candidates are better. Returns
 * 0 or an exit status.
 */
static int measure(struct tune *tune, struct tune_candidate *x, uint64_t ns, bool whole)
{
	struct live *live = &tune->c.live;
	uint64_t times[TUNE_PROGRAMS][2][GPUPART_NR_LATENCIES] = { 0 };
	uint64_t from, settled_ns, slice = ns * 3 / 4 / TUNE_SLICES;
	int status = 0, stalled = -1;
	bool changed;

	/* A program with fewer TPCs than in its old set may make no progress for a longer time. */
	for (unsigned int i = 0; i < tune->nr; i++)
		tune->stall_ns[i] = fmax(STALL_NS, REPORTS * tune->each_ns[i] *
					 fmax(1, (double)gpupart_tpcset_count(&tune->c.old[i]) /
						 gpupart_tpcset_count(&x->sets[i])));
	control_give(&tune->c, x->sets);
	/*
	 * Half of the time without progress remains for the measurement. So if one program makes no
	 * progress, the speed of the other program is still measured.
	 */
	while (!status && !(live_settled(live, 0, fmin(ns / 4, tune->stall_ns[0] / 2)) &&
			    live_settled(live, 1, fmin(ns / 4, tune->stall_ns[1] / 2))))
		status = watch(tune);
	live_restart(live);
	settled_ns = process_now_ns();
	from = live->read_ns;
	x->why = NULL;
	x->nr_slices = 0;
	while (!status && stalled < 0 && !x->why && x->nr_slices < TUNE_SLICES) {
		status = watch(tune);
		stalled = find_stalled(tune, 0);
		/* Without a complete slice, the incomplete slice has the other program's speed. */
		if (status || (stalled < 0 ? live->read_ns - from < slice : x->nr_slices))
			continue;
		take_slice(tune, x, times, live->read_ns - from);
		from = live->read_ns;
		if (!whole && x->nr_slices >= 3 && find_stalled(tune, settled_ns) < 0 &&
		    tune_is_dominated(tune, x))
			x->why = "stopped early: another one is better in everything";
	}
	if (status)
		return status;
	stalled = stalled < 0 ? find_stalled(tune, settled_ns) : stalled;
	changed = live_is_changed(live, 0) | live_is_changed(live, 1);
	x->why = changed ? "a set was changed by another command" :
		 stalled >= 0 ? "no progress: old sets restored" : x->why;
	x->valid[0] = !changed && stalled != 0;
	x->valid[1] = !changed && stalled != 1;
	tune_compute(tune, x);
	return stalled >= 0 ? resume(tune, &live->tenants[stalled]) : 0;
}

int tune_measure(struct tune *tune)
{
	struct tune_candidate *old, *x;
	uint64_t begin = process_now_ns(), each;
	double most, nr;
	int status = 0;

	tune->c.live.if_changed =
		"this candidate is ignored, and the next candidate changes the set again";
	for (unsigned int i = 0; i < tune->nr && !status; i++)
		status = find_measure(tune, i);
	if (status)
		return status;
	most = fmax(tune->each_ns[0], tune->each_ns[1]) / 1e9;
	nr = tune->seconds * 3 / 4 / REPORTS / most;
	if (nr < LEAST_CANDIDATES)
		remark("a program reports only every %g s, but each candidate is measured for "
		       "only %g s: use a larger --seconds", most, tune->seconds / LEAST_CANDIDATES);
	status = tune_list(tune, fmin(fmax(nr, LEAST_CANDIDATES), TUNE_MOST));
	if (status)
		return status;
	old = &tune->list[tune->nr_candidates];
	old[0] = old[1] = (struct tune_candidate){
		.sets = { tune->c.old[0], tune->c.old[1] }, .why = "",
	};
	each = tune->seconds * 1e9 / (tune->nr_candidates + 1);
	status = measure(tune, &old[0], each, true);
	/* The first two candidates measure the solo speeds of two programs. */
	for (unsigned int n = 0; n < tune->nr_candidates && !status; n++)
		status = measure(tune, &tune->list[n], each, n < 2);
	for (unsigned int n = 0; n < BEST && !status && (x = tune_best(tune, false)); n++) {
		x->again = true;
		status = measure(tune, x, tune->seconds * 1e9 / 2 / BEST, true);
	}
	status = status ?: measure(tune, &old[1], each, true);
	/* Do not use other candidates, because their times come from too few requests. */
	tune->best = tune_best(tune, true);
	control_give(&tune->c, tune->c.old);
	tune->took = (process_now_ns() - begin) / 1e9;
	return status ?: tune->best ? 0 : failure("no candidate could be measured completely");
}
