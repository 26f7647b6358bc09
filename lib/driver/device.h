/* SPDX-License-Identifier: MIT */
/*
 * Attached GPUs: what is known of each without its sets, and which of them a launch, a context or
 * CUDA's number means. Without locks, but for adding one.
 */
#ifndef GPUPART_LIB_DRIVER_DEVICE_H
#define GPUPART_LIB_DRIVER_DEVICE_H

#include <stdatomic.h>
#include "lib/driver/cuda.h"
#include "lib/tmd/tmd.h"

#define DRIVER_MAX_GPUS 64

struct driver_gpu {
	struct gpupart_topology *topo;
	struct tmd_map map;
	unsigned int compute_class;
	unsigned int number;		/* of the attached GPUs, from 0 */
	int device;			/* CUDA's number of it, -1 where none was asked for yet */
	atomic_bool sm_limits_known;	/* map.sm was filled */
};

/* The usual case: CUDA shows one device, and it is attached. Else NULL. */
extern _Atomic(struct driver_gpu *) driver_only_gpu __attribute__((visibility("hidden")));

/* Before the first is added: contexts are watched. As driver_observe(). */
int driver_gpu_start(struct gpupart *gp, const struct cuda_api *api);

/* From now on it is found here. The object must live for ever. -ENOSPC above 64 GPUs. */
int driver_gpu_add(struct gpupart *gp, struct driver_gpu *gpu);

/* The @n'th attached GPU, or NULL after the last. */
struct driver_gpu *driver_gpu(unsigned int n);

/* The attached GPU with this PCI address, or NULL. */
struct driver_gpu *driver_gpu_find(const char *pci);

/* That of a launch in @ctx, or NULL. Calls the driver, by what was seen to be safe in a launch. */
struct driver_gpu *driver_gpu_of_launch(void *ctx);

/* The attached GPU that @ctx is on, or NULL: found for contexts that are or were current. */
struct driver_gpu *driver_gpu_of_context(void *ctx);

/* The attached GPU that has this number in CUDA, or NULL. Calls the driver at first. */
struct driver_gpu *driver_gpu_of_device(int device);

/* The PCI address of CUDA's @device as topologies have it, in lower case: CUDA's result. */
int driver_device_pci(const struct cuda_api *api, int device, char pci[20]);

/*
 * @ctx is on CUDA's @device: launches in it are found to be there also when another context
 * is current. What makes streams, loads modules or launches while it is current need not say
 * so.
 */
void driver_context_on(const void *ctx, int device);

#endif
