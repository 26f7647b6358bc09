// SPDX-License-Identifier: MIT
/*
 * Adds launches that have ended to the totals: the clock, the union of intervals, functions, and
 * the choice of rings. See fold.c.
 */
#include <string.h>
#include "lib/records/totals.h"

#define FUNCTION_PROBES	8
#define LOOK_MAX	3	/* maximum number of other rings that one fold visits */
#define SECOND		1000000000ull

/* ------------------------------------------------------------------- clock */

/* The first sample for measuring the clock rate. */
static struct {
	uint64_t counter, ns;
} base;

static void clock_set(struct state_clock *clock)
{
	clock->counter = records_counter();
	clock->ns = clock_monotonic_ns();
	clock->scale = ((__uint128_t)(clock->ns - base.ns) << 32) / (clock->counter - base.counter);
}

__attribute__((cold))
void records_clock_start(struct state_clock *clock)
{
	if (!base.ns) {
		base.counter = records_counter();
		base.ns = clock_monotonic_ns();
	}
	if (!clock)
		return;
	while (clock_monotonic_ns() - base.ns < 1000000)
		;
	clock_set(clock);
	clock->offset = clock->next_offset = OFFSET_NONE;
}

/*
 * Computes a new rate from the whole time since the first sample. The new rate does not make the
 * clock's time jump, so an offset that was found with the old rate stays valid.
 */
__attribute__((noinline, cold)) static void clock_renew(struct state_clock *clock)
{
	const struct state_clock was = *clock;

	clock_set(clock);
	clock->next_offset = OFFSET_NONE;
	if (was.offset == OFFSET_NONE)
		return;
	/* If all ends of this period were seen late, the earlier bound is the better one. */
	clock->offset -= (clock->ns - was.ns) / RECORDS_DRIFT_INVERSE;
	if (clock->offset < was.next_offset)
		clock->offset = was.next_offset;
	clock->offset += records_clock_ns(&was, clock->counter) - clock->ns;
}

/*
 * Returns the time for which a rate may be used. The rate was measured in the time from the first
 * sample to @clock. If the rate is used for a second period of the same length, the error of the
 * computed times doubles.
 */
static inline uint64_t clock_window(const struct state_clock *clock)
{
	uint64_t measured = clock->ns - base.ns;

	return measured < SECOND ? measured : SECOND;
}

uint64_t totals_clock_check(struct state_clock *clock, uint64_t counter)
{
	/* The clock is in shared memory, so its scale can be 0. */
	if (!clock->scale || records_clock_ns(clock, counter) - clock->ns > clock_window(clock))
		clock_renew(clock);
	if (!clock->scale)
		return counter + 1000000;
	return clock->counter + (clock_window(clock) << 32) / clock->scale;
}

void records_clock_seen(struct state_clock *clock, uint64_t end)
{
	int64_t offset = end - records_clock_ns(clock, records_counter());

	if (offset > clock->offset)
		clock->offset = offset;
}

/* ------------------------------------------------------------------- union */

static void gap_drop(struct state_records *totals, unsigned int n)
{
	totals->nr_gaps--;
	memmove(&totals->gaps[n], &totals->gaps[n + 1],
		(totals->nr_gaps - n) * sizeof(totals->gaps[0]));
}

/*
 * Inserts a gap before gap @n. The gaps are sorted by time. If there are too many gaps, the
 * oldest gap is dropped. Launches in a dropped gap count as late.
 */
