// SPDX-License-Identifier: MIT
/*
 * Tests the estimate of work between two reports. The true progress of the test's programs is
 * always known.
 */
#include "tests/tap.h"
#include "cli/qos/pace.c"

#define MS 1000000ull

/*
 * The program reports @work units of work every @each_ns. The reports are read every @epoch_ns.
 */
static uint64_t worst_error(uint64_t each_ns, uint64_t work, uint64_t epoch_ns)
{
	struct pace pace = { 0 };
	uint64_t told = 0, worst = 0, done, is;

	for (uint64_t now = epoch_ns; now < 100 * epoch_ns; now += epoch_ns) {
		uint64_t nr = now / each_ns;

		pace_report(&pace, (nr - told) * work, nr - told, nr * each_ns);
		told = nr;
		done = told * work + pace_part(&pace, now);
		is = now * work / each_ns;
		/* The start of the work for the first reports is not known. */
		if (now > 2 * each_ns + epoch_ns && (done > is ? done - is : is - done) > worst)
			worst = done > is ? done - is : is - done;
	}
	return worst;
}

/*
 * Reports come at irregular times. The time until the next report and the size of the report depend
 * on the habit.
 */
enum habit { REGULAR, SIZES, BURSTS, STOPS, WILD, NR_HABITS };

static void next_report(enum habit habit, unsigned int i, uint64_t *ns, uint64_t *work)
{
	*work = 1000;
	*ns = 23 * MS;
	if (habit == SIZES)
		*work = i % 4 == 3 ? 1000000 : 1000;
	else if (habit == BURSTS)
		*ns = i % 4 ? 1000 : 200 * MS;
	else if (habit == STOPS)
		*ns = i % 10 ? 30 * MS : 900 * MS;
	else if (habit == WILD) {
		*ns = (i * 7919 % 97 + 1) * MS;
		*work = i * 104729 % 5000 + 1;
	}
}

/*
 * The counted work must be at least the reported work. The excess must be at most the largest
 * report. If no work is reported, no work is counted. One of every @forget epochs is discarded.
 */
static void account(enum habit habit, uint64_t epoch_ns, unsigned int forget)
{
	uint64_t told = 0, counted = 0, dropped = 0, at, work, ns, came, most = 0, got, before;
	bool exact, whole = true, never = true;
	struct pace pace = { 0 };
	unsigned int i = 0;

	next_report(habit, i++, &at, &work);
	for (uint64_t now = epoch_ns, e = 1; e < 400; now += epoch_ns, e++) {
		uint64_t nr = 0, last = 0;

		for (came = 0; at <= now; at += ns) {
			came += work;
			last = at;
			nr++;
			most = work > most ? work : most;
			next_report(habit, i++, &ns, &work);
		}
		before = pace_part(&pace, now - epoch_ns);
		pace_report(&pace, came, nr, last);
		told += came;
		if (forget && e % forget == 0) {
			/* Computes the work of this epoch in the same way. */
			dropped += came + pace_part(&pace, now) - before;
			pace_discard(&pace, now);
			continue;
		}
		got = pace_take(&pace, now, came, &exact);
		counted += got;
		whole &= !came || (counted + dropped + most >= told &&
				   counted + dropped <= told + 2 * most);
		never &= came || !got;
	}
	tap_ok(whole && never, "habit %d, epochs of %llu ms: told %llu, counted %llu, dropped %llu",
	       habit, (unsigned long long)(epoch_ns / MS), (unsigned long long)told,
	       (unsigned long long)counted, (unsigned long long)dropped);
	if (forget)
		return;
	tap_ok(counted + most >= told && counted <= told + most, ".. nothing twice: %llu of %llu",
	       (unsigned long long)counted, (unsigned long long)told);
}

/*
 * A report comes every 700 ms, and an epoch takes 200 ms. After each report, the time before the
 * report counts, even if sets are swapped.
 */
