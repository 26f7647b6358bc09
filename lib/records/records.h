/* SPDX-License-Identifier: MIT */
/*
 * Completion records: when a launch ends, the GPU writes the time into memory of this process.
 * Other processes read this memory through a file. See Documentation/internals/state-page.md.
 *
 * The driver has one TMD buffer for each stream, so a TMD's address identifies its stream. Two
 * launches of one stream are never in the launch callback at the same time, so each ring has one
 * writer and needs no lock. The functions that the launch callback calls cannot fail, allocate
 * no memory, acquire no lock and have no unbounded loops.
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
 * Returns true if the cell contains sequence number @seq. On GPUs with older TMD layouts the GPU
 * writes only the lower 32 bits of a number. A comparison of 32 bits is enough, because a cell
 * only contains the number of the newest launch in the cell or of the launch before it.
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
 * Returns how many counted kernels of @graph's launches have not ended. The number is negative
 * if more kernels have ended than were counted as launched.
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
 * Returns a number that is 1 less than the number of the ring's first launch. Initially, cell i
 * of the ring has payload i. A cell is free for a launch if its payload is the launch's number
 * minus the number of cells in the ring.
 */
static inline uint64_t records_base(unsigned int ring)
{
	return records_entries(ring) - 1;
}

/*
 * Returns the section of GPU number @n. Creates the section if it does not exist. If this fails,
 * returns NULL with the reason in @gp.
 */
struct records_section *records_file_section(struct gpupart *gp, unsigned int n);
/* Returns the section of GPU number @n, or NULL if there is no such section. */
GPUPART_PRIVATE
struct records_section *records_file_find(unsigned int n);
/*
 * Creates a second mapping of the part of section @n that the GPU writes. Returns NULL if memory
 * is short.
 */
void *records_file_again(unsigned int n);

/*
 * This ring belongs to no stream. Each entry of this ring is an interval in which launches of an
 * executable graph followed each other. An entry is written when its interval is over. The
 * entries are not sorted by time.
 */
#define RECORDS_GRAPH_RING	(STATE_NR_RINGS - 1)
#define RECORDS_GRAPH_KEY	3	/* key of these entries; it is odd, so no name
					 * is looked up */
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

