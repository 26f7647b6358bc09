// SPDX-License-Identifier: MIT
/* Gives launches their records, in the launch callback: see records.h. */
#include <string.h>
#include "lib/driver/cuda.h"
#include "lib/records/records.h"

/* A fold is tried at each of so many launches of a ring: a power of two. */
#define FOLD_EVERY	8

/* The calling thread's last launch: for one that fails after its callback. */
static _Thread_local struct {
	struct records_ring *ring;
	uint64_t seq;
} last;

static inline bool has_ended(const struct records_ring *ring, uint64_t seq)
{
	return records_has(&ring->cells[seq & ring->mask], seq);
}

bool records_ring_drained(const struct records_ring *ring)
{
	uint64_t seq = atomic_load_explicit(&ring->issued, memory_order_relaxed);
	uint64_t folded = __atomic_load_n(&ring->shown->folded, __ATOMIC_RELAXED);

	for (uint64_t left = ring->mask + 1; left && seq != folded; left--, seq--)
		if (!has_ended(ring, seq))
			return false;
	return true;
}

/* ------------------------------------------------------------------- claiming */

/* A ring that no stream has; NULL: all 64 are in use. */
static struct records_ring *ring_take(struct records *records)
{
	uint64_t free = atomic_load(&records->free), leaving;

	while (free)
		if (atomic_compare_exchange_weak(&records->free, &free, free & (free - 1)))
			return &records->rings[__builtin_ctzll(free)];
	leaving = atomic_load(&records->leaving);
	for (; leaving; leaving &= leaving - 1) {
		struct records_ring *ring = &records->rings[__builtin_ctzll(leaving)];
		uint64_t bit = leaving & -leaving;

		if (records_ring_drained(ring) &&
		    atomic_fetch_and(&records->leaving, ~bit) & bit)
			return ring;
	}
	return NULL;
}

static inline struct records_slot *slot_at(struct records *records, uint64_t tmd, unsigned int n)
{
	unsigned int at = ((tmd >> 4) * 0x9e3779b97f4a7c15ull >> 32) + n;

	return &records->slots[at % RECORDS_NR_SLOTS];
}

/* A place in the table for @tmd, which is in none; its key is not set yet. */
static struct records_slot *slot_take(struct records *records, uint64_t tmd)
{
	for (unsigned int n = 0; n < RECORDS_MAX_PROBES; n++) {
		struct records_slot *slot = slot_at(records, tmd, n);
		uint64_t key = atomic_load(&slot->key);

		if (key <= RECORDS_KEY_GONE &&
		    atomic_compare_exchange_strong(&slot->key, &key, RECORDS_KEY_TAKEN))
			return slot;
	}
	return NULL;
}

/* The first launch on a stream in @ctx; NULL: it gets no ring. */
static __attribute__((noinline)) struct records_ring *ring_claim(struct records *records,
								 uint64_t tmd, const void *ctx)
{
	struct records_slot *slot;
	struct records_ring *ring;
	unsigned int n = 0;

	while (n < RECORDS_MAX_CONTEXTS && atomic_load(&records->contexts[n].ctx) != ctx)
		n++;
	slot = ctx && n < RECORDS_MAX_CONTEXTS ? slot_take(records, tmd) : NULL;
	if (!slot)
		return NULL;
	ring = ring_take(records);
	if (!ring) {
		atomic_store(&slot->key, RECORDS_KEY_GONE);
		return NULL;
	}
	ring->ctx = ctx;
	ring->context = n;
	ring->address = records->contexts[n].address +
			records_first(ring->number) * sizeof(struct records_cell);
	atomic_store(&slot->ring, ring);
	atomic_store(&slot->key, tmd);
	return ring;
}

static inline struct records_slot *slot_find(struct records *records, uint64_t tmd)
{
	for (unsigned int n = 0; n < RECORDS_MAX_PROBES; n++) {
		struct records_slot *slot = slot_at(records, tmd, n);
		uint64_t key = atomic_load_explicit(&slot->key, memory_order_acquire);

		if (__builtin_expect(key == tmd, 1))
			return slot;
		if (key == RECORDS_KEY_NEVER)
			break;
	}
	return NULL;
}

