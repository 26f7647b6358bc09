/* SPDX-License-Identifier: MIT */
/*
 * Declares completion records. When a launch ends, the GPU writes the time into memory of this
 * process. Other processes read this memory through a file. See
 * Documentation/internals/state-page.md.
 *
 * The driver has one TMD buffer for each stream, so a TMD's address identifies its stream. Two
 * launches of one stream are never in the launch callback at the same time. So each ring has one
 * writer and needs no lock. The functions for the launch callback cannot fail. They allocate no
 * memory, acquire no lock and have no unbounded loops.
 */
#ifndef GPUPART_LIB_RECORDS_RECORDS_H
#define GPUPART_LIB_RECORDS_RECORDS_H

#include <stdatomic.h>
#include <time.h>
#include "lib/core/clock.h"
#include "lib/driver/callback.h"
#include "lib/driver/cuda.h"
#include "lib/driver/device.h"
#include "lib/state/state_page.h"
#include "lib/tmd/release.h"

/* ------------------------------------------------------------------- file */

/*
 * The file consists of a head and one section for each GPU in the state page. A section contains
 * cells and notes. The GPU writes the cells, and only the cells are registered with the driver.
 * The CPU writes the notes, one for each launch.
 */
struct records_cell {
	_Atomic uint64_t payload;	/* sequence number of the launch; the GPU writes it after
					 * @time */
	_Atomic uint64_t time;		/* %globaltimer, in ns */
};

/*
 * Returns true if the cell contains sequence number @seq. With older TMD layouts, the GPU writes
 * only the lower 32 bits of a number. A comparison of 32 bits is enough, because the cell contains
 * the number of its newest launch or of its second newest launch.
 */
static inline bool records_has(const struct records_cell *cell, uint64_t seq)
{
	return (uint32_t)atomic_load_explicit(&cell->payload, memory_order_acquire) ==
	       (uint32_t)seq;
}

/* Returns true if the cell contains @seq or a later number. */
static inline bool records_reached(const struct records_cell *cell, uint64_t seq)
{
	return (int32_t)((uint32_t)atomic_load_explicit(&cell->payload, memory_order_acquire) -
			 (uint32_t)seq) >= 0;
}

struct records_note {
	_Atomic uint64_t submitted;	/* the CPU counter at the launch's submission;
					 * 0: the launch failed */
	_Atomic uint64_t function;
};

/* The cell of an executable graph. */
struct records_graph_cell {
	/* Number of counted kernels that have ended. The GPU increments this number. */
	_Atomic uint32_t count;
	uint32_t pad[3];
	struct records_cell end;	/* the latest time at which a last kernel ended; the
					 * payload is 1 */
};

#define RECORDS_LAYOUT		2
#define RECORDS_HEAD		65536
#define RECORDS_STRIDE		(1u << 20)	/* bytes from one section to the next */
#define RECORDS_NR_LONG		8		/* rings 0 to 7 are longer than the other rings */
#define RECORDS_LONG		2048		/* number of entries of a longer ring */
#define RECORDS_SHORT		256
#define RECORDS_NR_CELLS	\
	(RECORDS_NR_LONG * RECORDS_LONG + (STATE_NR_RINGS - RECORDS_NR_LONG) * RECORDS_SHORT)
#define RECORDS_REGISTERED	(512u << 10)	/* offset in bytes of the notes in a section */

struct records_section {
	struct records_cell cells[RECORDS_NR_CELLS];	/* the cells of all rings, beginning with
							 * ring 0 */
	struct records_graph_cell graphs[STATE_NR_GRAPHS];
	char reserved[RECORDS_REGISTERED - RECORDS_NR_CELLS * sizeof(struct records_cell) -
		      STATE_NR_GRAPHS * sizeof(struct records_graph_cell)];
	struct records_note notes[RECORDS_NR_CELLS];
};

_Static_assert(offsetof(struct records_section, notes) == RECORDS_REGISTERED &&
	       sizeof(struct records_section) <= RECORDS_STRIDE, "a section must fit into 1 MiB");

/*
 * Returns how many counted kernels of @graph's launches have not ended. If more kernels have ended
 * than were counted as launched, the number is negative.
 */
