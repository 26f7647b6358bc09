/* SPDX-License-Identifier: MIT */
/*
 * Has the driver build the nodes of an executable graph again, through a clone of its graph,
 * which no launch is made of. Must not know why.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_REBUILD_H
#define GPUPART_LIB_CONFINE_GRAPH_REBUILD_H

#include "lib/driver/cuda.h"

/* The driver has all functions that it takes. */
bool graph_can_rebuild(const struct cuda_api *cuda);

/*
 * True: all nodes of @exec are built at the next launch, all but *some. @clone is of its
 * graph, and stays as it was. Where the change itself is refused the executable is as it was:
 * tried once more with less, which none can be too much for. Once it went through, going back
 * has nothing new to refuse.
 */
bool graph_rebuild(const struct cuda_api *cuda, void *exec, void *clone, bool *some);

#endif
