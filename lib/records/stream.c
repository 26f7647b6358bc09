// SPDX-License-Identifier: MIT
/*
 * Assigns rings to streams, and counts launches that have no record. See records.h. A ring is
 * assigned when a kernel or a graph is launched on a stream for the first time.
 */
#include "lib/core/peek.h"
#include "lib/records/records.h"

#define PATIENCE	100000	/* maximum number of looks at the lock, which is held for 100 ns */

__attribute__((cold)) uint64_t records_waiting(const struct records_ring *ring)
{
	const struct state_ring *shown = ring->shown;
	const uint64_t after = __atomic_load_n(&shown->after, __ATOMIC_RELAXED);

	return after <= atomic_load_explicit(&ring->issued, memory_order_relaxed) &&
	       records_reached(&ring->cells[after & ring->mask], after) ?
	       0 : __atomic_load_n(&shown->waiting, __ATOMIC_RELAXED);
}

__attribute__((cold)) bool records_all_ended(const struct records_ring *ring)
{
	uint64_t seq = atomic_load_explicit(&ring->issued, memory_order_relaxed);
	uint64_t folded = records_folded(ring);

	for (uint64_t left = ring->mask + 1; left && seq != folded; left--, seq--)
		if (!records_has(&ring->cells[seq & ring->mask], seq))
			return false;
	return true;
}

/*
 * Returns a ring that no stream uses, or NULL if all 64 rings are in use. Prefers a ring without
 * unknown launches. If the ring has unknown launches, the end of a later launch on another stream
 * does not prove their end.
 */
static __attribute__((cold)) struct records_ring *ring_take(struct records *records)
{
	uint64_t waiting;

	for (int any = 0; any <= 1; any++)
		for (uint64_t left = atomic_load(&records->free); left; left &= left - 1) {
			struct records_ring *ring = &records->rings[__builtin_ctzll(left)];
			const uint64_t bit = left & -left;

			waiting = records_waiting(ring);
			if ((waiting && !any) || !records_all_ended(ring) ||
			    !(atomic_fetch_and(&records->free, ~bit) & bit))
				continue;
			__atomic_fetch_add(&records->shown->nowhere, waiting, __ATOMIC_RELAXED);
			__atomic_store_n(&ring->shown->unrecorded,
					 ring->shown->unrecorded - waiting, __ATOMIC_RELAXED);
			__atomic_store_n(&ring->shown->waiting, 0, __ATOMIC_RELEASE);
			return ring;
		}
	return NULL;
}

__attribute__((noinline, cold))
struct records_ring *records_claim_ring(struct records *records, uint64_t tmd)
{
	struct records_ring *ring;

	/*
	 * The launch callback must not wait for a suspended thread. In this case, two threads can
	 * assign rings at once, and a stream can get two rings.
	 */
	for (int i = 0; i < PATIENCE && atomic_exchange(&records->claiming, true); i++)
		;
	ring = records_ring_of(records, tmd) ?: ring_take(records);
	if (ring && atomic_load(&ring->tmd) != tmd) {
		ring->ctx = NULL;
		__atomic_store_n(&ring->ready, NULL, __ATOMIC_RELAXED);
		ring->unrecorded = ring->shown->unrecorded;
		atomic_store(&ring->first, atomic_load(&ring->issued));
		atomic_store(&ring->fresh, true);
		atomic_fetch_or(&records->used, 1ull << ring->number);
		atomic_store(&ring->tmd, tmd);
	}
	atomic_store(&records->claiming, false);
	return ring;
}

__attribute__((noinline))
struct records_ring *records_ring_of(struct records *records, uint64_t tmd)
{
	for (unsigned int n = 0; tmd && n < RECORDS_GRAPH_RING; n++)
		if (atomic_load_explicit(&records->rings[n].tmd, memory_order_acquire) == tmd)
			return &records->rings[n];
	return NULL;
}

__attribute__((cold))
bool records_ring_of_stream(struct records *records, const void *stream, uint64_t offset,
			    bool claim, struct records_ring **ring)
{
	uint64_t object, tmd;

	*ring = NULL;
	/* The child of a fork has no records. */
	if (!records->section)
		return true;
	if (!stream || !offset || !peek_word(stream, &object) ||
	    !peek_word((char *)(uintptr_t)object + offset, &tmd) || !tmd)
		return false;
	*ring = records_ring_of(records, tmd);
	if (!*ring && claim)
		*ring = records_claim_ring(records, tmd);
	return true;
}

__attribute__((noinline)) void records_unrecorded(struct records_ring *ring)
{
	struct state_ring *shown = ring->shown;
	uint64_t issued = atomic_load_explicit(&ring->issued, memory_order_relaxed);
	const uint64_t waiting = records_waiting(ring) + 1;

	/*
	 * The order of these two writes matters. Between the two writes, a reader counts the
	 * launches as unknown. In the other order, a reader could count the launches as ended.
	 */
	__atomic_store_n(&shown->after, issued + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->waiting, waiting, __ATOMIC_RELEASE);
	__atomic_fetch_add(&shown->unrecorded, 1, __ATOMIC_RELAXED);
}

