/* SPDX-License-Identifier: MIT */
/* Which TPCs a number of them is, packed. Pure. */
#ifndef GPUPART_LIB_PLAN_PACK_H
#define GPUPART_LIB_PLAN_PACK_H

#include <gpupart_manage.h>

/*
 * @nr TPCs of @from (which has that many), packed, the same each time:
 * - uGPUs: the smallest that holds them all, else the largest whole and on with the
 *   rest (the lower number first where two are alike);
 * - in the last uGPU: as many as possible in whole GPCs, in as few GPCs as that takes;
 * - what is left over: the lowest TPCs of the smallest GPC not taken.
 * "Whole" is what @from has of it. Where uGPUs or GPCs are not told, the GPU counts as one.
 */
struct gpupart_tpcset pack_tpcs(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *from, unsigned int nr);

/* The last two of these rules alone: of @from, whatever uGPUs it is in. */
struct gpupart_tpcset pack_gpcs(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *from, unsigned int nr);

#endif
