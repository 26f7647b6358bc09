/* SPDX-License-Identifier: MIT */
/*
 * Declares the shared memory of `gpupart stat`. Each process of the measured program registers in
 * this memory.
 */
#ifndef GPUPART_LIB_STAT_SHARED_MEMORY_H
#define GPUPART_LIB_STAT_SHARED_MEMORY_H

#include <stdatomic.h>
#include "lib/core/memfd.h"
#include "lib/driver/callback.h"
#include "lib/private.h"

/* Increase this number with every change of the layout. */
#define STAT_MAGIC	0x3474617470675full
#define STAT_NAME	"gpupart-stat"

struct stat_memory {
	struct memfd_head head;
	atomic_uint nr_processes;	/* number of processes that requested an entry */
	struct stat_place {
		/* These members are bytes, not bools, because a program may write any value. */
		atomic_uchar whole;	/* the pid, the name and the GPUs of the process
					 * are filled in */
		atomic_uchar seen;	/* `gpupart stat` sets this member after it opened the
					 * process's files */
		struct gpupart_stat_process process;	/* the member @wait_ns of this copy is in
							 * ticks */
	} places[GPUPART_STAT_MAX_PROCESSES];
};

/* A driver function that copies memory or makes the CPU wait. */
struct stat_call {
	struct driver_function fn;	/* kind of the function: enum
					 * gpupart_stat_direction, or STAT_NO_COPY */
	bool waits;
	uint8_t size;			/* code that says how to find the number of bytes */
};

#define STAT_NO_COPY	GPUPART_STAT_NR_DIRECTIONS
extern const struct stat_call stat_calls[];
/* Returns the number of bytes of a copy. */
uint64_t stat_call_bytes(const struct stat_call *call, const void *arguments);

#endif
