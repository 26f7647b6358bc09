/* SPDX-License-Identifier: MIT */
/*
 * The limit of a process on one GPU, in memory that other processes also write. It has two
 * parts: the outer limit (from run or set) and the inner limit of the process itself. Launches
 * obey both, or only the outer one if the two have no TPC in common. There is no lock: if a
 * writer dies during a change, the previous limit stays in force.
 */
#ifndef GPUPART_LIB_STATE_LIMIT_H
#define GPUPART_LIB_STATE_LIMIT_H

#include "lib/core/ctx.h"
#include "lib/state/ring.h"

/*
 * Like a ring, but the two kinds of writers (inside and outside the process) have eight slots
 * each and skip the other's numbers: the remainder is below eight for writers inside. So no
 * writer uses the slot in force, or one that was in force less than seven numbers ago.
 */
#define LIMIT_SLOTS (2 * RING_SLOTS)

struct limit {
	_Atomic uint64_t published;
	struct ring_slot slot[LIMIT_SLOTS];
	struct {
		_Atomic uint64_t outer[GPUPART_TPCSET_WORDS], inner[GPUPART_TPCSET_WORDS];
	} part[LIMIT_SLOTS];
};

_Static_assert(offsetof(struct limit, slot) == sizeof(uint64_t),
	       "ring_read() expects the slots at this offset");

enum limit_part { LIMIT_OUTER, LIMIT_INNER };

/* All sets are empty if there is no limit. */
struct limit_sets {
	struct gpupart_tpcset in_force, outer, inner;
};

/*
 * Writers inside the process exclude each other by their own lock, writers outside by a lock on
 * the file. @set must be valid for the GPU; NULL removes the part. @before is the limit that
 * was in force. Returns false, and changes nothing, if an inner set is not inside the outer
 * one, or, for writers outside, if writers inside do not stop writing.
 */
bool limit_set_inside(struct limit *limit, enum limit_part part, const struct tmd_map *map,
		      const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool limit_set_outside(struct limit *limit, const uint16_t *bit_of_tpc,
		       const struct gpupart_tpcset *set, struct limit_sets *before);

/*
 * Narrows the outer part from inside to its intersection with @set, or sets it to @set if there
 * is none. Returns false, and changes nothing, if the intersection is empty.
 */
bool limit_cap(struct limit *limit, const struct tmd_map *map, const struct gpupart_tpcset *set);

/*
 * Reads the limit; the result is never torn. Returns false if writers were faster in every try.
 */
GPUPART_PRIVATE
bool limit_get(const struct limit *limit, struct limit_sets *sets);

#endif