void records_stream_gone(struct records *records, uint64_t tmd)
{
	struct records_slot *slot = tmd > RECORDS_KEY_TAKEN ? slot_find(records, tmd) : NULL;
	struct records_ring *ring = slot ? atomic_load(&slot->ring) : NULL;

	if (!slot || !atomic_compare_exchange_strong(&slot->key, &tmd, RECORDS_KEY_GONE))
		return;
	if (!ring->broken)
		atomic_fetch_or(&records->leaving, 1ull << ring->number);
}

/* ------------------------------------------------------------------- launches */

static __attribute__((noinline)) void unrecorded_nowhere(struct records *records)
{
	__atomic_fetch_add(&records->shown->nowhere, 1, __ATOMIC_RELAXED);
}

/* By the order of its stream it has ended when the next launch that has a record has. */
static __attribute__((noinline)) void unrecorded(struct records_ring *ring)
{
	struct control_ring *shown = ring->shown;
	uint64_t issued = atomic_load_explicit(&ring->issued, memory_order_relaxed);

	if (shown->after <= issued &&
	    records_reached(&ring->cells[shown->after & ring->mask], shown->after))
		__atomic_store_n(&shown->waiting, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->after, issued + 1, __ATOMIC_RELAXED);
	control_count_on(&shown->waiting);
	control_count_on(&shown->unrecorded);
	last.ring = NULL;
}

/* Two launches of one stream at once: what we know of this driver does not hold. */
static __attribute__((noinline)) void broken(struct records *records, struct records_ring *ring)
{
	ring->broken = true;
	__atomic_store_n(&ring->shown->lost, 1, __ATOMIC_RELEASE);
	unrecorded_nowhere(records);
}

void records_launch(struct records *records, const struct launch_params *params)
{
	const uint64_t tmd = (uintptr_t)params->tmd;
	struct records_slot *slot = slot_find(records, tmd);
	struct records_ring *ring = slot ? atomic_load_explicit(&slot->ring,
								memory_order_relaxed) : NULL;
	uint64_t seq, at, address;

	if (__builtin_expect(!ring || ring->ctx != params->ctx, 0)) {
		if (ring)
			records_context_gone(records, ring->ctx);
		ring = ring_claim(records, tmd, params->ctx);
		if (!ring) {
			unrecorded_nowhere(records);
			return;
		}
	}
	if (__builtin_expect(atomic_load_explicit(&ring->busy, memory_order_relaxed) ||
			     ring->broken, 0)) {
		broken(records, ring);
		return;
	}
	atomic_store_explicit(&ring->busy, true, memory_order_relaxed);
	seq = atomic_load_explicit(&ring->issued, memory_order_relaxed) + 1;
	at = seq & ring->mask;
	address = ring->address + at * sizeof(struct records_cell);
	if (__builtin_expect(!has_ended(ring, seq - 1 - ring->mask), 0) ||
	    (__builtin_expect(!tmd_release_put(records->place[0], params->tmd, address, seq), 0) &&
	     !tmd_release_put(records->place[1], params->tmd, address, seq))) {
		unrecorded(ring);
	} else {
		struct records_note *note = &ring->notes[at];

		atomic_store_explicit(&note->submitted, records_counter(), memory_order_relaxed);
		atomic_store_explicit(&note->function, (uintptr_t)params->function,
				      memory_order_relaxed);
		atomic_store_explicit(&ring->issued, seq, memory_order_relaxed);
		/* Who sees it sees the note. */
		__atomic_store_n(&ring->shown->issued, seq, __ATOMIC_RELEASE);
		last.ring = ring;
		last.seq = seq;
	}
	atomic_store_explicit(&ring->busy, false, memory_order_relaxed);
	if (__builtin_expect(seq % FOLD_EVERY == 0, 0))
		records_fold(records, ring);
}

/* Errors that say of the launch itself that it was not made; by others the context is lost. */
static bool was_not_made(int result)
{
	return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_OUT_OF_MEMORY ||
	       result == CUDA_ERROR_LAUNCH_RESOURCES || result == CUDA_ERROR_NOT_SUPPORTED ||
	       result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_PERMITTED;
}

void records_launch_ends(int result)
{
	struct records_ring *ring = last.ring;
	const uint64_t seq = last.seq;

	last.ring = NULL;
	if (!result || !ring || atomic_load(&ring->issued) != seq || !was_not_made(result) ||
	    has_ended(ring, seq))
		return;
	atomic_store(&ring->notes[seq & ring->mask].submitted, 0);
	atomic_store(&ring->cells[seq & ring->mask].payload, seq);
}
