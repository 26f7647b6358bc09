/* SPDX-License-Identifier: MIT */
/* What the fast and the slow path of folding share. The caller of each function holds the lock. */
#ifndef GPUPART_LIB_RECORDS_TOTALS_H
#define GPUPART_LIB_RECORDS_TOTALS_H

#include "lib/records/records.h"

#define FOLD_MAX	16	/* maximum number of launches that one fold adds */
#define OFFSET_NONE	INT64_MIN	/* no end of a launch was seen yet */

/*
 * If necessary, renews the rate. The rate may be used up to a value of the CPU's counter. Returns
 * this value.
 */
uint64_t totals_clock_check(struct state_clock *clock, uint64_t counter);

/*
 * Updates the clock after a launch ended at GPU time @end. The end was seen when the CPU counter
 * had the value @counter. The GPU's clock can be behind the CPU's clock by at most the difference
 * between these two times.
 */
static inline void clock_see(struct state_clock *clock, uint64_t counter, uint64_t end)
{
	int64_t offset = end - records_clock_ns(clock, counter);

	/* The larger of the two offsets is @clock->offset. */
	if (__builtin_expect(offset <= clock->next_offset, 1))
		return;
	clock->next_offset = offset;
	if (offset > clock->offset)
		clock->offset = offset;
}

/* Returns a lower bound of the GPU's time at the submission of a launch. */
static inline uint64_t submitted_ns(const struct state_clock *clock, uint64_t submitted)
{
	return records_clock_ns(clock, submitted) + clock->offset;
}

/*
 * Adds @count launches of one function to the totals. Does not change the union of the intervals.
 * The launches took @ns in total, and ended at @end. The longest launch took @longest ns.
 */
static inline __attribute__((always_inline))
void add_run(struct state_records *totals, struct state_ring *ring, struct state_function *f,
	     uint64_t ns, uint64_t end, uint64_t count, uint64_t longest)
{
	totals->kernels_ns += ns;
	ring->busy_ns += ns;
	f->count += count;
	f->ns += ns;
	if (longest > f->longest_ns)
		f->longest_ns = longest;
	ring->last_end = end;
	if (end > totals->last_end)
		totals->last_end = end;
}

/*
 * Folds graphs, at most @max launches of @ring, and launches of one other ring. Then releases the
 * lock.
 */
void totals_fold(struct records *records, struct records_ring *ring, unsigned int max);

#endif