static inline int32_t records_graph_left(const struct state_graph *graph,
					 const struct records_graph_cell *cell)
{
	uint32_t all = (uint32_t)__atomic_load_n(&graph->issued, __ATOMIC_ACQUIRE) * graph->kernels;

	return all - atomic_load_explicit(&cell->count, memory_order_acquire);
}

static inline unsigned int records_entries(unsigned int ring)
{
	return ring < RECORDS_NR_LONG ? RECORDS_LONG : RECORDS_SHORT;
}

/* Returns the index of the ring's first cell among all cells of the section. */
static inline unsigned int records_first(unsigned int ring)
{
	return ring < RECORDS_NR_LONG ? ring * RECORDS_LONG
		: RECORDS_NR_LONG * RECORDS_LONG + (ring - RECORDS_NR_LONG) * RECORDS_SHORT;
}

/*
 * Returns the number of the ring's first launch, minus 1. Initially, cell i of the ring has payload
 * i. The payload of a cell shows when the cell is free for a launch. Then the payload is the
 * launch's number minus the number of cells in the ring.
 */
static inline uint64_t records_base(unsigned int ring)
{
	return records_entries(ring) - 1;
}

/*
 * Returns the section of GPU number @n. If the section does not exist, creates it. If this fails,
 * returns NULL with the reason in @gp.
 */
struct records_section *records_file_section(struct gpupart *gp, unsigned int n);
/* Returns the section of GPU number @n, or NULL if there is no such section. */
GPUPART_PRIVATE
struct records_section *records_file_find(unsigned int n);
/*
 * The GPU writes one part of section @n. This function creates a second mapping of this part. If
 * memory is short, returns NULL.
 */
void *records_file_again(unsigned int n);

/*
 * This ring belongs to no stream. Each entry of this ring is an interval with consecutive launches
 * of an executable graph. The entry is written after the end of its interval. The entries are not
 * sorted by time. After an entry is folded, the member @function of its note is the end of the
 * previous launch on the stream of the graph, in GPU ns. If this end is unknown, it is 0.
 */
#define RECORDS_GRAPH_RING	(STATE_NR_RINGS - 1)
#define RECORDS_GRAPH_KEY	3	/* key of these entries in the totals; it is
					 * odd, so no name is looked up */
#define RECORDS_GRAPH_NAME	"(CUDA graphs)"

/* ------------------------------------------------------------------- GPUs */

/* Reads a counter that has the same value on all CPUs. The read is very fast. */
static inline uint64_t records_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t count;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#else
	return clock_monotonic_ns();
#endif
}

#define RECORDS_MAX_CONTEXTS	16	/* maximum number of contexts that one GPU can have at the
					 * same time */
#define RECORDS_HINT_BITS	10
/* The rates of the clocks of CPU and GPU differ by less than 1 in this number. */
#define RECORDS_DRIFT_INVERSE	10000

/* The ring of a stream. Only the thread that launches on the stream writes to the ring. */
struct records_ring {
	/*
	 * A private copy of the member @issued of struct state_ring. Other processes can change
	 * that member, but not this copy.
	 */
	_Alignas(64) _Atomic uint64_t issued;
	/*
	 * The totals include the launches up to number @room - (@mask + 1). So the entries of these
	 * launches are free for later launches up to number @room.
	 */
	_Atomic uint64_t room;
	uint64_t mask;			/* number of entries - 1 */
	struct records_note *notes;
	_Atomic uint64_t tmd;		/* address of the TMD of the ring's stream; 0:
					 * the ring has no stream */
	/*
	 * If kernels can use the ring, this member is equal to @ctx. While a launch is in the
	 * callback, it is NULL. It is private to the thread that launches on the stream.
	 */
	const void *ready;
	struct state_ring *shown;
	struct records_cell *cells;
	struct tmd_release_target target;	/* the preferred slot in the TMD of the stream */
	struct records *records;
	struct state_function *function;	/* the function of the last folded launch */
	const void *ctx;		/* NULL: only graphs were launched on the stream */
	uint64_t address;		/* address of the cells in the address space of @ctx */
	/* Earlier streams of this ring made the launches up to this number. */
	_Atomic uint64_t first;
	atomic_bool fresh;		/* the totals may contain times of earlier streams */
	uint64_t unrecorded;		/* number of unrecorded launches of all streams that used
					 * the ring earlier */
	/*
	 * Two launches of this ring were in the callback at the same time. Later launches of the
	 * stream have no record. They are unknown until the context has been destroyed. Then
	 * another stream may use the ring.
	 */
	atomic_bool broken;
	unsigned char context;		/* index in contexts[] */
	unsigned char number;
};

