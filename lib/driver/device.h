/* SPDX-License-Identifier: MIT */
/*
 * The list of attached GPUs, without their sets. Finds the GPU of a launch, of a context, or of
 * a CUDA device number. Only the function that adds a GPU takes a lock.
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
	unsigned int number;		/* index in the list of attached GPUs, from 0 */
	int device;			/* CUDA's device number; -1: not read yet */
	atomic_bool sm_limits_known;	/* map.sm was filled */
};

/*
 * The only GPU that CUDA shows, if this GPU is attached. NULL if it is not attached, or if CUDA
 * shows several GPUs. Usually CUDA shows exactly one GPU.
 */
extern _Atomic(struct driver_gpu *) driver_only_gpu __attribute__((visibility("hidden")));

/*
 * Starts watching contexts. Call this function before the first GPU is added. The results are
 * those of driver_observe().
 */
int driver_gpu_start(struct gpupart *gp, const struct cuda_api *api);

/*
 * Adds @gpu to the list of attached GPUs. The object must never be freed. -ENOSPC: the list
 * already has 64 GPUs.
 */
int driver_gpu_add(struct gpupart *gp, struct driver_gpu *gpu);

/* Returns attached GPU number @n, or NULL if @n is too large. */
struct driver_gpu *driver_gpu(unsigned int n);

/* Returns the attached GPU with this PCI address, or NULL. */
struct driver_gpu *driver_gpu_find(const char *pci);

/*
 * Returns the GPU of a launch in @ctx, or NULL. The function makes only driver calls that are
 * known to be safe in the launch callback.
 */
struct driver_gpu *driver_gpu_of_launch(void *ctx);

/*
 * Returns the attached GPU of @ctx, or NULL. The function works only for contexts that are
 * current or were current earlier.
 */
struct driver_gpu *driver_gpu_of_context(void *ctx);

/* Returns the attached GPU with this number in CUDA, or NULL. The first call makes driver calls. */
struct driver_gpu *driver_gpu_of_device(int device);

/*
 * Reads the PCI address of CUDA's @device. The address is in lower case, as in topologies.
 * Returns CUDA's result.
 */
int driver_device_pci(const struct cuda_api *api, int device, char pci[20]);

/*
 * Records that @ctx is on CUDA's @device. Then the GPU of a launch in @ctx is found even if
 * another context is current. This call is not needed if the program creates a stream, loads a
 * module or launches a kernel in @ctx while @ctx is current.
 */
void driver_context_on(const void *ctx, int device);

#endif
