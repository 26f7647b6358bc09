/* SPDX-License-Identifier: MIT */
/*
 * Turns completion records on for attached GPUs, and passes events of contexts and streams to
 * lib/records. A failure here only costs the records.
 */
#ifndef GPUPART_LIB_CONFINE_RECORDING_H
#define GPUPART_LIB_CONFINE_RECORDING_H

#include "lib/confine/probe.h"

/*
 * Proves records by launches on @stream, unless that was done before; the probe must be
 * entered.
 */
void recording_prove(struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Without launches: uses the result of an earlier recording_prove() on this GPU and driver,
 * from the user's cache or from @key (as in check_gpu_known(); may be NULL).
 */
void recording_known(struct gpupart_gpu *gpu, const char *key);

/* Stops recording, for the reason @why. */
void recording_stop(const char *why);

/* A context was created or retained: @ctx, which need not be current. Calls the driver. */
void recording_context(const struct cuda_api *cuda, void *ctx);

/* The stream at @object, or @ctx with its streams, is being destroyed. 0 and NULL: none. */
void recording_destroyed(uint64_t object, const void *ctx);

/* Finds the names of functions that were launched. Not for use in the launch callback. */
void recording_names(const struct cuda_api *cuda);
/* The same, after adding all launches that have ended to the totals. */
void recording_settle(const struct cuda_api *cuda);
void recording_module_gone(void);

/* A driver function in @ctx has failed. */
void recording_failed(int result, const void *ctx);

#endif
