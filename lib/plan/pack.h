/* SPDX-License-Identifier: MIT */
/* Chooses packed TPCs. The functions have no side effects. */
#ifndef GPUPART_LIB_PLAN_PACK_H
#define GPUPART_LIB_PLAN_PACK_H

#include <gpupart_manage.h>

/*
 * Chooses @nr TPCs of @from. The set @from must have at least @nr TPCs. The result is packed, and
 * depends only on the arguments. These are the rules:
 *
 * - The smallest uGPU that holds all TPCs is chosen. If no uGPU holds them all, all TPCs of the
 *   largest uGPU are chosen, and the same rule applies to the rest. If uGPUs have the same size,
 *   the uGPU with the lowest number is chosen.
 *
 * - In the last of these uGPUs, as many TPCs as possible are in whole GPCs. The number of these
 *   GPCs is as small as possible.
 *
 * - The rest are the lowest TPCs of the smallest GPC that was not chosen.
 *
 * A GPC is whole if all its TPCs in @from are chosen. If the source reports no uGPUs, the whole GPU
 * counts as one uGPU.
 */
struct gpupart_tpcset pack_tpcs(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *from, unsigned int nr);

/* Returns the @nr lowest TPCs of @from. If @from has fewer TPCs, returns all of them. */
struct gpupart_tpcset pack_lowest(const struct gpupart_tpcset *from, unsigned int nr);

/* Ignores uGPUs and applies the last two rules of pack_tpcs(). */
struct gpupart_tpcset pack_gpcs(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *from, unsigned int nr);

#endif
