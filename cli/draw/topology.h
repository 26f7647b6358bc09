/* SPDX-License-Identifier: MIT */
/* Prints a topology as text and as JSON, and answers the questions that this needs. */
#ifndef GPUPART_CLI_DRAW_TOPOLOGY_H
#define GPUPART_CLI_DRAW_TOPOLOGY_H

#include <gpupart_manage.h>
#include "cli/util/out.h"

/*
 * Whether @tpc is a singleton: the only TPC of a virtual GPC that does not correspond to a GPC.
 */
bool topology_is_singleton(const struct gpupart_topology *topo, unsigned int tpc);

/* Lists GPCs in display order: by uGPU, then by number. Returns their number. */
unsigned int topology_order_gpcs(const struct gpupart_topology *topo,
				 unsigned int order[GPUPART_MAX_GPCS]);

/* The virtual GPC of a GPC's TPCs, without singletons; -1: not known. */
int topology_main_vgpc(const struct gpupart_topology *topo, const struct gpupart_gpc *gpc);

/* The number of SMs of a set. */
unsigned int topology_nr_sms(const struct gpupart_topology *topo,
			     const struct gpupart_tpcset *tpcs);

/*
 * The number of floorswept GPCs; stores the known physical numbers in @gpcs. Returns -1 if the
 * source does not report it.
 */
int topology_floorswept_gpcs(const struct gpupart_topology *topo,
			     unsigned int gpcs[GPUPART_MAX_GPCS], unsigned int *nr_known);

/* ------------------------------------------------------ as text, in 80 columns */

/*
 * Prints an empty line, then a row for each GPC with its TPCs and its fuse positions. Leaves
 * out what is wider than 80 columns.
 */
void topology_picture(struct out *out, const struct gpupart_topology *topo);

/* Prints all of it. */
void topology_text(struct out *out, const struct gpupart_topology *topo);

/*
 * Prints a character for each TPC, in the order of uGPUs and GPCs, which shows whether it is in
 * @set. Puts a blank between GPCs if there is room. @label is at most 10 columns wide.
 */
void topology_strip(struct out *out, const struct gpupart_topology *topo, const char *label,
		    const struct gpupart_tpcset *set);

/* Adds all of it to the JSON object @root. */
void topology_json(json_t *root, const struct gpupart_topology *topo);

#endif
