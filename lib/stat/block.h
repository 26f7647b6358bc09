/* SPDX-License-Identifier: MIT */
/* The memory in which the processes under `gpupart stat` show themselves. */
#ifndef GPUPART_LIB_STAT_BLOCK_H
#define GPUPART_LIB_STAT_BLOCK_H

#include <stdatomic.h>
#include "lib/core/memfd.h"
#include "lib/driver/callback.h"
#include "lib/private.h"

/* Another layout is another version. */
#define STAT_MAGIC	0x3474617470675full
#define STAT_NAME	"gpupart-stat"

struct stat_block {
	struct memfd_head head;
	atomic_uint nr_processes;	/* that asked for a place */
	struct stat_place {
		/* Bytes: a program may write anything there, which no bool has. */
		atomic_uchar whole;	/* its pid, name and GPUs stand there */
		atomic_uchar seen;	/* by `gpupart stat`, which has its files open */
		struct gpupart_stat_process process;	/* its wait_ns in ticks */
	} places[GPUPART_STAT_MAX_PROCESSES];
};

/* A function of the driver's that copies, or that the CPU waits in. */
struct stat_call {
	struct driver_function fn;	/* its kind: enum gpupart_stat_direction; or STAT_NO_COPY */
	bool waits;
	uint8_t size;			/* how the bytes are found */
};

#define STAT_NO_COPY	GPUPART_STAT_NR_DIRECTIONS
extern const struct stat_call stat_calls[];
/* Of a copy. */
uint64_t stat_call_bytes(const struct stat_call *call, const void *arguments);

#endif
