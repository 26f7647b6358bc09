/* SPDX-License-Identifier: MIT */
/*
 * Converts handles of streams and kernel functions to addresses. The launch callback receives
 * these addresses for the same streams and functions.
 */
#ifndef GPUPART_LIB_CONFINE_STREAM_H
#define GPUPART_LIB_CONFINE_STREAM_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

/*
 * Identifies the stream of a handle. A default stream belongs to the current context. A
 * per-thread default stream also belongs to the calling thread. NULL is the legacy default
 * stream.
 */
GPUPART_PRIVATE
int stream_identify(struct gpupart *gp, const struct cuda_api *cuda, void *stream,
		    struct scope_id *id);
/*
 * Does the same inside a driver call while @ctx is current. If the handle is NULL, the stream is
 * the default stream that this driver call uses for NULL.
 */
void stream_identify_in_call(void *stream, bool per_thread, void *ctx, struct scope_id *id);

/*
 * Marks this thread. Call this function if the thread has sets that must be removed when the
 * thread ends.
 */
int stream_mark_thread(struct gpupart *gp);
/*
 * Sets the function that is called when a marked thread ends. The function gets the mark of the
 * thread. When a thread ends, its per-thread default streams also end.
 */
void stream_on_thread_end(void (*fn)(const void *thread));

/*
 * Returns true if a launch into @stream would become a node of a graph, or would end a capture.
 */
bool stream_is_captured(const struct cuda_api *cuda, void *stream);

/*
 * Returns -EBUSY with an error sentence if a launch on @stream would become a node of a stream
 * capture, or would end a capture. @stream is a default stream of the current context. The
 * capture may be of @stream itself. If @stream is the legacy default stream, the capture may be
 * of any stream for which this stream waits.
 */
GPUPART_PRIVATE
int stream_not_captured(struct gpupart *gp, const struct cuda_api *cuda, void *stream);

/* Gives a stream its first set. For this, the function finds the TMD of the stream. */
GPUPART_PRIVATE
int stream_set_first(struct gpupart *gp, struct gpupart_gpu *gpu, const struct cuda_api *cuda,
		     const struct scope_id *id, const struct gpupart_tpcset *set);

/*
 * Finds the CUfunction that the launch callback receives for launches of @handle, and its
 * module. @handle is a CUfunction or CUkernel.
 */
int stream_function(struct gpupart *gp, const struct cuda_api *cuda,
		    const struct gpupart_gpu *gpu, void *handle, void **function, void **module);

/*
 * Does the same in the current context for *@function, which must exist. If *@function is a
 * CUkernel, the driver loads its code, and *@function becomes the CUfunction. Returns the
 * driver's result. The driver must have cuFuncGetModule.
 */
int stream_module(const struct cuda_api *cuda, void **function, void **module);

#endif
