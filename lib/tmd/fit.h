/* SPDX-License-Identifier: MIT */
/* How many TPCs a launch needs at once to end at all. */
#ifndef GPUPART_LIB_TMD_FIT_H
#define GPUPART_LIB_TMD_FIT_H

#include "lib/tmd/tmd.h"

/*
 * For launches of @type whose blocks must be somewhere together. *want is what is left of the set;
 * it grows where the launch would never finish in it: within @limit (NULL: none) first. @free: bits
 * that the driver did not disable itself.
 */
enum tmd_outcome tmd_fit(const struct tmd_map *map, const void *tmd, unsigned int type,
			 struct tmd_allow *want, const struct tmd_allow *limit,
			 const struct tmd_allow *free);

#endif
