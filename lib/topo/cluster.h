/* SPDX-License-Identifier: MIT */
/* The clusters that fit into sets, for the planner. */
#ifndef GPUPART_LIB_TOPO_CLUSTER_H
#define GPUPART_LIB_TOPO_CLUSTER_H

#include "lib/topo/topology.h"

/*
 * Returns the TPCs of @set that are in one virtual GPC: the virtual GPC with the most TPCs of
 * @set, and the lowest one if several have the most. All TPCs of @set must be in @topo.
 */
struct gpupart_tpcset cluster_tpcs(const struct gpupart_topology *topo,
				   const struct gpupart_tpcset *set);

#endif
