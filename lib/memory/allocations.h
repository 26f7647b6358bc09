/* SPDX-License-Identifier: MIT */
/*
 * The GPU memory that a process has allocated, by address or handle. The caller of each
 * function holds memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_ALLOCATIONS_H
#define GPUPART_LIB_MEMORY_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The kind of an item's key; keys of two kinds may have the same number. */
enum memory_key {
	MEMORY_BY_ADDRESS, MEMORY_BY_ARRAY, MEMORY_BY_HANDLE, MEMORY_BY_MAPPING, MEMORY_BY_IPC,
	MEMORY_BY_EXTERNAL, MEMORY_BY_EXEC, MEMORY_BY_SLAB, MEMORY_BY_OWNER,
	MEMORY_BY_HOST_POOL,	/* memory from it is not on a GPU, so it is not counted */
};

struct memory_gpu;

struct memory_item {
	struct memory_item *next;
	uint64_t key, bytes;
	const void *ctx;		/* freed with it; NULL: with no context */
	struct memory_gpu *gpu;
	struct memory_item *of;		/* of a mapping: the mapped item, which may be in no
					 * table */
	unsigned int handles, mappings;	/* of physical memory */
	unsigned int nr;		/* allocations in a slab */
	uint8_t by;
	bool unseen;			/* not included in the driver's figure for this process */
	bool foreign;			/* another process is charged for it */
	uint64_t trims;			/* of a graph: the GPU's trims at its last run, plus 1 */
};

/* NULL: out of memory. The new item has one handle and belongs to the table. */
struct memory_item *memory_table_add(enum memory_key by, uint64_t key);
struct memory_item *memory_table_find(enum memory_key by, uint64_t key);
/* Removes an item from the table; the caller frees it or puts it back. */
struct memory_item *memory_table_take(enum memory_key by, uint64_t key);
void memory_table_put(struct memory_item *item);
/* Removes all items for which @wanted returns true, chained by their next. */
struct memory_item *memory_table_take_all(bool (*wanted)(const struct memory_item *item,
							 const void *arg), const void *arg);
/* The first item for which @wanted returns true, or NULL; it stays in the table. */
struct memory_item *memory_table_search(bool (*wanted)(const struct memory_item *item,
						       const void *arg), const void *arg);

/*
 * Small allocations share 2 MiB of address space and of memory: a slab, whose key is its
 * address divided by its size. Measured on an H200: allocations of up to 1 MiB;
 * Documentation/internals/hardware.md, "Memory".
 */
#define MEMORY_SLAB	(2ull << 20)
#define MEMORY_SMALL	(1ull << 20)

#endif
