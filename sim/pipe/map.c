// SPDX-License-Identifier: MIT
/* Maps of SMs for boards without a capture. */
#include <string.h>
#include "sim/pipe/pipe.h"

void pipe_map_even(struct pipe_map *map, const struct pipe_chip *chip)
{
	unsigned int i, tpc;

	memset(map, 0, sizeof(*map));
	map->nr_tpcs = chip->nr_tpcs;
	map->nr_gpcs = map->nr_vgpcs = chip->nr_gpcs;
	map->nr_sms = chip->nr_tpcs * chip->sms_per_tpc;
	for (i = 0; i < map->nr_sms; i++) {
		tpc = i / chip->sms_per_tpc;
		map->sms[i].tpc = tpc;
		map->sms[i].sm_in_tpc = i % chip->sms_per_tpc;
		map->sms[i].gpc = map->sms[i].vgpc = tpc % chip->nr_gpcs;
		map->sms[i].ugpu = map->sms[i].gpc * chip->nr_ugpus / chip->nr_gpcs;
	}
}