static void slow_one(bool swaps)
{
	uint64_t told = 0, carried = 0, work, rate, least = UINT64_MAX, most = 0;
	struct pace pace = { 0 };
	bool exact;

	for (uint64_t now = 200 * MS, e = 1; e < 400; now += 200 * MS, e++) {
		uint64_t nr = now / (700 * MS);

		pace_report(&pace, (nr - told) * 1000, nr - told, nr * 700 * MS);
		carried += 200;
		work = pace_take(&pace, now, nr > told, &exact);
		if (nr > told) {
			rate = work * 1000 / carried;
			carried = 0;
			if (e > 20 && rate < least)
				least = rate;
			if (e > 20 && rate > most)
				most = rate;
		}
		told = nr;
		/* The 60 ms of a swap do not count. */
		if (!swaps || e % 3)
			continue;
		now += 60 * MS;
		nr = now / (700 * MS);
		pace_report(&pace, (nr - told) * 1000, nr - told, nr * 700 * MS);
		told = nr;
		pace_discard(&pace, now);
	}
	tap_ok(least >= 1400 && most <= 1460, "a slow one%s: %llu to %llu thousandths/s, of 1428",
	       swaps ? ", and swaps" : "", (unsigned long long)least, (unsigned long long)most);
}

int main(void)
{
	static const uint64_t eaches[] = { 7000, MS / 3, 2250000, 17 * MS, 190 * MS, 317 * MS };
	struct pace pace = { 0 };

	for (unsigned int i = 0; i < sizeof(eaches) / sizeof(eaches[0]); i++) {
		uint64_t error = worst_error(eaches[i], 1000, 200 * MS);

		tap_ok(error <= 1, "one every %llu us: done to a thousandth: %llu",
		       (unsigned long long)eaches[i] / 1000, (unsigned long long)error);
		error = worst_error(eaches[i], 32000, 200 * MS);
		tap_ok(error <= 1, ".. and 32 at a time: %llu", (unsigned long long)error);
	}

	for (enum habit habit = REGULAR; habit < NR_HABITS; habit++)
		for (unsigned int forget = 0; forget <= 7; forget += 7)
			for (uint64_t ms = 50; ms <= 200; ms *= 2)
				account(habit, ms * MS, forget);
	slow_one(false);
	slow_one(true);

	tap_ok(!pace_part(&pace, 5 * MS), "without a report no work is in progress");
	pace_report(&pace, 1000, 1, 10 * MS);
	tap_ok(!pace_part(&pace, 15 * MS), "one report has no pace");
	pace_report(&pace, 0, 0, 12 * MS);
	pace_report(&pace, 4000, 4, 50 * MS);
	tap_ok(pace_part(&pace, 55 * MS) == 500, "half of the next: %llu thousandths",
	       (unsigned long long)pace_part(&pace, 55 * MS));
	tap_ok(pace_part(&pace, 75 * MS) == 1000, "one that is late is not more than one");
	tap_ok(!pace_part(&pace, 50 * MS + 3 * 10 * MS + 3), "much too late: there may be none");
	tap_ok(!pace_part(&pace, 49 * MS), "told after it was looked at: nothing since");
	pace_report(&pace, 6000, 2, 40 * MS);
	tap_ok(pace.each_ns == 10 * MS && pace_part(&pace, 45 * MS) == 1500,
	       "a clock that went back is no pace; the last one stays");
	pace_report(&pace, UINT64_MAX, 1, 41 * MS);
	tap_ok(pace_part(&pace, 42 * MS) == UINT64_MAX, "no number overflows: %llu",
	       (unsigned long long)pace_part(&pace, 42 * MS));
	pace = (struct pace){ .reported_ns = 1, .each_ns = UINT64_MAX, .each = UINT64_MAX };
	tap_ok(pace_part(&pace, UINT64_MAX) <= UINT64_MAX - 1, "nor does the longest pace");
	return tap_done();
}
