// SPDX-License-Identifier: MIT
/*
 * Adds launches that have ended to the totals. This is called folding. In the process that
 * launches, one thread at a time writes the totals. This thread holds the lock of the totals. If a
 * thread cannot acquire the lock, it does not wait. A reader folds further launches into its own
 * copy of the totals. This file has the most frequent case, and totals.c has all others.
 */
#include "lib/records/totals.h"

/* Returns the note that belongs to a cell of a section. */
static inline const struct records_note *note_of(const struct records_cell *cell)
{
	return (const void *)((const char *)cell + RECORDS_REGISTERED);
}

/* Renews the rate of the clock, releases the lock, and begins again. */
static __attribute__((noinline, cold)) void fold_renew(struct records *records,
						       struct records_ring *ring)
{
	struct state_records *totals = records->shown;

	records->clock_until = totals_clock_check(&totals->clock, records_counter());
	records_totals_unlock(records, totals);
	records_fold(ring);
}

/*
 * The most frequent case takes few instructions. In this case, the process has one stream, all
 * launches are of one function, and each launch waited for its predecessor. All calls are tail
 * calls. The loop stops at multiples of FOLD_MAX entries, so it also stops at the end of the ring.
 */
void records_fold(struct records_ring *ring)
{
	struct records *records = ring->records;
	struct state_records *totals = records_totals_try(records);
	const struct records_cell *first, *cell;
	uint64_t begin, end = ring->shown->last_end, key = ring->function->key, least = ~0ull;
	uint64_t seq, nr, counter;

	if (!totals)
		return;
	first = &ring->cells[(atomic_load_explicit(&ring->room, memory_order_relaxed) + 1) &
			     ring->mask];
	cell = first;
	/*
	 * The time of a launch is later than the time of its predecessor. If the launch has not
	 * ended, its cell contains an earlier time. The variable @least is the negated longest
	 * time.
	 */
	do {
		uint64_t time = atomic_load_explicit(&cell->time, memory_order_relaxed), minus;

		if (!__builtin_sub_overflow(end, time, &minus))
			break;
		if (atomic_load_explicit(&note_of(cell)->function, memory_order_relaxed) != key)
			goto unusual;
		if (minus < least)
			least = minus;
		end = time;
		cell++;
	} while ((uintptr_t)cell % (FOLD_MAX * sizeof(*cell)));
	seq = atomic_load_explicit(&ring->room, memory_order_relaxed);
	/* If @issued is larger, later launches have reused entries that are not folded yet. */
	if (cell == first || atomic_load_explicit(&ring->issued, memory_order_relaxed) > seq)
		goto unusual;
	seq -= ring->mask + 1;
	if (seq <= atomic_load_explicit(&ring->first, memory_order_relaxed))
		goto unusual;
	nr = cell - first;
	seq += nr;
	cell--;
	if (!records_has(cell, seq))
		goto unusual;
	begin = totals->covered;
	if (begin != ring->shown->last_end)
		goto unusual;
	counter = records_counter();
	if (__builtin_expect(counter > records->clock_until, 0)) {
		fold_renew(records, ring);
		return;
	}
	end = atomic_load_explicit(&cell->time, memory_order_relaxed);
	clock_see(&totals->clock, counter, end);
	/*
	 * This function would have to save registers that contain the clock, so do not keep the
	 * clock in registers.
	 */
	atomic_signal_fence(memory_order_acq_rel);
	if (submitted_ns(&totals->clock, atomic_load_explicit(&note_of(cell)->submitted,
							      memory_order_relaxed)) > begin)
		goto unusual;
	totals->busy_ns += end - begin;
	totals->covered = end;
	add_run(totals, ring->shown, ring->function, end - begin, end, nr, -least);
	ring->shown->folded = seq;
	atomic_store_explicit(&ring->room, seq + ring->mask + 1, memory_order_relaxed);
	if (__builtin_expect(atomic_load_explicit(&records->used, memory_order_relaxed) == 1, 1))
		records_totals_unlock(records, totals);
	else
		totals_fold(records, ring, 0);
	return;
unusual:
	totals_fold(records, ring, FOLD_MAX);
}