/* The ring of a stream. Only the thread that launches on the stream writes to the ring. */
struct records_ring {
	/*
	 * A private copy of the member @issued of struct state_ring. Other processes can change
	 * that member, but not this copy.
	 */
	_Alignas(64) _Atomic uint64_t issued;
	/*
	 * The totals include the launches up to number @room - (@mask + 1). So later launches up
	 * to number @room can use their entries, because the launches that used these entries
	 * before have ended.
	 */
	_Atomic uint64_t room;
	uint64_t mask;			/* number of entries - 1 */
	struct records_note *notes;
	_Atomic uint64_t tmd;		/* address of the TMD of the ring's stream; 0:
					 * the ring has no stream */
	/*
	 * Equal to @ctx if the ring can be used. NULL while a launch is in the callback. Only the
	 * thread that launches on the stream reads and writes this member.
	 */
	const void *ready;
	struct state_ring *shown;
	struct records_cell *cells;
	struct tmd_release_target target;	/* the preferred slot in the TMD of the stream */
	struct records *records;
	struct state_function *function;	/* the function of the last folded launch */
	const void *ctx;
	uint64_t address;		/* address of the cells in the address space of @ctx */
	/* Launches up to this number belong to streams that used the ring earlier. */
	_Atomic uint64_t first;
	uint64_t unrecorded;		/* number of unrecorded launches of all streams that used
					 * the ring earlier */
	/*
	 * Two launches of this ring were in the callback at the same time, so the ring is no
	 * longer used.
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

/* Belongs to an entry of state_records.graph. */
struct records_graph {
	struct state_graph *shown;
	struct records_graph_cell *cell;
	/* The mark of the executable graph that uses the entry. NULL: no graph uses it. */
	struct records_mark *owner;
	/* 1 plus the index in contexts[] of the context of the graph's nodes. 0: no context yet. */
	unsigned int context;
	/* If true, the entry must not be reused until this context is destroyed. */
	bool spoilt;
	bool launching;			/* a launch of its graph is not counted yet */
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
	 * If bit n is 1, a stream has used ring n. Bit 1 is also set if a graph was launched. So
	 * the value is 1 if there are only launches in ring 0.
	 */
	_Atomic uint64_t used;
	struct records_ring rings[STATE_NR_RINGS];
	struct records_context contexts[RECORDS_MAX_CONTEXTS];
	struct records_graph graphs[STATE_NR_GRAPHS];
	atomic_bool folding;		/* a thread is writing the totals */
	unsigned int next_ring;		/* the ring with which the next fold begins, below 64 */
	/* Up to this value of the CPU's counter, the rate of the clock may be used. */
	uint64_t clock_until;
	atomic_uint nr_running;		/* number of graphs whose time is not in the totals yet */
	/*
	 * Adds the times of ended graphs to the totals. Called while the caller holds @folding.
	 * Set before @nr_running is not 0.
	 */
	void (*fold_graphs)(struct records *records);
	struct state_gpu *gpu;
	char why[192];				/* the reason why contexts have no records, or "" */
};

/* ------------------------------------------------------------------- launches */

/*
 * Called in the launch callback after the TMD was masked. Assigns a record to the launch, or
 * counts the launch as unrecorded. Then calls state_launch_end() for @lane.
 */
void records_launch(const struct launch_params *params, struct state_lane *lane,
		    struct records *records);

/*
 * Does the same for a launch function whose end the library observes: the functions
 * records_last() and records_launch_ends() then know the launch.
 */
void records_launch_in_call(const struct launch_params *params, struct state_lane *lane,
			    struct records *records);

/*
 * Returns the ring of the calling thread's last launch, and stores the number of this launch in
 * *seq. Returns NULL if the launch has no record.
 */
const struct records_ring *records_last(uint64_t *seq);

/*
 * Returns true if launch number @seq of @ring has ended, or if its end can never be known. The
 * launch must have a record. *ns is set to an upper bound of the launch's time in ns, or to 0 if
 * the time is unknown. Callbacks must not call this function.
 */
bool records_ended(const struct records *records, const struct records_ring *ring, uint64_t seq,
		   uint64_t *ns);

/* The ring of the calling thread's last launch, see records_last(). */
extern _Thread_local const struct records_ring *records_last_ring;

/* Called when a launch function begins. */
static inline void records_launch_begins(void)
{
	records_last_ring = NULL;
}

/*
 * Called when a launch function has returned @result. If the launch function failed after the
 * launch callback, the launch never runs.
 */
void records_launch_ends(int result);

/*
 * Called when the stream whose TMD is at @tmd is destroyed, or when @ctx is destroyed with all
 * its streams.
 */
void records_stream_gone(struct records *records, uint64_t tmd);
void records_context_gone(struct records *records, const void *ctx);
/* Returns the ring of the stream whose TMD is at @tmd, or NULL if the stream has no ring. */
GPUPART_PRIVATE
struct records_ring *records_ring_of(struct records *records, uint64_t tmd);
/*
 * Returns the index of @ctx in @records->contexts, or RECORDS_MAX_CONTEXTS if @ctx is not in this
 * array.
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
 * counts how many kernels have ended. It counts only kernels that have the same function as one
 * of the graph's last kernels. Only one thread at a time may use a mark, as the driver requires
 * for the executable graph.
 */
struct records_mark;

/*
 * Creates the mark of an executable graph that was created from @graph. Returns NULL if the
 * completion of its launches cannot be known.
 */
struct records_mark *records_mark_new(const struct cuda_api *cuda, void *graph);
/*
 * Frees @mark. Any kernels of the graph that are still running continue to run. This function
 * and the following functions ignore a NULL @mark.
 */
void records_mark_free(struct records_mark *mark);
/* From now on, the library cannot know when the launches of the graph have ended. */
void records_mark_unknown(struct records_mark *mark);
/* Called when the executable graph of @mark was updated from @graph. */
void records_mark_updated(struct records_mark *mark, const struct cuda_api *cuda, void *graph);

/*
 * Called in the launch callback for each node that is built. Removes the record of an earlier
 * build from the node's TMD, and adds a record if the node is counted. @was is true if the node
 * was counted before. Returns true if this call counted the node.
 */
bool records_mark_node(struct records_mark *mark, struct records *records,
		       const struct tmd_map *map, const struct launch_params *params, bool was);

/*
 * Called when the library changes to a different build of the graph. @nr is the number of
 * counted kernels that the new build has so far. Returns the number of counted kernels of the
 * old build.
 */
unsigned int records_mark_built(struct records_mark *mark, unsigned int nr);

/*
 * Called before the driver can build the graph's nodes. The kernels of these nodes are then
 * counted in @records, which may be NULL. The launch callback must not call this function.
 */
void records_graph_builds(struct records_mark *mark, struct records *records);
/*
 * Called before and after a launch of a graph. A NULL @mark means that the completion of the
 * launch is unknown.
 */
void records_graph_begins(struct records_mark *mark, struct records *records);
void records_graph_ends(struct records_mark *mark, struct records *records, int result);

/*
 * Called when context number @n is destroyed. @ended is false in the call before the
 * destruction. @ended is true in the call after the destruction, when the GPU no longer writes
 * records of this context.
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

/* Writes the release slot if the TMD is as expected. Called in the callback of the probe launch. */
void records_trial_launch(struct records_trial *trial, void *tmd);

/*
 * Makes launches in the current context. These launches prove that the driver does not write the
 * slots and that the GPU writes the records. @launch makes one launch and waits for its end.
 * Returns 0, or -EPROTO with the reason.
 */
int records_check(struct gpupart *gp, const struct cuda_api *cuda, const struct tmd_map *map,
		  int (*launch)(struct gpupart *gp, struct records_trial *trial, void *arg),
		  void *arg);

/* ------------------------------------------------------------------- contexts */

/* Returns 0, or -EOPNOTSUPP if @map's layout has no slots for records. */
int records_possible(struct gpupart *gp, const struct tmd_map *map);

/*
 * Turns records on for @gpu. The caller must report contexts with records_context(). Returns 0,
 * -EOPNOTSUPP or -ENOMEM.
 */
int records_start(struct gpupart *gp, struct state_gpu *gpu, const struct tmd_map *map,
		  struct records **started);

/*
 * Turns records on for launches in @ctx, the current context. May be called any number of times.
 * The launch callback must not call this function, because it calls the driver. If records stay
 * off, returns false and stores the reason in @records->why.
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
 * caller must hold records->folding. @own is true if the calling thread launches on this ring.
 */
unsigned int records_fold_ring(struct state_records *totals, struct records_ring *ring,
			       unsigned int max, bool own);

/*
 * Adds some launches of @ring and of other rings to the totals, if no other thread does this. The
 * calling thread launches on @ring.
 */
void records_fold(struct records_ring *ring);

/*
 * The interval from @begin to @end contains one or more launches. Adds this interval to the
 * union of such intervals. Intervals may be added in any order. @end must be after @begin.
 */
void records_add(struct state_records *totals, uint64_t begin, uint64_t end);

/*
 * Like gpupart_records_read(), but reads only this process's records of one stream. @ring is the
 * ring of the stream, or NULL if the stream has no ring yet. Some values are counted only for
 * the whole process. For these values, the function returns the values of the process.
 */
int records_read_ring(struct gpupart *gp, struct gpupart_records_reader *reader,
		      const struct records_ring *ring, struct gpupart_records *records,
		      size_t size);

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
 * Acquires the lock of the totals. If another thread holds the lock, waits a short time. Returns
 * false if that thread still holds the lock. The launch callback must not call this function.
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
 * Called when a module is being unloaded. If a function of this module has no name yet, it never
 * gets a name.
 */
void records_module_gone(struct records *records);

/*
 * Measures the rate of the CPU counter between the first and the second call. The second call
 * takes at most 1 ms.
 */
void records_clock_start(struct state_clock *clock);

#endif
