// SPDX-License-Identifier: MIT
/* Assigns records to launches in the launch callback. See records.h. */
#include <string.h>
#include "lib/records/records.h"

/*
 * After this number of new launches in a ring, the library tries to fold launches. The number is
 * a power of two.
 */
#define FOLD_EVERY	8

/* The calling thread's last launch. It is needed if the launch fails after its callback. */
_Thread_local const struct records_ring *records_last_ring;
static _Thread_local uint64_t last_seq;

/*
 * The code writes this member twice to detect two launches that are in the callback at the same
 * time. The compiler must not remove the first write.
 */
static inline void ring_ready(struct records_ring *ring, const void *ctx)
{
	__atomic_store_n(&ring->ready, ctx, __ATOMIC_RELAXED);
}

/*
 * Prepares a claimed ring for the first kernel on its stream. If the context has no records,
 * returns NULL.
 */
static __attribute__((noinline, cold))
struct records_ring *ring_prepare(const struct records *records, struct records_ring *ring,
				  const struct launch_params *params, unsigned int context)
{
	if (context == RECORDS_MAX_CONTEXTS)
		return NULL;
	ring->context = context;
	ring->address = records->contexts[context].address +
			records_first(ring->number) * sizeof(struct records_cell);
	ring->target = tmd_release_target(records->place[0], params->tmd, ring->notes,
					  ring->address,
					  (ring->mask + 1) * sizeof(struct records_cell));
	ring->ctx = params->ctx;
	ring_ready(ring, params->ctx);
	return ring;
}

void records_stream_gone(struct records *records, uint64_t tmd)
{
	struct records_ring *ring;

	/* If a kernel and a graph are launched first at the same time, the stream has two rings. */
	while ((ring = records_ring_of(records, tmd)))
		if (atomic_exchange(&ring->tmd, 0) == tmd && !atomic_load(&ring->broken))
			atomic_fetch_or(&records->free, 1ull << ring->number);
}

__attribute__((cold)) void records_context_gone(struct records *records, const void *ctx)
{
	unsigned int place = records_context_of(records, ctx), others = 0;

	if (place == RECORDS_MAX_CONTEXTS)
		return;
	for (unsigned int n = 0; n < RECORDS_MAX_CONTEXTS; n++)
		others += n != place && atomic_load(&records->contexts[n].ctx);
	for (unsigned int i = 0; i < RECORDS_GRAPH_RING; i++) {
		struct records_ring *ring = &records->rings[i];
		uint64_t bit = 1ull << i;

		/* A ring without a context belongs to the last context, or to an unknown one. */
		if (ring->ctx != ctx && (ring->ctx || others))
			continue;
		records_stream_gone(records, atomic_load(&ring->tmd));
		if (ring->ctx && atomic_load(&records->free) & bit &&
		    (!records_all_ended(ring) || records_waiting(ring)) &&
		    atomic_fetch_and(&records->free, ~bit) & bit)
			__atomic_store_n(&ring->shown->lost, 1, __ATOMIC_RELEASE);
	}
	records_graphs_gone(records, place, false);
	atomic_store(&records->contexts[place].ctx, NULL);
}

/* ------------------------------------------------------------------- launches */

void records_lost(struct records *records)
{
	if (records)
		__atomic_fetch_add(&records->shown->nowhere, 1, __ATOMIC_RELAXED);
}

/*
 * Counts a launch on a broken ring. Later launches of the stream have no record, so the launch
 * stays unknown until its context is destroyed. Several threads may call this function at once.
 */
static __attribute__((noinline, cold)) void unrecorded_broken(struct state_ring *shown)
{
	__atomic_store_n(&shown->after, UINT64_MAX, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shown->waiting, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&shown->unrecorded, 1, __ATOMIC_RELAXED);
}

static inline __attribute__((always_inline))
void launch_done(const struct launch_params *params, struct state_lane *lane,
		 struct records_ring *ring, struct records_note *note, uint64_t seq,
		 const void *ctx)
{
	atomic_store_explicit(&note->submitted, records_counter(), memory_order_relaxed);
	atomic_store_explicit(&note->function, (uintptr_t)params->function, memory_order_relaxed);
	atomic_store_explicit(&ring->issued, seq, memory_order_relaxed);
	/* If a reader sees the launch's number, it also sees the launch's note. */
	__atomic_store_n(&ring->shown->issued, seq, __ATOMIC_RELEASE);
	ring_ready(ring, ctx);
	state_launch_end(lane);
	if (__builtin_expect(seq % FOLD_EVERY == 0, 0))
		records_fold(ring);
}

/*
 * Handles three cases. The launch's entry may not be free, the usual slot of the TMD cannot be
 * used, or the ring is broken.
 */
static __attribute__((noinline, cold))
void launch_slow(const struct launch_params *params, struct state_lane *lane,
		 struct records_ring *ring)
{
	uint64_t seq = atomic_load(&ring->issued) + 1, at = seq & ring->mask;
	const uint64_t address = ring->address + at * sizeof(struct records_cell);

