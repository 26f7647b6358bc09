// SPDX-License-Identifier: MIT
/*
 * Adds launches that have ended to the totals ("folds" them). In the process that launches, one
 * thread at a time writes the totals. This thread holds the lock of the totals. A thread that
 * cannot acquire this lock does not wait for it. A reader folds further launches into its own
 * copy of the totals.
 */
#include <string.h>
#include "lib/records/records.h"

#define FUNCTION_PROBES	8
#define SECOND		1000000000ull
#define OFFSET_NONE	INT64_MIN

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
	clock->offset = was.next_offset;
	if (was.next_offset != OFFSET_NONE)
		clock->offset += records_clock_ns(&was, clock->counter) - clock->ns;
}

/*
 * Returns how long a rate may be used. The rate was measured in the time from the first sample
 * to @clock. If the rate is used for a second period of the same length, the error of the
 * computed times doubles.
 */
static inline uint64_t clock_window(const struct state_clock *clock)
{
	uint64_t measured = clock->ns - base.ns;

	return measured < SECOND ? measured : SECOND;
}

/*
 * A launch ended at GPU time @end, and its end was seen when the CPU counter was @counter. The
 * difference between these two times is the maximum by which the GPU's clock can be behind the
 * CPU's clock.
 */
static inline void clock_learn(struct state_clock *clock, uint64_t counter, uint64_t end)
{
	int64_t offset;

	if (__builtin_expect(records_clock_ns(clock, counter) - clock->ns > clock_window(clock), 0))
		clock_renew(clock);
	offset = end - records_clock_ns(clock, counter);
	if (offset > clock->next_offset)
		clock->next_offset = offset;
	if (offset > clock->offset)
		clock->offset = offset;
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
static __attribute__((noinline)) void gaps_fill(struct state_records *totals, uint64_t begin,
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

/*
 * Consecutive launches of one ring. If there is no gap between launches, their time is added to
 * the totals in one step.
 */
struct batch {
	struct state_records *totals;
	uint64_t last_end;		/* end of the latest launch of the ring */
	uint64_t begin;			/* begin of the latest series of launches without gaps;
					 * this series ends at last_end */
	uint64_t kernels_ns;		/* value of kernels_ns in the totals before the batch */
	struct state_function *function;	/* function of the last launch; NULL: no
						 * launch yet */
	uint64_t clock_ns, clock_counter, clock_scale;	/* the clock, including the offset */
};

static inline void batch_begin(struct batch *batch, struct state_records *totals,
			       const struct state_ring *ring)
{
	const struct state_clock *clock = &totals->clock;

	*batch = (struct batch){
		.totals = totals, .last_end = ring->last_end, .begin = ring->last_end,
		.kernels_ns = totals->kernels_ns,
		.clock_ns = clock->ns + clock->offset, .clock_counter = clock->counter,
		.clock_scale = clock->scale,
	};
}

static inline void batch_flush(struct batch *batch)
{
	if (batch->last_end > batch->begin)
		records_add(batch->totals, batch->begin, batch->last_end);
}

static inline __attribute__((always_inline))
void batch_add(struct batch *batch, uint64_t end, uint64_t submitted, uint64_t key)
{
	int64_t since = submitted - batch->clock_counter;
	uint64_t begin = batch->clock_ns + (int64_t)((__int128)since * batch->clock_scale >> 32);
	struct state_function *f = batch->function;
	uint64_t ns;

	/* The launch waited for its predecessor. The times of one stream never decrease. */
	if (begin <= batch->last_end) {
		begin = batch->last_end;
	} else {
		batch_flush(batch);
		batch->begin = begin < end ? begin : end;
		if (batch->begin < batch->last_end)
			batch->begin = batch->last_end;
		begin = batch->begin;
	}
	if (__builtin_expect(end < begin, 0))
		end = begin;
	batch->last_end = end;
	ns = end - begin;
	if (__builtin_expect(!f || f->key != key, 0)) {
		unsigned int at = (key >> 4) * 0x9e3779b97f4a7c15ull >> 32;

		f = &batch->totals->functions[at % STATE_NR_FUNCTIONS];
		if (f->key != key)
			f = function_new(batch->totals, key, at);
		batch->function = f;
	}
	batch->totals->kernels_ns += ns;
	f->count++;
	f->ns += ns;
	if (ns > f->longest_ns)
		f->longest_ns = ns;
}

static inline void batch_end(struct batch *batch, struct state_ring *ring)
{
	batch_flush(batch);
	ring->last_end = batch->last_end;
	ring->busy_ns += batch->totals->kernels_ns - batch->kernels_ns;
	if (batch->last_end > batch->totals->last_end)
		batch->totals->last_end = batch->last_end;
}

void records_fold_entry(struct state_records *totals, struct state_ring *ring,
			const struct records_entry *entry)
{
	struct batch batch;

	ring->folded++;
	if (!entry->submitted) {
		totals->untimed++;
		return;
	}
	batch_begin(&batch, totals, ring);
	batch_add(&batch, entry->time, entry->submitted, entry->function);
	batch_end(&batch, ring);
}

__attribute__((noinline))
unsigned int records_fold_ring(struct state_records *totals, const struct records_ring *ring,
			       unsigned int max, bool own)
{
	uint64_t issued = atomic_load_explicit(&ring->issued, memory_order_acquire), seq, last;
	struct state_ring *shown = ring->shown;
	const uint64_t mask = ring->mask;
	uint64_t end, submitted, function, untimed = 0, first;
	struct batch batch;

	seq = shown->folded;
	/*
	 * These launches have ended. They were not folded before later launches reused their
	 * entries.
	 */
	if (__builtin_expect(issued - seq > mask + 1, 0)) {
		untimed = issued - seq - mask - 1;
		seq = issued - mask - 1;
	}
	last = issued - seq > max ? seq + max : issued;
	/* Skip the launches of a stream that used this ring earlier. */
	first = atomic_load_explicit(&ring->first, memory_order_relaxed);
	if (__builtin_expect(seq <= first, 0)) {
		if (seq < first && last > first)
			last = first;
		shown->busy_ns = 0;
	}
	for (max = 0; seq + max != last; max++)
		if (!records_has(&ring->cells[(seq + max + 1) & mask], seq + max + 1))
			break;
	last = seq + max;
	/*
	 * Before any begin is computed, update the clock with the last launch, because the first
	 * launch may have ended long ago.
	 */
	if (max)
		clock_learn(&totals->clock, records_counter(),
			    atomic_load_explicit(&ring->cells[last & mask].time,
						 memory_order_relaxed));
	batch_begin(&batch, totals, shown);
	for (; seq != last; seq++) {
		const uint64_t at = (seq + 1) & mask;

		end = atomic_load_explicit(&ring->cells[at].time, memory_order_relaxed);
		submitted = atomic_load_explicit(&ring->notes[at].submitted, memory_order_relaxed);
		function = atomic_load_explicit(&ring->notes[at].function, memory_order_relaxed);
		/* The thread of the ring's stream may be overwriting this entry. */
		if (!own) {
			atomic_thread_fence(memory_order_acquire);
			issued = atomic_load_explicit(&ring->issued, memory_order_relaxed);
			if (issued - (seq + 1) >= mask)
				submitted = 0;
		}
		if (__builtin_expect(!submitted, 0)) {
			untimed++;
			continue;
		}
		batch_add(&batch, end, submitted, function);
	}
	batch_end(&batch, shown);
	shown->folded = seq;
	totals->untimed += untimed;
	return max;
}

/*
 * Returns a lower bound of the GPU's time at which the CPU's counter had the value @counter.
 * Returns 0 if the GPU's time is unknown or another thread is writing the clock.
 */
static uint64_t gpu_time(const struct state_records *totals, uint64_t counter)
{
	uint64_t before = __atomic_load_n(&totals->version, __ATOMIC_ACQUIRE), after;
	struct state_clock clock = totals->clock;

	atomic_thread_fence(memory_order_acquire);
	after = __atomic_load_n(&totals->version, __ATOMIC_RELAXED);
	if (before & 1 || before != after || clock.offset == OFFSET_NONE)
		return 0;
	return records_clock_ns(&clock, counter) + clock.offset;
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
