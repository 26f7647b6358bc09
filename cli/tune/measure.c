// SPDX-License-Identifier: MIT
/* Measures the candidates of `gpupart tune` on running programs. */
#include "cli/qos/lend.h"
#include "cli/tune/tune.h"

#define LEAST_SIZES	2
#define LEAST_SLICES	3
#define MOST_TRIES	4
#define BEST		3		/* this number of candidates is measured again */
#define REPORTS		8		/* the time of a candidate has at least this number of
					 * report intervals; without progress for half of this
					 * number of intervals, a program has stalled */
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
	for (unsigned int i = 0; i < tune->nr; i++) {
		const struct live_tenant *t = &live->tenants[i];
		bool fewer = t->gone || t->nr_members < tune->processes[i];

		if (fewer || (tune->nr_candidates && t->nr_members > tune->processes[i]))
			return failure("a process of %s %s before all candidates were measured",
				       t->name, fewer ? "ended" : "started");
		tune->processes[i] = t->nr_members;
	}
	return 0;
}

/*
 * Finds a program without progress for so long that its smaller set cannot be the reason. If
 * @since is not 0, also finds a program without progress since the read at that time. If there is
 * no such program, returns NULL.
 */
static const struct live_tenant *find_stalled(const struct tune *tune, uint64_t since)
{
	const struct live_tenant *t = tune->c.live.tenants;

	for (unsigned int i = 0; i < tune->nr; i++)
		if (t[i].moved_ns <= since || process_now_ns() - t[i].moved_ns > tune->stall_ns[i])
			return &t[i];
	return NULL;
}

/*
 * Finds out whether program @i makes reports. If it makes no reports, measures its completed
 * launches. Also finds the interval between the reports or the launches. Refuses a borrower.
 * Returns 0 or an exit status.
 */
static int find_measure(struct tune *tune, unsigned int i)
{
	struct live_tenant *t = &tune->c.live.tenants[i];
	uint64_t begin = process_now_ns(), each;
	struct gpupart_lending lending;
	int status = 0;

	t->by_records = true;
	t->since_change = 0;
	while (!status && !t->ever_told &&
	       process_now_ns() - begin < (t->since_change < 3 ? tune->wait * 1e9 : RECORDS_NS))
		status = watch(tune);
	t->by_records = !t->ever_told;
	t->since_change = t->by_records ? t->since_change : 0;
	begin = t->by_records ? begin : process_now_ns();
	while (!status && t->since_change < 3 && process_now_ns() - begin < tune->wait * 1e9)
		status = watch(tune);
	if (status || t->since_change < 3)
		return status ?: failure("%s made no report in %g s, and none of its launches was "
					 "recorded: see 'gpupart doctor'", t->name, tune->wait);
	each = (process_now_ns() - begin) / t->since_change;
	tune->each_ns[i] = tune->each_ns[i] && tune->each_ns[i] < each ? tune->each_ns[i] : each;
	/* The speed of a borrower is not the speed of its set. */
	return !lend_borrows(t, &lending) ? 0 :
	       failure("%s borrows TPCs of %s, so its speed is not the speed of its set: start it "
		       "without --lend and without 'gpupart qos'", t->name, lending.lender);
}

/*
 * Ends a slice of @ns. Each program has a histogram in @times: the times of its requests, or if it
 * reports no requests, the times between its reports.
 */
static void take_slice(struct tune *tune, struct tune_candidate *x,
		       uint64_t (*times)[GPUPART_NR_LATENCIES], uint64_t ns)
{
	struct qos_measured m;

	for (unsigned int i = 0; i < tune->nr; i++) {
		const struct live_tenant *t = &tune->c.live.tenants[i];
		const struct qos_spec *spec = &tune->c.setup.specs[i];

		x->nr_times[i] = 0;
		for (unsigned int b = 0; b < GPUPART_NR_LATENCIES; b++)
			x->nr_times[i] += times[i][b] += t->latencies[b] + t->pauses[b];
		x->time_ns[i] = live_percentile(times[i], x->nr_times[i],
						tune->c.setup.tenants[i].percentile);
		live_take(&tune->c.live, i, &tune->c.setup.tenants[i], spec, ns, &m);
		x->slices[i][x->nr_slices] = m.work * 1e6 / ns;
	}
	x->nr_slices++;
	tune_compute(tune, x);
}

/*
 * Measures candidate @x for about @ns, after two reports of each program. Each slice ends after a
 * report of each program, so if a program reports rarely, @x has fewer slices or takes longer. If
 * @whole is true, does not stop early when other candidates are better. Returns 0 or an exit
 * status.
 */
