/* SPDX-License-Identifier: MIT */
/*
 * The limit of a process on one GPU. Other processes can also write to the limit. The limit has
 * two parts. The outer limit comes from `gpupart run` or `gpupart set`; the process itself sets
 * the inner limit. A launch is confined to the intersection of both parts. If the two parts have
 * no TPC in common, the launch is confined to the outer limit. Launches need no lock. If a
 * writer dies during a change, the previous limit stays in force.
 */
#ifndef GPUPART_LIB_STATE_LIMIT_H
#define GPUPART_LIB_STATE_LIMIT_H

#include "lib/core/ctx.h"
#include "lib/state/ring.h"

/*
 * The limit is stored like a ring (ring.h), but it has two kinds of writers: writers inside and
 * writers outside the process. Each kind has eight slots and skips the numbers of the other
 * kind. Writers inside the process use the numbers whose remainder, modulo 16, is below eight.
 * So no writer writes to the slot in force, or to a slot that was in force less than seven
 * numbers ago.
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

/*
 * LIMIT_CAP narrows the outer part from inside the process. The new outer part is the
 * intersection of the old outer part and the set, or the set if there was no outer part.
 */
enum limit_part { LIMIT_OUTER, LIMIT_INNER, LIMIT_CAP };

/* All sets are empty if there is no limit. */
struct limit_sets {
	struct gpupart_tpcset in_force, outer, inner;
};

/*
 * These functions set the inner or the outer part. A caller inside the process holds a lock of
 * the process, and a caller outside the process holds a lock on the file. @set must be valid for
 * the GPU; NULL removes the part. The functions store in @before the limit that was in force. In
 * three cases they return false and change nothing: an inner set is not a subset of the outer
 * limit, a cap has no TPC in common with the outer limit, or writers inside the process write so
 * often that a writer outside cannot write.
 */
bool limit_set_inside(struct limit *limit, enum limit_part part, const struct tmd_map *map,
		      const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool limit_set_outside(struct limit *limit, const uint16_t *bit_of_tpc,
		       const struct gpupart_tpcset *set, struct limit_sets *before);

/*
 * Reads the limit. All parts of the result were valid at the same moment. Tries several times,
 * and returns false if the limit changed during every try.
 */
GPUPART_PRIVATE
bool limit_get(const struct limit *limit, struct limit_sets *sets);

#endif
