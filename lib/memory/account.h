/* SPDX-License-Identifier: MIT */
/*
 * The GPU memory that this process is charged for in its tenant's ledger: allocations, memory
 * that pools and graphs keep, and memory that the driver allocates for itself. The caller of
 * each function holds memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_ACCOUNT_H
#define GPUPART_LIB_MEMORY_ACCOUNT_H

#include "lib/memory/device.h"

struct memory_item;

/*
 * memory_gpu_charge() returns 0 or -ENOMEM. Before it returns -ENOMEM, it releases everything
 * that the process can release: unused memory of pools, and spare charges. It does not use the
 * charge in advance for code.
 */
int memory_gpu_charge(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_charge_always(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_release(struct memory_gpu *gpu, uint64_t bytes);

/* Returns the memory that an allocation of @bytes takes, in bytes. */
uint64_t memory_gpu_rounded(uint64_t bytes);

/* Refunds the charge of an item that is in no table, and frees the item. */
void memory_gpu_item_goes(struct memory_item *item);

/* Does the same for all items in the table for which @which returns true. */
void memory_gpu_items_go(bool (*which)(const struct memory_item *item, const void *arg),
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
 * Measures the memory that the driver uses itself (contexts, code, stacks) and charges it.
 * @strict: whether to fail with -ENOMEM in *err if an increase does not fit. While calls of
 * other threads are in flight, the measurement is postponed. Returns false if the driver does
 * not report this memory.
 */
bool memory_gpu_measure(struct memory_gpu *gpu, bool strict, int *err);
/* Does the same if the last measurement is not recent. */
void memory_gpu_measure_soon(struct memory_gpu *gpu);

/* Called when the program changed pools: their charge must be checked again. */
void memory_gpu_pools_changed(struct memory_gpu *gpu);

/*
 * Called before @bytes are allocated from a pool. Returns true if the bytes were charged in
 * advance. The end of the call is then not observed.
 */
bool memory_gpu_pool_credit(struct memory_gpu *gpu, uint64_t bytes);
/*
 * Called if memory_gpu_pool_credit() returned false. If there is enough free quota, charges
 * these bytes and more in advance and returns true.
 */
bool memory_gpu_pool_ahead(struct memory_gpu *gpu, uint64_t bytes);
/*
 * Called if memory_gpu_pool_ahead() returned false. Returns 0 if the pool has room for @bytes
 * or its growth was charged; otherwise returns -ENOMEM. After a return of 0 the caller calls
 * memory_gpu_pool_ends() with the same @bytes, and then memory_gpu_pool_after().
 */
int memory_gpu_pool_before(struct memory_gpu *gpu, void *pool, const void *stream, uint64_t bytes);
/*
 * Called when the call has ended: the growth of its pool is now part of the size of the pools.
 */
void memory_gpu_pool_ends(struct memory_gpu *gpu, uint64_t bytes);
/* Charges the memory that pools have now. Returns -ENOMEM if that does not fit. */
int memory_gpu_pool_after(struct memory_gpu *gpu);
/*
 * Called after memory_gpu_pool_after() failed and the caller freed the new memory. Makes the
 * pools release unused memory, and charges the rest.
 */
void memory_gpu_pool_undone(struct memory_gpu *gpu);

/*
 * Called with @more 1 when a capture begins and -1 when it ends. During a capture the library
 * never waits for the GPU.
 */
void memory_gpu_captures(int more);

/*
 * memory_gpu_graph_before() is called before a graph runs that may allocate @bytes more.
 * memory_gpu_graph_after() charges the memory that graphs have now.
 */
int memory_gpu_graph_before(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_graph_after(struct memory_gpu *gpu);

/*
 * Computes the values that the program sees: *free, the bytes that it can still allocate, and
 * *total, the bytes of the GPU.
 */
void memory_gpu_answer(struct memory_gpu *gpu, uint64_t *free, uint64_t *total);

#endif