static int measure(struct tune *tune, struct tune_candidate *x, uint64_t ns, bool whole)
{
	struct live *live = &tune->c.live;
	const struct live_tenant *stalled = NULL;
	uint64_t times[TUNE_PROGRAMS][GPUPART_NR_LATENCIES] = { 0 };
	uint64_t from, begin, most = ns * 3 / 4;
	int status = 0;
	bool changed;

	control_give(&tune->c, x->sets);
	for (unsigned int i = 0; i < tune->nr; i++) {
		const struct live_tenant *t = &live->tenants[i];

		/* A program with fewer TPCs than in its old set may report less often. */
		tune->stall_ns[i] = fmax(STALL_NS, REPORTS / 2 * tune->each_ns[i] *
					 fmax(1, (double)gpupart_tpcset_count(&tune->c.old[i]) /
						 gpupart_tpcset_count(&x->sets[i])));
		for (unsigned int m = 0; m < t->nr_members; m++)
			if (!gpupart_tpcset_empty(&t->members[m].given) &&
			    !gpupart_tpcset_equal(&t->members[m].given, &x->sets[i]))
				x->why = "not measured: an outer limit leaves fewer TPCs";
	}
	if (x->why && *x->why)
		return 0;
	/*
	 * Half of the time without progress remains for the measurement. So if one program makes no
	 * progress, the speed of the other program is still measured.
	 */
	while (!status && !(live_settled(live, 0, tune->stall_ns[0] / 2) &&
			    live_settled(live, 1, tune->stall_ns[1] / 2)))
		status = watch(tune);
	live_restart(live);
	from = begin = live->read_ns;
	x->why = NULL;
	x->nr_slices = 0;
	while (!status && !stalled && !x->why && x->nr_slices < TUNE_SLICES &&
	       (x->nr_slices < LEAST_SLICES || from - begin < most)) {
		status = watch(tune);
		stalled = find_stalled(tune, 0);
		/* Without a complete slice, the incomplete slice has the other program's speed. */
		if (status || (stalled ? x->nr_slices : find_stalled(tune, from) ||
			       live->read_ns - from < most / TUNE_SLICES))
			continue;
		take_slice(tune, x, times, live->read_ns - from);
		from = live->read_ns;
		if (!whole && x->nr_slices >= LEAST_SLICES && tune_is_dominated(tune, x))
			x->why = "stopped early: another one is better in everything";
	}
	if (status)
		return status;
	changed = live_is_changed(live, 0) | live_is_changed(live, 1);
	x->why = changed ? "a set was changed by another command" :
		 stalled ? "no progress: old sets restored" : x->why;
	x->valid[0] = !changed && stalled != &live->tenants[0];
	x->valid[1] = !changed && stalled != &live->tenants[1];
	tune_compute(tune, x);
	if (!stalled)
		return 0;
	/* Restore the old sets at once, and wait until the stalled program makes progress. */
	control_give(&tune->c, tune->c.old);
	while (!status && !stalled->since_change &&
	       process_now_ns() - stalled->changed_ns < RESUME_NS)
		status = watch(tune);
	return status ?: stalled->since_change ? 0 :
	       failure("%s makes no progress even with its old set", stalled->name);
}

int tune_measure(struct tune *tune)
{
	struct tune_candidate *old, *x;
	uint64_t begin = process_now_ns(), each;
	unsigned int slow, nr_tries = 0;
	double least, sizes;
	int status;

	/* The first reports of a program may be slow. */
	do {
		status = find_measure(tune, 0) ?: tune->nr > 1 ? find_measure(tune, 1) : 0;
		slow = tune->each_ns[1] > tune->each_ns[0];
		least = tune->each_ns[slow] / 1e9 * REPORTS;	/* seconds of a candidate */
		/* The old sets are measured, too. */
		sizes = (tune->seconds / least - tune->nr - 1) / GPUPART_NR_SHAPES;
	} while (!status && sizes < LEAST_SIZES && ++nr_tries < MOST_TRIES);
	if (!status && sizes < LEAST_SIZES)
		status = failure("%s reports only every %.3g s, so a candidate needs %.3g s: use "
				 "--seconds %.0f or more", tune->c.live.tenants[slow].name,
				 least / REPORTS, least, ceil(1.05 * least * (tune->nr + 1 +
				 LEAST_SIZES * GPUPART_NR_SHAPES)));
	status = status ?: tune_list(tune, fmin(sizes, TUNE_SIZES));
	if (status)
		return status;
	old = &tune->list[tune->nr_candidates];
	old[0] = old[1] = (struct tune_candidate){ .sets = { tune->c.old[0], tune->c.old[1] } };
	each = tune->seconds * 1e9 / (tune->nr_candidates + 1);
	status = measure(tune, &old[0], each, true);
	/* The first two candidates measure the solo speeds of two programs. */
	for (unsigned int n = 0; n < tune->nr_candidates && !status; n++)
		status = measure(tune, &tune->list[n], each, n < 2);
	for (int n = 0; n < BEST && !status && (x = tune_best(tune, false)); n += !x->why) {
		x->again = true;
		status = measure(tune, x, tune->seconds * 1e9 / 2 / BEST, true);
	}
	status = status ?: measure(tune, &old[1], each, true);
	/* Do not use other candidates, because their times come from too few requests. */
	tune->best = tune_best(tune, true);
	tune->met = !status && tune->best && tune_value(tune, tune->best) >= 0;
	control_give(&tune->c, tune->met && tune->apply ? tune->best->sets : tune->c.old);
	tune->took = (process_now_ns() - begin) / 1e9;
	return status ?: tune->best ? 0 :
	       failure("no candidate could be measured completely; of the last: %s",
		       tune->list[tune->nr_candidates - 1].why);
}