static void gap_insert(struct state_records *totals, unsigned int n, uint64_t begin, uint64_t end)
{
	if (totals->nr_gaps == STATE_NR_GAPS) {
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

/* Shortens the gaps so that no gap contains any time between @begin and @end. */
static __attribute__((noinline, cold))
void gaps_fill(struct state_records *totals, uint64_t begin, uint64_t end)
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

void records_add(struct state_records *totals, uint64_t begin, uint64_t end)
{
	uint64_t covered = totals->covered;

	if (totals->nr_gaps > STATE_NR_GAPS)
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

static __attribute__((noinline)) struct state_function *function_new(
	struct state_records *totals, uint64_t function, unsigned int at)
{
	struct state_function *least = NULL;

	for (unsigned int n = 0; n < FUNCTION_PROBES; n++) {
		struct state_function *f = &totals->functions[(at + n) % STATE_NR_FUNCTIONS];

		if (f->key == function)
			return f;
		if (!least || f->ns < least->ns)
			least = f;
		if (!f->key)
			break;
	}
	*least = (struct state_function){ .key = function };
	atomic_store_explicit(&records_unnamed, true, memory_order_relaxed);
	return least;
}

/* ------------------------------------------------------------------- launches */

static inline struct state_function *function_of(struct state_records *totals, uint64_t key)
{
	unsigned int at = (key >> 4) * 0x9e3779b97f4a7c15ull >> 32;
	struct state_function *f = &totals->functions[at % STATE_NR_FUNCTIONS];

	return __builtin_expect(f->key == key, 1) ? f : function_new(totals, key, at);
}

/*
 * Adds one launch to the totals. The argument @f is the function of an earlier launch, or NULL.
 * Returns the function of this launch. If the launch failed, returns @f.
 */
static __attribute__((noinline))
struct state_function *fold_entry(struct state_records *totals, struct state_ring *ring,
				  const struct records_entry *entry, struct state_function *f)
{
	uint64_t begin = submitted_ns(&totals->clock, entry->submitted), end = entry->time;

	if (__builtin_expect(!entry->submitted, 0)) {
		totals->untimed++;
		return f;
	}
	/* The times of one stream never decrease. */
	if (end < ring->last_end)
		end = ring->last_end;
	/* No launch ends before its submission. So the GPU's clock was set back. */
	if (__builtin_expect(begin > end, 0)) {
		totals->clock.offset -= begin - end;
		totals->clock.next_offset = totals->clock.offset;
		begin = end;
	}
	/* The launch waited for its predecessor. */
	if (begin < ring->last_end)
		begin = ring->last_end;
	if (!f || f->key != entry->function)
		f = function_of(totals, entry->function);
	if (end > begin)
		records_add(totals, begin, end);
	add_run(totals, ring, f, end - begin, end, 1, end - begin);
	return f;
}

void records_fold_entry(struct state_records *totals, struct state_ring *ring,
			const struct records_entry *entry)
{
	ring->folded++;
	fold_entry(totals, ring, entry, NULL);
}

__attribute__((noinline))
unsigned int records_fold_ring(struct state_records *totals, struct records_ring *ring,
			       unsigned int max, bool own)
{
	uint64_t issued = atomic_load_explicit(&ring->issued, memory_order_acquire), first;
	uint64_t seq = records_folded(ring), counter;
	struct state_function *f = ring->function;
	struct state_ring *shown = ring->shown;
	const uint64_t mask = ring->mask;
	unsigned int nr = 0;

	/*
	 * These launches have ended, but later launches reused their entries before the launches
	 * were folded.
	 */
	if (__builtin_expect(issued - seq > mask + 1, 0)) {
		totals->untimed += issued - seq - mask - 1;
		seq = issued - mask - 1;
	}
	if (max > issued - seq)
		max = issued - seq;
	/* Skip the launches of a stream that used this ring earlier. */
	first = atomic_load_explicit(&ring->first, memory_order_relaxed);
	if (__builtin_expect(atomic_load_explicit(&ring->fresh, memory_order_relaxed), 0)) {
		if (seq >= first) {
			shown->busy_ns = 0;
			atomic_store(&ring->fresh, false);
		} else if (max > first - seq)
			max = first - seq;
	}
	while (nr < max && records_has(&ring->cells[(seq + nr + 1) & mask], seq + nr + 1))
		nr++;
	/*
	 * Update the clock with the last launch before you compute the start of any launch. The
	 * first launch may have ended long ago.
	 */
	if (nr) {
		counter = records_counter();
		totals_clock_check(&totals->clock, counter);
		clock_see(&totals->clock, counter,
			  atomic_load_explicit(&ring->cells[(seq + nr) & mask].time,
					       memory_order_relaxed));
	}
	for (unsigned int i = 0; i < nr; i++) {
		const uint64_t at = ++seq & mask;
		struct records_entry entry = {
			atomic_load_explicit(&ring->cells[at].time, memory_order_relaxed),
			atomic_load_explicit(&ring->notes[at].submitted, memory_order_relaxed),
			atomic_load_explicit(&ring->notes[at].function, memory_order_relaxed),
		};

		/* The thread of the ring's stream may be overwriting this entry. */
		if (!own) {
			atomic_thread_fence(memory_order_acquire);
			issued = atomic_load_explicit(&ring->issued, memory_order_relaxed);
			if (issued - seq >= mask)
				entry.submitted = 0;
		}
		f = fold_entry(totals, shown, &entry, f);
	}
	ring->function = f;
	shown->folded = seq;
	atomic_store_explicit(&ring->room, seq + mask + 1, memory_order_relaxed);
	return nr;
}

/*
 * Finds a ring whose launches are not all folded yet. The stream of that ring may never launch
 * again, so its own thread may never fold these launches.
 */
static struct records_ring *waiting_ring(struct records *records)
{
	const uint64_t used = atomic_load_explicit(&records->used, memory_order_relaxed);

	for (unsigned int i = 0; i < LOOK_MAX; i++) {
		uint64_t later = used & ~0ull << records->next_ring;
		struct records_ring *ring = &records->rings[__builtin_ctzll(later ?: used)];

		records->next_ring = (ring->number + 1) % 64;
		if (atomic_load_explicit(&ring->issued, memory_order_relaxed) !=
		    records_folded(ring) && !ring->shown->lost)
			return ring;
	}
	return NULL;
}

void totals_fold(struct records *records, struct records_ring *ring, unsigned int max)
{
	struct records_ring *other;
	unsigned int nr;

	if (records->nr_running)
		records->fold_graphs(records);
	nr = records_fold_ring(records->shown, ring, max, true);
	other = nr < FOLD_MAX ? waiting_ring(records) : NULL;
	if (other && other != ring)
		records_fold_ring(records->shown, other, FOLD_MAX - nr, false);
	records_totals_unlock(records, records->shown);
}

/*
 * Returns a lower bound of the GPU's time at the moment when the CPU's counter had the value
 * @counter. If the GPU's time is unknown, or if another thread is writing the clock, returns 0.
 */
static uint64_t gpu_time(const struct state_records *totals, uint64_t counter)
{
	uint64_t before = __atomic_load_n(&totals->version, __ATOMIC_ACQUIRE), after;
	struct state_clock clock = totals->clock;

	atomic_thread_fence(memory_order_acquire);
	after = __atomic_load_n(&totals->version, __ATOMIC_RELAXED);
	if (before & 1 || before != after || clock.offset == OFFSET_NONE)
		return 0;
	return submitted_ns(&clock, counter);
}

__attribute__((cold))
bool records_ended(const struct records *records, const struct records_ring *ring, uint64_t seq,
		   uint64_t *ns)
{
	const struct records_cell *cell = &ring->cells[seq & ring->mask];
	const struct records_cell *before = &ring->cells[(seq - 1) & ring->mask];
	uint64_t submitted = ring->notes[seq & ring->mask].submitted, begin, last, end;

	*ns = 0;
	if (!records_reached(cell, seq))
		return __atomic_load_n(&ring->shown->lost, __ATOMIC_ACQUIRE);
	end = atomic_load_explicit(&cell->time, memory_order_relaxed);
	begin = gpu_time(records->shown, submitted);
	last = records_has(before, seq - 1) ? before->time : 0;
	if (!submitted || !begin || !records_has(cell, seq))
		return true;
	if (last > begin)
		begin = last;
	*ns = end > begin ? end - begin : 1;
	return true;
}
