// SPDX-License-Identifier: MIT
/* Finds facts about a topology for drawings and lists; see topology.h. */
#include "cli/draw/topology.h"

bool topology_is_singleton(const struct gpupart_topology *topo, unsigned int tpc)
{
	const struct gpupart_tpc *t = gpupart_topology_tpc(topo, tpc);
	struct gpupart_tpcset vgpc;

	/*
	 * If a virtual GPC corresponds to a GPC, the number of the virtual GPC is less than the
	 * number of GPCs.
	 */
	if (!t || t->vgpc < (int)gpupart_topology_nr_gpcs(topo))
		return false;
	vgpc = gpupart_topology_vgpc(topo, t->vgpc);
	return gpupart_tpcset_count(&vgpc) == 1;
}

unsigned int topology_nr_sms(const struct gpupart_topology *topo,
			     const struct gpupart_tpcset *tpcs)
{
	unsigned int nr = 0;

	for (int tpc = gpupart_tpcset_next(tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(tpcs, tpc + 1))
		nr += gpupart_topology_tpc(topo, tpc)->nr_sms;
	return nr;
}

unsigned int topology_order_gpcs(const struct gpupart_topology *topo,
				 unsigned int order[GPUPART_MAX_GPCS])
{
	unsigned int nr = 0;

	for (int ugpu = -1; ugpu < (int)gpupart_topology_nr_ugpus(topo); ugpu++)
		for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++)
			if (gpupart_topology_gpc(topo, gpc)->ugpu == ugpu)
				order[nr++] = gpc;
	return nr;
}

int topology_main_vgpc(const struct gpupart_topology *topo, const struct gpupart_gpc *gpc)
{
	for (int tpc = gpupart_tpcset_next(&gpc->tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&gpc->tpcs, tpc + 1))
		if (!topology_is_singleton(topo, tpc))
			return gpupart_topology_tpc(topo, tpc)->vgpc;
	return -1;
}

int topology_floorswept_gpcs(const struct gpupart_topology *topo,
			     unsigned int gpcs[GPUPART_MAX_GPCS], unsigned int *nr_known)
{
	unsigned int max = gpupart_topology_info(topo)->max_gpcs;
	unsigned int nr = gpupart_topology_nr_gpcs(topo);
	bool there[GPUPART_MAX_GPCS] = { false };

	*nr_known = 0;
	if (!max || max > GPUPART_MAX_GPCS)
		return -1;
	if (nr >= max)
		return 0;
	for (unsigned int gpc = 0; gpc < nr; gpc++) {
		int gpc_phys = gpupart_topology_gpc(topo, gpc)->gpc_phys;

		if (gpc_phys < 0)
			return max - nr;
		there[gpc_phys % GPUPART_MAX_GPCS] = true;
	}
	for (unsigned int i = 0; i < max; i++)
		if (!there[i])
			gpcs[(*nr_known)++] = i;
	return *nr_known;
}
