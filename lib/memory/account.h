/* SPDX-License-Identifier: MIT */
/*
 * Charges this process's GPU memory to its tenant's ledger. The charge includes allocations, the
 * memory that pools and graphs keep, and the memory that the driver allocates for itself. The
 * caller of each function holds memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_ACCOUNT_H
#define GPUPART_LIB_MEMORY_ACCOUNT_H

#include "lib/memory/device.h"

struct memory_item;

#define MEMORY_CREDIT_EACH 512	/* the credit that the smallest allocation uses, in bytes */

/*
 * Charges @bytes. Returns 0 or -ENOMEM. Before the function returns -ENOMEM, it releases all unused
 * memory of pools and all spare charges of the process. It does not release the charge for code.
 */
int memory_gpu_charge(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_charge_always(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_release(struct memory_gpu *gpu, uint64_t bytes);

/* Returns the number of bytes that an allocation of @bytes needs in memory. */
uint64_t memory_gpu_rounded(uint64_t bytes);

/* Refunds the charge of an item that is not in the table, and frees the item. */
void memory_gpu_item_destroy(struct memory_item *item);

/*
 * Removes from the table all items for which @which returns true. Refunds their charges and
 * frees them.
 */
void memory_gpu_items_destroy(bool (*which)(const struct memory_item *item, const void *arg),
			      const void *arg);

/*
 * Adds an allocation to the slab around @address. Returns false if there is no such slab yet.
 */
bool memory_gpu_slab_enter(uint64_t address);
/*
 * Creates and charges a slab around @address in @ctx, with one allocation in it. Returns 0 or
 * -ENOMEM.
 */
int memory_gpu_slab(struct memory_gpu *gpu, uint64_t address, const void *ctx);
/* Removes an allocation from the slab around @address. */
void memory_gpu_slab_leave(uint64_t address);

/*
 * Measures and charges the memory that the driver uses for contexts, code and stacks. If @err is
 * not NULL and the charge would exceed the quota, charges nothing and sets *err to -ENOMEM. While
 * calls of other threads are in flight, the measurement is postponed. If the driver does not report
 * this memory, returns false.
 */
bool memory_gpu_measure(struct memory_gpu *gpu, int *err);
/*
 * If the last measurement is recent, does nothing. Otherwise does the same as
 * memory_gpu_measure().
 */
void memory_gpu_measure_soon(struct memory_gpu *gpu);

/*
 * Call this function after the program changed pools. The charge for pools is then checked
 * again.
 */
void memory_gpu_pools_changed(struct memory_gpu *gpu);

/*
 * Call this function before @bytes are allocated from a pool. If the bytes were charged in advance,
 * returns true. In this case the end of the call is not observed. This function needs no lock.
 */
static inline bool memory_gpu_pool_credit(struct memory_gpu *gpu, uint64_t bytes)
{
	uint64_t credit = atomic_load_explicit(&gpu->credit, memory_order_relaxed);

	/*
	 * For a huge size, the sum may wrap around. But the driver refuses a call with such a size.
	 */
	bytes += MEMORY_CREDIT_EACH;
	while (credit >= bytes)
		if (atomic_compare_exchange_weak(&gpu->credit, &credit, credit - bytes))
			return true;
	return false;
}

/*
 * Call this function if memory_gpu_pool_credit() returned false. If enough of the quota is free,
 * charges more than @bytes in advance and returns true.
 */
bool memory_gpu_pool_ahead(struct memory_gpu *gpu, uint64_t bytes);
/*
 * Call this function if memory_gpu_pool_ahead() returned false. If the pool has room for @bytes, or
 * if the growth of the pool was charged, returns 0. Otherwise returns -ENOMEM. If the result is 0,
 * the caller must later call memory_gpu_pool_ends() with the same @bytes, and then
 * memory_gpu_pool_after().
 */
int memory_gpu_pool_before(struct memory_gpu *gpu, void *pool, const void *stream, uint64_t bytes);
/*
 * Call this function when an allocation from a pool has ended. From then on, the size of the pools
 * includes the growth of this pool.
 */
void memory_gpu_pool_ends(struct memory_gpu *gpu, uint64_t bytes);
/*
 * Charges the memory that pools have now. If this charge would exceed the quota, returns -ENOMEM.
 */
int memory_gpu_pool_after(struct memory_gpu *gpu);
/*
 * If memory_gpu_pool_after() fails, the caller frees the new memory and calls this function. The
 * function makes the pools release their unused memory, and charges the remaining memory.
 */
void memory_gpu_pool_undone(struct memory_gpu *gpu);

/*
 * When a capture begins, this function is called with @more = 1. When a capture ends, it is called
 * with @more = -1. During a capture, the library never waits for the GPU.
 */
void memory_gpu_captures(int more);

/*
 * Call memory_gpu_graph_before() before the launch of a graph. The launch may allocate @bytes more
 * than graphs have now. After the launch, call memory_gpu_graph_after() to charge the memory that
 * graphs have then.
 */
int memory_gpu_graph_before(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_graph_after(struct memory_gpu *gpu);

/*
 * Computes the values that the program sees. The function sets *free to the number of bytes that
 * the program can still allocate. It sets *total to the size of the GPU's memory in bytes.
 */
void memory_gpu_answer(struct memory_gpu *gpu, uint64_t *free, uint64_t *total);

#endif
