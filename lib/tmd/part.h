/* SPDX-License-Identifier: MIT */
/*
 * A green context's part of a limit. The driver chooses a context's TPCs among all TPCs of the
 * GPU, and masks them into its TMDs; inside a limit they are replaced by TPCs of the limit. The
 * rule and its reasons are in Documentation/internals/decisions/green-contexts.md.
 */
#ifndef GPUPART_LIB_TMD_PART_H
#define GPUPART_LIB_TMD_PART_H

#include <stdatomic.h>
#include "lib/tmd/tmd.h"

#define TMD_PARTS 64

/*
 * The green contexts of one GPU, identified by the TPCs that the driver left them. A new one
 * replaces the oldest if the table is full.
 */
struct tmd_parts {
	atomic_uint nr_came;
	atomic_uint nr_shown;	/* TPCs that the driver can split; 0: all */
	atomic_uint epoch;	/* contexts that were destroyed */
	struct tmd_part {
		atomic_uint state;
		atomic_uint came;	/* its position in the order */
		atomic_uint epoch;	/* in which it came */
		_Atomic uint64_t left[GPUPART_MAX_TMD_BITS / 64];
		/* The last answer and its limit; odd while being written. */
		atomic_uint version;
		_Atomic uint64_t limit[GPUPART_MAX_TMD_BITS / 64];
		_Atomic uint64_t part[GPUPART_MAX_TMD_BITS / 64];
	} part[TMD_PARTS];
};

/* From now on the driver splits @nr_tpcs instead of all TPCs; they stand for the limit. */
void tmd_parts_show(struct tmd_parts *parts, unsigned int nr_tpcs);

/*
 * A context was destroyed. It is unknown which one, so all are ordered again by their next
 * launches.
 */
void tmd_parts_gone(struct tmd_parts *parts);

/*
 * The TPCs of @limit, at least one, that a context gets to which the driver left @left.
 * @spared: the driver also removed singletons from @left. For the launch callback: takes no
 * lock, cannot fail.
 */
struct tmd_allow tmd_part(const struct tmd_map *map, const struct tmd_allow *limit,
			  const struct tmd_allow *left, bool spared);

#endif
