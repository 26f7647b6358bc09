// SPDX-License-Identifier: MIT
/* Tests the bounds of the offset between two clocks. The true offset is known. */
#include <stdlib.h>
#include "lib/records/clocks.h"
#include "tests/tap.h"

#define AHEAD	1000000000ll	/* ns, at GPU time 0 */
#define NR	1000		/* number of points, one every ms */
#define MS	1000000ull

static struct points low = { .sign = 1 }, high = { .sign = -1 };

/* Returns the offset of a clock that is faster by @ppm. */
static int64_t ahead(uint64_t end, int ppm)
{
	return AHEAD + (int64_t)end / 1000000 * ppm;
}

/*
 * The error of each point is at least @near ns. For one of every @tight points, and for the last
 * point, the error is exactly @near ns.
 */
static void play(int ppm, unsigned int near, unsigned int tight)
{
	low.nr = high.nr = 0;
	for (unsigned int i = 0; i < NR; i++) {
		const uint64_t end = (i + 1) * MS;
		const int64_t cpu = end - ahead(end, ppm);
		const unsigned int far = i % tight && i + 1 < NR ? near + random() % 100000 :
					 near;

		points_add(&low, end, cpu + far);
		points_add(&high, end, cpu - far);
	}
	points_hull(&low, NULL);
	points_hull(&high, &low);
}

/*
 * Returns the largest width of the bounds. If the offset is outside the bounds at some point,
 * returns -1.
 */
static int64_t widest(int ppm, uint64_t from, uint64_t to)
{
	int64_t most = 0;

	for (uint64_t end = from; end <= to; end += MS / 10) {
		int64_t least = points_hull_at(&low, end), over = -points_hull_at(&high, end);

		/* Rounded to ns. */
		if (least > ahead(end, ppm) + 2 || over < ahead(end, ppm) - 2)
			return -1;
		if (over - least > most)
			most = over - least;
	}
	return most;
}

int main(void)
{
	static const int ppm[] = { 0, 50, -50 };
	int64_t width;

	for (unsigned int i = 0; i < 3; i++) {
		play(ppm[i], 1000, 50);
		width = widest(ppm[i], MS, NR * MS);
		tap_ok(width >= 2000 && width < 2100, "drift %d ppm: to %lld ns", ppm[i],
		       (long long)width);
		width = widest(ppm[i], NR * MS, (NR + 10) * MS);
		tap_ok(width >= 2000 && width < 5000, "10 ms later: to %lld ns", (long long)width);
	}
	/* One point claims "not ended" 500 us after the end. */
	points_add(&high, NR / 2 * MS, NR / 2 * MS - ahead(NR / 2 * MS, -50) + 500000);
	points_hull(&high, &low);
	width = widest(-50, MS, NR * MS);
	tap_ok(width >= 2000 && width < 2100, "a late record is left out: %lld ns",
	       (long long)width);
	points_forget(&low, 100 * MS);
	tap_ok(low.nr == 101 && low.list[0].end == (NR - 100) * MS, "old points are forgotten");
	for (unsigned int i = 0; i < 2 * CLOCKS_MAX_POINTS; i++)
		points_add(&low, (NR + i) * MS, 0);
	tap_ok(low.nr <= CLOCKS_MAX_POINTS && low.list[low.nr - 1].end ==
	       (NR + 2 * CLOCKS_MAX_POINTS - 1) * MS, "and of too many the oldest");
	return tap_done();
}
