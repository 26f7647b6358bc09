/* SPDX-License-Identifier: MIT */
/*
 * What a process has of GPUs' memory, by address or handle: items, under a lock that the
 * caller holds, and counts of small allocations, which need none. Knows no driver.
 */
#ifndef GPUPART_LIB_MEMORY_TABLE_H
#define GPUPART_LIB_MEMORY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* What an item's key is: two kinds may have the same number. */
enum memory_key {
	MEMORY_BY_ADDRESS, MEMORY_BY_ARRAY, MEMORY_BY_HANDLE, MEMORY_BY_MAPPING, MEMORY_BY_IPC,
	MEMORY_BY_EXTERNAL, MEMORY_BY_EXEC, MEMORY_BY_SLAB, MEMORY_BY_OWNER,
};

struct memory_gpu;

struct memory_item {
	struct memory_item *next;
	uint64_t key, bytes;
	const void *ctx;		/* goes with it; NULL: with none */
	struct memory_gpu *gpu;
	struct memory_item *of;		/* a mapping: what is mapped, in the table or not */
	unsigned int handles, mappings;	/* of physical memory */
	uint8_t by;
	bool unseen;			/* the driver's figure for a process does not have it */
	bool foreign;			/* another process is charged for it */
	bool managed;
	uint64_t trims;			/* of a graph: the GPU's at its last run, and 1 */
};

/* NULL: out of memory. It has one handle and belongs to the table. */
struct memory_item *memory_table_add(enum memory_key by, uint64_t key);
struct memory_item *memory_table_find(enum memory_key by, uint64_t key);
/* Out of the table; the caller frees it or puts it back. */
struct memory_item *memory_table_take(enum memory_key by, uint64_t key);
void memory_table_put(struct memory_item *item);
/*
 * Takes out one of those that @wanted says true of, or NULL. To take many it goes on from
 * where it was: *at begins with 0.
 */
struct memory_item *memory_table_take_if(bool (*wanted)(const struct memory_item *item,
							const void *arg),
					 const void *arg, unsigned int *at);
/* The first that it says true of stays in the table. */
struct memory_item *memory_table_search(bool (*wanted)(const struct memory_item *item,
						       const void *arg), const void *arg);

/*
 * Small allocations share 2 MiB of address space and of memory: a slab. Measured on an
 * H200: of up to 1 MiB each; Documentation/hardware.md, "Memory".
 */
#define MEMORY_SLAB	(2ull << 20)
#define MEMORY_SMALL	(1ull << 20)

/* One more in the slab at @address, of the number that it has: false, there is none yet. */
bool memory_slab_enter(uint64_t address);
/* One less; false: there is none. *empty: it was the last. */
bool memory_slab_leave(uint64_t address, bool *empty);
bool memory_slab_there(uint64_t address);
/*
 * A large allocation begins at @address, where a slab was that is kept for what comes next, or
 * that another thread has not left yet: memory_slab_there() says no until it is gone.
 */
void memory_slab_hide(uint64_t address, bool hide);
/* With one allocation in it; false: out of memory, or no address. Under the caller's lock. */
bool memory_slab_make(uint64_t address);
/* Only if it is empty, or whatever is in it; whether it went. */
bool memory_slab_drop(uint64_t address, bool empty);

#endif
