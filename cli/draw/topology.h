/* SPDX-License-Identifier: MIT */
/* Questions about a topology that drawings and lists of it ask. */
#ifndef GPUPART_CLI_DRAW_TOPOLOGY_H
#define GPUPART_CLI_DRAW_TOPOLOGY_H

#include <gpupart_manage.h>

/* Whether @tpc is a virtual GPC of its own beside those that GPCs are. */
bool topology_is_singleton(const struct gpupart_topology *topo, unsigned int tpc);

/* GPCs in the order they are shown: by uGPU, then by number. Returns how many. */
unsigned int topology_order_gpcs(const struct gpupart_topology *topo,
				 unsigned int order[GPUPART_MAX_GPCS]);

/* The virtual GPC that a GPC's TPCs are in, singletons apart; -1 not told. */
int topology_main_vgpc(const struct gpupart_topology *topo, const struct gpupart_gpc *gpc);

/* The SMs of a set. */
unsigned int topology_nr_sms(const struct gpupart_topology *topo,
			     const struct gpupart_tpcset *tpcs);

/*
 * Physical GPCs that are floorswept: how many, those that are known by name in @gpcs. -1
 * where the source does not tell.
 */
int topology_floorswept_gpcs(const struct gpupart_topology *topo,
			     unsigned int gpcs[GPUPART_MAX_GPCS], unsigned int *nr_known);

#endif
