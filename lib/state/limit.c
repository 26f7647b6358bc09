// SPDX-License-Identifier: MIT
/* Reads and writes the limit of a process in shared memory. See limit.h. */
#include <string.h>
#include "lib/state/limit.h"

static inline __attribute__((always_inline))
void words_read(struct gpupart_tpcset *set, const _Atomic uint64_t *words)
{
	for (int i = 0; i < RING_WORDS; i++)
		set->allowed[i] = atomic_load_explicit(&words[i], memory_order_acquire);
}

static inline __attribute__((always_inline))
void words_write(_Atomic uint64_t *words, const struct gpupart_tpcset *set, unsigned int nr_words)
{
	for (unsigned int i = 0; i < nr_words; i++)
		atomic_store_explicit(&words[i], set->allowed[i], memory_order_release);
}

/*
 * Reads the slot that the word @published selects. If the word has not changed after the read, the
 * result is consistent.
 */
static inline void read_parts(const struct limit *limit, uint64_t published,
			      struct limit_sets *sets)
{
	unsigned int slot = published % LIMIT_SLOTS;

	words_read(&sets->outer, limit->part[slot].outer);
	words_read(&sets->inner, limit->part[slot].inner);
}

static void read_slot(const struct limit *limit, uint64_t published, struct limit_sets *sets)
{
	words_read(&sets->in_force, limit->slot[published % LIMIT_SLOTS].tpcs);
	read_parts(limit, published, sets);
}

bool limit_get(const struct limit *limit, struct limit_sets *sets)
{
	for (int tries = 0; tries < 1000; tries++) {
		uint64_t before = atomic_load_explicit(&limit->published, memory_order_acquire);

		read_slot(limit, before, sets);
		if (atomic_load_explicit(&limit->published, memory_order_relaxed) == before)
			return true;
	}
	return false;
}

/*
 * Changes one part, and computes the intersection of both parts. Words above @nr_words are 0. Most
 * of the time for setting a limit is spent here, so this code calls no functions. If the set is
 * refused, returns false.
 */
static inline __attribute__((always_inline))
bool combine(struct limit_sets *sets, enum limit_part part, const struct gpupart_tpcset *set,
	     unsigned int nr_words)
{
	uint64_t *outer = sets->outer.allowed, *inner = sets->inner.allowed;
	uint64_t *changed = part == LIMIT_INNER ? inner : outer;
	uint64_t any_outer = 0, any_both = 0, beyond = 0, had_outer = 0;

	for (unsigned int i = 0; part == LIMIT_CAP && i < nr_words; i++)
		had_outer |= outer[i];
	for (unsigned int i = 0; i < nr_words; i++)
		changed[i] = (set ? set->allowed[i] : 0) & (had_outer ? outer[i] : ~0ull);
	for (unsigned int i = 0; i < nr_words; i++) {
		any_outer |= outer[i];
		any_both |= outer[i] & inner[i];
		beyond |= inner[i] & ~outer[i];
	}
	for (unsigned int i = 0; i < nr_words; i++)
		sets->in_force.allowed[i] = any_both ? outer[i] & inner[i] :
					    any_outer ? outer[i] : inner[i];
	return part == LIMIT_INNER ? !any_outer || !beyond : part == LIMIT_OUTER || any_outer;
}

static inline __attribute__((always_inline))
void write_slot(struct limit *limit, uint64_t next, const struct limit_sets *sets,
		const struct tmd_allow *allow, unsigned int nr_words)
{
	unsigned int slot = next % LIMIT_SLOTS;

	ring_slot_write(&limit->slot[slot], allow, &sets->in_force, nr_words);
	words_write(limit->part[slot].outer, &sets->outer, nr_words);
	words_write(limit->part[slot].inner, &sets->inner, nr_words);
}

/*
 * Returns the next number after @now. If @outside is true, the number is for a writer outside the
 * process. Otherwise it is for a writer inside the process.
 */
static uint64_t next_number(uint64_t now, bool outside)
{
	uint64_t next = now + 1;

	if (next % LIMIT_SLOTS / RING_SLOTS != outside)
		next += RING_SLOTS - next % RING_SLOTS;
	return next;
}

/* If another writer was faster, returns false and sets *now to the current number. */
static bool publish(struct limit *limit, uint64_t *now, uint64_t next)
{
	return atomic_compare_exchange_strong_explicit(&limit->published, now, next,
						       memory_order_acq_rel, memory_order_acquire);
}

/*
 * Returns true if the number has changed. The data that was read before may then be a mix of old
 * and new words.
 */
static bool is_news(const struct limit *limit, uint64_t *now)
{
	uint64_t before = *now;

	atomic_thread_fence(memory_order_acquire);
	*now = atomic_load_explicit(&limit->published, memory_order_acquire);
	return *now != before;
}

/* Words above @nr_words are 0 in every set of this GPU and in every slot. */
static inline __attribute__((always_inline))
bool set_inside(struct limit *limit, enum limit_part part, const struct tmd_map *map,
		const struct gpupart_tpcset *set, unsigned int nr_words)
{
	uint64_t next, now = atomic_load_explicit(&limit->published, memory_order_acquire);
	struct limit_sets sets = { 0 };

	for (;;) {
		struct tmd_allow allow;

		next = next_number(now, false);
		read_parts(limit, now, &sets);
		if (!combine(&sets, part, set, nr_words)) {
			if (!is_news(limit, &now))
				return false;
			continue;
		}
		tmd_map_convert(map, &sets.in_force, &allow);
		write_slot(limit, next, &sets, &allow, nr_words);
		if (publish(limit, &now, next))
			return true;
	}
}

bool limit_set_inside(struct limit *limit, enum limit_part part, const struct tmd_map *map,
		      const struct gpupart_tpcset *set)
{
	if (map->nr_words <= 2 && map->nr_tpcs <= 128)
		return set_inside(limit, part, map, set, 2);
	return set_inside(limit, part, map, set, RING_WORDS);
}

bool limit_set_outside(struct limit *limit, const uint16_t *bit_of_tpc,
		       const struct gpupart_tpcset *set, struct limit_sets *before)
{
	uint64_t next, now = atomic_load_explicit(&limit->published, memory_order_acquire);
	struct limit_sets sets;

	for (int tries = 0; tries < 1000000; tries++) {
		struct tmd_allow allow;

		next = next_number(now, true);
		read_slot(limit, now, &sets);
		*before = sets;
		combine(&sets, LIMIT_OUTER, set, RING_WORDS);
		tmd_bits_convert(bit_of_tpc, &sets.in_force, &allow);
		write_slot(limit, next, &sets, &allow, RING_WORDS);
		if (publish(limit, &now, next))
			return true;
	}
	return false;
}
