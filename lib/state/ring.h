/* SPDX-License-Identifier: MIT */
/*
 * Declares a ring, which stores a set. A writer can replace the set while launches read it. Readers
 * need no lock. Writers need a lock, except for the ring in limit.h.
 */
#ifndef GPUPART_LIB_STATE_RING_H
#define GPUPART_LIB_STATE_RING_H

#include <stdatomic.h>
#include "lib/tmd/tmd.h"

/*
 * A ring has eight slots and a count of publications. The count modulo 8 is the number of the
 * slot in force. If the count advances by seven or more while a reader copies a slot, the reader
 * must copy again. If all bytes are 0, there is no set.
 */
#define RING_SLOTS 8
#define RING_WORDS 4

struct ring_slot {
	_Atomic uint64_t tmd_bits[GPUPART_MAX_TMD_BITS / 64];
	_Atomic uint64_t tpcs[GPUPART_TPCSET_WORDS];
};

_Static_assert(RING_WORDS * 64 == GPUPART_MAX_TMD_BITS && RING_WORDS == GPUPART_TPCSET_WORDS,
	       "both have the same number of words");

struct ring {
	_Atomic uint64_t published;
	struct ring_slot slot[RING_SLOTS];
};

_Static_assert(offsetof(struct ring, slot) == sizeof(uint64_t),
	       "ring_read() expects the slots at this offset");

/*
 * Writes @nr_words words of @allow and @set into a slot that is not in force. A NULL @set is empty.
 */
static inline __attribute__((always_inline))
void ring_slot_write(struct ring_slot *slot, const struct tmd_allow *allow,
		     const struct gpupart_tpcset *set, unsigned int nr_words)
{
	/*
	 * A reader may still be reading the slot's previous words. If the reader reads a new word,
	 * it must also see the new count. The same is true for the words of TPCs, because
	 * limit_get() reads them without a lock.
	 */
	for (unsigned int i = 0; i < nr_words; i++)
		atomic_store_explicit(&slot->tmd_bits[i], allow->tmd_bits[i], memory_order_release);
	for (unsigned int i = 0; i < nr_words; i++)
		atomic_store_explicit(&slot->tpcs[i], set ? set->allowed[i] : 0,
				      memory_order_release);
}

static inline void ring_publish(struct ring *ring, const struct tmd_allow *allow,
				const struct gpupart_tpcset *set)
{
	uint64_t next = atomic_load_explicit(&ring->published, memory_order_relaxed) + 1;

	ring_slot_write(&ring->slot[next % RING_SLOTS], allow, set, RING_WORDS);
	atomic_store_explicit(&ring->published, next, memory_order_release);
}

/*
 * Copies the set in force. If there is no set, the function sets *any to 0. If seven sets were
 * published during the copy, the copy may be a mix of two sets, and the function returns false.
 */
static inline __attribute__((always_inline))
bool ring_try(const _Atomic uint64_t *published, unsigned int nr_slots, unsigned int nr_words,
	      struct tmd_allow *allow, uint64_t *any)
{
	/* The slots follow directly after the count. */
	const struct ring_slot *slots = (const struct ring_slot *)(published + 1);
	uint64_t before, after;

	*any = 0;
	before = atomic_load_explicit(published, memory_order_acquire);
	if (!before)
		return true;
	for (unsigned int i = 0; i < nr_words; i++) {
		allow->tmd_bits[i] = atomic_load_explicit(&slots[before % nr_slots].tmd_bits[i],
							  memory_order_acquire);
		*any |= allow->tmd_bits[i];
	}
	/*
	 * If a word belongs to a later publication, this load returns at least the count of that
	 * publication.
	 */
	after = atomic_load_explicit(published, memory_order_relaxed);
	return after - before < RING_SLOTS - 1;
}

/*
 * Does the same as ring_try(). If the copy may be a mix of two sets, tries again. The function
 * tries at most 64 times, because a launch must not wait forever. The first try is outside the
 * loop, so a usual launch needs no loop. If there is no set, returns false.
 */
static inline __attribute__((always_inline))
bool ring_read(const _Atomic uint64_t *published, unsigned int nr_slots, unsigned int nr_words,
	       struct tmd_allow *allow)
{
	uint64_t any;

	if (__builtin_expect(!ring_try(published, nr_slots, nr_words, allow, &any), 0))
		for (int tries = 1; tries < 64; tries++)
			if (ring_try(published, nr_slots, nr_words, allow, &any))
				break;
	return any;
}

#endif
