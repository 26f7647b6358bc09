/* SPDX-License-Identifier: MIT */
/*
 * The GPU memory that this process is charged for in its tenant's ledger: allocations, memory
 * that pools and graphs keep, and what the driver allocates for itself. The caller of each
 * function holds memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_ACCOUNT_H
#define GPUPART_LIB_MEMORY_ACCOUNT_H

#include "lib/memory/device.h"

struct memory_item;

/*
 * Returns 0, or -ENOMEM if the quota is exceeded even after everything that the process can
 * release was released: unused memory of pools and spare charges. The charge in advance for
 * code must remain.
 */
int memory_gpu_charge(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_charge_always(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_release(struct memory_gpu *gpu, uint64_t bytes);

/* The memory that an allocation of @bytes takes. */
uint64_t memory_gpu_rounded(uint64_t bytes);

/* Reduces the charge by an item that is in no table, and frees the item. */
void memory_gpu_item_goes(struct memory_item *item);

/* Does the same for all items in the table for which @which returns true. */
void memory_gpu_items_go(bool (*which)(const struct memory_item *item, const void *arg),
			 const void *arg);

/* Adds an allocation to the slab around @address; false: there is no slab yet. */
bool memory_gpu_slab_enter(uint64_t address);
/*
 * Creates and charges a slab around @address in @ctx, with one allocation in it: 0 or -ENOMEM.
 */
int memory_gpu_slab(struct memory_gpu *gpu, uint64_t address, const void *ctx);
/* Removes an allocation from the slab around @address. */
void memory_gpu_slab_leave(uint64_t address);

/*
 * Measures what the driver uses itself (contexts, code, stacks) and charges it. @strict: fails
 * with -ENOMEM if an increase does not fit. While calls of other threads are in flight, it is
 * postponed. Returns false if the driver does not report it.
 */
bool memory_gpu_measure(struct memory_gpu *gpu, bool strict, int *err);
/* Does the same, but only if some time has passed since the last measurement. */
void memory_gpu_measure_soon(struct memory_gpu *gpu);

/* Pools were changed by the program: their charge must be checked again. */
void memory_gpu_pools_changed(struct memory_gpu *gpu);

/*
 * Called before @bytes are allocated from a pool. Returns true if they were charged in advance;
 * the end of the call is then not observed.
 */
bool memory_gpu_pool_credit(struct memory_gpu *gpu, uint64_t bytes);
/*
 * Called if memory for the allocation was not charged in advance. If there is enough free quota,
 * it charges these bytes and more in advance and returns true.
 */
bool memory_gpu_pool_ahead(struct memory_gpu *gpu, uint64_t bytes);
/*
 * Called if that is not possible either. Returns 0 if the pool has room or its growth was
 * charged, and -ENOMEM otherwise. If it returns 0, call memory_gpu_pool_ends() with the same
 * @bytes, and then memory_gpu_pool_after().
 */
int memory_gpu_pool_before(struct memory_gpu *gpu, void *pool, const void *stream, uint64_t bytes);
/* The call has ended: the growth of its pool is part of the pools' size now. */
void memory_gpu_pool_ends(struct memory_gpu *gpu, uint64_t bytes);
/* Charges the current size of the pools. Returns -ENOMEM if it exceeds the quota. */
int memory_gpu_pool_after(struct memory_gpu *gpu);
/*
 * Called after that, when the excess is freed: pools release unused memory, and the rest is
 * charged.
 */
void memory_gpu_pool_undone(struct memory_gpu *gpu);

/* A capture began (1) or ended (-1): during a capture the library never waits for the GPU. */
void memory_gpu_captures(int more);

/*
 * Memory of graphs: called before one that may allocate @bytes more runs, and charges what
 * graphs have now.
 */
int memory_gpu_graph_before(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_graph_after(struct memory_gpu *gpu);

/* The values reported to the program: bytes that it can still allocate, and its total. */
void memory_gpu_answer(struct memory_gpu *gpu, uint64_t *free, uint64_t *total);

#endif
