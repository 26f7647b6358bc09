/* SPDX-License-Identifier: MIT */
/*
 * Attached GPUs without their sets, and which of them a launch, a context or a CUDA device
 * number belongs to. Only adding a GPU takes a lock.
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
	unsigned int number;		/* among the attached GPUs, from 0 */
	int device;			/* CUDA's device number; -1: not asked for yet */
	atomic_bool sm_limits_known;	/* map.sm was filled */
};

/* The only GPU that CUDA shows, if it is attached (the usual case); else NULL. */
extern _Atomic(struct driver_gpu *) driver_only_gpu __attribute__((visibility("hidden")));

/*
 * Starts watching contexts; call it before the first GPU is added. Returns like
 * driver_observe().
 */
int driver_gpu_start(struct gpupart *gp, const struct cuda_api *api);

/*
 * Makes @gpu known to the functions below. The object must live for ever. -ENOSPC: more than 64
 * GPUs.
 */
int driver_gpu_add(struct gpupart *gp, struct driver_gpu *gpu);

/* Attached GPU number @n, or NULL after the last. */
struct driver_gpu *driver_gpu(unsigned int n);

/* The attached GPU with this PCI address, or NULL. */
struct driver_gpu *driver_gpu_find(const char *pci);

/*
 * The GPU of a launch in @ctx, or NULL. Only makes driver calls that are known to be safe in a
 * launch.
 */
struct driver_gpu *driver_gpu_of_launch(void *ctx);

/* The attached GPU that @ctx is on, or NULL. Works for contexts that are or were current. */
struct driver_gpu *driver_gpu_of_context(void *ctx);

/* The attached GPU that has this number in CUDA, or NULL. The first call asks the driver. */
struct driver_gpu *driver_gpu_of_device(int device);

/* The PCI address of CUDA's @device as in topologies, in lower case. Returns CUDA's result. */
int driver_device_pci(const struct cuda_api *api, int device, char pci[20]);

/*
 * Records that @ctx is on CUDA's @device, so that launches in it are found even if another
 * context is current. Not needed for contexts in which, while current, a stream is created, a
 * module loaded or a kernel launched.
 */
void driver_context_on(const void *ctx, int device);

#endif
