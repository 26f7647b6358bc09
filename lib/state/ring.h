/* SPDX-License-Identifier: MIT */
/*
 * A set that can be replaced while launches read it. Writers of a ring need a lock. The ring in
 * limit.h is an exception. Readers need no lock.
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
	 * A reader may still be reading the slot's previous words. If the reader reads one of
	 * the new words, it must also see the new count. The same is true for the words of TPCs,
	 * which limit_get() reads without a lock.
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
 * Copies the set in force. *any is set to 0 if there is no set. Returns false if seven sets were
 * published during the copy, because the copy may then be a mix of two sets.
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
 * Like ring_try(), but tries again if the copy may be a mix of two sets. It tries at most 64
 * times, because a launch must not wait forever. The first try is outside the loop, so that a
 * usual launch needs no loop. Returns false if there is no set.
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
