/* SPDX-License-Identifier: MIT */
/*
 * What a process asks of its GPUs and how long it waits for them, for `gpupart stat`.
 * Only in a process that is measured: nothing of it is in the path of others. Knows no set.
 */
#ifndef GPUPART_LIB_STAT_H
#define GPUPART_LIB_STAT_H

#include "cuda.h"

/* What the driver calls at the begin and at the end of a function of stat_calls.h. */
void stat_callback(const struct cuda_api *cuda, int cbid, const void *params);

/* The driver tells that this context goes. */
void stat_ctx_goes(const void *ctx);

#endif
