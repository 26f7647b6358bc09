/* SPDX-License-Identifier: MIT */
/*
 * The block a process shows of itself: counters, what went wrong, and the limits that others may
 * change. One file a process below /dev/shm, 0600 in a 0700 folder of its user.
 */
#ifndef GPUPART_LIB_STATE_PROCESS_BLOCK_H
#define GPUPART_LIB_STATE_PROCESS_BLOCK_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>
#include "lib/core/ctx.h"
#include "lib/core/shared_header.h"
#include "lib/core/state_dir.h"
#include "lib/state/limit.h"

/* To be counted up with every change of the block, but of its header: shared_header.h. */
#define CONTROL_LAYOUT	9

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

#define CONTROL_MAX_GPUS 16	/* of one process; others are not shown */

/*
 * Counts of one thread, that no other writes: a locked instruction in the callback waits
 * for all that the driver has just written for the GPU, 2% of a launch (measured:
 * Documentation/results/h200-spine.md). Lane 0 is for the threads that got none.
 */
#define CONTROL_NR_LANES 64

struct control_lane {
	_Alignas(128) uint64_t counters[CONTROL_NR_COUNTERS];
};

/* Of in_use: a set was given, so that launches are worth a look. */
#define CONTROL_USED 1

/* One attached GPU. What the callback reads stands first. */
struct control_gpu {
	_Atomic unsigned char in_use;	/* the others of them are scope.h's */
	struct limit limit;
	char pci[20];
	bool simulated;
	char source[512];		/* whose topology the numbers are of */
	uint64_t topology_hash;
	/* Of the proven map; 0: it is not proven yet, and from outside no set can be given. */
	atomic_uint nr_tpcs;
	uint16_t bit_of_tpc[GPUPART_MAX_TPCS];
};

/* What the program tells of itself (progress.c). Written by its own threads. */
#define CONTROL_NR_LATENCIES 512

struct control_progress {
	_Alignas(128) uint64_t units;
	uint64_t reports;		/* in which they were told */
	uint64_t told_ns, answered_ns;	/* the last report of units, and of a latency */
	uint64_t latencies[CONTROL_NR_LATENCIES];
};

struct control_block {
	struct shared_header header;
	struct shared_gpu shared[CONTROL_MAX_GPUS];	/* what other versions see of gpus[] */
	char problem[256];
	struct control_lane lanes[CONTROL_NR_LANES];
	struct control_gpu gpus[CONTROL_MAX_GPUS];
	struct control_progress progress;
};

/*
 * Seen by nobody else before control_publish(), and where that fails. Once something is in
 * it, it stays in its place: the file is mapped over it.
 */
extern struct control_block *control_self;

/* This thread's lane in the block; NULL: it has none yet. */
extern _Thread_local struct control_lane *control_lane;

/* control_self, in the place where it stays: for what writes into it before it is shown. */
struct control_block *control_place(void);

/* Takes a lane where one is free, and counts there or in lane 0. */
void control_count_first(enum control_counter which);

/* Written by this thread alone and read by anybody, each count whole; no locked instruction. */
static inline void control_count_on(uint64_t *counter)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

static inline void control_count(enum control_counter which)
{
	struct control_lane *lane = control_lane;

	if (__builtin_expect(!lane, 0))
		control_count_first(which);
	else
		control_count_on(&lane->counters[which]);
}

/*
 * A place for a GPU that is being attached, that it keeps: in the block, or nobody sees
 * it. NULL where there is no memory. One thread at a time.
 */
struct control_gpu *control_add_gpu(const struct gpupart_gpu_info *info, uint64_t topology_hash);
/* The one added last could not be attached. */
void control_drop_gpu(struct control_gpu *gpu);
/* From now on limits may be given from outside. */
void control_show_map(struct control_gpu *gpu, const struct tmd_map *map);

/* Shows this process's block to others. Failing is no harm; 0 or -errno. */
int control_publish(const char *name, const char *job);

/*
 * Who sets this process's outer limit holds it: others, and we where we read what it is to
 * be. Waits for 5 s at most.
 */
void control_lock(void);
void control_unlock(void);

/* Of the calling process too where this is its own block's file; no descriptor is opened then. */
bool control_is_own(int dir, const char *file);
/* GPUs that @block, which another process writes, may be read of. */
static inline uint32_t control_nr_gpus(const struct control_block *block)
{
	uint32_t nr = atomic_load_explicit(&block->header.nr_gpus, memory_order_acquire);

	return nr < CONTROL_MAX_GPUS ? nr : CONTROL_MAX_GPUS;
}

void control_counters(const struct control_block *block, struct gpupart_counters *counters);

#endif
