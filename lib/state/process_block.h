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
#define CONTROL_LAYOUT	12

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
	uint64_t launching;	/* 1: in the launch callback, perhaps with a set and no number */
	uint64_t graphs;	/* odd: inside a function that launches a graph */
};

_Static_assert(sizeof(struct control_lane) == 128, "a lane is two cache lines");

/* Of in_use: a set was given, so that launches are worth a look. */
#define CONTROL_USED 1
#define CONTROL_USED_LENDS 8	/* another run wants to know of each launch: report_busy() */

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

/*
 * Records of launches on one GPU: lib/records, Documentation/internals/state-page.md. Every ring's
 * counts have one writer, the thread that launches on its stream; but @folded and @last_end, as the
 * totals, belong to the thread that folds.
 */
#define CONTROL_NR_RINGS	65	/* of 64 streams, and that of graphs */
#define CONTROL_NR_GAPS		32
#define CONTROL_NR_FUNCTIONS	64

struct control_ring {
	_Alignas(64) uint64_t issued;	/* sequence number of its last launch with a record */
	uint64_t folded;	/* the totals have all up to this one */
	uint64_t last_end;	/* of those, GPU ns */
	uint64_t unrecorded;	/* launches without a record */
	uint64_t waiting;	/* the last ones of these have ended when launch @after has */
	uint64_t after;
	uint64_t lost;		/* 1: its context is gone, what is outstanding stays unknown */
	uint64_t busy_ns;	/* launches of its stream that are folded, all together */
};

/*
 * Launches of executable graphs with records. Written by the thread that launches; @since while
 * @version of the records is odd.
 */
#define CONTROL_NR_GRAPHS	256

struct control_graph {
	uint64_t issued;	/* launches, of all executable graphs that had this entry */
	uint64_t since;		/* CPU's counter: from then on launches followed each other; or 0 */
	uint32_t kernels;	/* of a launch, each of which the GPU counts in the entry's cell */
	uint32_t lost;		/* 1: its context is gone, what is outstanding stays unknown */
};

struct control_function {
	uint64_t key;		/* the driver's function, odd once it may be another's; 0: free */
	uint64_t count, ns, longest_ns;
	char name[96];
};

/* CPU counter to ns: @ns + (counter - @counter) * @scale >> 32; to GPU ns: + @offset. */
struct control_clock {
	uint64_t counter, ns, scale;
	int64_t offset, next_offset;	/* the most that was seen in this second and the last */
};

struct control_records {
	uint64_t on;		/* 0: what follows is not in use */
	uint64_t nowhere;	/* launches without a record, on streams without a ring */
	uint64_t graphs;	/* launches of graphs that have no record */
	uint64_t launching;	/* threads inside a function that launches a graph */
	uint64_t fenced;	/* 1: membarrier() of any process is one for this one's threads */
	uint64_t nr_graphs;	/* entries of graph[] in use, now or before */
	struct control_graph graph[CONTROL_NR_GRAPHS];
	struct control_ring rings[CONTROL_NR_RINGS];
	/* From here on written by one thread at a time, while @version is odd. */
	_Alignas(64) uint64_t version;
	uint64_t untimed, busy_ns, kernels_ns, late_ns, last_end;
	uint64_t covered;	/* before this, all but @gaps is in busy_ns; GPU ns */
	uint64_t horizon;	/* before this, gaps were forgotten */
	uint64_t nr_gaps;
	struct { uint64_t begin, end; } gaps[CONTROL_NR_GAPS];	/* by time */
	struct control_clock clock;
	struct control_function functions[CONTROL_NR_FUNCTIONS];
};

struct control_block {
	struct shared_header header;
	struct shared_gpu shared[CONTROL_MAX_GPUS];	/* what other versions see of gpus[] */
	char problem[256];
	struct control_lane lanes[CONTROL_NR_LANES];
	struct control_gpu gpus[CONTROL_MAX_GPUS];
	struct control_progress progress;
	struct control_records records[CONTROL_MAX_GPUS];	/* in the order of gpus[] */
};

/*
 * Seen by nobody else before control_publish(), and where that fails. Once something is in
 * it, it stays in its place: the file is mapped over it.
 */
GPUPART_PRIVATE
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
 * Around all that a launch callback does, from before it reads a set: see lib/records/drain.c. A
 * thread without a lane marks lane 0, for good. No fence: a reader makes one, in all threads.
 */
void control_launches_first(void);

static inline void control_launch_begins(void)
{
	struct control_lane *lane = control_lane;

	if (__builtin_expect(!lane, 0))
		control_launches_first();
	else
		__atomic_store_n(&lane->launching, 1, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void control_launch_ends(void)
{
	struct control_lane *lane = control_lane;

	if (__builtin_expect(lane != NULL, 1))
		__atomic_store_n(&lane->launching, 0, __ATOMIC_RELEASE);
}

/* The same of a function that launches a graph, whose nodes may be built within. */
void control_graph_begins(void);
void control_graph_ends(void);

/*
 * A place for a GPU that is being attached, that it keeps: in the block, or nobody sees
 * it. NULL where there is no memory. One thread at a time.
 */
struct control_gpu *control_add_gpu(const struct gpupart_gpu_info *info, uint64_t topology_hash);
/* The one added last could not be attached. */
void control_drop_gpu(struct control_gpu *gpu);
/* From now on limits may be given from outside. */
void control_show_map(struct control_gpu *gpu, const struct tmd_map *map);

/* The records of a GPU with a place in the block, or NULL. */
struct control_records *control_records(const struct control_gpu *gpu);

/*
 * A new file of this process's beside its block, which goes with it: a descriptor, -ENOENT where
 * the block is not shown, or -errno. control_file_show() gives it its name, that of the block and
 * CONTROL_RECORDS, once it is whole.
 */
#define CONTROL_RECORDS ".records"
int control_file_make(void);
int control_file_show(void);

/* Shows this process's block to others. Failing is no harm; 0 or -errno. */
int control_publish(const char *name, const char *job);

/*
 * Who sets this process's outer limit holds it: others, and we where we read what it is to
 * be. Waits for 5 s at most.
 */
void control_lock(void);
void control_unlock(void);

/* Of the calling process too where this is its own block's file; no descriptor is opened then. */
GPUPART_PRIVATE
bool control_is_own(int dir, const char *file);
/* GPUs that @block, which another process writes, may be read of. */
static inline uint32_t control_nr_gpus(const struct control_block *block)
{
	uint32_t nr = atomic_load_explicit(&block->header.nr_gpus, memory_order_acquire);

	return nr < CONTROL_MAX_GPUS ? nr : CONTROL_MAX_GPUS;
}

void control_counters(const struct control_block *block, struct gpupart_counters *counters);

#endif
