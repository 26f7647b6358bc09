/* SPDX-License-Identifier: MIT */
/*
 * A table of the GPU memory that a process has allocated. The keys are addresses or handles. The
 * caller of each function holds memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_ALLOCATIONS_H
#define GPUPART_LIB_MEMORY_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The kind of an item's key. Two keys of different kinds may have the same number. */
enum memory_key {
	MEMORY_BY_ADDRESS, MEMORY_BY_ARRAY, MEMORY_BY_HANDLE, MEMORY_BY_MAPPING, MEMORY_BY_IPC,
	MEMORY_BY_EXTERNAL, MEMORY_BY_EXEC, MEMORY_BY_SLAB, MEMORY_BY_OWNER,
	MEMORY_BY_HOST_POOL,	/* a pool whose memory is not on a GPU and is not counted */
};

struct memory_gpu;

struct memory_item {
	struct memory_item *next;
	uint64_t key, bytes;
	const void *ctx;		/* the context with which the item is freed;
					 * NULL: no context */
	struct memory_gpu *gpu;
	struct memory_item *of;		/* for a mapping: the mapped item, which is not always in
					 * the table */
	unsigned int handles, mappings;	/* for physical memory: the number of its handles, and the
					 * number of its mappings */
	unsigned int nr;		/* number of allocations in a slab */
	uint8_t by;
	bool unseen;			/* not included in the driver's figure for this process */
	bool foreign;			/* another process is charged for the item */
	uint64_t trims;			/* for a graph: 1 + the value of its GPU's @trims at the
					 * last run of the graph */
};

/*
 * Adds an item with one handle to the table. The table owns the item. Returns NULL if memory is
 * short.
 */
struct memory_item *memory_table_add(enum memory_key by, uint64_t key);
struct memory_item *memory_table_find(enum memory_key by, uint64_t key);
/* Removes an item from the table. The caller frees the item or adds it to the table again. */
struct memory_item *memory_table_take(enum memory_key by, uint64_t key);
void memory_table_put(struct memory_item *item);
/*
 * Removes all items for which @wanted returns true. Returns these items in a list. The member @next
 * links the items.
 */
struct memory_item *memory_table_take_all(bool (*wanted)(const struct memory_item *item,
							 const void *arg), const void *arg);
/*
 * Returns the first item for which @wanted returns true, or NULL. The item stays in the table.
 */
struct memory_item *memory_table_search(bool (*wanted)(const struct memory_item *item,
						       const void *arg), const void *arg);

/*
 * Small allocations share a slab. A slab is a 2 MiB range of addresses, together with its memory.
 * The key of a slab is its address divided by its size. On an H200, allocations of up to 1 MiB are
 * small. The section "Memory" of Documentation/internals/hardware.md has the measurement.
 */
#define MEMORY_SLAB	(2ull << 20)
#define MEMORY_SMALL	(1ull << 20)

#endif
