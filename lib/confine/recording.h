/* SPDX-License-Identifier: MIT */
/*
 * Turns completion records on for attached GPUs, and passes events of contexts and streams to
 * lib/records. If a function of this file fails, the process has no records, but its launches
 * are still confined.
 */
#ifndef GPUPART_LIB_CONFINE_RECORDING_H
#define GPUPART_LIB_CONFINE_RECORDING_H

#include "lib/confine/probe.h"

/*
 * Proves by launches on @stream that the GPU writes records. If this was already proven, the
 * function makes no launches. The caller must have called probe_enter().
 */
void recording_prove(struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Uses the result of an earlier recording_prove() on this GPU and driver and makes no launches.
 * The result is in the user's cache or in @key, which may be NULL; see check_gpu_known().
 */
void recording_known(struct gpupart_gpu *gpu, const char *key);

/* Stops recording. @why is the reason. */
void recording_stop(const char *why);

/*
 * Called when @ctx was created or retained. @ctx need not be current. The function calls the
 * driver.
 */
void recording_context(const struct cuda_api *cuda, void *ctx);

/*
 * Called when the stream at @object is being destroyed, or when @ctx is being destroyed with its
 * streams. An argument that is 0 or NULL matches nothing.
 */
void recording_destroyed(uint64_t object, const void *ctx);

/*
 * Finds the names of functions that were launched. The launch callback must not call this
 * function.
 */
void recording_names(const struct cuda_api *cuda);
/* Adds all launches that have ended to the totals, and then finds the names of functions. */
void recording_settle(const struct cuda_api *cuda);
void recording_module_gone(void);

/* Called when a driver function in @ctx has failed with @result. */
void recording_failed(int result, const void *ctx);

#endif
