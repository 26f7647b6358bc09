/* SPDX-License-Identifier: MIT */
/*
 * Makes the driver build the nodes of an executable graph again. The code reads the parameters of
 * the nodes from a clone of the graph. The clone is never launched.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_REBUILD_H
#define GPUPART_LIB_CONFINE_GRAPH_REBUILD_H

#include "lib/driver/cuda.h"

/* Returns true if the driver has all functions that graph_rebuild() needs. */
bool graph_can_rebuild(const struct cuda_api *cuda);

/*
 * Makes the driver build the nodes of @exec again at the next launch. The argument @clone is a
 * clone of the graph and stays unchanged. The function changes parameters of the nodes and then
 * changes them back. If the driver refuses a change, the executable graph is unchanged. The
 * function then tries a smaller change, which cannot exceed a limit of the driver. The driver
 * cannot refuse the old parameters. If the driver refused to change some nodes, the function sets
 * *some. The function returns true if the driver will build all other nodes again.
 */
bool graph_rebuild(const struct cuda_api *cuda, void *exec, void *clone, bool *some);

#endif
