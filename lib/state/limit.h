/* SPDX-License-Identifier: MIT */
/*
 * The limit of a process on one GPU, in memory that other processes write too. It has two parts,
 * one from outside (run, set) and one of the process's own; launches obey both, or the outer one
 * alone where they have nothing in common. No lock: whoever dies while it writes leaves what was
 * in force.
 */
#ifndef GPUPART_LIB_STATE_LIMIT_H
#define GPUPART_LIB_STATE_LIMIT_H

#include "lib/core/ctx.h"
#include "lib/state/ring.h"

/*
 * As a ring, but that each kind of writers has eight slots of its own and passes over the
 * other's numbers: the remainder is below eight for those inside. So nobody writes the
 * slot in force, nor one that was in force less than seven numbers ago.
 */
#define LIMIT_SLOTS (2 * RING_SLOTS)

struct limit {
	_Atomic uint64_t published;
	struct ring_slot slot[LIMIT_SLOTS];
	struct {
		_Atomic uint64_t outer[GPUPART_TPCSET_WORDS], inner[GPUPART_TPCSET_WORDS];
	} part[LIMIT_SLOTS];
};

_Static_assert(offsetof(struct limit, slot) == sizeof(uint64_t), "ring_read() finds the slots");

enum limit_part { LIMIT_OUTER, LIMIT_INNER };

/* All of them empty where there is none. */
struct limit_sets {
	struct gpupart_tpcset in_force, outer, inner;
};

/*
 * Those inside the process take turns by a lock of theirs, those outside by a lock of the
 * file. @set is checked, NULL takes the part away. @before: what was in force. False,
 * and nothing changed, where an inner set is not inside the outer one, or for those
 * outside where those inside write all the time.
 */
bool limit_set_inside(struct limit *limit, enum limit_part part, const struct tmd_map *map,
		      const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool limit_set_outside(struct limit *limit, const uint16_t *bit_of_tpc,
		       const struct gpupart_tpcset *set, struct limit_sets *before);

/*
 * The outer part, from inside: what it and @set have in common from now on, @set where it
 * is not there. False, and nothing changed, where that is nothing.
 */
bool limit_cap(struct limit *limit, const struct tmd_map *map, const struct gpupart_tpcset *set);

/* Never torn; false where writers were faster each of many times. */
GPUPART_PRIVATE
bool limit_get(const struct limit *limit, struct limit_sets *sets);

#endif
