// SPDX-License-Identifier: MIT
/* Measures the candidates of `gpupart tune` on running programs. */
#include <math.h>
#include "cli/qos/lend.h"
#include "cli/tune/tune.h"

#define LEAST_CANDIDATES 8
#define LEAST_REPORTS	8		/* minimum number of reports for the measurement of a
					 * candidate */
#define LOOK_NS		2000000ull
/* time limit for a report; without a report, the completed launches of a program are measured */
#define RECORDS_NS	2000000000ull
#define STALL_NS	500000000ull	/* a program has stalled if it makes no progress for this
					 * time */
#define STALL_REPORTS	8		/* a program has stalled if it also makes no progress for
					 * this number of report intervals */
/* a stalled program must make progress with its old set within this time */
#define RESUME_NS	10000000000ull

/* Waits for LOOK_NS. Handles signals, ended programs and progress. Returns 0 or an exit status. */
static int watch(struct tune_run *run)
{
	struct live *live = &run->c.live;

	control_wait(&run->c, process_now_ns() + LOOK_NS);
	if (run->c.ended_by)
		return CMD_ENDED | (128 + run->c.ended_by);
	live_read(live);
	live_find(live, false);
	live_print_new_others(live, "TPCs of other programs, which candidates do not use:");
	for (unsigned int i = 0; i < run->tune.nr; i++)
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
static int find_stalled(const struct tune_run *run, uint64_t since_ns)
{
	uint64_t now = process_now_ns();

	for (unsigned int i = 0; i < run->tune.nr; i++) {
		uint64_t moved_ns = run->c.live.tenants[i].moved_ns;

		if (moved_ns <= since_ns || now - moved_ns > run->stall_ns[i])
			return i;
	}
	return -1;
}

/*
 * Finds out whether program @i makes reports. If it makes no reports, measures its completed
 * launches. Also finds the interval between the reports or the launches. Refuses a borrower.
 * Returns 0 or an exit status.
 */
static int find_measure(struct tune_run *run, unsigned int i)
{
	struct live_tenant *t = &run->c.live.tenants[i];
	uint64_t begin = process_now_ns(), ns = 0;
	struct gpupart_lending lending;
	int status = 0;

	t->by_records = true;
	while (!status && (t->since_change < 3 || (t->by_records && ns < RECORDS_NS))) {
		if (ns > run->wait * 1e9)
			return failure(
				"%s made no report in %g s, and none of its launches was recorded, "
				"so the program cannot be measured: see 'gpupart doctor'",
				t->name, run->wait);
		status = watch(run);
		ns = process_now_ns() - begin;
		if (t->by_records && t->ever_told) {
			t->by_records = false;
			t->since_change = 0;
			begin = process_now_ns();
		}
	}
	run->each_ns[i] = ns / (t->since_change ?: 1);
	/* The speed of a borrower is not the speed of its set. */
	if (!status && lend_borrows(t, &lending))
		return failure("%s borrows TPCs of %s, so its speed is not the speed of its set: "
			       "start it without --lend and without 'gpupart qos'",
			       t->name, lending.lender);
	return status;
}

struct times {
	uint64_t requests[TUNE_PROGRAMS][GPUPART_NR_LATENCIES];
	uint64_t pauses[TUNE_PROGRAMS][GPUPART_NR_LATENCIES];
};

static void take_slice(struct tune_run *run, struct tune_candidate *x, struct times *times,
		       uint64_t ns)
{
	struct qos_measured m;

	for (unsigned int i = 0; i < run->tune.nr; i++) {
		const struct live_tenant *t = &run->c.live.tenants[i];
		const struct qos_spec *spec = &run->c.setup.specs[i];
		uint64_t nr = 0, nr_requests = 0;

		for (unsigned int b = 0; b < GPUPART_NR_LATENCIES; b++) {
			nr_requests += times->requests[i][b] += t->latencies[b];
			nr += times->pauses[i][b] += t->pauses[b];
		}
		x->nr_times[i] = nr_requests ? nr_requests : nr;
		x->time_ns[i] = live_percentile(nr_requests ? times->requests[i] : times->pauses[i],
						x->nr_times[i], spec->percentile);
		live_take(&run->c.live, i, &run->c.setup.tenants[i], spec, ns, &m);
		x->slices[i][x->nr_slices] = m.work * 1e6 / ns;
	}
	x->nr_slices++;
	tune_compute(&run->tune, x);
}

/*
 * Restores the old sets of all programs. Waits until the stalled program makes progress. If the
 * program makes no progress, returns an exit status. Otherwise returns 0.
 */
static int resume(struct tune_run *run, unsigned int i)
{
	const struct live_tenant *t = &run->c.live.tenants[i];
	uint64_t end = process_now_ns() + RESUME_NS;
	int status = 0;

	control_restore(&run->c);
	while (!status && !t->since_change && process_now_ns() < end)
		status = watch(run);
	return status ?: t->since_change ? 0 :
	       failure("%s makes no progress even with its old set", t->name);
}

/*
 * Sets the TPCs of program @i. If the program has fewer TPCs than in its old set, it may make no
 * progress for a longer time.
 */
static void give(struct tune_run *run, unsigned int i, const struct gpupart_tpcset *set)
{
	double smaller = (double)gpupart_tpcset_count(&run->c.old[i]) / gpupart_tpcset_count(set);

	run->stall_ns[i] = fmax(STALL_NS, STALL_REPORTS * run->each_ns[i] * fmax(smaller, 1));
	if (live_set(&run->c.live, i, set))
		remark("%s: %s", run->names[i], gpupart_error(cmd_gp));
}

/*
 * Waits for the end of launches with the previous sets, at most for @ns. Half of the time without
 * progress remains for the measurement. So if one program makes no progress, the speed of the other
 * program is still measured. Returns 0 or an exit status.
 */
static int settle(struct tune_run *run, uint64_t ns)
{
	bool settled = false;
	int status = 0;

	while (!status && !settled) {
		status = watch(run);
		settled = true;
		for (unsigned int i = 0; i < run->tune.nr; i++)
			settled &= live_settled(&run->c.live, i, fmin(ns, run->stall_ns[i] / 2));
	}
	live_restart(&run->c.live);
	return status;
}

/*
 * Measures candidate @x. If @whole is true, does not stop early when other candidates are better.
 * Returns 0 or an exit status.
 */
static int measure(struct tune_run *run, struct tune_candidate *x, uint64_t ns, bool whole)
{
	struct live *live = &run->c.live;
	uint64_t from, settled_ns, slice = ns * 3 / 4 / TUNE_SLICES;
	struct times times = { 0 };
	int status, stalled = -1;

	for (unsigned int i = 0; i < run->tune.nr; i++)
		give(run, i, &x->sets[i]);
	status = settle(run, ns / 4);
	settled_ns = process_now_ns();
	from = live->read_ns;
	x->state = TUNE_MEASURED;
	x->nr_slices = 0;
	while (!status && stalled < 0 && x->state == TUNE_MEASURED && x->nr_slices < TUNE_SLICES) {
		status = watch(run);
		stalled = find_stalled(run, 0);
		/* Without a complete slice, the incomplete slice has the other program's speed. */
		if (status || (stalled < 0 ? live->read_ns - from < slice : x->nr_slices))
			continue;
		take_slice(run, x, &times, live->read_ns - from);
		from = live->read_ns;
		if (!whole && x->nr_slices >= 3 && find_stalled(run, settled_ns) < 0 &&
		    tune_is_dominated(&run->tune, x))
			x->state = TUNE_DOMINATED;
	}
	if (status)
		return status;
	if (stalled < 0)
		stalled = find_stalled(run, settled_ns);
	if (stalled >= 0) {
		x->state = TUNE_STALLED;
		x->stalled = stalled;
	}
	for (unsigned int i = 0; i < run->tune.nr; i++)
		if (live_is_changed(live, i))
			x->state = TUNE_DISTURBED;
	tune_compute(&run->tune, x);
	return stalled >= 0 ? resume(run, stalled) : 0;
}

/*
 * Returns how many candidates can be measured. Each candidate needs enough time for several
 * reports.
 */
static unsigned int nr_fit(const struct tune_run *run)
{
	double most = fmax(run->each_ns[0], run->each_ns[1]) / 1e9;
	double nr = run->seconds * 3 / 4 / LEAST_REPORTS / most;

	if (nr >= LEAST_CANDIDATES)
		return fmin(nr, TUNE_MOST);
	remark("a program reports only every %g s, but each candidate is measured for only %g s: "
	       "use a larger --seconds", most, run->seconds / LEAST_CANDIDATES);
	return LEAST_CANDIDATES;
}

int tune_measure(struct tune_run *run)
{
	struct tune *tune = &run->tune;
	struct tune_candidate *x;
	uint64_t begin = process_now_ns(), each;
	int status = 0;

	run->c.live.if_changed =
		"this candidate is ignored, and the next candidate changes the set again";
	for (unsigned int i = 0; i < tune->nr && !status; i++) {
		status = find_measure(run, i);
		tune->before.sets[i] = tune->after.sets[i] = run->c.old[i];
	}
	status = status ?: tune_list(tune, run->c.live.topo, run->room, nr_fit(run));
	if (status)
		return status;
	each = run->seconds * 1e9 / (tune->nr_candidates + 1);
	status = measure(run, &tune->before, each, true);
	/* The first two candidates measure the solo speeds of two programs. */
	for (unsigned int n = 0; n < tune->nr_candidates && !status; n++)
		status = measure(run, &tune->list[n], each, n < 2);
	for (unsigned int n = 0; n < TUNE_BEST && !status && (x = tune_best(tune, false)); n++) {
		x->again = true;
		status = measure(run, x, run->seconds * 1e9 / 2 / TUNE_BEST, true);
	}
	status = status ?: measure(run, &tune->after, each, true);
	/* Do not use other candidates, because their times come from too few requests. */
	tune->best = tune_best(tune, true);
	control_restore(&run->c);
	run->took = (process_now_ns() - begin) / 1e9;
	return status ?: tune->best ? 0 : failure("no candidate could be measured completely");
}
