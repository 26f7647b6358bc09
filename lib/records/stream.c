// SPDX-License-Identifier: MIT
/* Finds the ring of a stream, and counts its launches that have no record. See records.h. */
#include "lib/core/peek.h"
#include "lib/records/records.h"

__attribute__((noinline))
struct records_ring *records_ring_of(struct records *records, uint64_t tmd)
{
	for (unsigned int n = 0; tmd && n < RECORDS_GRAPH_RING; n++)
		if (atomic_load_explicit(&records->rings[n].tmd, memory_order_acquire) == tmd)
			return &records->rings[n];
	return NULL;
}

bool records_find_ring(struct records *records, const void *stream, uint64_t offset,
		       struct records_ring **ring)
{
	uint64_t object, tmd;

	*ring = NULL;
	if (!peek_word(stream, &object) || !peek_word((char *)(uintptr_t)object + offset, &tmd))
		return false;
	*ring = records_ring_of(records, tmd);
	return true;
}

uint64_t records_waiting(const struct records_ring *ring)
{
	const struct state_ring *shown = ring->shown;
	const uint64_t after = __atomic_load_n(&shown->after, __ATOMIC_RELAXED);

	return after <= atomic_load_explicit(&ring->issued, memory_order_relaxed) &&
	       records_reached(&ring->cells[after & ring->mask], after) ?
	       0 : __atomic_load_n(&shown->waiting, __ATOMIC_RELAXED);
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
	state_count_on(&shown->unrecorded);
}

void records_graph_unknown(struct records *records, const void *stream, uint64_t offset)
{
	struct records_ring *ring;

	if (offset && records_find_ring(records, stream, offset, &ring) && ring)
		records_unrecorded(ring);
	else
		__atomic_fetch_add(&records->shown->graphs, 1, __ATOMIC_RELEASE);
}
