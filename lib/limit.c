// SPDX-License-Identifier: MIT
/* See limit.h. Must not know where the memory comes from, nor who may write. */
#include <string.h>
#include "limit.h"

static void words_read(struct gpupart_tpcset *set, const _Atomic uint64_t *words)
{
	for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set->allowed[i] = atomic_load_explicit(&words[i], memory_order_acquire);
}

static void words_write(_Atomic uint64_t *words, const struct gpupart_tpcset *set)
{
	for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
		atomic_store_explicit(&words[i], set->allowed[i], memory_order_release);
}

/* What the word @published stands for. Whole as long as the word has not moved since. */
static void read_slot(const struct limit *limit, uint64_t published, struct limit_sets *sets)
{
	unsigned int slot = published % LIMIT_SLOTS;

	words_read(&sets->in_force, limit->slot[slot].tpcs);
	words_read(&sets->outer, limit->part[slot].outer);
	words_read(&sets->inner, limit->part[slot].inner);
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

static void combine(struct limit_sets *sets)
{
	sets->in_force = gpupart_tpcset_and(&sets->outer, &sets->inner);
	if (gpupart_tpcset_empty(&sets->in_force))
		sets->in_force = gpupart_tpcset_empty(&sets->outer) ? sets->inner : sets->outer;
}

static void write_slot(struct limit *limit, uint64_t next, const struct limit_sets *sets,
		       const struct tmd_allow *allow)
{
	unsigned int slot = next % LIMIT_SLOTS;

	ring_slot_write(&limit->slot[slot], allow, &sets->in_force);
	words_write(limit->part[slot].outer, &sets->outer);
	words_write(limit->part[slot].inner, &sets->inner);
}

/* The next number after @now of those inside, or outside. */
static uint64_t next_number(uint64_t now, bool outside)
{
	uint64_t next = now + 1;

	if (next % LIMIT_SLOTS / RING_SLOTS != outside)
		next += RING_SLOTS - next % RING_SLOTS;
	return next;
}

/* False where another writer came first, and @now is news. */
static bool publish(struct limit *limit, uint64_t *now, uint64_t next)
{
	return atomic_compare_exchange_strong_explicit(&limit->published, now, next,
						       memory_order_acq_rel, memory_order_acquire);
}

static void part_set(struct limit_sets *sets, enum limit_part part,
		     const struct gpupart_tpcset *set)
{
	static const struct gpupart_tpcset none;

	*(part == LIMIT_OUTER ? &sets->outer : &sets->inner) = set ? *set : none;
	combine(sets);
}

void limit_set_inside(struct limit *limit, enum limit_part part, const struct tmd_map *map,
		      const struct gpupart_tpcset *set)
{
	uint64_t next, now = atomic_load_explicit(&limit->published, memory_order_acquire);
	struct limit_sets sets;

	do {
		struct tmd_allow allow;

		next = next_number(now, false);
		read_slot(limit, now, &sets);
		part_set(&sets, part, set);
		tmd_map_convert(map, &sets.in_force, &allow);
		write_slot(limit, next, &sets, &allow);
	} while (!publish(limit, &now, next));
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
		part_set(&sets, LIMIT_OUTER, set);
		tmd_bits_convert(bit_of_tpc, &sets.in_force, &allow);
		write_slot(limit, next, &sets, &allow);
		if (publish(limit, &now, next))
			return true;
	}
	return false;
}
