/* SPDX-License-Identifier: MIT */
/*
 * Turns completion records on for attached GPUs. Passes events of contexts and streams to
 * lib/records. If a function of this file fails, the process has no records, but launches are
 * still confined.
 */
#ifndef GPUPART_LIB_CONFINE_RECORDING_H
#define GPUPART_LIB_CONFINE_RECORDING_H

#include "lib/confine/probe.h"

/*
 * Makes launches on @stream to prove that the GPU writes records. If there is already a proof,
 * the function makes no launches. The caller must have called probe_enter().
 */
void recording_prove(struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Makes no launches, and uses the result of an earlier recording_prove() on this GPU and driver.
 * This result is in the user's cache or in @key. Argument @key may be NULL. See
 * check_gpu_known().
 */
void recording_known(struct gpupart_gpu *gpu, const char *key);

/* Stops recording for the reason @why. */
void recording_stop(const char *why);

/*
 * Called when @ctx was created or retained. The context @ctx need not be current. The function
 * calls the driver.
 */
void recording_context(const struct cuda_api *cuda, void *ctx);

/*
 * Called when the stream at @object is being destroyed, or when @ctx and its streams are being
 * destroyed. An argument that is 0 or NULL matches nothing.
 */
void recording_destroyed(uint64_t object, const void *ctx);

/*
 * Reads the names of launched functions from the driver. The launch callback must not call this
 * function.
 */
void recording_names(const struct cuda_api *cuda);
void recording_module_gone(void);

/* Called when a driver function in @ctx has failed with @result. */
void recording_failed(int result, const void *ctx);

#endif
