/* SPDX-License-Identifier: MIT */
/*
 * The driver functions that allocate, free or report GPU memory. For each function, the table
 * says which arguments contain the amount.
 */
#ifndef GPUPART_LIB_MEMORY_WATCHED_FUNCTIONS_H
#define GPUPART_LIB_MEMORY_WATCHED_FUNCTIONS_H

#include <stdbool.h>
#include "lib/driver/callback.h"

enum memory_kind {
	/*
	 * Functions that allocate memory directly. When a call of such a function starts, the
	 * library can refuse the call.
	 */
	MEMORY_LINEAR, MEMORY_PITCH, MEMORY_MANAGED, MEMORY_ARRAY, MEMORY_ARRAY_3D,
	MEMORY_MIPMAP, MEMORY_PHYSICAL,
	MEMORY_LAST_ALLOCATION = MEMORY_PHYSICAL,
	MEMORY_FREE, MEMORY_ARRAY_FREE,
	/*
	 * Functions for physical memory and its mappings. Imported memory belongs to another
	 * process.
	 */
	MEMORY_RELEASE, MEMORY_MAP, MEMORY_UNMAP, MEMORY_RETAIN, MEMORY_IMPORT,
	MEMORY_IPC_OPEN, MEMORY_IPC_CLOSE, MEMORY_EXTERNAL, MEMORY_EXTERNAL_FREE,
	MEMORY_ASYNC, MEMORY_ASYNC_POOL,
	MEMORY_POOL_MADE, MEMORY_POOL_FOUND, MEMORY_POOL_GOES, MEMORY_POOL_CHANGED,
	/* These functions change how much memory the driver allocates for itself. */
	MEMORY_CTX_MADE, MEMORY_PRIMARY_MADE, MEMORY_CTX_GOES, MEMORY_PRIMARY_RELEASED,
	MEMORY_PRIMARY_RESET, MEMORY_MODULE_MADE, MEMORY_MODULE_GOES,
	MEMORY_LIBRARY_MADE, MEMORY_LIBRARY_GOES, MEMORY_LIMIT_SET,
	/* Functions for graphs with nodes that allocate memory. */
	MEMORY_GRAPH_MADE, MEMORY_GRAPH_RUNS, MEMORY_CAPTURE_ENDS, MEMORY_GRAPH_GOES,
	MEMORY_GRAPH_TRIMMED,
	/*
	 * Functions that begin a capture. While a stream is being captured, no call may wait
	 * for the GPU.
	 */
	MEMORY_CAPTURE_BEGINS,
	MEMORY_ASK_FREE, MEMORY_ASK_TOTAL,
	/* A function that allocates an unknown amount of memory. */
	MEMORY_UNCOUNTED,
	MEMORY_NR_KINDS,
};

#define MEMORY_OWN_STREAM 1	/* stream 0 is the default stream of the calling thread */

/*
 * A group of functions on the launch path. The library does not observe these functions until it
 * must.
 */
#define MEMORY_LATER	1

struct memory_call {
	struct driver_function fn;	/* kind of the function: enum memory_kind */
	/*
	 * For a context, this is the offset in bytes of CUDA's device number. For other functions,
	 * it is 0 or MEMORY_OWN_STREAM.
	 */
	uint8_t device_at;
};

extern const struct memory_call memory_calls[];

/*
 * Returns the number of bytes that a call of the kinds MEMORY_LINEAR to MEMORY_LAST_ALLOCATION
 * requests. Returns UINT64_MAX if the call requests more memory than any GPU has.
 */
uint64_t memory_calls_bytes(const struct memory_call *call, const uint64_t *words);

/*
 * Returns the number of bytes that a MEMORY_PITCH call allocated. The function computes this number
 * from the row size that the driver returned.
 */
uint64_t memory_calls_pitched(const uint64_t *words);

/*
 * Returns the stream of a MEMORY_ASYNC or MEMORY_ASYNC_POOL call. The result 0 means a default
 * stream. This may be the default stream of the calling thread.
 */
void *memory_calls_stream(const struct memory_call *call, const uint64_t *words);

/*
 * Returns true if the call requests GPU memory. Other calls request host memory, or request
 * addresses without memory.
 */
bool memory_calls_on_gpu(const struct memory_call *call, const uint64_t *words);

/*
 * Returns CUDA's device number for physical memory or a context, or -1 for the device of the
 * current context.
 */
int memory_calls_device(const struct memory_call *call, const uint64_t *words);

/* The original values of the arguments that were changed, so that they can be restored. */
struct memory_change {
	uint64_t *word, before;
	uint64_t descriptor[5];
};

/*
 * Changes the arguments so that the driver refuses the call. This also works for MEMORY_ASYNC,
 * MEMORY_ASYNC_POOL and graphs.
 */
void memory_calls_refuse(const struct memory_call *call, const uint64_t *words,
			struct memory_change *change);
void memory_calls_mend(struct memory_change *change);

#endif
