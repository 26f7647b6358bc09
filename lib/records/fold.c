// SPDX-License-Identifier: MIT
/*
 * Totals of launches that have ended. In the process that launches one thread at a time writes
 * them, by a lock that no thread waits for; readers go on from a copy.
 */
#include <string.h>
#include <time.h>
#include "lib/records/records.h"

#define FOLD_MAX	16	/* launches in one turn */
#define LOOK_MAX	8	/* other rings that are looked at in one turn */
#define FUNCTION_PROBES	8
#define SECOND		1000000000ull
#define OFFSET_NONE	INT64_MIN

/* ------------------------------------------------------------------- clock */

/* When the rate was first looked at. */
static struct {
	uint64_t counter, ns;
} base;

uint64_t records_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t count;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
#endif
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static void clock_set(struct control_clock *clock)
{
	clock->counter = records_counter();
	clock->ns = now_ns();
	clock->scale = ((__uint128_t)(clock->ns - base.ns) << 32) / (clock->counter - base.counter);
}

__attribute__((cold))
void records_clock_start(struct control_clock *clock)
{
	if (!base.ns) {
		base.counter = records_counter();
		base.ns = now_ns();
	}
	if (!clock)
		return;
	while (now_ns() - base.ns < 1000000)
		;
	clock_set(clock);
	clock->offset = clock->next_offset = OFFSET_NONE;
}

static inline uint64_t clock_ns(const struct control_clock *clock, uint64_t counter)
{
	int64_t since = counter - clock->counter;

	return clock->ns + (int64_t)((__int128)since * clock->scale >> 32);
}

/* A launch that ended at @end was seen at @ns: the GPU's clock is behind by no more than that. */
static inline void clock_learn(struct control_clock *clock, uint64_t ns, uint64_t end)
{
	int64_t offset = end - ns;

	if (__builtin_expect(ns - clock->ns > SECOND, 0)) {
		clock->offset = clock->next_offset;
		clock->next_offset = OFFSET_NONE;
		clock_set(clock);
	}
	if (offset > clock->next_offset)
		clock->next_offset = offset;
	if (offset > clock->offset)
		clock->offset = offset;
}

/* ------------------------------------------------------------------- union */

static void gap_drop(struct control_records *totals, unsigned int n)
{
	totals->nr_gaps--;
	memmove(&totals->gaps[n], &totals->gaps[n + 1],
		(totals->nr_gaps - n) * sizeof(totals->gaps[0]));
}

/* Before gap @n, by time. Of too many the oldest goes: what is in it counts as late from now on. */
static void gap_insert(struct control_records *totals, unsigned int n, uint64_t begin, uint64_t end)
{
	if (totals->nr_gaps == CONTROL_NR_GAPS) {
		totals->horizon = totals->gaps[0].end;
		gap_drop(totals, 0);
		if (!n)
			return;
		n--;
	}
	memmove(&totals->gaps[n + 1], &totals->gaps[n],
		(totals->nr_gaps - n) * sizeof(totals->gaps[0]));
	totals->gaps[n].begin = begin;
	totals->gaps[n].end = end;
	totals->nr_gaps++;
}

/* Fills what of the gaps is between @begin and @end. */
static __attribute__((noinline)) void gaps_fill(struct control_records *totals, uint64_t begin,
						uint64_t end)
{
	for (unsigned int n = totals->nr_gaps; n-- > 0 && end > begin; ) {
		uint64_t from = totals->gaps[n].begin, to = totals->gaps[n].end;

		if (to <= begin)
			return;
		if (from >= end)
			continue;
		totals->busy_ns += (to < end ? to : end) - (from > begin ? from : begin);
		if (to > end && from < begin) {
			totals->gaps[n].begin = end;
			gap_insert(totals, n, from, begin);
			return;
		}
		if (to > end)
			totals->gaps[n].begin = end;
		else if (from < begin)
			totals->gaps[n].end = begin;
		else
			gap_drop(totals, n);
	}
}

void records_add(struct control_records *totals, uint64_t begin, uint64_t end)
{
	uint64_t covered = totals->covered;

	if (totals->nr_gaps > CONTROL_NR_GAPS)
		return;
	if (__builtin_expect(begin >= covered, 1)) {
		if (begin > covered)
			gap_insert(totals, totals->nr_gaps, covered, begin);
		totals->busy_ns += end - begin;
		totals->covered = end;
		return;
	}
	if (begin < totals->horizon)
		totals->late_ns += (end < totals->horizon ? end : totals->horizon) - begin;
	if (end > covered) {
		totals->busy_ns += end - covered;
		totals->covered = end;
		end = covered;
	}
	gaps_fill(totals, begin, end);
}

/* ------------------------------------------------------------------- functions */

static __attribute__((noinline)) struct control_function *function_new(
	struct control_records *totals, uint64_t function, unsigned int at)
{
	struct control_function *least = NULL;

