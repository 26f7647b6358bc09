/* SPDX-License-Identifier: MIT */
/* Which clusters sets hold: what the planner and the rule for launches share. */
#ifndef GPUPART_LIB_TOPO_CLUSTER_H
#define GPUPART_LIB_TOPO_CLUSTER_H

#include "lib/topo/topology.h"

/* SMs of a TPC that a cluster can count on: the fewest that any TPC has. */
GPUPART_PRIVATE
unsigned int cluster_sms_per_tpc(const struct gpupart_topology *topo);

/* The TPCs of @set, all of @topo, in the virtual GPC that has most of them; the lowest of such. */
GPUPART_PRIVATE
struct gpupart_tpcset cluster_tpcs(const struct gpupart_topology *topo,
				   const struct gpupart_tpcset *set);

#endif
