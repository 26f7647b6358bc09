/* SPDX-License-Identifier: MIT */
/*
 * A green context's part of a limit. The driver chooses a context's TPCs among all of the GPU's,
 * and masks them into its TMDs: inside a limit they stand for TPCs of the limit. The rule and its
 * reasons: Documentation/internals/decisions/green-contexts.md.
 */
#ifndef GPUPART_LIB_TMD_PART_H
#define GPUPART_LIB_TMD_PART_H

#include <stdatomic.h>
#include "lib/tmd/tmd.h"

#define TMD_PARTS 64

/* Contexts of one GPU, told apart by what the driver left. A new one takes the oldest's place. */
struct tmd_parts {
	atomic_uint nr_came;
	atomic_uint nr_shown;	/* TPCs that the driver parts; 0: all */
	atomic_uint epoch;	/* contexts that were destroyed */
	struct tmd_part {
		atomic_uint state;
		atomic_uint came;	/* how many came before */
		atomic_uint epoch;	/* in which it came */
		_Atomic uint64_t left[GPUPART_MAX_TMD_BITS / 64];
		/* The last answer, and the limit that it is of; odd while it is written. */
		atomic_uint version;
		_Atomic uint64_t limit[GPUPART_MAX_TMD_BITS / 64];
		_Atomic uint64_t part[GPUPART_MAX_TMD_BITS / 64];
	} part[TMD_PARTS];
};

/* From now on the driver parts @nr_tpcs in place of all, which stand for the limit. */
void tmd_parts_show(struct tmd_parts *parts, unsigned int nr_tpcs);

/* A context was destroyed. Which is not known: those that launch from now on come anew. */
void tmd_parts_gone(struct tmd_parts *parts);

/*
 * What a context gets of @limit, one TPC at least, of which the driver left @left. @spared: the
 * driver took singletons out of @left as well. For the launch callback: takes no lock, cannot fail.
 */
struct tmd_allow tmd_part(const struct tmd_map *map, const struct tmd_allow *limit,
			  const struct tmd_allow *left, bool spared);

#endif
