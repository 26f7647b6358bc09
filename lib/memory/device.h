/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that this process uses, and the pools of each GPU, as the driver describes them. The
 * caller of each function holds memory_device_lock(), except for memory_device_start(),
 * memory_device_forked() and memory_device_ns().
 */
#ifndef GPUPART_LIB_MEMORY_DEVICE_H
#define GPUPART_LIB_MEMORY_DEVICE_H

#include "lib/driver/cuda.h"
#include "lib/ledger/ledger.h"

#define MEMORY_MAX_DEVICES 64

struct memory_gpu {
	char pci[LEDGER_PCI_LEN];
	int device;			/* CUDA's device number */
	int index;			/* index in the ledger */
	uint64_t total;			/* memory of the GPU in bytes */
	/*
	 * Charges in bytes. @unseen is the part of the charges that the driver's figure does
	 * not include.
	 */
	uint64_t held, unseen, overhead, pools, graphs;
	uint64_t lacking;		/* part of the charge in advance for code that did
					 * not fit into the quota */
	uint64_t foreign;		/* bytes in the driver's figure that another process
					 * is charged for */
	uint64_t growing;		/* growth of pools that calls in flight may cause */
	void *pool;			/* current pool; NULL: the driver was not asked for
					 * the current pool yet */
	/*
	 * Charged in advance for pools, when, and the bytes that may be allocated before the
	 * next check.
	 */
	uint64_t ahead, ahead_ns, credit;
	const void *stream;	/* stream of the last call on a pool that was checked */
	bool many_streams;
	unsigned int nr_empty;		/* number of slabs without allocations */
	unsigned int in_flight;		/* number of calls that are allocating or freeing
					 * memory now */
	uint64_t measured_ns;
	bool due;			/* the memory must be measured at the next
					 * opportunity */
	bool has_graphs;		/* there are graphs that allocate memory */
	bool told;			/* the driver has reported this process's usage at least
					 * once */
	void *primary;			/* the device's primary context, or NULL */
	uint64_t trims;			/* number of times that memory of graphs was released */
	void **known_pools;
	unsigned int nr_pools;
};

extern const struct cuda_api *memory_cuda __attribute__((visibility("hidden")));

/* Must be called once, before the other functions. */
void memory_device_start(const struct cuda_api *cuda);

/*
 * Never hold the lock while waiting for the GPU: the GPU's work may itself wait for another
 * thread that needs the lock.
 */
void memory_device_lock(void);
void memory_device_unlock(void);

/*
 * Returns NULL if there is no such device, or the ledger cannot be joined for it. A failure to
 * join may take seconds, and the ledger is then not tried again for ten times as long. The
 * first call for a device calls the driver.
 */
struct memory_gpu *memory_device_join(int device);
/*
 * Called in the child of a fork. The child may join a ledger that its parent could not join.
 * Returns true if the parent had a GPU.
 */
bool memory_device_forked(void);
/* Returns a GPU that memory_device_join() found before, or NULL. */
struct memory_gpu *memory_device_known(int device);

/*
 * Records and returns a pool whose memory is on this GPU. If @pool is NULL, it records and
 * returns the current pool of the GPU.
 */
void *memory_device_pool(struct memory_gpu *gpu, void *pool);
void memory_device_pool_destroyed(void *pool);
/*
 * Returns the GPU of a pool that was recorded, or that is the default pool or current pool of a
 * GPU. Returns NULL if the pool is unknown.
 */
struct memory_gpu *memory_device_of_pool(const void *pool);
/* Returns the bytes of the GPU's memory that all its pools have together. */
uint64_t memory_device_pools_reserved(const struct memory_gpu *gpu);
/*
 * Returns the bytes that one pool, or all pools, keep without using them, as far as the driver
 * reports this.
 */
uint64_t memory_device_pool_unused(void *pool);
bool memory_device_pools_unused(const struct memory_gpu *gpu);

/* Returns the time of a coarse monotonic clock in ns. */
uint64_t memory_device_ns(void);

#endif
