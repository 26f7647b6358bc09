/* SPDX-License-Identifier: MIT */
/*
 * Some launches never end if they have too few TPCs at the same time. This code computes how
 * many TPCs such a launch needs.
 */
#ifndef GPUPART_LIB_TMD_FIT_H
#define GPUPART_LIB_TMD_FIT_H

#include "lib/tmd/tmd.h"

/*
 * Called for a launch of @type, whose blocks must run at the same time. *want is the set after
 * the limit was applied. If the launch would never end on *want, the function adds TPCs of
 * @limit to *want. If these are not enough, it adds any TPCs. @limit is NULL if there is no
 * limit. @free: the bits that the driver did not disable itself.
 */
enum tmd_outcome tmd_fit(const struct tmd_map *map, const void *tmd, unsigned int type,
			 struct tmd_allow *want, const struct tmd_allow *limit,
			 const struct tmd_allow *free);

#endif
