/* SPDX-License-Identifier: MIT */
/* A topology as JSON. */
#ifndef GPUPART_CLI_DRAW_TOPOLOGY_JSON_H
#define GPUPART_CLI_DRAW_TOPOLOGY_JSON_H

#include "cli/util/out.h"

/* Adds all of it to the object @root. */
void topology_json(json_t *root, const struct gpupart_topology *topo);

#endif
