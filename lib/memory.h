/* SPDX-License-Identifier: MIT */
/*
 * The memory quota inside a process: the begin and the end of those driver functions that
 * get, give back or tell of a GPU's memory. Knows no sets.
 */
#ifndef GPUPART_LIB_MEMORY_H
#define GPUPART_LIB_MEMORY_H

#include "memory_calls.h"

/* What the driver calls at the begin and at the end of such a function. */
void memory_callback(const struct memory_call *call, const struct cuda_call_params *params);

/* A call was seen that may get memory, and that nobody knows the arguments of. */
void memory_uncounted(const char *name);

#endif
