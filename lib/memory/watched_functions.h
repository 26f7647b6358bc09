/* SPDX-License-Identifier: MIT */
/*
 * Which of the driver's functions get, give back or tell of a GPU's memory, and where their
 * arguments say how much.
 */
#ifndef GPUPART_LIB_MEMORY_WATCHED_FUNCTIONS_H
#define GPUPART_LIB_MEMORY_WATCHED_FUNCTIONS_H

#include <stdbool.h>
#include "lib/driver/callback.h"

enum memory_kind {
	/* What gets memory of its own: it can be refused before it happens. */
	MEMORY_LINEAR, MEMORY_PITCH, MEMORY_MANAGED, MEMORY_ARRAY, MEMORY_ARRAY_3D,
	MEMORY_MIPMAP, MEMORY_PHYSICAL,
	MEMORY_LAST_ALLOCATION = MEMORY_PHYSICAL,
	MEMORY_FREE, MEMORY_ARRAY_FREE,
	/* Physical memory and where it is mapped; imported: another process's. */
	MEMORY_RELEASE, MEMORY_MAP, MEMORY_UNMAP, MEMORY_RETAIN, MEMORY_IMPORT,
	MEMORY_IPC_OPEN, MEMORY_IPC_CLOSE, MEMORY_EXTERNAL, MEMORY_EXTERNAL_FREE,
	MEMORY_ASYNC, MEMORY_ASYNC_POOL,
	MEMORY_POOL_MADE, MEMORY_POOL_GOES, MEMORY_POOL_CHANGED,
	/* What the driver takes for itself, more or less of it. */
	MEMORY_CTX_MADE, MEMORY_PRIMARY_MADE, MEMORY_CTX_GOES, MEMORY_PRIMARY_RELEASED,
	MEMORY_PRIMARY_RESET, MEMORY_MODULE_MADE, MEMORY_MODULE_GOES,
	MEMORY_LIBRARY_MADE, MEMORY_LIBRARY_GOES, MEMORY_LIMIT_SET,
	/* Graphs with nodes that get memory. */
	MEMORY_GRAPH_MADE, MEMORY_GRAPH_RUNS, MEMORY_CAPTURE_ENDS, MEMORY_GRAPH_GOES,
	MEMORY_GRAPH_TRIMMED,
	/* While a stream is captured nobody may wait for all that runs. */
	MEMORY_CAPTURE_BEGINS,
	MEMORY_ASK_FREE, MEMORY_ASK_TOTAL,
	/* It gets memory, and how much nobody finds out. */
	MEMORY_UNCOUNTED,
	MEMORY_NR_KINDS,
};

#define MEMORY_OWN_STREAM 1	/* stream 0 is the thread's own */

/* A group of functions on the way of launches, watched once they must be. */
#define MEMORY_LATER	1

struct memory_call {
	struct driver_function fn;	/* its kind: enum memory_kind */
	/* Of contexts: where CUDA's number of the GPU is, in bytes; or MEMORY_OWN_STREAM. */
	uint8_t device_at;
};

extern const struct memory_call memory_calls[];

/* What one of MEMORY_LINEAR to MEMORY_LAST_ALLOCATION asks for; UINT64_MAX: no GPU has it. */
uint64_t memory_calls_bytes(const struct memory_call *call, const uint64_t *words);

/* What one of MEMORY_PITCH got: its rows as the driver made them. */
uint64_t memory_calls_pitched(const uint64_t *words);

/* In whose order one of MEMORY_ASYNC or MEMORY_ASYNC_POOL is: 0 may be the thread's own. */
void *memory_calls_stream(const struct memory_call *call, const uint64_t *words);

/* Whether it asks for memory of a GPU, and not for a host's, a name without any memory. */
bool memory_calls_on_gpu(const struct memory_call *call, const uint64_t *words);

/* CUDA's number of the GPU, of physical memory and contexts; -1: the current context's. */
int memory_calls_device(const struct memory_call *call, const uint64_t *words);

/* What was changed in a call's arguments, to be put back. */
struct memory_change {
	uint64_t *word, before;
	uint64_t descriptor[5];
};

/* The driver refuses it from now on; of MEMORY_ASYNC, MEMORY_ASYNC_POOL and graphs too. */
void memory_calls_spoil(const struct memory_call *call, const uint64_t *words,
			struct memory_change *change);
void memory_calls_mend(struct memory_change *change);

#endif
