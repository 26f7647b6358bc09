/* SPDX-License-Identifier: MIT */
/*
 * The driver functions that allocate, free or report GPU memory, and where their arguments hold
 * the amount.
 */
#ifndef GPUPART_LIB_MEMORY_WATCHED_FUNCTIONS_H
#define GPUPART_LIB_MEMORY_WATCHED_FUNCTIONS_H

#include <stdbool.h>
#include "lib/driver/callback.h"

enum memory_kind {
	/* Functions that allocate memory directly: they can be refused before they run. */
	MEMORY_LINEAR, MEMORY_PITCH, MEMORY_MANAGED, MEMORY_ARRAY, MEMORY_ARRAY_3D,
	MEMORY_MIPMAP, MEMORY_PHYSICAL,
	MEMORY_LAST_ALLOCATION = MEMORY_PHYSICAL,
	MEMORY_FREE, MEMORY_ARRAY_FREE,
	/* Physical memory and its mappings; imported memory belongs to another process. */
	MEMORY_RELEASE, MEMORY_MAP, MEMORY_UNMAP, MEMORY_RETAIN, MEMORY_IMPORT,
	MEMORY_IPC_OPEN, MEMORY_IPC_CLOSE, MEMORY_EXTERNAL, MEMORY_EXTERNAL_FREE,
	MEMORY_ASYNC, MEMORY_ASYNC_POOL,
	MEMORY_POOL_MADE, MEMORY_POOL_GOES, MEMORY_POOL_CHANGED,
	/* Functions that change what the driver allocates for itself. */
	MEMORY_CTX_MADE, MEMORY_PRIMARY_MADE, MEMORY_CTX_GOES, MEMORY_PRIMARY_RELEASED,
	MEMORY_PRIMARY_RESET, MEMORY_MODULE_MADE, MEMORY_MODULE_GOES,
	MEMORY_LIBRARY_MADE, MEMORY_LIBRARY_GOES, MEMORY_LIMIT_SET,
	/* Graphs with nodes that allocate memory. */
	MEMORY_GRAPH_MADE, MEMORY_GRAPH_RUNS, MEMORY_CAPTURE_ENDS, MEMORY_GRAPH_GOES,
	MEMORY_GRAPH_TRIMMED,
	/* While a stream is being captured, no call may wait for the GPU. */
	MEMORY_CAPTURE_BEGINS,
	MEMORY_ASK_FREE, MEMORY_ASK_TOTAL,
	/* Allocates an amount that cannot be found out. */
	MEMORY_UNCOUNTED,
	MEMORY_NR_KINDS,
};

#define MEMORY_OWN_STREAM 1	/* stream 0 is the thread's own */

/* A group of functions on the launch path, observed only once they must be. */
#define MEMORY_LATER	1

struct memory_call {
	struct driver_function fn;	/* its kind: enum memory_kind */
	/* Contexts: offset in bytes of CUDA's device number; or MEMORY_OWN_STREAM. */
	uint8_t device_at;
};

extern const struct memory_call memory_calls[];

/*
 * The bytes that a call of kind MEMORY_LINEAR to MEMORY_LAST_ALLOCATION requests; UINT64_MAX:
 * more than any GPU has.
 */
uint64_t memory_calls_bytes(const struct memory_call *call, const uint64_t *words);

/* The bytes that a MEMORY_PITCH call allocated, with the driver's row size. */
uint64_t memory_calls_pitched(const uint64_t *words);

/* The stream of a MEMORY_ASYNC or MEMORY_ASYNC_POOL call; 0 may be the thread's own. */
void *memory_calls_stream(const struct memory_call *call, const uint64_t *words);

/* Whether it requests GPU memory, and not host memory or only addresses. */
bool memory_calls_on_gpu(const struct memory_call *call, const uint64_t *words);

/* CUDA's device number, for physical memory and contexts; -1: that of the current context. */
int memory_calls_device(const struct memory_call *call, const uint64_t *words);

/* The arguments that were changed, to be restored. */
struct memory_change {
	uint64_t *word, before;
	uint64_t descriptor[5];
};

/*
 * Changes the arguments so that the driver refuses the call; also for MEMORY_ASYNC,
 * MEMORY_ASYNC_POOL and graphs.
 */
void memory_calls_refuse(const struct memory_call *call, const uint64_t *words,
			struct memory_change *change);
void memory_calls_mend(struct memory_change *change);

#endif
