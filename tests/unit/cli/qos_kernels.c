// SPDX-License-Identifier: MIT
/* Tests progress from completion records, with kernels of known duration. */
#include <stdlib.h>
#include "cli/qos/kernels.h"
#include "tests/tap.h"

#define MS	1000000ull
#define SECOND	(1000 * MS)

static struct kernels_look looks[2];
static struct gpupart_records alone;

/*
 * Adds a function to @look. So far, @count launches of the function have ended, with a total time
 * of @ns.
 */
static void has(struct kernels_look *look, const char *name, uint64_t count, uint64_t ns)
{
	struct gpupart_records *r = &look->records;
	struct gpupart_records_function *f = &r->functions[r->nr_functions++];

	snprintf(f->name, sizeof(f->name), "%s", name);
	f->count = count;
	f->ns = ns;
	r->ended += count;
}

/*
 * Runs an epoch of one second. The epoch begins at the end of a launch, and ends at the end of a
 * launch.
 */
static void begin(void)
{
	looks[0] = (struct kernels_look){ .at_ns = SECOND, .records.last_end_ns = 5 * SECOND };
	looks[1] = (struct kernels_look){ .at_ns = 2 * SECOND, .records.last_end_ns = 6 * SECOND };
}

/* The difference of the two times must be at most one ns. */
static bool is(bool learn, uint64_t ns)
{
	uint64_t work = kernels_work(&alone, learn, looks);

	if (work + 1 < ns || work > ns + 1)
		printf("# %llu ns, not %llu\n", (unsigned long long)work, (unsigned long long)ns);
	return work + 1 >= ns && work <= ns + 1;
}

/* Function a has 10 launches of 10 ms each, and function b has 1000 launches of 100 us each. */
static void times_alone(void)
{
	alone = (struct gpupart_records){ .on = false };
	begin();
	has(&looks[0], "a", 7, 70 * MS);
	has(&looks[0], "b", 100, 10 * MS);
	has(&looks[1], "a", 17, 170 * MS);
	has(&looks[1], "b", 1100, 110 * MS);
}

int main(void)
{
	times_alone();
	tap_ok(is(true, 200 * MS), "alone: launches count for the time that they took");
	tap_ok(alone.nr_functions == 2 && alone.functions[0].count == 10 &&
	       alone.functions[0].ns == 100 * MS && alone.functions[1].count == 1000,
	       "and that is learnt, without what was before");

	begin();
	has(&looks[0], "b", 1100, 110 * MS);
	has(&looks[0], "a", 17, 170 * MS);
	has(&looks[1], "a", 22, 370 * MS);
	has(&looks[1], "b", 1600, 510 * MS);
	tap_ok(is(false, 100 * MS), "four times as slow: as far as what ended takes alone");
	tap_ok(alone.functions[0].count == 10, "nothing is learnt then");

	begin();
	has(&looks[1], "a", 5, 200 * MS);
	has(&looks[1], "c", 30, 100 * MS);
	tap_ok(is(false, 75 * MS), "a function that is not known is as much slower as the others");
	begin();
	has(&looks[1], "c", 30, 100 * MS);
	tap_ok(is(false, 100 * MS), "or counts for its time");
	has(&looks[1], "", 500, 500 * MS);
	tap_ok(is(false, 100 * MS), "one without a name does not count yet");

	/* For graphs, the records contain the time, but not the number. */
	times_alone();
	has(&looks[0], "(CUDA graphs)", 1, 10 * MS);
	has(&looks[1], "(CUDA graphs)", 2, 410 * MS);
	looks[0].records.ended = 120;
	looks[1].records.ended = 1153;
	looks[1].records.untimed = 3;
	tap_ok(is(true, 600 * MS), "20 launches of a graph");
	tap_ok(alone.nr_functions == 3 && alone.functions[2].count == 20 &&
	       alone.functions[2].ns == 400 * MS, "are learnt as 20");
	begin();
	has(&looks[1], "(CUDA graphs)", 1, 300 * MS);
	looks[1].records.ended = 5;
	tap_ok(is(false, 100 * MS), "5 of them, slower");

	/*
	 * At both reads, launches are running. So the work is measured from the end of one launch
	 * to the end of another launch.
	 */
	times_alone();
	is(true, 200 * MS);
	begin();
	has(&looks[1], "a", 50, 900 * MS);
	looks[1].records.last_end_ns -= 10 * MS;
	tap_ok(is(false, 500 * MS + 500 * MS / 99), "the last one ended 10 ms ago: a part counts");
	looks[1].records.last_end_ns -= 500 * MS;
	tap_ok(is(false, 510 * MS), "half a second ago: a launch at most");
	looks[1].records.last_end_ns += SECOND;
	tap_ok(is(false, 490 * MS), "no less, the other way");
	looks[0].records.last_end_ns = 0;
	tap_ok(is(false, 500 * MS), "none had ended before: as it is");

	/* Another process writes the records, so the values in the records may be wrong. */
	begin();
	has(&looks[0], "a", 50, 900 * MS);
	has(&looks[1], "a", 40, 800 * MS);
	tap_ok(is(false, 0), "counters that go back");
	begin();
	has(&looks[1], "a", UINT64_MAX, UINT64_MAX);
	tap_ok(kernels_work(&alone, false, looks) <= INT64_MAX, "counters beyond any bound");
	tap_ok(kernels_work(&alone, true, looks) <= INT64_MAX, "also when they are learnt");
	begin();
	for (unsigned int i = 0; i < GPUPART_RECORDS_NR_FUNCTIONS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "f%u", i);
		has(&looks[1], name, 1, MS);
	}
	tap_ok(is(true, GPUPART_RECORDS_NR_FUNCTIONS * MS) &&
	       alone.nr_functions == GPUPART_RECORDS_NR_FUNCTIONS, "more functions than places");
	return tap_done();
}
