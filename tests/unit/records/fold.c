// SPDX-License-Identifier: MIT
/*
 * Tests busy time, which is a union of intervals. The result is compared with a map of every
 * nanosecond. Also tests the totals of functions, and the clock.
 */
#include <string.h>
#include "lib/records/records.h"
#include "tests/tap.h"

#define SPAN	20000
#define NR	400

static struct state_records totals;
static unsigned int seed;

static unsigned int random_below(unsigned int n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

struct interval {
	unsigned int begin, end;
};

/* The intervals are sorted by begin, and then shuffled among @disorder neighbours. */
static void make(struct interval *list, unsigned int longest, unsigned int disorder)
{
	unsigned int at = 1;

	for (int i = 0; i < NR; i++) {
		at += random_below(2 * SPAN / NR / 3);
		list[i] = (struct interval){ at, at + random_below(longest) };
	}
	for (unsigned int i = 0; i < NR; i++) {
		unsigned int first = i - i % disorder, j = first + random_below(disorder);
		struct interval was = list[i];

		if (j >= NR)
			continue;
		list[i] = list[j];
		list[j] = was;
	}
}

/*
 * Compares records_add() with the map after every interval. Tests the bounds. If @exact is true,
 * the bounds must be exact.
 */
static bool agrees(const struct interval *list, bool exact)
{
	static unsigned char busy[2 * SPAN];
	uint64_t sum = 0;

	memset(busy, 0, sizeof(busy));
	memset(&totals, 0, sizeof(totals));
	for (int i = 0; i < NR; i++) {
		for (unsigned int t = list[i].begin; t < list[i].end; t++) {
			sum += !busy[t];
			busy[t] = 1;
		}
		if (list[i].end > list[i].begin)
			records_add(&totals, list[i].begin, list[i].end);
		if (totals.nr_gaps > STATE_NR_GAPS || totals.busy_ns > sum ||
		    totals.busy_ns + totals.late_ns < sum ||
		    (exact && (totals.late_ns || totals.busy_ns != sum))) {
			printf("# interval %d: %lu + %lu late, oracle %lu\n", i, totals.busy_ns,
			       totals.late_ns, sum);
			return false;
		}
	}
	return true;
}

static void union_against_oracle(void)
{
	static const struct {
		unsigned int longest, disorder;
		bool exact;
	} kinds[] = {
		{ 20, 1, true }, { 200, 1, true }, { 20, 12, true }, { 60, 15, true },
		{ 400, 25, true }, { 3, 200, false }, { 30, 400, false }, { 500, 400, false },
	};
	struct interval list[NR];

	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		int good = 0;

		for (unsigned int n = 1; n <= 200; n++) {
			seed = n;
			make(list, kinds[k].longest, kinds[k].disorder);
			good += agrees(list, kinds[k].exact);
		}
		tap_ok(good == 200, "intervals below %u ns, mixed among %u: %s in 200 of 200",
		       kinds[k].longest, kinds[k].disorder,
		       kinds[k].exact ? "exact" : "what is missing is counted as late");
	}
}

static struct state_ring rings[2];

/* A CPU counter of 1 GHz that is 1000 ns behind the GPU's clock. */
static void clear(void)
{
	memset(&totals, 0, sizeof(totals));
	memset(rings, 0, sizeof(rings));
	totals.clock = (struct state_clock){ .scale = 1ull << 32, .offset = 1000 };
}

static void ended(unsigned int ring, uint64_t function, uint64_t submitted, uint64_t time)
{
	records_fold_entry(&totals, &rings[ring],
			   &(struct records_entry){ time, submitted, function });
}

static const struct state_function *function(uint64_t key)
{
	for (int i = 0; i < STATE_NR_FUNCTIONS; i++)
		if (totals.functions[i].key == key)
			return &totals.functions[i];
	return NULL;
}

static bool sums(uint64_t busy, uint64_t kernels)
{
	if (totals.busy_ns != busy || totals.kernels_ns != kernels)
		printf("# busy %lu, kernels %lu\n", totals.busy_ns, totals.kernels_ns);
	return totals.busy_ns == busy && totals.kernels_ns == kernels && !totals.late_ns;
}

