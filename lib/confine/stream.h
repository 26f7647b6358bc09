/* SPDX-License-Identifier: MIT */
/* From handles of streams and kernel functions to what a launch shows of them. */
#ifndef GPUPART_LIB_CONFINE_STREAM_H
#define GPUPART_LIB_CONFINE_STREAM_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

/*
 * Who a handle is: default streams belong to the current context (and thread), and
 * NULL is the legacy one.
 */
GPUPART_PRIVATE
int stream_identify(struct gpupart *gp, const struct cuda_api *cuda, void *stream,
		    struct scope_id *id);
/* The same inside a call of the driver with @ctx current; NULL is what the call means by it. */
void stream_identify_in_call(void *stream, bool per_thread, void *ctx, struct scope_id *id);

/* This thread has something of its own, which goes with it. */
int stream_mark_thread(struct gpupart *gp);
/* Called with its mark when such a thread ends, and its per-thread default streams with it. */
void stream_on_thread_end(void (*fn)(const void *thread));

/* What is launched into @stream becomes a node of a graph, or would end a capture. */
bool stream_is_captured(const struct cuda_api *cuda, void *stream);

/*
 * -EBUSY with a sentence where a launch on @stream, a default stream of the current context,
 * would become a node of a capture or end one: one of its own, or for the legacy stream one
 * of any stream that it waits for.
 */
GPUPART_PRIVATE
int stream_not_captured(struct gpupart *gp, const struct cuda_api *cuda, void *stream);

/* A stream's first set: finds its TMD. */
GPUPART_PRIVATE
int stream_set_first(struct gpupart *gp, struct gpupart_gpu *gpu, const struct cuda_api *cuda,
		     const struct scope_id *id, const struct gpupart_tpcset *set);

/* The CUfunction that launches show of @handle (CUfunction or CUkernel), and its module. */
int stream_function(struct gpupart *gp, const struct cuda_api *cuda,
		    const struct gpupart_gpu *gpu, void *handle, void **function, void **module);

/*
 * The same of *@function, which is live, in the current context: *@function changes for a CUkernel,
 * whose code is then loaded. The driver's result; the driver must have cuFuncGetModule.
 */
int stream_module(const struct cuda_api *cuda, void **function, void **module);

#endif
