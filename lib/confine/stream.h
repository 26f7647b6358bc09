/* SPDX-License-Identifier: MIT */
/* Converts handles of streams and kernel functions to what the launch callback sees of them. */
#ifndef GPUPART_LIB_CONFINE_STREAM_H
#define GPUPART_LIB_CONFINE_STREAM_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

/*
 * Identifies a handle: default streams belong to the current context (and thread); NULL is the
 * legacy default stream.
 */
GPUPART_PRIVATE
int stream_identify(struct gpupart *gp, const struct cuda_api *cuda, void *stream,
		    struct scope_id *id);
/* The same inside a driver call with @ctx current; NULL is what the call takes it for. */
void stream_identify_in_call(void *stream, bool per_thread, void *ctx, struct scope_id *id);

/* Marks this thread because it has sets, which are removed when it ends. */
int stream_mark_thread(struct gpupart *gp);
/*
 * Sets the function that is called with its mark when such a thread ends, and its per-thread
 * default streams with it.
 */
void stream_on_thread_end(void (*fn)(const void *thread));

/* Whether a launch into @stream becomes a node of a graph or would end a capture. */
bool stream_is_captured(const struct cuda_api *cuda, void *stream);

/*
 * Returns -EBUSY with an error sentence if a launch on @stream, a default stream of the current
 * context, would become a node of a capture or end one: its own or, for the legacy stream, that
 * of any stream that it waits for.
 */
GPUPART_PRIVATE
int stream_not_captured(struct gpupart *gp, const struct cuda_api *cuda, void *stream);

/* Gives a stream its first set: finds its TMD. */
GPUPART_PRIVATE
int stream_set_first(struct gpupart *gp, struct gpupart_gpu *gpu, const struct cuda_api *cuda,
		     const struct scope_id *id, const struct gpupart_tpcset *set);

/*
 * Finds the CUfunction that launches of @handle (CUfunction or CUkernel) show, and its module.
 */
int stream_function(struct gpupart *gp, const struct cuda_api *cuda,
		    const struct gpupart_gpu *gpu, void *handle, void **function, void **module);

/*
 * The same for *@function, which must exist, in the current context. For a CUkernel *@function
 * changes, and its code is loaded. Returns the driver's result; the driver must have
 * cuFuncGetModule.
 */
int stream_module(const struct cuda_api *cuda, void **function, void **module);

#endif
