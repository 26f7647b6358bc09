/* SPDX-License-Identifier: MIT */
/*
 * Declares the state page. The state page of a process contains its counters, its problem, and the
 * limits that other processes may change. Each process has one state page. The page is a file with
 * mode 0600 in a directory below /dev/shm. This directory belongs to the process's user and has
 * mode 0700.
 */
#ifndef GPUPART_LIB_STATE_STATE_PAGE_H
#define GPUPART_LIB_STATE_STATE_PAGE_H

#include <stdatomic.h>
#include "lib/core/ctx.h"
#include "lib/core/shared_header.h"
#include "lib/core/state_dir.h"
#include "lib/state/limit.h"

/*
 * Increase this number with every change of the state page. Changes of the header are an exception.
 * See shared_header.h.
 */
#define STATE_LAYOUT	12

/*
 * Every launch is counted in exactly one of the counters before STATE_NR_LAUNCHES. So the sum of
 * these counters is the number of launches.
 */
enum state_counter {
	STATE_FREE,		/* launches for which no set was requested */
	STATE_CONFINED,
	STATE_WIDENED_EMPTY,
	STATE_WIDENED_DRIVER,
	STATE_WIDENED_CLUSTER,
	STATE_WIDENED_COOPERATIVE,
	STATE_UNCONFINABLE_VERSION,
	STATE_UNCONFINABLE_MAP,
	STATE_UNCONFINABLE_GPU,
	STATE_NR_LAUNCHES,
	STATE_GRAPH_REAPPLIED = STATE_NR_LAUNCHES,
	STATE_GRAPH_STALE,
	STATE_NEXT_DROPPED,
	STATE_DEVICE_LAUNCHES,
	STATE_NR_COUNTERS,
};

/* maximum number of published GPUs of a process; further GPUs are private */
#define STATE_MAX_GPUS 16

/*
 * The counts of one thread. Other threads do not write them. If threads shared a counter, the
 * callback would need a locked instruction. Such an instruction waits until everything that the
 * driver has just written for the GPU is in memory. This wait took 2 % of the time of a launch in
 * the measurement of Documentation/results/h200-spine.md. Threads without a lane use lane 0.
 */
#define STATE_NR_LANES 64

struct state_lane {
	_Alignas(128) uint64_t counters[STATE_NR_COUNTERS];
	/*
	 * The value 1 means that the thread is in the launch callback. The thread may already use a
	 * set, but its launch has no record number yet.
	 */
	uint64_t launching;
	uint64_t graphs;	/* odd: the thread is in a function that launches a graph */
};

_Static_assert(sizeof(struct state_lane) == 128, "a lane has two cache lines");

/*
 * Flags of in_use. The flag STATE_USED means that a set was requested, so the callback must
 * check launches.
 */
#define STATE_USED 1
#define STATE_USED_LENDS 8	/* another run needs a report of each launch; see report_busy() */

/* One attached GPU. The members that the callback reads are first. */
struct state_gpu {
	_Atomic unsigned char in_use;	/* flags; scope.h has further flags */
	struct limit limit;
	char pci[20];
	bool simulated;
	char source[512];		/* the source of the topology */
	uint64_t topology_hash;
	/*
	 * The number of TPCs in the proven map. If the map is not proven yet, the number is 0, and
	 * other processes cannot set a limit.
	 */
	atomic_uint nr_tpcs;
	uint16_t bit_of_tpc[GPUPART_MAX_TPCS];
};

/* The progress that the program reports (progress.c). The threads of the program write it. */
#define STATE_NR_LATENCIES 512

struct state_progress {
	_Alignas(128) uint64_t units;
	uint64_t reports;		/* number of calls of gpupart_progress_add() */
	/* times at which units and a latency were last reported */
	uint64_t reported_ns, answered_ns;
	uint64_t latencies[STATE_NR_LATENCIES];
};

/*
 * The records of launches on one GPU. See lib/records and Documentation/internals/state-page.md.
 * The thread that launches on the stream of a ring writes the counts of the ring. But the thread
 * that folds records into the totals writes @folded and @last_end.
 */