/* Returns the number of the ring's last launch that the totals include. */
static inline uint64_t records_folded(const struct records_ring *ring)
{
	return atomic_load_explicit(&ring->room, memory_order_relaxed) - ring->mask - 1;
}

struct records_context {
	_Atomic(const void *) ctx;	/* NULL: no context, or the context was destroyed */
	void *mapped;			/* NULL: never used */
	uint64_t address;		/* address of @mapped in the address space of the
					 * context */
};

/* The library's private data about an entry of state_records.graph. */
struct records_graph {
	struct state_graph *shown;
	struct records_graph_cell *cell;
	/*
	 * The mark of the executable graph that uses the entry. NULL means that no graph uses the
	 * entry.
	 */
	struct records_mark *owner;
	/*
	 * The graph's nodes belong to a context. This member is 1 plus the index of this context in
	 * contexts[]. The value 0 means that there is no context yet.
	 */
	unsigned int context;
	/* If this member is true, the entry must not be reused until the context is destroyed. */
	bool spoilt;
	bool launching;			/* a launch of its graph is not counted yet */
	const void *stream;		/* the stream of the last launch */
	_Atomic uint64_t tmd;		/* the address of this stream's TMD, or 0 */
	struct records_ring *_Atomic ring;	/* the ring of this stream, or NULL */
	atomic_bool mixed;		/* outstanding launches can be on several streams */
	uint64_t before;		/* number of the last kernel on the ring that was launched
					 * before the graph */
	uint64_t added;			/* busy times up to this GPU time are in rings */
	/*
	 * The end of the previous launch on the stream, in GPU ns. The value 0 means that this end
	 * is unknown or that no launch of the present series has ended.
	 */
	uint64_t previous;
};

struct records {
	/* The index is a hash of the TMD's address. A hint may be wrong. */
	struct records_ring *_Atomic hints[1u << RECORDS_HINT_BITS];
	const struct tmd_release_place *place[2];	/* the release slots to use, with the
							 * preferred slot first */
	struct state_records *shown;
	struct records_section *section;	/* NULL until a context uses the section */
	/* If bit n is 1, ring n has no stream, but its launches may still be running. */
	_Atomic uint64_t free;
	/*
	 * If bit n is 1, a stream has used ring n. A launch of a graph also sets bit 1. So if all
	 * launches are in ring 0, the value is 1.
	 */
	_Atomic uint64_t used;
	struct records_ring rings[STATE_NR_RINGS];
	struct records_context contexts[RECORDS_MAX_CONTEXTS];
	struct records_graph graphs[STATE_NR_GRAPHS];
	atomic_bool folding;		/* a thread is writing the totals */
	atomic_bool claiming;		/* a thread is assigning a ring */
	unsigned int next_ring;		/* the ring with which the next fold begins, below 64 */
	/* The rate of the clock may be used up to this value of the CPU's counter. */
	uint64_t clock_until;
	atomic_uint nr_running;		/* number of graphs whose time is not in the totals yet */
	/*
	 * This function adds the times of ended graphs to the totals. Its caller holds @folding.
	 * The pointer is set before @nr_running changes from 0.
	 */
	void (*fold_graphs)(struct records *records);
	struct state_gpu *gpu;
	char why[192];				/* the reason why contexts have no records, or "" */
};

/* ------------------------------------------------------------------- launches */

/*
 * The launch callback calls this function after it masked the TMD. The function assigns a record to
 * the launch, or counts the launch as unrecorded. Then it calls state_launch_end() for @lane.
 */
void records_launch(const struct launch_params *params, struct state_lane *lane,
		    struct records *records);

