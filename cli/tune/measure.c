// SPDX-License-Identifier: MIT
/* Measures the candidates of `gpupart tune` on running programs. */
#include <string.h>
#include "cli/tune/tune.h"

#define MOST_CANDIDATES	40
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
#define LEAST_PART	4	/* minimum number of report intervals in an incomplete slice */
/* a stalled program must make progress with its old set within this time */
#define RESUME_NS	10000000000ull

static void give(struct tune_run *run, const struct gpupart_tpcset *sets)
{
	for (unsigned int i = 0; i < run->tune.nr; i++)
		if (live_set(&run->c.live, i, &sets[i]))
			remark("%s: %s", run->c.live.tenants[i].name, gpupart_error(cmd_gp));
}

/*
 * Waits at most until @until_ns. Meanwhile handles signals, ended programs and progress. Returns 0
 * or an exit status.
 */
static int watch(struct tune_run *run, uint64_t until_ns)
{
	struct live *live = &run->c.live;
	uint64_t now = process_now_ns();

	control_wait(&run->c, until_ns < now + LOOK_NS ? until_ns : now + LOOK_NS);
	if (run->c.ended_by)
		return CMD_ENDED | (128 + run->c.ended_by);
	live_listen(live);
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
 * Returns how long program @i may make no progress with candidate @x. With fewer TPCs than in its
 * old set, this time is longer.
 */
static uint64_t stall_ns(const struct tune_run *run, const struct tune_candidate *x,
			 unsigned int i)
{
	uint64_t had = gpupart_tpcset_count(&run->c.old[i]);
	uint64_t has = gpupart_tpcset_count(&x->sets[i]);
	uint64_t limit = STALL_REPORTS * run->each_ns[i];

	limit = had > has ? limit * had / has : limit;
	return limit > STALL_NS ? limit : STALL_NS;
}

/*
 * Finds a program without progress for so long that its smaller set cannot be the reason. If
 * @since_ns is not 0, also finds a program without progress since @since_ns. If there is no such
 * program, returns -1.
 */
static int find_stalled(const struct tune_run *run, const struct tune_candidate *x,
			uint64_t since_ns)
{
	uint64_t now = process_now_ns();

	for (unsigned int i = 0; i < run->tune.nr; i++) {
		uint64_t moved_ns = run->c.live.tenants[i].moved_ns;

		if (moved_ns <= since_ns || now - moved_ns > stall_ns(run, x, i))
			return i;
	}
	return -1;
}

/*
 * Refuses program @i if it borrows TPCs, because its speed is then not the speed of its set. All
 * processes of one run have the same report, but a run inside a job has its own report.
 */
static int refuse_borrower(const struct tune_run *run, unsigned int i)
{
	const struct live_tenant *t = &run->c.live.tenants[i];
	struct gpupart_lending lending;

	for (unsigned int m = 0; m < t->nr_members; m++)
		if (*t->members[m].report &&
		    !gpupart_lending_get(NULL, t->members[m].report, &lending) && *lending.lender)
			return failure("%s borrows TPCs of %s, so its speed is not the speed of "
				       "its set: start it without --lend and without 'gpupart qos'",
				       t->name, lending.lender);
	return 0;
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
	int status = refuse_borrower(run, i);

	while (!status && (t->since_change < 3 || (t->by_records && ns < RECORDS_NS))) {
		if (ns > run->wait_ns)
			return failure(
				"%s made no report in %g s, and none of its launches was recorded, "
				"so the program cannot be measured: see 'gpupart doctor'",
				t->name, run->wait_ns / 1e9);
		status = watch(run, begin + ns + LOOK_NS);
		ns = process_now_ns() - begin;
		if (t->by_records && t->ever_told) {
			t->by_records = false;
			t->since_change = 0;
			begin = process_now_ns();
		}
	}
	run->each_ns[i] = ns / (t->since_change ? t->since_change : 1);
	/* Some processes may have been found only after the first check. */
	return status ?: refuse_borrower(run, i);
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
		status = watch(run, end);
	return status ?: t->since_change ? 0 :
	       failure("%s makes no progress even with its old set", t->name);
}

/*
 * Measures candidate @x. If @whole is true, does not stop early when other candidates are better.
 * Returns 0 or an exit status.
 */
static int measure(struct tune_run *run, struct tune_candidate *x, uint64_t ns, bool whole)
{
	struct live *live = &run->c.live;
	uint64_t begin = process_now_ns(), slice = ns * 3 / 4 / TUNE_SLICES, from, settled;
	uint64_t half, part;
	struct times times = { 0 };
	int status = 0, stalled = -1;
	bool drained = false;

	give(run, x->sets);
	/*
	 * Wait for the end of launches with the previous sets. Half of the time without progress
	 * remains for the measurement. So if one program makes no progress, the speed of the other
	 * program is still measured.
	 */
	while (!status && !drained) {
		status = watch(run, begin + ns / 4);
		drained = true;
		for (unsigned int i = 0; i < run->tune.nr; i++) {
			half = stall_ns(run, x, i) / 2;
			drained &= live_settled(live, i, half < ns / 4 ? half : ns / 4);
		}
	}
	live_restart(live);
	settled = process_now_ns();
	x->state = TUNE_MEASURED;
	x->nr_slices = 0;
	from = live->read_ns;
	while (!status && stalled < 0 && x->state == TUNE_MEASURED && x->nr_slices < TUNE_SLICES) {
		/* Read at least once. The read may be late, so measure the time of each slice. */
		do {
			status = watch(run, from + slice);
			stalled = find_stalled(run, x, 0);
		} while (!status && stalled < 0 && process_now_ns() < from + slice);
		part = live->read_ns - from;
		/* Without a complete slice, the incomplete slice has the other program's speed. */
		if (status || (stalled >= 0 && (x->nr_slices || run->tune.nr == 1 ||
						part < LEAST_PART * run->each_ns[!stalled])))
			break;
		take_slice(run, x, &times, part);
		from = live->read_ns;
		if (!whole && x->nr_slices >= 3 && stalled < 0 &&
		    find_stalled(run, x, settled) < 0 && tune_is_dominated(&run->tune, x))
			x->state = TUNE_DOMINATED;
	}
	if (!status && stalled < 0)
		stalled = find_stalled(run, x, settled);
	for (unsigned int i = 0; i < run->tune.nr && !status; i++)
		if (live_is_changed(live, i))
			x->state = TUNE_DISTURBED;
	if (status)
		x->state = TUNE_WAITING;
	else if (stalled >= 0 && x->state != TUNE_DISTURBED)
		x->state = TUNE_STALLED;
	x->stalled = stalled < 0 ? 0 : stalled;
	if (!status && stalled >= 0)
		status = resume(run, stalled);
	tune_compute(&run->tune, x);
	return status;
}

/*
 * Returns how many candidates can be measured. Each candidate needs enough time for several
 * reports.
 */
static unsigned int nr_fit(const struct tune_run *run)
{
	uint64_t most = run->each_ns[0] > run->each_ns[1] ? run->each_ns[0] : run->each_ns[1];
	uint64_t nr = run->budget_ns * 3 / 4 / LEAST_REPORTS / (most ? most : 1);

	if (nr < LEAST_CANDIDATES)
		remark("a program reports only every %g s, but each candidate is measured for "
		       "only %g s: use a larger --seconds",
		       most / 1e9, run->budget_ns / 1e9 / LEAST_CANDIDATES);
	return nr < LEAST_CANDIDATES ? LEAST_CANDIDATES :
	       nr < MOST_CANDIDATES ? nr : MOST_CANDIDATES;
}

static int measure_all(struct tune_run *run)
{
	struct tune *tune = &run->tune;
	struct tune_candidate *best[TUNE_BEST];
	uint64_t each = run->budget_ns / (tune->nr_candidates + 1);
	int status = measure(run, &tune->before, each, true);
	unsigned int nr;

	for (unsigned int n = 0; n < tune->nr_candidates && !status; n++)
		status = measure(run, &tune->list[n], each, tune->nr > 1 && n < 2);
	nr = status ? 0 : tune_best(tune, best, TUNE_BEST);
	for (unsigned int n = 0; n < nr && !status; n++) {
		best[n]->again = true;
		status = measure(run, best[n], run->budget_ns / 2 / TUNE_BEST, true);
	}
	status = status ?: measure(run, &tune->after, each, true);
	/* Do not use other candidates, because their times come from too few requests. */
	for (unsigned int n = 0; n < nr && !status; n++)
		if (best[n]->state == TUNE_MEASURED &&
		    (!tune->best || tune_value(tune, best[n]) > tune_value(tune, tune->best)))
			tune->best = best[n];
	control_restore(&run->c);
	return status ?: tune->best ? 0 : failure("no candidate could be measured completely");
}

int tune_measure(struct tune_run *run)
{
	uint64_t begin = process_now_ns();
	int status = 0;

	run->c.live.if_changed =
		"this candidate is ignored, and the next candidate changes the set again";
	for (unsigned int i = 0; i < run->tune.nr && !status; i++) {
		status = find_measure(run, i);
		run->tune.before.sets[i] = run->tune.after.sets[i] = run->c.old[i];
	}
	status = status ?: tune_list(&run->tune, run->c.live.topo, run->room, nr_fit(run)) ?:
		 measure_all(run);
	run->took_ns = process_now_ns() - begin;
	return status;
}
