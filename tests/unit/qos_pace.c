// SPDX-License-Identifier: MIT
/* What is under way between two reports, against programs whose progress is known at any time. */
#include <tap.h>
#include "../../cli/qos_pace.c"

#define MS 1000000ull

/* Work that is told every @each_ns, @milli a time, looked at every @epoch_ns. */
static uint64_t worst_error(uint64_t each_ns, uint64_t milli, uint64_t epoch_ns)
{
	struct pace pace = { 0 };
	uint64_t told = 0, worst = 0, done, is;

	for (uint64_t now = epoch_ns; now < 100 * epoch_ns; now += epoch_ns) {
		uint64_t nr = now / each_ns;

		pace_told(&pace, (nr - told) * milli, nr - told, nr * each_ns);
		told = nr;
		done = told * milli + pace_part(&pace, now);
		is = now * milli / each_ns;
		/* Of the first reports nobody knows when they began. */
		if (now > 2 * each_ns + epoch_ns && (done > is ? done - is : is - done) > worst)
			worst = done > is ? done - is : is - done;
	}
	return worst;
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

	tap_ok(!pace_part(&pace, 5 * MS), "nothing was told: nothing is under way");
	pace_told(&pace, 1000, 1, 10 * MS);
	tap_ok(!pace_part(&pace, 15 * MS), "one report has no pace");
	pace_told(&pace, 0, 0, 12 * MS);
	pace_told(&pace, 4000, 4, 50 * MS);
	tap_ok(pace_part(&pace, 55 * MS) == 500, "half of the next: %llu thousandths",
	       (unsigned long long)pace_part(&pace, 55 * MS));
	tap_ok(pace_part(&pace, 75 * MS) == 1000, "one that is late is not more than one");
	tap_ok(!pace_part(&pace, 50 * MS + 3 * 10 * MS + 3), "much too late: there may be none");
	tap_ok(!pace_part(&pace, 49 * MS), "told after it was looked at: nothing since");
	pace_told(&pace, 6000, 2, 40 * MS);
	tap_ok(pace.each_ns == 10 * MS && pace_part(&pace, 45 * MS) == 1500,
	       "a clock that went back is no pace; the last one stays");
	pace_told(&pace, UINT64_MAX, 1, 41 * MS);
	tap_ok(pace_part(&pace, 42 * MS) == UINT64_MAX, "no number overflows: %llu",
	       (unsigned long long)pace_part(&pace, 42 * MS));
	pace = (struct pace){ 1, UINT64_MAX, UINT64_MAX };
	tap_ok(pace_part(&pace, UINT64_MAX) <= UINT64_MAX - 1, "nor does the longest pace");
	return tap_done();
}