	for (unsigned int n = 0; n < FUNCTION_PROBES; n++) {
		struct control_function *f = &totals->functions[(at + n) % CONTROL_NR_FUNCTIONS];

		if (f->key == function)
			return f;
		if (!least || f->ns < least->ns)
			least = f;
		if (!f->key)
			break;
	}
	*least = (struct control_function){ .key = function };
	return least;
}

static inline void function_add(struct control_records *totals, uint64_t function, uint64_t ns)
{
	unsigned int at = (function >> 4) * 0x9e3779b97f4a7c15ull >> 32;
	struct control_function *f = &totals->functions[at % CONTROL_NR_FUNCTIONS];

	if (__builtin_expect(f->key != function, 0))
		f = function_new(totals, function, at);
	f->count++;
	f->ns += ns;
	if (ns > f->longest_ns)
		f->longest_ns = ns;
}

/* ------------------------------------------------------------------- launches */

static inline __attribute__((always_inline))
void fold_entry(struct control_records *totals, struct control_ring *ring,
		const struct records_entry *entry)
{
	uint64_t begin, end = entry->time;

	ring->folded++;
	if (__builtin_expect(!entry->submitted, 0)) {
		totals->untimed++;
		return;
	}
	begin = clock_ns(&totals->clock, entry->submitted) + totals->clock.offset;
	if (begin < ring->last_end)
		begin = ring->last_end;
	if (end > ring->last_end)
		ring->last_end = end;
	if (end > totals->last_end)
		totals->last_end = end;
	if (__builtin_expect(begin > end, 0))
		begin = end;
	totals->kernels_ns += end - begin;
	records_add(totals, begin, end);
	function_add(totals, entry->function, end - begin);
}

void records_fold_entry(struct control_records *totals, struct control_ring *ring,
			const struct records_entry *entry)
{
	/* No launch was seen yet: this one ended before now. */
	if (totals->clock.offset == OFFSET_NONE)
		totals->clock.offset = entry->time - clock_ns(&totals->clock, records_counter());
	fold_entry(totals, ring, entry);
}

/* Up to @max launches of @ring; @own: the calling thread launches on it. How many it were. */
static unsigned int fold_ring(struct control_records *totals, const struct records_ring *ring,
			      unsigned int max, bool own)
{
	uint64_t issued = atomic_load_explicit(&ring->issued, memory_order_acquire);
	struct control_ring *shown = ring->shown;
	uint64_t seq = shown->folded;
	struct records_entry entry = { 0 };
	unsigned int n;

	/* Entries that are in use again: they ended, and were not folded in time. */
	if (issued - seq > ring->mask + 1) {
		totals->untimed += issued - seq - ring->mask - 1;
		shown->folded = seq = issued - ring->mask - 1;
	}
	for (n = 0; n < max && seq != issued; n++) {
		const struct records_cell *cell = &ring->cells[++seq & ring->mask];
		const struct records_note *note = &ring->notes[seq & ring->mask];

		if (!records_has(cell, seq))
			break;
		entry.time = atomic_load_explicit(&cell->time, memory_order_relaxed);
		entry.submitted = atomic_load_explicit(&note->submitted, memory_order_relaxed);
		entry.function = atomic_load_explicit(&note->function, memory_order_relaxed);
		/* The thread of its stream may be writing over it. */
		if (!own) {
			atomic_thread_fence(memory_order_acquire);
			issued = atomic_load_explicit(&ring->issued, memory_order_relaxed);
			if (issued - seq >= ring->mask)
				entry.submitted = 0;
		}
		if (__builtin_expect(totals->clock.offset == OFFSET_NONE, 0))
			records_fold_entry(totals, shown, &entry);
		else
			fold_entry(totals, shown, &entry);
	}
	if (n && entry.submitted)
		clock_learn(&totals->clock, clock_ns(&totals->clock, records_counter()),
			    entry.time);
	return n;
}

/* Another ring with launches that are not folded: its stream may have no further one. */
static const struct records_ring *waiting_ring(struct records *records)
{
	for (unsigned int i = 0; i < LOOK_MAX; i++) {
		const struct records_ring *ring = 
			&records->rings[records->next_ring++ % CONTROL_NR_RINGS];

		if (atomic_load_explicit(&ring->issued, memory_order_relaxed) !=
		    ring->shown->folded && !ring->shown->lost)
			return ring;
	}
	return NULL;
}

void records_fold(struct records *records, struct records_ring *ring)
{
	struct control_records *totals = records->shown;
	const struct records_ring *other;
	unsigned int n;

	if (atomic_exchange_explicit(&records->folding, true, memory_order_acquire))
		return;
	__atomic_store_n(&totals->version, totals->version + 1, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
	n = fold_ring(totals, ring, FOLD_MAX, true);
	other = n < FOLD_MAX ? waiting_ring(records) : NULL;
	if (other && other != ring)
		fold_ring(totals, other, FOLD_MAX - n, false);
	__atomic_store_n(&totals->version, totals->version + 1, __ATOMIC_RELEASE);
	atomic_store_explicit(&records->folding, false, memory_order_release);
}
