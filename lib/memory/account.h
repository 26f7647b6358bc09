/* SPDX-License-Identifier: MIT */
/*
 * A GPU's memory as this process is charged for it in its tenant's ledger: allocations, what
 * pools and graphs keep, what the driver takes for itself. The caller of each function holds
 * memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_ACCOUNT_H
#define GPUPART_LIB_MEMORY_ACCOUNT_H

#include "lib/memory/device.h"

struct memory_item;

/*
 * 0, or -ENOMEM when all that the process could give back, pools' unused memory and its own
 * reckoning's slack, was given back. It must leave what is charged ahead for code.
 */
int memory_gpu_charge(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_charge_always(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_release(struct memory_gpu *gpu, uint64_t bytes);

/* What an allocation of @bytes takes. */
uint64_t memory_gpu_rounded(uint64_t bytes);

/* Gives back what an item that is in no table is charged for, and the item. */
void memory_gpu_item_goes(struct memory_item *item);

/* The same of all in the table for which @which returns true. */
void memory_gpu_items_go(bool (*which)(const struct memory_item *item, const void *arg),
			 const void *arg);

/* One allocation more in the slab around @address; false: there is no slab yet. */
bool memory_gpu_slab_enter(uint64_t address);
/* A new slab around @address, of @ctx, charged, with one allocation in it: 0, -ENOMEM. */
int memory_gpu_slab(struct memory_gpu *gpu, uint64_t address, const void *ctx);
/* One allocation less in the slab around @address. */
void memory_gpu_slab_leave(uint64_t address);

/*
 * Has the driver's own take (contexts, code, stacks) charged as it is now. @strict: -ENOMEM
 * where more than was charged before does not fit. Not while others' calls are under way:
 * then it is done later. False where the driver does not tell.
 */
bool memory_gpu_measure(struct memory_gpu *gpu, bool strict, int *err);
/* That, if it has not been done for a while. */
void memory_gpu_measure_soon(struct memory_gpu *gpu);

/* Pools were changed from outside: what is charged for them is to be looked at again. */
void memory_gpu_pools_changed(struct memory_gpu *gpu);

/* Before @bytes come out of a pool: true if they were charged ahead; then its end is not seen. */
bool memory_gpu_pool_credit(struct memory_gpu *gpu, uint64_t bytes);
/* Where they were not: true if there is plenty, and these and more are charged ahead now. */
bool memory_gpu_pool_ahead(struct memory_gpu *gpu, uint64_t bytes);
/*
 * Where there is not: 0, and its growth is charged, or it has room; -ENOMEM. After 0
 * memory_gpu_pool_ends() with the same @bytes is wanted, and then memory_gpu_pool_after().
 */
int memory_gpu_pool_before(struct memory_gpu *gpu, void *pool, const void *stream, uint64_t bytes);
/* The call has ended: what its pool grew by is in what pools have. */
void memory_gpu_pool_ends(struct memory_gpu *gpu, uint64_t bytes);
/* As much as pools have now; -ENOMEM: that is more than fits. */
int memory_gpu_pool_after(struct memory_gpu *gpu);
/* Then, when what was too much is free: pools give back what they keep; it is charged for. */
void memory_gpu_pool_undone(struct memory_gpu *gpu);

/* A capture began (1) or ended (-1): while there is one nobody waits for what runs. */
void memory_gpu_captures(int more);

/* Graphs' memory: before one that may take @bytes more runs, and as much as there is now. */
int memory_gpu_graph_before(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_graph_after(struct memory_gpu *gpu);

/* What the program is told: bytes that it may still have, and has in all. */
void memory_gpu_answer(struct memory_gpu *gpu, uint64_t *free, uint64_t *total);

#endif
