/* SPDX-License-Identifier: MIT */
/* Converts a board's capture to a map of the pipeline. */
#ifndef GPUPART_TESTS_BOARD_H
#define GPUPART_TESTS_BOARD_H

#include <gpupart_manage.h>
#include "sim/pipe/gpupart_sim.h"

static void board_map(struct pipe_map *map, const struct gpupart_topology *topo)
{
	const struct gpupart_tpc *tpc;
	unsigned int i, j;

	map->nr_sms = gpupart_topology_nr_sms(topo);
	map->nr_tpcs = gpupart_topology_nr_tpcs(topo);
	map->nr_gpcs = gpupart_topology_nr_gpcs(topo);
	map->nr_vgpcs = gpupart_topology_end_vgpc(topo);
	for (i = 0; i < map->nr_tpcs; i++) {
		tpc = gpupart_topology_tpc(topo, i);
		for (j = 0; j < tpc->nr_sms; j++)
			map->sms[tpc->sms[j]] = (struct pipe_place){
				i, tpc->gpc, tpc->vgpc, tpc->ugpu, j,
			};
	}
}

#endif
