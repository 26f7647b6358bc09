/* SPDX-License-Identifier: MIT */
/*
 * Turns completion records on for attached GPUs, and tells lib/records what becomes of contexts
 * and streams. A failure here costs records, nothing else.
 */
#ifndef GPUPART_LIB_CONFINE_RECORDING_H
#define GPUPART_LIB_CONFINE_RECORDING_H

#include "lib/confine/probe.h"

/* With launches on @stream, unless they were made before; with the probe entered. */
void recording_prove(struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Without launches: where recording_prove() was right on this GPU and driver before, which the
 * user's cache says or @key (as check_gpu_known() has it; may be NULL).
 */
void recording_known(struct gpupart_gpu *gpu, const char *key);

/* Nothing more is recorded, for @why. */
void recording_stop(const char *why);

/* A context was made or retained: @ctx, which need not be current. Calls the driver. */
void recording_context(const struct cuda_api *cuda, void *ctx);

/* The stream at @object goes; the streams of @ctx, with it. 0 and NULL: none. */
void recording_gone(uint64_t object, const void *ctx);

/* Outside of the launch callback: names of functions that were launched. */
void recording_names(const struct cuda_api *cuda);
/* The same of all that have ended, which are put into the totals first. */
void recording_settle(const struct cuda_api *cuda);
void recording_module_gone(void);

/* A function of the driver's, in @ctx, has ended with an error. */
void recording_failed(int result, const void *ctx);

#endif
