/* SPDX-License-Identifier: MIT */
/*
 * A set that is replaced while launches read it. Writers of one ring take turns, unless said
 * otherwise (limit.h); readers take no lock.
 */
#ifndef GPUPART_LIB_STATE_RING_H
#define GPUPART_LIB_STATE_RING_H

#include <stdatomic.h>
#include "lib/tmd/tmd.h"

/*
 * Eight slots, and a count of publications whose remainder is the slot in force. A
 * reader that finds the count moved by seven or more while it copied has to copy again.
 * All zero means: none.
 */
#define RING_SLOTS 8
#define RING_WORDS 4

struct ring_slot {
	_Atomic uint64_t tmd_bits[GPUPART_MAX_TMD_BITS / 64];
	_Atomic uint64_t tpcs[GPUPART_TPCSET_WORDS];
};

_Static_assert(RING_WORDS * 64 == GPUPART_MAX_TMD_BITS && RING_WORDS == GPUPART_TPCSET_WORDS,
	       "as many words of either");

struct ring {
	_Atomic uint64_t published;
	struct ring_slot slot[RING_SLOTS];
};

_Static_assert(offsetof(struct ring, slot) == sizeof(uint64_t), "ring_read() finds the slots");

/* Fills a slot that is not in force, so many words of each. @set NULL: none. */
static inline __attribute__((always_inline))
void ring_slot_write(struct ring_slot *slot, const struct tmd_allow *allow,
		     const struct gpupart_tpcset *set, unsigned int nr_words)
{
	/*
	 * Who still reads the slot's last words and gets one of these must see the count moved:
	 * of TPCs as well, which limit_get() reads without a lock.
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
 * Copies the set in force; *any is 0 where there is none. False: what was copied may be torn,
 * by writers that published seven times while 32 bytes were read.
 */
static inline __attribute__((always_inline))
bool ring_try(const _Atomic uint64_t *published, unsigned int nr_slots, unsigned int nr_words,
	      struct tmd_allow *allow, uint64_t *any)
{
	/* The slots begin right behind the count. */
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
	/* A word from a later round came with the count that led up to it. */
	after = atomic_load_explicit(published, memory_order_relaxed);
	return after - before < RING_SLOTS - 1;
}

/*
 * The same, made again where it is torn: 64 times at most, since a launch must not wait for
 * ever. The first time apart, so that a launch sets up no loop. False where there is no set.
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
