/* SPDX-License-Identifier: MIT */
/*
 * The memory quota inside a process: the begin and the end of those driver functions that
 * get, give back or tell of a GPU's memory. Knows no sets.
 */
#ifndef GPUPART_LIB_MEMORY_H
#define GPUPART_LIB_MEMORY_H

#include "cuda.h"

/* Whether @cbid is one of those functions. */
bool memory_wanted(int cbid);

/* What the driver calls at the begin and at the end of such a function. */
void memory_callback(const struct cuda_api *cuda, int cbid, const void *params);

#endif
