/* SPDX-License-Identifier: MIT */
/* Chooses packed TPCs. The functions have no side effects. */
#ifndef GPUPART_LIB_PLAN_PACK_H
#define GPUPART_LIB_PLAN_PACK_H

#include <gpupart_manage.h>

/*
 * Chooses @nr TPCs of @from (which has that many), packed; the result depends only on the
 * arguments:
 * - uGPUs: the smallest that holds all; else all of the largest, then the same for the
 *   rest (among equals the lower number first);
 * - in the last uGPU: as many as possible in whole GPCs, in as few GPCs as possible;
 * - the rest: the lowest TPCs of the smallest GPC that was not taken.
 * A GPC is whole if all its TPCs in @from are taken. If the source reports no uGPUs or GPCs,
 * the GPU counts as one.
 */
struct gpupart_tpcset pack_tpcs(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *from, unsigned int nr);

/* Applies only the last two of these rules, whatever uGPUs @from is in. */
struct gpupart_tpcset pack_gpcs(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *from, unsigned int nr);

#endif
