/* SPDX-License-Identifier: MIT */
/* Functions for the planner that find TPCs for clusters. */
#ifndef GPUPART_LIB_TOPO_CLUSTER_H
#define GPUPART_LIB_TOPO_CLUSTER_H

#include "lib/topo/topology.h"

/*
 * Chooses the virtual GPC that contains the most TPCs of @set. If several virtual GPCs contain
 * equally many, chooses the lowest virtual GPC. Returns the TPCs of @set in this virtual GPC. All
 * TPCs of @set must be in @topo.
 */
struct gpupart_tpcset cluster_tpcs(const struct gpupart_topology *topo,
				   const struct gpupart_tpcset *set);

#endif
