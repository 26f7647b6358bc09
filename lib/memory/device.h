/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that this process uses and the pools of each, as the driver describes them. The
 * caller of each function, except memory_device_start(), _forked() and _ns(), holds
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
	int index;			/* index in the ledger */
	uint64_t total;			/* of the GPU, in bytes */
	/*
	 * Charges in bytes; unseen: the part of them that the driver's figure does not include.
	 */
	uint64_t held, unseen, overhead, pools, graphs;
	uint64_t lacking;		/* part of the charge in advance for code that did not
					 * fit */
	uint64_t foreign;		/* in the driver's figure, but another process is charged
					 * for it */
	uint64_t growing;		/* growth of pools that calls in flight may cause */
	void *pool;			/* the current pool; NULL: not asked for yet */
	/*
	 * Charged in advance for pools, when, and the bytes that may be allocated before the
	 * next check.
	 */
	uint64_t ahead, ahead_ns, credit;
	const void *stream;	/* of the last call on a pool that was checked */
	bool many_streams;
	unsigned int nr_empty;		/* slabs without allocations */
	unsigned int in_flight;		/* calls that are allocating or freeing memory now */
	uint64_t measured_ns;
	bool due;			/* to be measured at the next opportunity */
	bool has_graphs;		/* graphs that allocate memory */
	bool told;			/* the driver has reported this process's usage at least
					 * once */
	void *primary;			/* the device's primary context, or NULL */
	uint64_t trims;			/* how often memory of graphs was released */
	void **known_pools;
	unsigned int nr_pools;
};

extern const struct cuda_api *memory_cuda __attribute__((visibility("hidden")));

/* Call it once, before the others. */
void memory_device_start(const struct cuda_api *cuda);

/*
 * Never hold the lock while waiting for the GPU: the work may itself wait for another thread
 * that needs the lock.
 */
void memory_device_lock(void);
void memory_device_unlock(void);

/*
 * Returns NULL if there is no such device, or the ledger cannot be joined for it. That may take
 * seconds; it is then not tried again for ten times as long. The first call for a device calls
 * the driver.
 */
struct memory_gpu *memory_device_join(int device);
/*
 * Called in the child of a fork, which may join a ledger that its parent could not join.
 * Returns true if the parent had a GPU.
 */
bool memory_device_forked(void);
/* A GPU that memory_device_join() found before, or NULL. */
struct memory_gpu *memory_device_known(int device);

/*
 * Records a pool whose memory is on this GPU, or with NULL the GPU's current pool, and returns
 * it.
 */
void *memory_device_pool(struct memory_gpu *gpu, void *pool);
void memory_device_pool_destroyed(void *pool);
/*
 * The GPU of a pool that was recorded, or that is the GPU's default or current pool; or NULL.
 */
struct memory_gpu *memory_device_of_pool(const void *pool);
/* The memory of the GPU that all its pools have together. */
uint64_t memory_device_pools_reserved(const struct memory_gpu *gpu);
/*
 * The part that one pool, or all of them, keep without using it, as far as the driver reports
 * it.
 */
uint64_t memory_device_pool_unused(void *pool);
bool memory_device_pools_unused(const struct memory_gpu *gpu);

/* A coarse monotonic clock in ns. */
uint64_t memory_device_ns(void);

#endif
