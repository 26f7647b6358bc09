/* SPDX-License-Identifier: MIT */
/*
 * The block a process shows of itself: counters, limit, what went wrong. One file
 * a process below /dev/shm, 0600 in a 0700 folder of its user. Knows no TMD.
 */
#ifndef GPUPART_LIB_CONTROL_H
#define GPUPART_LIB_CONTROL_H

#include <stdatomic.h>
#include <stddef.h>
#include "ctx.h"

#define CONTROL_MAGIC	0x35747261707570u	/* "pupart5", little endian */

/* Each launch is counted once in the first of them; their sum is the launches seen. */
enum control_counter {
	CONTROL_FREE,		/* nothing was asked for */
	CONTROL_CONFINED,
	CONTROL_WIDENED_EMPTY,
	CONTROL_WIDENED_DRIVER,
	CONTROL_WIDENED_CLUSTER,
	CONTROL_WIDENED_COOPERATIVE,
	CONTROL_UNCONFINABLE_VERSION,
	CONTROL_UNCONFINABLE_MAP,
	CONTROL_UNCONFINABLE_GPU,
	CONTROL_NR_LAUNCHES,
	CONTROL_GRAPH_REAPPLIED = CONTROL_NR_LAUNCHES,
	CONTROL_GRAPH_STALE,
	CONTROL_NEXT_DROPPED,
	CONTROL_DEVICE_LAUNCHES,
	CONTROL_NR_COUNTERS,
};

#define CONTROL_MAX_GPUS 16

/*
 * Counts of one thread, that no other writes: a locked instruction in the callback waits
 * for all that the driver has just written for the GPU, 2% of a launch (measured:
 * Documentation/results/h200-spine.md). Lane 0 is for the threads that got none.
 */
#define CONTROL_NR_LANES 64

struct control_lane {
	_Alignas(128) uint64_t counters[CONTROL_NR_COUNTERS];
};

struct control_block {
	_Atomic uint64_t magic;		/* written last: the rest is whole */
	int32_t pid;
	uint64_t start; /* of the process, clock ticks since boot: pids come again */
	char name[64];
	char problem[256];
	/* For others to see; what launches obey is elsewhere. A GPU without a limit has zeroes. */
	_Atomic uint32_t nr_gpus;
	struct {
		char pci[20];
		_Atomic uint64_t limit_tpcs[GPUPART_TPCSET_WORDS];
	} gpus[CONTROL_MAX_GPUS];
	struct control_lane lanes[CONTROL_NR_LANES];
};

/* Never NULL: before control_publish(), and where that fails, a block nobody else sees. */
extern struct control_block *control_self;

/* Where in the block this thread's lane is, in bytes; 0: it has none yet. */
extern _Thread_local size_t control_lane;

/* Takes a lane where one is free, and counts there or in lane 0. */
void control_count_first(enum control_counter which);

/* Written by this thread alone and read by anybody, each count whole: 64 bits at their place. */
static inline void control_count(enum control_counter which)
{
	size_t lane = control_lane;

	if (__builtin_expect(!lane, 0))
		control_count_first(which);
	else
		((uint64_t *)((char *)control_self + lane))[which]++;
}

/* Names an attached GPU: its place in the block, or -1 where there is none left. */
int control_add_gpu(const char *pci);
/* @place as above. @limit NULL: none. */
void control_show_limit(int place, const struct gpupart_tpcset *limit);

/* Shows this process's block to others. Failing is no harm; 0 or -errno. */
int control_publish(const char *name);

#endif
