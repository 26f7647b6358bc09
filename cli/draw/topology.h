/* SPDX-License-Identifier: MIT */
/* Prints a topology as text and as JSON. Also finds facts about a topology that drawings need. */
#ifndef GPUPART_CLI_DRAW_TOPOLOGY_H
#define GPUPART_CLI_DRAW_TOPOLOGY_H

#include <gpupart_manage.h>
#include "cli/util/out.h"

/*
 * Returns whether @tpc is a singleton. A singleton is the only TPC in its virtual GPC, and this
 * virtual GPC does not correspond to a GPC.
 */
bool topology_is_singleton(const struct gpupart_topology *topo, unsigned int tpc);

/* Lists GPCs in the order of display: by uGPU, then by number. Returns the number of GPCs. */
unsigned int topology_order_gpcs(const struct gpupart_topology *topo,
				 unsigned int order[GPUPART_MAX_GPCS]);

/*
 * Returns the virtual GPC that contains the TPCs of a GPC. Ignores singletons. If the virtual GPC
 * is not known, returns -1.
 */
int topology_main_vgpc(const struct gpupart_topology *topo, const struct gpupart_gpc *gpc);

/* Returns the number of SMs of a set. */
unsigned int topology_nr_sms(const struct gpupart_topology *topo,
			     const struct gpupart_tpcset *tpcs);

/*
 * Returns the number of floorswept GPCs. Stores the known physical numbers of these GPCs in @gpcs.
 * If the source does not report floorswept GPCs, returns -1.
 */
int topology_floorswept_gpcs(const struct gpupart_topology *topo,
			     unsigned int gpcs[GPUPART_MAX_GPCS], unsigned int *nr_known);

/* ------------------------------------------------------ as text, in 80 columns */

/*
 * Prints an empty line and a row for each GPC. A row has the GPC's TPCs and fuse positions. Omits
 * parts that are wider than 80 columns.
 */
void topology_picture(struct out *out, const struct gpupart_topology *topo);

/* Prints all facts of the topology. */
void topology_text(struct out *out, const struct gpupart_topology *topo);

/*
 * Prints a character for each TPC, in the order of uGPUs and GPCs. The character shows whether the
 * TPC is in @set. If there is room, prints a blank between GPCs. The text @label has at most 10
 * columns.
 */
void topology_strip(struct out *out, const struct gpupart_topology *topo, const char *label,
		    const struct gpupart_tpcset *set);

/* Adds all facts of the topology to the JSON object @root. */
void topology_json(json_t *root, const struct gpupart_topology *topo);

#endif