	if (atomic_load(&ring->broken)) {
		unrecorded_broken(ring->shown);
		state_launch_end(lane);
		return;
	}
	/* The previous launch that used this entry has ended. */
	if (records_has(&ring->cells[at], seq - 1 - ring->mask) &&
	    (tmd_release_put(ring->records->place[0], params->tmd, address, seq) ||
	     tmd_release_put(ring->records->place[1], params->tmd, address, seq))) {
		launch_done(params, lane, ring, &ring->notes[at], seq, params->ctx);
		return;
	}
	records_unrecorded(ring);
	ring_ready(ring, params->ctx);
	state_launch_end(lane);
	/*
	 * A full ring has launches to fold, even if their number is not a multiple of
	 * FOLD_EVERY.
	 */
	records_fold(ring);
}

static inline struct records_ring *_Atomic *hint_of(struct records *records, uint64_t tmd)
{
	return &records->hints[(uint32_t)tmd * 0x9e3779b1u >> (32 - RECORDS_HINT_BITS)];
}

/*
 * Handles the remaining launches. The stream has no ring, the ring is in use, or the hint for the
 * stream was wrong.
 */
static __attribute__((noinline, cold))
void launch_rare(const struct launch_params *params, struct state_lane *lane,
		 struct records *records)
{
	const uint64_t tmd = (uintptr_t)params->tmd;
	const unsigned int context = records_context_of(records, params->ctx);
	struct records_ring *ring = records_ring_of(records, tmd);

	/* The driver did not report that the context was destroyed. */
	if (ring && ring->ctx && ring->ctx != params->ctx) {
		records_context_gone(records, ring->ctx);
		ring = NULL;
	}
	if (!ring && context < RECORDS_MAX_CONTEXTS)
		ring = records_claim_ring(records, tmd);
	if (ring && !ring->ctx)
		ring = ring_prepare(records, ring, params, context);
	/*
	 * Two launches of one stream are in the callback at the same time. Then the library's
	 * assumptions about this driver are wrong. The other launch may still set @ready. The
	 * closed target then sends later launches to launch_slow().
	 */
	if (ring && !ring->ready) {
		atomic_store(&ring->broken, true);
		tmd_release_target_close(&ring->target);
		__atomic_store_n(&ring->shown->lost, 1, __ATOMIC_RELEASE);
	}
	if (!ring) {
		records_lost(records);
		state_launch_end(lane);
		return;
	}
	atomic_store_explicit(hint_of(records, tmd), ring, memory_order_relaxed);
	ring_ready(ring, NULL);
	launch_slow(params, lane, ring);
}

void records_launch(const struct launch_params *params, struct state_lane *lane,
		    struct records *records)
{
	const uint64_t tmd = (uintptr_t)params->tmd;
	const void *ctx = params->ctx;
	struct records_ring *ring = atomic_load_explicit(hint_of(records, tmd),
							 memory_order_relaxed);
	struct records_note *note;
	uint64_t seq;

	if (__builtin_expect(atomic_load_explicit(&ring->tmd, memory_order_acquire) != tmd, 0) ||
	    __builtin_expect(ring->ready != ctx, 0)) {
		launch_rare(params, lane, records);
		return;
	}
	ring_ready(ring, NULL);
	seq = atomic_load_explicit(&ring->issued, memory_order_relaxed) + 1;
	note = &ring->notes[seq & ring->mask];
	if (__builtin_expect(seq <= atomic_load_explicit(&ring->room, memory_order_relaxed), 1) &&
	    __builtin_expect(tmd_release_aim(&ring->target, note, seq), 1))
		launch_done(params, lane, ring, note, seq, ctx);
	else
		launch_slow(params, lane, ring);
}

__attribute__((cold))
void records_launch_in_call(const struct launch_params *params, struct state_lane *lane,
			    struct records *records)
{
	const uint64_t tmd = (uintptr_t)params->tmd;
	const struct records_ring *ring = records_ring_of(records, tmd), *old = ring;
	const uint64_t before = ring ? atomic_load(&ring->issued) : 0;

	records_launch(params, lane, records);
	ring = records_ring_of(records, tmd);
	last_seq = ring ? atomic_load(&ring->issued) : 0;
	/* If the ring is new, its earlier launches are those of another stream. */
	records_last_ring = ring && (ring != old || last_seq != before) &&
			    last_seq != atomic_load(&ring->first) ? ring : NULL;
}

const struct records_ring *records_last(uint64_t *seq)
{
	*seq = last_seq;
	return records_last_ring;
}

void records_launch_ends(int result)
{
	const struct records_ring *ring = records_last_ring;
	const uint64_t seq = last_seq;

	records_last_ring = NULL;
	if (!result || !ring || atomic_load(&ring->issued) != seq || !records_not_made(result) ||
	    records_has(&ring->cells[seq & ring->mask], seq))
		return;
	atomic_store(&ring->notes[seq & ring->mask].submitted, 0);
	atomic_store(&ring->cells[seq & ring->mask].payload, seq);
}
