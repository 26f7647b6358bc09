/* SPDX-License-Identifier: MIT */
/* A topology, or a set of its TPCs, as text in 80 columns. */
#ifndef GPUPART_CLI_DRAW_TOPOLOGY_TEXT_H
#define GPUPART_CLI_DRAW_TOPOLOGY_TEXT_H

#include "cli/util/out.h"

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

#endif