static void times(void)
{
	const struct state_function *f;

	clear();
	ended(0, 0x2000, 5000, 6500);
	tap_ok(sums(500, 500), "a launch begins when it is submitted");
	ended(0, 0x2000, 5010, 7000);
	tap_ok(sums(1000, 1000), "or when the one before it in its ring ends");
	ended(1, 0x3000, 5200, 6800);
	tap_ok(sums(1000, 1600), "another ring at the same time");
	ended(1, 0x3000, 5900, 7500);
	tap_ok(sums(1500, 2200), "and longer");
	ended(0, 0x2000, 9000, 10100);
	tap_ok(sums(1600, 2300) && totals.last_end == 10100, "after a time with none");
	ended(1, 0x3000, 8000, 9500);
	tap_ok(sums(2100, 2800), "which the other ring had not been idle in");
	ended(0, 0x2000, 20000, 15000);
	tap_ok(sums(2100, 2800) && rings[0].last_end == 15000,
	       "one that ended before it was submitted, by clocks that differ, took no time");
	ended(0, 0x2000, 0, 16000);
	f = function(0x2000);
	tap_ok(sums(2100, 2800) && totals.untimed == 1 && f && f->count == 4 && f->ns == 1100 &&
	       f->longest_ns == 500 && rings[0].folded == 5 && rings[1].folded == 3,
	       "one that never ran is counted apart");
}

/*
 * A program's first launches are seen late. Here, three launches are seen when two of them ended
 * long ago. Each of the three launches took 1 s.
 */
static void seen_late(void)
{
	static struct records_cell cells[4];
	static struct records_note notes[4];
	static struct state_ring shown;
	struct records_ring ring = { .issued = 6,
				     .room = 7,
				     .mask = 3,
				     .cells = cells,
				     .notes = notes,
				     .shown = &shown,
				     .first = 3 };
	uint64_t second, now;

	clear();
	records_clock_start(&totals.clock);
	records_clock_start(&totals.clock);
	second = (1000000000ull << 32) / totals.clock.scale;
	now = records_counter();
	for (int i = 0; i < 3; i++) {
		atomic_store(&cells[i].payload, 4 + i);
		atomic_store(&cells[i].time, (1000 - 40 * (2 - i)) * 1000000000ull);
		atomic_store(&notes[i].submitted, now - (1 + 40 * (2 - i)) * second);
		atomic_store(&notes[i].function, 0x5000);
	}
	tap_ok(records_fold_ring(&totals, &ring, 16, true) == 3 && shown.folded == 6 &&
	       totals.kernels_ns >= 2900000000ull && totals.kernels_ns < 20000000000ull,
	       "seen 80 s after the first one ended: three launches of 1 s took %lu ns",
	       totals.kernels_ns);
}

/* There are more functions than table entries. The functions with the most time must stay. */
static void many_functions(void)
{
	uint64_t t = 1000000, heavy = 0;
	unsigned int nr = 0;

	clear();
	for (int i = 0; i < 4000; i++) {
		uint64_t key = i % 10 ? 0x100000 + 64 * (uint64_t)i : 0x8000 + i % 40 * 16ull;

		t += i % 10 ? 1000 : 1000000;
		ended(0, key, 0x10, t);
	}
	for (int i = 0; i < STATE_NR_FUNCTIONS; i++)
		nr += totals.functions[i].key != 0;
	for (int i = 0; i < 40; i += 10)
		if (function(0x8000 + i * 16))
			heavy += function(0x8000 + i * 16)->ns;
	/* The first launch is submitted long before the other launches. */
	tap_ok(nr == STATE_NR_FUNCTIONS && heavy >= 400000000 && heavy <= 401000000,
	       "of 3604 functions 64 are there, and the 4 with the most time are whole: %lu ns",
	       heavy);
}

int main(void)
{
	union_against_oracle();
	times();
	many_functions();
	seen_late();
	return tap_done();
}
