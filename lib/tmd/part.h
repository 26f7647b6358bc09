/* SPDX-License-Identifier: MIT */
/*
 * Chooses a green context's part of a limit. The driver chooses the context's TPCs from all TPCs
 * of the GPU, and writes them as a mask into the context's TMDs. If there is a limit, the library
 * replaces these TPCs by TPCs of the limit. Documentation/internals/decisions/green-contexts.md
 * explains this rule.
 */
#ifndef GPUPART_LIB_TMD_PART_H
#define GPUPART_LIB_TMD_PART_H

#include <stdatomic.h>
#include "lib/tmd/tmd.h"

#define TMD_PARTS 64

/*
 * The green contexts of one GPU. The library identifies a context by the TPCs that the driver
 * left to it. If the table is full, a new context replaces the oldest context.
 */
struct tmd_parts {
	atomic_uint nr_came;
	atomic_uint nr_shown;	/* number of TPCs that the driver can split; 0: all TPCs of the
				 * GPU */
	atomic_uint epoch;	/* number of contexts that were destroyed so far */
	struct tmd_part {
		atomic_uint state;
		atomic_uint came;	/* position of the context in the order */
		atomic_uint epoch;	/* the epoch in which the context got its position */
		_Atomic uint64_t left[GPUPART_MAX_TMD_BITS / 64];
		/*
		 * The last computed part, and the limit for which it was computed. While a thread
		 * writes these members, @version is odd.
		 */
		atomic_uint version;
		_Atomic uint64_t limit[GPUPART_MAX_TMD_BITS / 64];
		_Atomic uint64_t part[GPUPART_MAX_TMD_BITS / 64];
	} part[TMD_PARTS];
};

/*
 * Called when the library reports a limit of @nr_tpcs TPCs as the whole GPU. The program then
 * splits these TPCs with the driver.
 */
void tmd_parts_show(struct tmd_parts *parts, unsigned int nr_tpcs);

/*
 * Called when a context was destroyed. The library does not know which context. So all contexts
 * get new positions at their next launches.
 */
void tmd_parts_context_destroyed(struct tmd_parts *parts);

/*
 * Returns one or more TPCs of @limit for the context to which the driver left @left. If the
 * driver also removed singletons from @left, @spared is true. The launch callback calls this
 * function, so this function acquires no lock and cannot fail.
 */
struct tmd_allow tmd_part(const struct tmd_map *map, const struct tmd_allow *limit,
			  const struct tmd_allow *left, bool spared);

#endif