/*
 * Counts a launch that has no record and whose stream is unknown. From then on, the GPU of @records
 * counts as busy. If @records is NULL, the function does nothing.
 */
void records_lost(struct records *records);

/*
 * Does the same as records_launch(), but for a launch function whose end the library observes.
 * After this call, records_last() and records_launch_ends() know the launch.
 */
void records_launch_in_call(const struct launch_params *params, struct state_lane *lane,
			    struct records *records);

/*
 * Returns the ring of the calling thread's last launch, and stores the number of this launch in
 * *seq. If the launch has no record, returns NULL.
 */
const struct records_ring *records_last(uint64_t *seq);

/*
 * Returns true if launch number @seq of @ring has ended, or if its end can never be known. The
 * launch must have a record. The function sets *ns to an upper bound of the launch's time in ns. If
 * the time is unknown, it sets *ns to 0. Callbacks must not call this function.
 */
bool records_ended(const struct records *records, const struct records_ring *ring, uint64_t seq,
		   uint64_t *ns);

/* The ring of the calling thread's last launch, see records_last(). */
extern _Thread_local const struct records_ring *records_last_ring;

/* This function is called when a launch function begins. */
static inline void records_launch_begins(void)
{
	records_last_ring = NULL;
}

/*
 * This function is called when a launch function has returned @result. If the launch function
 * failed after the launch callback, the launch never runs.
 */
void records_launch_ends(int result);

/*
 * The first function is called when the stream whose TMD is at @tmd is destroyed. The second
 * function is called when @ctx is destroyed with all its streams.
 */
void records_stream_gone(struct records *records, uint64_t tmd);
void records_context_gone(struct records *records, const void *ctx);
/*
 * Stores the ring of a stream that the program created in *ring. If the stream has none, assigns a
 * free ring if @claim is true, or stores NULL. The stream's object contains the address of its TMD
 * at @offset. If @offset is 0, or if the program did not create @stream, stores NULL and returns
 * false.
 */
GPUPART_PRIVATE
bool records_ring_of_stream(struct records *records, const void *stream, uint64_t offset,
			    bool claim, struct records_ring **ring);
/*
 * Counts a launch on the ring's stream that has no record. The launches of one stream end in order.
 * So when the next launch with a record has ended, this launch has ended, too.
 */
void records_unrecorded(struct records_ring *ring);
/* Returns the ring of the stream whose TMD is at @tmd. If the stream has no ring, returns NULL. */
struct records_ring *records_ring_of(struct records *records, uint64_t tmd);
/*
 * Assigns a ring to a stream. If another thread has just assigned a ring to it, returns this ring.
 * If no ring is free, returns NULL.
 */
struct records_ring *records_claim_ring(struct records *records, uint64_t tmd);
/* Returns the number of launches that have no record and may not have ended yet. */
uint64_t records_waiting(const struct records_ring *ring);
/* Returns true if all recorded launches of the ring have ended. */
bool records_all_ended(const struct records_ring *ring);
/*
 * Returns the index of @ctx in @records->contexts. If @ctx is not in this array, returns
 * RECORDS_MAX_CONTEXTS.
 */
static inline unsigned int records_context_of(struct records *records, const void *ctx)
{
	unsigned int n = 0;

	while (n < RECORDS_MAX_CONTEXTS && (!ctx || atomic_load(&records->contexts[n].ctx) != ctx))
		n++;
	return n;
}

/*
 * Returns true if the error @result means that the launch was not made. After any other error
 * the context is lost.
 */
static inline bool records_not_made(int result)
{
	return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_OUT_OF_MEMORY ||
	       result == CUDA_ERROR_LAUNCH_RESOURCES || result == CUDA_ERROR_NOT_SUPPORTED ||
	       result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_PERMITTED;
}

/* ------------------------------------------------------------------- graphs */

/*
 * Describes how the library detects that the launches of an executable graph have ended. The GPU
 * counts how many kernels have ended. A kernel is counted if it has the same function as one of the
 * graph's last kernels. Two threads must not use a mark at the same time. The driver has the same
 * rule for the executable graph.
 */
struct records_mark;

