/* SPDX-License-Identifier: MIT */
/*
 * Declares the limit of a process on one GPU. Other processes can also write the limit. The limit
 * has two parts. The outer limit comes from `gpupart run` or `gpupart set`. The process itself sets
 * the inner limit. A launch is confined to the intersection of both parts. If the two parts have no
 * TPC in common, the launch is confined to the outer limit. Launches need no lock. If a writer dies
 * during a change, the previous limit stays in force.
 */
#ifndef GPUPART_LIB_STATE_LIMIT_H
#define GPUPART_LIB_STATE_LIMIT_H

#include "lib/core/ctx.h"
#include "lib/state/ring.h"

/*
 * The limit is stored like a ring (ring.h), but it has writers inside the process and writers
 * outside the process. Each of these two groups has eight slots, and skips the numbers of the other
 * group. Writers inside the process use the numbers whose remainder modulo 16 is below eight. So a
 * writer never writes to the slot in force, or to a slot that was in force less than seven numbers
 * ago.
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
 * With LIMIT_CAP, the process itself reduces the outer part. The new outer part is the intersection
 * of the old outer part and the set. If there was no outer part, the new outer part is the set.
 */
enum limit_part { LIMIT_OUTER, LIMIT_INNER, LIMIT_CAP };

/* All sets are empty if there is no limit. */
struct limit_sets {
	struct gpupart_tpcset in_force, outer, inner;
};

/*
 * These functions set the inner or the outer part. A caller inside the process holds a lock of the
 * process. A caller outside the process holds a lock on the file. The set @set must be valid for
 * the GPU. If @set is NULL, the functions remove the part. They store the previous limit in
 * @before. In three cases the functions change nothing and return false. First, an inner set is not
 * a subset of the outer limit. Second, the set for LIMIT_CAP has no TPC in common with the outer
 * limit. Third, writers inside the process write so often that a writer outside cannot write.
 */
bool limit_set_inside(struct limit *limit, enum limit_part part, const struct tmd_map *map,
		      const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool limit_set_outside(struct limit *limit, const uint16_t *bit_of_tpc,
		       const struct gpupart_tpcset *set, struct limit_sets *before);

/*
 * Reads the limit. All parts of the result were valid at the same moment. The function tries
 * several times. If the limit changed during every try, it returns false.
 */
GPUPART_PRIVATE
bool limit_get(const struct limit *limit, struct limit_sets *sets);

#endif
