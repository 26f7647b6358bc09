/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that this process uses and the pools of each, as the driver describes them. The
 * caller of each function but memory_device_start(), _forked() and _ns() holds
 * memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_DEVICE_H
#define GPUPART_LIB_MEMORY_DEVICE_H

#include "lib/driver/cuda.h"
#include "lib/ledger/ledger.h"

#define MEMORY_MAX_DEVICES 64

struct memory_gpu {
	char pci[LEDGER_PCI_LEN];
	int device;			/* CUDA's number */
	int index;			/* the ledger's */
	uint64_t total;			/* bytes that it really has */
	/* Charged, in bytes; unseen: of that, what the driver's figure does not have. */
	uint64_t held, unseen, overhead, pools, graphs;
	uint64_t lacking;		/* of what is charged ahead for code: it did not fit */
	uint64_t foreign;		/* in the driver's figure, and another's */
	uint64_t growing;		/* by which pools may grow in calls under way */
	void *pool;			/* the one in use; NULL: to be asked for */
	/* Charged ahead for pools, when; bytes that may be allocated before the next look. */
	uint64_t ahead, ahead_ns, credit;
	const void *stream;	/* of the last call on a pool that was looked at */
	bool many_streams;
	unsigned int nr_empty;		/* slabs with nothing in them */
	unsigned int in_flight;		/* calls that get or give back memory now */
	uint64_t measured_ns;
	bool due;			/* to be measured at the next occasion */
	bool has_graphs;		/* that get memory */
	bool told;			/* the driver's figure for this process was there once */
	void *primary;			/* the device's primary context, or NULL */
	uint64_t trims;			/* how often graphs' memory was given back */
	void **known_pools;
	unsigned int nr_pools;
};

extern const struct cuda_api *memory_cuda __attribute__((visibility("hidden")));

/* Once, before the others. */
void memory_device_start(const struct cuda_api *cuda);

/*
 * Never held while the caller waits for a GPU: what runs there may end only once another
 * thread, which needs the lock, has gone on.
 */
void memory_device_lock(void);
void memory_device_unlock(void);

/*
 * NULL: no such device, or the ledger cannot be joined for it, which may take some s; then it
 * is not tried again for ten times as long. Calls the driver at first.
 */
struct memory_gpu *memory_device_join(int device);
/* In the child of a fork, which may join what its parent could not: true if that had a GPU. */
bool memory_device_forked(void);
/* Found by memory_device_join() before, or NULL. */
struct memory_gpu *memory_device_known(int device);

/* A pool whose memory is this GPU's, or NULL for the one that is in use there now; which. */
void *memory_device_pool(struct memory_gpu *gpu, void *pool);
void memory_device_pool_destroyed(void *pool);
/* The GPU that it was named for, or is the default or current one of; or NULL. */
struct memory_gpu *memory_device_of_pool(const void *pool);
/* What they have of the GPU's memory in all. */
uint64_t memory_device_pools_reserved(const struct memory_gpu *gpu);
/* Of that, what one of them, or any, keeps and does not use, as far as the driver tells. */
uint64_t memory_device_pool_unused(void *pool);
bool memory_device_pools_unused(const struct memory_gpu *gpu);

/* Coarse, by a clock that is not set. */
uint64_t memory_device_ns(void);

#endif
