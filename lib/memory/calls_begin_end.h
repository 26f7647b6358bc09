/* SPDX-License-Identifier: MIT */
/* The memory quota inside a process: what happens at the driver calls that calls.h lists. */
#ifndef GPUPART_LIB_MEMORY_CALLS_BEGIN_END_H
#define GPUPART_LIB_MEMORY_CALLS_BEGIN_END_H

#include "lib/memory/calls.h"

/* A call was seen that may get memory and whose amount is not known. */
void memory_uncounted(const char *name);

#endif
