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
 * Subscribes, before hook_install() does, so that stat.c is told of the functions that it
 * looks at. Needs nothing that launches are confined with.
 */
int hook_observe(struct gpupart *gp, const struct cuda_api *api);

/*
 * From now on launches on the GPU with this object's PCI address are looked at. The
 * object must live for ever. -ENOSPC above 64 GPUs.
 */
int hook_add_gpu(struct gpupart *gp, struct gpupart_gpu *gpu);

/* "" or why graphs may keep the sets that their nodes were built with. After hook_install(). */
const char *hook_graphs(void);
/* The driver shows that now; what it showed first stays. */
__attribute__((format(printf, 1, 2)))
void hook_graphs_amiss(const char *fmt, ...);

/* The attached GPU with this PCI address, or NULL. */
struct gpupart_gpu *hook_find_gpu(const char *pci);

/* The @n'th attached GPU, or NULL after the last. */
struct gpupart_gpu *hook_gpu(unsigned int n);

/*
 * @ctx is on CUDA's @device: launches in it are found to be there also when another context
 * is current. What makes streams, loads modules or launches while it is current need not say
 * so.
 */
void hook_context_on(const void *ctx, int device);

/* The attached GPU that @ctx is on, or NULL: found for contexts that are or were current. */
struct gpupart_gpu *hook_gpu_of_context(void *ctx);

/* The attached GPU that has this number in CUDA, or NULL. Calls the driver at first. */
struct gpupart_gpu *hook_gpu_of_device(int device);

/*
 * In the child of a fork: nothing more is watched. CUDA does not work there, and another
 * thread of the parent may have been in the driver, whose locks then stay taken.
 */
void hook_in_child(void);

/* From now on the begin and the end of launch functions are seen; harmless to repeat. */
void hook_watch_launches(void);

/*
 * From now on, or no more, the end of functions that tell of SMs is seen. -EOPNOTSUPP where
 * the driver tells of none.
 */
int hook_watch_questions(struct gpupart *gp, bool on);

/*
 * From now on the begin and the end of functions that have to do with memory are seen;
 * subscribes, where nobody has. -EOPNOTSUPP where the driver tells of none.
 */
int hook_watch_memory(struct gpupart *gp, const struct cuda_api *api);
/* Of those, the ones that are on the way of launches: from now on, too. */
void hook_watch_memory_later(void);

/* The thread that had this as its mark ends, and its per-thread default streams with it. */
void hook_thread_goes(const void *thread);

/* Whether the driver told of a stream whose object was at @object that it goes; forgets it. */
bool hook_saw_stream_go(uint64_t object);

#endif
