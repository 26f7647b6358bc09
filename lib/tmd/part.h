/* SPDX-License-Identifier: MIT */
/*
 * A green context's part of a limit. The driver chooses a context's TPCs among all TPCs of the
 * GPU, and puts them as a mask into the context's TMDs. Inside a limit the library replaces
 * them by TPCs of the limit. Documentation/internals/decisions/green-contexts.md has the rule
 * and its reasons.
 */
#ifndef GPUPART_LIB_TMD_PART_H
#define GPUPART_LIB_TMD_PART_H

#include <stdatomic.h>
#include "lib/tmd/tmd.h"

#define TMD_PARTS 64

/*
 * The green contexts of one GPU. A context is identified by the TPCs that the driver left it.
 * If the table is full, a new context replaces the oldest.
 */
struct tmd_parts {
	atomic_uint nr_came;
	atomic_uint nr_shown;	/* number of TPCs that the driver can split; 0: all TPCs */
	atomic_uint epoch;	/* number of contexts that were destroyed */
	struct tmd_part {
		atomic_uint state;
		atomic_uint came;	/* position of the context in the order */
		atomic_uint epoch;	/* epoch in which the context came */
		_Atomic uint64_t left[GPUPART_MAX_TMD_BITS / 64];
		/*
		 * The last answer and the limit that it belongs to. @version is odd while they
		 * are being written.
		 */
		atomic_uint version;
		_Atomic uint64_t limit[GPUPART_MAX_TMD_BITS / 64];
		_Atomic uint64_t part[GPUPART_MAX_TMD_BITS / 64];
	} part[TMD_PARTS];
};

/*
 * Called when the driver is shown only @nr_tpcs TPCs to split. These TPCs represent the limit.
 */
void tmd_parts_show(struct tmd_parts *parts, unsigned int nr_tpcs);

/*
 * Called when a context was destroyed. It is unknown which context it was, so the next launches
 * of all contexts determine a new order.
 */
void tmd_parts_gone(struct tmd_parts *parts);

/*
 * Returns the TPCs of @limit, at least one, for the context to which the driver left @left.
 * @spared: whether the driver also removed singletons from @left. It is called in the launch
 * callback, so it takes no lock and cannot fail.
 */
struct tmd_allow tmd_part(const struct tmd_map *map, const struct tmd_allow *limit,
			  const struct tmd_allow *left, bool spared);

#endif
