/* SPDX-License-Identifier: MIT */
/*
 * The driver's launch callback: subscribes once a process, finds the GPU of a
 * launch, asks scope.c which set applies and tmd.c to put it in, and counts.
 */
#ifndef GPUPART_LIB_HOOK_H
#define GPUPART_LIB_HOOK_H

#include "cuda.h"
#include "scope.h"

/*
 * Subscribes, once; works before cuInit. -EOPNOTSUPP with what the driver offered
 * instead.
 */
int hook_install(struct gpupart *gp, const struct cuda_api *api);

/*
 * From now on launches on the GPU with this object's PCI address are looked at. The
 * object must live for ever. -ENOSPC above 64 GPUs.
 */
int hook_add_gpu(struct gpupart *gp, struct gpupart_gpu *gpu);

/* The attached GPU with this PCI address, or NULL. */
struct gpupart_gpu *hook_find_gpu(const char *pci);

/* The thread that had this as its mark ends, and its per-thread default streams with it. */
void hook_thread_goes(const void *thread);

/* Whether the driver told of a stream whose object was at @object that it goes; forgets it. */
bool hook_saw_stream_go(uint64_t object);

#endif
