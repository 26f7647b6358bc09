/* SPDX-License-Identifier: MIT */
/*
 * Which of the driver's functions `gpupart stat` looks at, and where their arguments say what
 * it wants to know.
 */
#ifndef GPUPART_LIB_STAT_WATCHED_FUNCTIONS_H
#define GPUPART_LIB_STAT_WATCHED_FUNCTIONS_H

#include "lib/driver/callback.h"

enum stat_kind {
	STAT_KERNEL, STAT_GRAPH, STAT_FILL, STAT_COPY,	/* work for the GPU */
	STAT_SYNC,		/* the CPU waits */
	STAT_QUERY,		/* it asks whether it must */
	STAT_DEPEND,		/* what comes next on this stream waits for something else */
	STAT_CTX_RELEASE,	/* a context may go */
	STAT_CTX_END,		/* it goes */
};

struct stat_call {
	struct driver_function fn;	/* its kind: enum stat_kind */
	uint8_t flags;
	int8_t stream_at;	/* offset in the arguments, or one of watched_functions.c's own */
	uint8_t size;		/* how the bytes are found */
	uint8_t direction;	/* enum gpupart_stat_direction */
};

/* Of flags. */
#define STAT_PER_THREAD	1	/* stream 0 is the thread's own default stream */
#define STAT_WAITS	2	/* the CPU waits for what it asked for */

extern const struct stat_call stat_calls[];

/* As the program gave it: NULL is a default stream. */
void *stat_calls_stream(const struct stat_call *call, const void *arguments);

/* Of a copy or a fill. */
uint64_t stat_calls_bytes(const struct stat_call *call, const void *arguments);

/* Of a copy: enum gpupart_stat_direction. May ask the driver about the addresses. */
unsigned int stat_calls_direction(const struct cuda_api *cuda, const struct stat_call *call,
				  const void *arguments);

#endif
