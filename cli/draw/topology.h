/* SPDX-License-Identifier: MIT */
/* A topology as text and as JSON, and the questions that drawings and lists of it ask. */
#ifndef GPUPART_CLI_DRAW_TOPOLOGY_H
#define GPUPART_CLI_DRAW_TOPOLOGY_H

#include <gpupart_manage.h>
#include "cli/util/out.h"

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

/* ------------------------------------------------------ as text, in 80 columns */

/*
 * After an empty line a row a GPC: its TPCs, its fuse positions beside them. Nothing
 * where that is wider than 80 columns.
 */
void topology_picture(struct out *out, const struct gpupart_topology *topo);

/* All of it. */
void topology_text(struct out *out, const struct gpupart_topology *topo);

/*
 * A sign a TPC in the order of uGPUs and GPCs, GPCs apart where the line has room for
 * it: which of them are in @set. @label takes up to 10 columns.
 */
void topology_strip(struct out *out, const struct gpupart_topology *topo, const char *label,
		    const struct gpupart_tpcset *set);

/* Adds all of it to the JSON object @root. */
void topology_json(json_t *root, const struct gpupart_topology *topo);

#endif
