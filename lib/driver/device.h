/* SPDX-License-Identifier: MIT */
/*
 * The list of attached GPUs. Finds the GPU of a launch, a context or a CUDA device number. The
 * function that adds a GPU takes a lock. The other functions take no lock.
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
	unsigned int number;		/* index in the list of attached GPUs, beginning with 0 */
	int device;			/* CUDA's device number; -1: not read yet */
	atomic_bool sm_limits_known;	/* map.sm was filled */
};

/*
 * If CUDA shows exactly one GPU and this GPU is attached, this variable points to the GPU.
 * Otherwise this variable is NULL. Usually CUDA shows one GPU.
 */
extern _Atomic(struct driver_gpu *) driver_only_gpu __attribute__((visibility("hidden")));

/*
 * Starts watching contexts. Call this function before you add the first GPU. Returns 0 or an
 * error of driver_observe().
 */
int driver_gpu_start(struct gpupart *gp, const struct cuda_api *api);

/*
 * Adds @gpu to the list of attached GPUs. The object must never be freed. If the list already has
 * 64 GPUs, returns -ENOSPC.
 */
int driver_gpu_add(struct gpupart *gp, struct driver_gpu *gpu);

/* Returns the attached GPU with number @n. If @n is too large, returns NULL. */
struct driver_gpu *driver_gpu(unsigned int n);

/* Returns the attached GPU with this PCI address, or NULL. */
struct driver_gpu *driver_gpu_find(const char *pci);

/*
 * Returns the GPU of a launch in @ctx, or NULL. All driver calls of this function are safe in the
 * launch callback.
 */
struct driver_gpu *driver_gpu_of_launch(void *ctx);

/* Returns true if the device of @ctx is known, whether or not its GPU is attached. */
bool driver_context_known(const void *ctx);

/*
 * Returns the attached GPU of @ctx, or NULL. The context must be current now or must have been
 * current earlier.
 */
struct driver_gpu *driver_gpu_of_context(void *ctx);

/*
 * Returns the attached GPU with this CUDA device number, or NULL. The first call queries the
 * driver.
 */
struct driver_gpu *driver_gpu_of_device(int device);

/*
 * Reads the PCI address of CUDA device @device. The address is in lower case, like the addresses
 * in topologies. Returns CUDA's result.
 */
int driver_device_pci(const struct cuda_api *api, int device, char pci[20]);

/*
 * Records that @ctx is on CUDA device @device. Then the library can find the GPU of a launch in
 * @ctx even if another context is current. The program may create a stream, load a module or
 * launch a kernel in @ctx. If @ctx is current then, the library learns the device without this
 * call.
 */
void driver_context_on(const void *ctx, int device);

#endif
