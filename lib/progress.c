// SPDX-License-Identifier: MIT
/*
 * What a program tells of its progress, and how another one reads it: counters in the block
 * that it shows of itself. Must not know who reads them, nor what a limit is.
 */
#include <string.h>
#include "control.h"
#include "progress.h"

#define PARTS	16u	/* of an octave */

_Static_assert(CONTROL_NR_LATENCIES == GPUPART_NR_LATENCIES, "the block has all of them");

/* Below 16 ns one each, then 16 an octave; the last one has all that is longer. */
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
	__atomic_fetch_add(&control_place()->progress.units, units, __ATOMIC_RELAXED);
}

void gpupart_latency_report(uint64_t ns)
{
	__atomic_fetch_add(&control_place()->progress.latencies[place_of(ns)], 1,
			   __ATOMIC_RELAXED);
}

void progress_read(const struct control_block *block, struct gpupart_progress *progress)
{
	struct gpupart_counters counters;

	control_counters(block, &counters);
	progress->launches = counters.launches;
	progress->units = __atomic_load_n(&block->progress.units, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < GPUPART_NR_LATENCIES; i++)
		progress->latencies[i] = __atomic_load_n(&block->progress.latencies[i],
							 __ATOMIC_RELAXED);
}
