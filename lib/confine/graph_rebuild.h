/* SPDX-License-Identifier: MIT */
/*
 * Makes the driver build the nodes of an executable graph again, through a clone of its graph
 * from which nothing is launched.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_REBUILD_H
#define GPUPART_LIB_CONFINE_GRAPH_REBUILD_H

#include "lib/driver/cuda.h"

/* Whether the driver has all functions that this needs. */
bool graph_can_rebuild(const struct cuda_api *cuda);

/*
 * Returns true if all nodes of @exec, except *some, will be built at the next launch. @clone is
 * a clone of its graph and stays unchanged. If the driver refuses the change, the executable is
 * unchanged, and a smaller change is tried, which cannot exceed any limit. Changing back cannot
 * be refused.
 */
bool graph_rebuild(const struct cuda_api *cuda, void *exec, void *clone, bool *some);

#endif
