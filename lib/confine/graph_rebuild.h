/* SPDX-License-Identifier: MIT */
/*
 * Makes the driver build the nodes of an executable graph again. For this it uses a clone of the
 * graph. The clone is never launched.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_REBUILD_H
#define GPUPART_LIB_CONFINE_GRAPH_REBUILD_H

#include "lib/driver/cuda.h"

/* Returns true if the driver has all functions that graph_rebuild() needs. */
bool graph_can_rebuild(const struct cuda_api *cuda);

/*
 * Makes the driver build the nodes of @exec again at the next launch. @clone is a clone of the
 * graph of @exec and stays unchanged. *some is set if the driver refused to change some nodes.
 * The function returns true if the driver will build all other nodes again. For this, the
 * function changes parameters of the nodes and then changes them back. If the driver refuses the
 * change, the executable graph is unchanged, and the function tries a smaller change, which
 * cannot exceed any limit of the driver. The driver cannot refuse the old parameters.
 */
bool graph_rebuild(const struct cuda_api *cuda, void *exec, void *clone, bool *some);

#endif