#define STATE_NR_RINGS	65	/* 64 rings of streams and 1 ring of graphs */
#define STATE_NR_GAPS		32
#define STATE_NR_FUNCTIONS	64

struct state_ring {
	/* Sequence number of the ring's latest launch with a record. */
	_Alignas(64) uint64_t issued;
	uint64_t folded;	/* the totals include the records up to this number */
	uint64_t last_end;	/* end of the latest folded launch, in GPU ns */
	uint64_t unrecorded;	/* number of launches without a record */
	/*
	 * How many of the latest launches are unrecorded. These launches have ended when launch
	 * @after has ended. If @after is UINT64_MAX, no later launch shows their end.
	 */
	uint64_t waiting;
	uint64_t after;
	uint64_t lost;		/* 1: the ring's context was destroyed, or the ring is broken; the
				 * ring's outstanding launches stay unknown */
	uint64_t busy_ns;	/* total time of the ring's folded launches */
};

/*
 * Launches of executable graphs with records. The thread that launches the graph writes these
 * members. This thread writes @since only while @version of the records is odd.
 */
#define STATE_NR_GRAPHS	256

struct state_graph {
	uint64_t issued;	/* number of launches of all executable graphs that have used this
				 * entry */
	/* CPU counter at the first launch of the current series; 0: no series */
	uint64_t since;
	uint32_t kernels;	/* for each launch: the number of kernels that the GPU counts in
				 * the entry's cell */
	uint32_t lost;		/* 1: the graph's context was destroyed; the graph's outstanding
				 * launches stay unknown */
};

struct state_function {
	/*
	 * The address of the driver's function. If the address is odd, another function may now
	 * have this address. If the address is 0, the entry is free.
	 */
	uint64_t key;
	uint64_t count, ns, longest_ns;
	char name[96];
};

/*
 * Converts the CPU counter to a time. If the counter has the value c, the CPU's time in ns is @ns +
 * (c - @counter) * @scale >> 32. To get the GPU's time in ns, add @offset.
 */
struct state_clock {
	uint64_t counter, ns, scale;
	/* The largest offset in this second and in the previous second. */
	int64_t offset, next_offset;
};

struct state_records {
	uint64_t on;		/* 0: the following members are not used */
	/* Number of launches on streams without a ring; these launches have no record. */
	uint64_t nowhere;
	uint64_t graphs;	/* number of graph launches without a record */
	uint64_t launching;	/* number of threads that are in a function that launches a graph */
	/* 1: membarrier() in any process also acts on the threads of this process */
	uint64_t fenced;
	uint64_t nr_graphs;	/* number of entries of graph[] that are in use or were in use
				 * earlier */
	struct state_graph graph[STATE_NR_GRAPHS];
	struct state_ring rings[STATE_NR_RINGS];
	/* The following members are written by one thread at a time, while @version is odd. */
	_Alignas(64) uint64_t version;
	uint64_t untimed, busy_ns, kernels_ns, late_ns, last_end;
	/*
	 * A GPU time in ns. The member busy_ns includes all times before this time, except the
	 * times in @gaps.
	 */
	uint64_t covered;
	uint64_t horizon;	/* gaps before this time were dropped */
	uint64_t nr_gaps;
	struct { uint64_t begin, end; } gaps[STATE_NR_GAPS];	/* sorted by time */
	struct state_clock clock;
	struct state_function functions[STATE_NR_FUNCTIONS];
};

/* A problem that begins with these words does not mean that launches are not confined. */
#define STATE_RULE_PROBLEM	"a rule by kernel name"

struct state_page {
	struct shared_header header;
	/* The part of gpus[] that other versions can read. */
	struct shared_gpu shared[STATE_MAX_GPUS];
	char problem[256];
	struct state_lane lanes[STATE_NR_LANES];
	struct state_gpu gpus[STATE_MAX_GPUS];
	struct state_progress progress;
	struct state_records records[STATE_MAX_GPUS];	/* entry n describes gpus[n] */
};

/*
 * The state page. It is private memory until state_page_publish() succeeds. After something was
 * stored in the page, its address never changes, because the file is mapped at the same address.
 */
GPUPART_PRIVATE
extern struct state_page *state_page_own;

