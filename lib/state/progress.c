// SPDX-License-Identifier: MIT
/*
 * Writes the progress that a program reports into the program's state page. Also reads the progress
 * of another process.
 */
#include <string.h>
#include "lib/core/clock.h"
#include "lib/state/state_page.h"
#include "lib/state/progress.h"

#define PARTS	16u	/* per octave */

_Static_assert(STATE_NR_LATENCIES == GPUPART_NR_LATENCIES, "the state page has room for all");

/*
 * Each counter of the histogram counts times. This function returns the index of the counter for
 * the time @ns. Each time below 16 ns has a separate counter. Above 16 ns, each octave has 16
 * counters. The last counter counts all longer times.
 */
static unsigned int place_of(uint64_t ns)
{
	unsigned int octave, place;

	if (ns < PARTS)
		return ns;
	octave = 63 - __builtin_clzll(ns);
	place = (octave - 3) * PARTS + (ns >> (octave - 4)) % PARTS;
	return place < GPUPART_NR_LATENCIES ? place : GPUPART_NR_LATENCIES - 1;
}

uint64_t gpupart_latency_least(unsigned int place)
{
	if (place >= GPUPART_NR_LATENCIES)
		place = GPUPART_NR_LATENCIES - 1;
	return place < PARTS ? place
			     : (uint64_t)(PARTS + place % PARTS) << (place / PARTS - 1);
}

void gpupart_progress_add(uint64_t units)
{
	struct state_progress *progress = &state_page_location()->progress;
	uint64_t now;

	if (!units)
		return;
	now = clock_monotonic_ns();
	__atomic_fetch_add(&progress->units, units, __ATOMIC_RELAXED);
	__atomic_store_n(&progress->reported_ns, now, __ATOMIC_RELAXED);
	/*
	 * Write this member last. If a reader reads the same value before and after the other
	 * members, the other members belong to the same report.
	 */
	__atomic_fetch_add(&progress->reports, 1, __ATOMIC_RELEASE);
}

void gpupart_latency_report(uint64_t ns)
{
	struct state_progress *progress = &state_page_location()->progress;

	__atomic_store_n(&progress->answered_ns, clock_monotonic_ns(), __ATOMIC_RELAXED);
	__atomic_fetch_add(&progress->latencies[place_of(ns)], 1, __ATOMIC_RELAXED);
}

/*
 * Reads the number of units and the time at which the program reported them. Four tries are
 * enough, because a report rarely happens during a read.
 */
static void read_units(const struct state_progress *from, struct gpupart_progress *progress)
{
	for (int i = 0; i < 4; i++) {
		progress->reports = __atomic_load_n(&from->reports, __ATOMIC_ACQUIRE);
		progress->reported_ns = __atomic_load_n(&from->reported_ns, __ATOMIC_RELAXED);
		progress->units = __atomic_load_n(&from->units, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&from->reports, __ATOMIC_RELAXED) == progress->reports)
			return;
	}
}

void progress_read(const struct state_page *page, struct gpupart_progress *progress)
{
	struct gpupart_counters counters;

	state_page_counters(page, &counters);
	progress->launches = counters.launches;
	read_units(&page->progress, progress);
	progress->answered_ns = __atomic_load_n(&page->progress.answered_ns, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < GPUPART_NR_LATENCIES; i++)
		progress->latencies[i] = __atomic_load_n(&page->progress.latencies[i],
							 __ATOMIC_RELAXED);
}
