/* SPDX-License-Identifier: MIT */
/*
 * Declares the GPUs that this process uses, and the memory pools of each GPU. The functions
 * memory_device_forked() and memory_device_ns() need no lock. The caller of each other function
 * holds memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_DEVICE_H
#define GPUPART_LIB_MEMORY_DEVICE_H

#include <stdatomic.h>
#include "lib/driver/cuda.h"
#include "lib/ledger/ledger.h"

#define MEMORY_MAX_DEVICES 64

struct memory_gpu {
	char pci[LEDGER_PCI_LEN];
	int device;			/* CUDA's device number */
	int index;			/* index in the ledger */
	uint64_t total;			/* memory of the GPU in bytes */
	/* The charges in bytes. The driver's figure does not include the part @unseen. */
	uint64_t held, unseen, overhead, pools, graphs;
	uint64_t lacking;		/* missing part of the advance charge for code: it did not
					 * fit into the quota */
	uint64_t foreign;		/* bytes that are in the driver's figure but are charged to
					 * another process */
	uint64_t growing;		/* bytes by which calls in flight may make pools grow */
	void *pool;			/* current pool; NULL: the driver was not asked for
					 * the current pool yet */
	/*
	 * The charge in advance for pools, in bytes, and its time. The calls may allocate @credit
	 * bytes before the next check. Calls take their bytes from @credit without the lock.
	 */
	uint64_t ahead, ahead_ns;
	_Atomic uint64_t credit;
	const void *stream;	/* stream of the last checked call on a pool */
	bool many_streams;
	unsigned int nr_empty;		/* number of slabs without allocations */
	unsigned int in_flight;		/* number of calls that are allocating or freeing
					 * memory now */
	uint64_t measured_ns;
	bool due;			/* the next call that can measure the memory must measure
					 * it */
	bool has_graphs;		/* there are graphs that allocate memory */
	bool reported;			/* the driver has reported this process's usage at least
					 * once */
	void *primary;			/* the device's primary context, or NULL */
	uint64_t trims;			/* number of times that memory of graphs was released */
	void **known_pools;
	unsigned int nr_pools;
};

/* Must be set before the functions are called. */
extern const struct cuda_api *memory_cuda __attribute__((visibility("hidden")));

/*
 * A thread that waits for the GPU must not hold the lock. The work on the GPU may be waiting for
 * another thread, and that thread may need the lock.
 */
void memory_device_lock(void);
void memory_device_unlock(void);

/*
 * Returns the GPU of a device. If there is no such device, or if this process cannot join the
 * ledger for the GPU, returns NULL. A failure to join may take seconds. After a failure, the next
 * try is delayed by ten times the duration of the failed try. The first call for a device calls the
 * driver.
 */
struct memory_gpu *memory_device_join(int device);
/*
 * The child of a fork calls this function. The child may join a ledger that its parent could not
 * join. Returns true if the parent had a GPU.
 */
bool memory_device_forked(void);
/* Returns a GPU that memory_device_join() found before, or NULL. */
struct memory_gpu *memory_device_known(int device);

/*
 * Records and returns @pool, whose memory is on this GPU. If @pool is NULL, records and returns
 * the current pool of the GPU.
 */
void *memory_device_pool(struct memory_gpu *gpu, void *pool);
void memory_device_pool_destroyed(void *pool);
/*
 * Returns the GPU of a pool. The pool must have been recorded, or it must be the default pool or
 * the current pool of a GPU. Returns NULL for an unknown pool.
 */
struct memory_gpu *memory_device_of_pool(const void *pool);
/* Returns the total size in bytes of all pools of the GPU. */
uint64_t memory_device_pools_reserved(const struct memory_gpu *gpu);
/*
 * The first function returns the number of unused bytes of a pool. If the driver does not report
 * this number, the function returns 0. The second function returns true if any pool of the GPU has
 * unused bytes.
 */
uint64_t memory_device_pool_unused(void *pool);
bool memory_device_pools_unused(const struct memory_gpu *gpu);

/* Returns the time of a coarse monotonic clock in ns. */
uint64_t memory_device_ns(void);

#endif
