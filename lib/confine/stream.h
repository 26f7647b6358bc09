/* SPDX-License-Identifier: MIT */
/*
 * Converts handles of streams and kernel functions to addresses. The launch callback receives the
 * same addresses.
 */
#ifndef GPUPART_LIB_CONFINE_STREAM_H
#define GPUPART_LIB_CONFINE_STREAM_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

/*
 * Identifies the stream of a handle. A default stream belongs to the current context. A
 * per-thread default stream also belongs to the calling thread. The handle NULL means the legacy
 * default stream.
 */
GPUPART_PRIVATE
int stream_identify(struct gpupart *gp, const struct cuda_api *cuda, void *stream,
		    struct scope_id *id);
/*
 * Does the same as stream_identify(), but inside a driver call while @ctx is current. If the
 * handle is NULL, the stream is the default stream of this driver call.
 */
void stream_identify_in_call(void *stream, bool per_thread, void *ctx, struct scope_id *id);

/* Marks this thread. If sets must be removed at the end of this thread, call this function. */
int stream_mark_thread(struct gpupart *gp);
/*
 * Stores the function @fn. When a marked thread ends, @fn is called with the thread's mark. The
 * per-thread default streams end with their thread.
 */
void stream_on_thread_end(void (*fn)(const void *thread));

/* Returns true if a launch into @stream would become a graph node or end a capture. */
bool stream_is_captured(const struct cuda_api *cuda, void *stream);

/*
 * Returns -EBUSY with an error message if a launch into @stream would become a graph node or end
 * a capture. Here, @stream must be a default stream of the current context. Usually the program
 * captures @stream itself. If @stream is the legacy default stream, the capture may be on any
 * stream for which the legacy default stream waits.
 */
GPUPART_PRIVATE
int stream_not_captured(struct gpupart *gp, const struct cuda_api *cuda, void *stream);

/* Gives a stream its first set. For this, the function finds the TMD of the stream. */
GPUPART_PRIVATE
int stream_set_first(struct gpupart *gp, struct gpupart_gpu *gpu, const struct cuda_api *cuda,
		     const struct scope_id *id, const struct gpupart_tpcset *set);

/*
 * Argument @handle is a CUfunction or a CUkernel. For a launch of @handle, the launch callback
 * receives a CUfunction and its module. This function finds both.
 */
int stream_function(struct gpupart *gp, const struct cuda_api *cuda,
		    const struct gpupart_gpu *gpu, void *handle, void **function, void **module);

/*
 * Does the same as stream_function() in the current context. The function *function must exist.
 * If it is a CUkernel, the driver loads its code, and *function becomes the CUfunction. Returns
 * the driver's result. The driver must have cuFuncGetModule.
 */
int stream_module(const struct cuda_api *cuda, void **function, void **module);

#endif