/*
 * Creates the mark of an executable graph that was created from @graph. If the completion of the
 * executable graph's launches cannot be known, returns NULL.
 */
struct records_mark *records_mark_new(const struct cuda_api *cuda, void *graph);
/*
 * Frees @mark. Any kernels of the graph that are still running continue to run. This function
 * and the following functions ignore a NULL @mark.
 */
void records_mark_free(struct records_mark *mark);
/* From now on, the library cannot know when the launches of the graph have ended. */
void records_mark_unknown(struct records_mark *mark);
/* This function is called when the executable graph of @mark was updated from @graph. */
void records_mark_updated(struct records_mark *mark, const struct cuda_api *cuda, void *graph);

/*
 * The launch callback calls this function for each node that is built. The function removes the
 * record of an earlier build from the node's TMD. If the node is counted, it adds a record. The
 * argument @was is true if the node was counted before. Returns true if this call counted the node.
 */
bool records_mark_node(struct records_mark *mark, struct records *records,
		       const struct tmd_map *map, const struct launch_params *params, bool was);

/*
 * This function is called when the library changes to a different build of the graph. The argument
 * @nr is the number of counted kernels that the new build has so far. Returns the number of counted
 * kernels of the old build.
 */
unsigned int records_mark_built(struct records_mark *mark, unsigned int nr);

/*
 * This function is called before the driver can build the graph's nodes. The kernels of these nodes
 * are then counted in @records, which may be NULL. The launch callback must not call this function.
 */
void records_graph_builds(struct records_mark *mark, struct records *records);
/*
 * These functions are called before and after a launch of a graph into @stream, which is NULL for a
 * default stream. If @mark is NULL, the completion of the launch is unknown until a later kernel on
 * the same stream has ended. The argument @offset is that of records_ring_of_stream().
 */
void records_graph_begins(struct records_mark *mark, struct records *records, const void *stream,
			  uint64_t offset);
void records_graph_ends(struct records_mark *mark, struct records *records, const void *stream,
			uint64_t offset, int result);

/*
 * This function is called before and after context number @n is destroyed. In the call before the
 * destruction, @ended is false. In the call after the destruction, @ended is true, and the GPU no
 * longer writes records of this context.
 */
void records_graphs_gone(struct records *records, unsigned int n, bool ended);

/* ------------------------------------------------------------------- check */

/* A probe launch that tests whether the layout's row is correct. */
struct records_trial {
	const struct tmd_map *map;
	unsigned int slot;
	struct tmd_release release;
	/*
	 * The GPU time in ns at which the last block ended. The caller that made the launch sets
	 * this member.
	 */
	uint64_t ended;
	/* The reason why the TMD is not as expected, or NULL. The callback sets this member. */
	const char *why;
};

/*
 * The callback of the probe launch calls this function. If the TMD is as expected, the function
 * writes the release slot.
 */
void records_trial_launch(struct records_trial *trial, void *tmd);

/*
 * Makes launches in the current context. These launches prove that the driver does not write the
 * slots, and that the GPU writes the records. The function @launch makes one launch and waits for
 * its end. Returns 0, or -EPROTO with the reason.
 */
int records_check(struct gpupart *gp, const struct cuda_api *cuda, const struct tmd_map *map,
		  int (*launch)(struct gpupart *gp, struct records_trial *trial, void *arg),
		  void *arg);

/* ------------------------------------------------------------------- contexts */

/* If @map's layout has no slots for records, returns -EOPNOTSUPP. Otherwise returns 0. */
int records_possible(struct gpupart *gp, const struct tmd_map *map);

/*
 * Turns records on for @gpu. Before the call, records_possible() must have returned 0. The caller
 * must report contexts with records_context(). Returns 0, -EOPNOTSUPP or -ENOMEM.
 */
int records_start(struct gpupart *gp, struct state_gpu *gpu, const struct tmd_map *map,
		  struct records **started);

/*
 * Turns records on for launches in @ctx, the current context. The caller may call this function any
 * number of times. The launch callback must not call this function, because it calls the driver. If
 * records stay off, returns false and stores the reason in @records->why.
 */
bool records_context(struct records *records, const struct cuda_api *cuda, void *ctx);

/* ------------------------------------------------------------------- totals */

