/* SPDX-License-Identifier: MIT */
/*
 * With too few TPCs, some launches never end. This code computes how many TPCs such a launch
 * needs.
 */
#ifndef GPUPART_LIB_TMD_FIT_H
#define GPUPART_LIB_TMD_FIT_H

#include "lib/tmd/tmd.h"

/*
 * Called for a launch of @type, whose blocks must run at the same time. The caller has already
 * applied the limit to the set *want. If the launch would never end in *want, the function adds
 * TPCs of @limit. If these are not enough, it adds TPCs outside the limit. If there is no limit,
 * @limit is NULL. Argument @free has the bits that the driver did not disable itself.
 */
enum tmd_outcome tmd_fit(const struct tmd_map *map, const void *tmd, unsigned int type,
			 struct tmd_allow *want, const struct tmd_allow *limit,
			 const struct tmd_allow *free);

#endif
