/* SPDX-License-Identifier: MIT */
/* Which clusters sets hold, for the planner. */
#ifndef GPUPART_LIB_TOPO_CLUSTER_H
#define GPUPART_LIB_TOPO_CLUSTER_H

#include "lib/topo/topology.h"

/* The TPCs of @set, all of @topo, in the virtual GPC that has most of them; the lowest of such. */
struct gpupart_tpcset cluster_tpcs(const struct gpupart_topology *topo,
				   const struct gpupart_tpcset *set);

#endif