/* The data of a launch that has ended. */
struct records_entry {
	uint64_t time;		/* the end of the launch in GPU ns */
	uint64_t submitted;	/* the CPU counter at the launch's submission; 0: the
				 * launch never ran */
	uint64_t function;
};

/* Converts @counter, a value of the CPU counter, to the CPU's time in ns. */
static inline uint64_t records_clock_ns(const struct state_clock *clock, uint64_t counter)
{
	int64_t since = counter - clock->counter;

	return clock->ns + (int64_t)((__int128)since * (int64_t)clock->scale >> 32);
}

/*
 * Updates the reader's copy of the clock. The reader has just seen that a launch ended at @end.
 * The function does not change the rate of the clock.
 */
GPUPART_PRIVATE
void records_clock_seen(struct state_clock *clock, uint64_t end);

/*
 * Adds the next launch of @ring, number @ring->folded + 1, to the totals. Before the call, the
 * end of a launch must have been reported to the clock of the totals.
 */
GPUPART_PRIVATE
void records_fold_entry(struct state_records *totals, struct state_ring *ring,
			const struct records_entry *entry);

/*
 * Adds up to @max launches of @ring to the totals and returns the number of launches added. The
 * caller must hold records->folding. The argument @own is true if the calling thread launches on
 * this ring.
 */
unsigned int records_fold_ring(struct state_records *totals, struct records_ring *ring,
			       unsigned int max, bool own);

/*
 * If no other thread is writing the totals, adds some launches of @ring and of other rings to the
 * totals. The calling thread launches on @ring.
 */
void records_fold(struct records_ring *ring);

/*
 * The interval from @begin to @end contains one or more launches. Adds this interval to the union
 * of such intervals. Intervals may be added in any order. The time @end must be after @begin.
 */
void records_add(struct state_records *totals, uint64_t begin, uint64_t end);

/*
 * Does the same as gpupart_records_read(), but for one stream of this process. The argument @ring
 * is the ring of the stream, or NULL if the stream has no ring yet. Some values do not exist for
 * each stream. For these values, the function returns the values of the process.
 */
int records_read_ring(struct gpupart *gp, struct gpupart_records_reader *reader,
		      const struct records *records,
		      const struct records_ring *ring, struct gpupart_records *result, size_t size);

/*
 * Adds all launches of this process that have ended to the totals. If another thread is writing the
 * totals of a GPU, leaves them to this thread. The launch callback must not call this function.
 */
GPUPART_PRIVATE
void records_settle(void);

/*
 * Acquires the lock of the totals. A thread must hold this lock while it writes the totals.
 * Returns the totals, or NULL if another thread holds the lock.
 */
static inline struct state_records *records_totals_try(struct records *records)
{
	struct state_records *totals;

	if (atomic_exchange_explicit(&records->folding, true, memory_order_acquire))
		return NULL;
	totals = records->shown;
	__atomic_store_n(&totals->version, totals->version + 1, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
	return totals;
}

static inline void records_totals_unlock(struct records *records, struct state_records *totals)
{
	__atomic_store_n(&totals->version, totals->version + 1, __ATOMIC_RELEASE);
	atomic_store_explicit(&records->folding, false, memory_order_release);
}

/*
 * Acquires the lock of the totals. If another thread holds the lock, waits a short time. If that
 * thread still holds the lock, returns false. The launch callback must not call this function.
 */
bool records_totals_lock(struct records *records);

/* True if the totals contain functions for which records_names() has not been called yet. */
extern atomic_bool records_unnamed;

/*
 * Reads the names of @functions from the driver. If @records is NULL, @functions is a copy.
 * Otherwise @functions belongs to @records. The launch callback must not call this function.
 */
GPUPART_PRIVATE
void records_names(struct state_function *functions, struct records *records,
		   const struct cuda_api *cuda);
/*
 * This function is called when a module is being unloaded. If a function of this module has no name
 * yet, it never gets a name.
 */
void records_module_gone(struct records *records);

/*
 * Measures the rate of the CPU counter between the first and the second call. The second call
 * takes at most 1 ms.
 */
void records_clock_start(struct state_clock *clock);

#endif