/* This thread's lane of the state page; NULL: no lane yet. */
extern _Thread_local struct state_lane *state_lane;

/*
 * Returns state_page_own at its final address, for code that stores something before the page is
 * published.
 */
struct state_page *state_page_location(void);

/*
 * Assigns a free lane to the thread, and counts in this lane. If no lane is free, counts in lane 0.
 */
void state_count_first(enum state_counter which);

/*
 * Counts without a locked instruction. Only this thread writes the counter, and readers never
 * see a partly written value.
 */
static inline void state_count_on(uint64_t *counter)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

static inline void state_count(enum state_counter which)
{
	struct state_lane *lane = state_lane;

	if (__builtin_expect(!lane, 0))
		state_count_first(which);
	else
		state_count_on(&lane->counters[which]);
}

/*
 * If a thread without a lane makes a launch, this function is called. Returns the thread's new
 * lane. If no lane is free, the function marks lane 0 permanently and returns @spare. The lane
 * @spare is outside the state page, and the launch counts in this lane. The caller then passes
 * @spare to state_lane_add().
 */
struct state_lane *state_lane_first(struct state_lane *spare);
/* Adds the counts of @spare to lane 0. */
void state_lane_add(const struct state_lane *spare);

/*
 * These functions mark the thread of @lane as being in the launch callback. The mark is set before
 * the callback reads a set, and it is removed at the end of the callback. The code in
 * lib/records/drain.c reads this mark. The functions make no fence, because a reader makes a fence
 * for all threads.
 */
static inline void state_launch_begin(struct state_lane *lane)
{
	__atomic_store_n(&lane->launching, 1, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void state_launch_end(struct state_lane *lane)
{
	__atomic_store_n(&lane->launching, 0, __ATOMIC_RELEASE);
}

/*
 * These functions mark the thread as being in a function that launches a graph. Such a function
 * may build the graph's nodes.
 */
void state_graph_begin(void);
void state_graph_end(void);

/*
 * Adds a GPU that is being attached and returns its entry, whose address never changes. If the
 * state page is full, the entry is private to this process. Returns NULL if memory is short.
 * Only one thread at a time may call this function.
 */
struct state_gpu *state_add_gpu(const struct gpupart_gpu_info *info, uint64_t topology_hash);
/*
 * Removes the most recently added GPU. This function is called if this GPU could not be
 * attached.
 */
void state_remove_gpu(struct state_gpu *gpu);
/* Publishes @map. After this call, other processes can set the limit of @gpu. */
void state_publish_map(struct state_gpu *gpu, const struct tmd_map *map);

/* Returns the records of a GPU in the state page, or NULL. */
struct state_records *state_records(const struct state_gpu *gpu);

/*
 * Creates a new file of this process beside its state page. The file is deleted together with the
 * state page. Returns a descriptor or a negative errno. If the state page is not published, returns
 * -ENOENT. When the contents of the file are complete, the caller calls state_file_publish(). This
 * function renames the file. The new name is the name of the state page, followed by STATE_RECORDS.
 */
#define STATE_RECORDS ".records"
int state_file_create(void);
int state_file_publish(void);

/*
 * Publishes this process's state page. If this fails, the process keeps its private state page.
 * Returns 0 or -errno.
 */
int state_page_publish(const char *name, const char *job);

/*
 * These functions acquire and release the lock of this process's outer limit. Other processes hold
 * the lock while they write the limit. This process holds the lock while it determines its limit.
 * The function state_page_lock() waits for at most 5 s.
 */
void state_page_lock(void);
void state_page_unlock(void);

/* Returns true if @file is this process's own state page. This function opens no descriptor. */
GPUPART_PRIVATE
bool state_page_is_own(int dir, const char *file);
/*
 * Returns the number of valid entries in gpus[] of @page. Another process may be writing
 * @page.
 */
static inline uint32_t state_nr_gpus(const struct state_page *page)
{
	uint32_t nr = atomic_load_explicit(&page->header.nr_gpus, memory_order_acquire);

	return nr < STATE_MAX_GPUS ? nr : STATE_MAX_GPUS;
}

void state_page_counters(const struct state_page *page, struct gpupart_counters *counters);

#endif
