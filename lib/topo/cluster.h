/* SPDX-License-Identifier: MIT */
/* The clusters that fit into sets, for the planner. */
#ifndef GPUPART_LIB_TOPO_CLUSTER_H
#define GPUPART_LIB_TOPO_CLUSTER_H

#include "lib/topo/topology.h"

/*
 * The TPCs of @set in the virtual GPC that has most of them; if several do, the lowest. All of
 * @set must be in @topo.
 */
struct gpupart_tpcset cluster_tpcs(const struct gpupart_topology *topo,
				   const struct gpupart_tpcset *set);

#endif
