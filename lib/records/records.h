/* SPDX-License-Identifier: MIT */
/*
 * Completion records: the GPU writes the end of each launch into memory of this process. Other
 * processes read this memory through a file. See Documentation/internals/state-page.md.
 *
 * The driver has one TMD buffer for each stream, so a TMD's address identifies its stream. Two
 * launches of one stream are never in the launch callback at the same time, so each ring has
 * one writer and needs no lock. The functions that the launch callback calls cannot fail, do
 * not allocate, take no lock and have no unbounded loops.
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
 * The file begins with a head. After it, the file has a section for each GPU in the state page.
 * A section contains cells, which the GPU writes, and @notes, which the CPU writes and which
 * has one entry for each launch. Only the cells are registered with the driver.
 */
struct records_cell {
	_Atomic uint64_t payload;	/* sequence number of the launch; written after @time */
	_Atomic uint64_t time;		/* %globaltimer, in ns */
};

/*
 * Older layouts write only the lower 32 bits of a number. These bits are enough, because the
 * number in an entry belongs either to this turn around the ring or to the previous turn.
 */
static inline bool records_has(const struct records_cell *cell, uint64_t seq)
{
	return (uint32_t)atomic_load_explicit(&cell->payload, memory_order_acquire) ==
	       (uint32_t)seq;
}

/* Returns whether the entry has this number or a later number. */
static inline bool records_reached(const struct records_cell *cell, uint64_t seq)
{
	return (int32_t)((uint32_t)atomic_load_explicit(&cell->payload, memory_order_acquire) -
			 (uint32_t)seq) >= 0;
}

struct records_note {
	_Atomic uint64_t submitted;	/* the CPU counter at submission; 0: the launch
					 * failed and never ran */
	_Atomic uint64_t function;
};

/* The cell of an executable graph. */
struct records_graph_cell {
	_Atomic uint32_t count;		/* number of last kernels that have ended; the GPU
					 * adds to it */
	uint32_t pad[3];
	struct records_cell end;	/* the latest end of a last kernel; its payload is 1 */
};

#define RECORDS_LAYOUT		2
#define RECORDS_HEAD		65536
#define RECORDS_STRIDE		(1u << 20)	/* bytes from one section to the next */
#define RECORDS_NR_LONG		8		/* number of longer rings: those with the
						 * lowest numbers */
#define RECORDS_LONG		2048		/* entries of a longer ring */
#define RECORDS_SHORT		256
#define RECORDS_NR_CELLS	\
	(RECORDS_NR_LONG * RECORDS_LONG + (STATE_NR_RINGS - RECORDS_NR_LONG) * RECORDS_SHORT)
#define RECORDS_REGISTERED	(512u << 10)	/* bytes of a section before its notes */

struct records_section {
	struct records_cell cells[RECORDS_NR_CELLS];	/* the cells of ring 0, then of ring
							 * 1, ... */
	struct records_graph_cell graphs[STATE_NR_GRAPHS];
	char reserved[RECORDS_REGISTERED - RECORDS_NR_CELLS * sizeof(struct records_cell) -
		      STATE_NR_GRAPHS * sizeof(struct records_graph_cell)];
	struct records_note notes[RECORDS_NR_CELLS];
};

_Static_assert(offsetof(struct records_section, notes) == RECORDS_REGISTERED &&
	       sizeof(struct records_section) <= RECORDS_STRIDE, "a section must fit into 1 MiB");

/*
 * Returns the number of kernels of @graph's launches that have not ended. It is negative if
 * more kernels have ended than were launched.
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

/* Returns the index of the ring's first entry among all cells of the section. */
static inline unsigned int records_first(unsigned int ring)
{
	return ring < RECORDS_NR_LONG ? ring * RECORDS_LONG
		: RECORDS_NR_LONG * RECORDS_LONG + (ring - RECORDS_NR_LONG) * RECORDS_SHORT;
}

/*
 * Returns the number before the number of the ring's first launch. At first the cell of entry i
 * has payload i. An entry is free if its cell's number is the next launch's number minus the
 * size of the ring.
 */
static inline uint64_t records_base(unsigned int ring)
{
	return records_entries(ring) - 1;
}

/*
 * Returns the section of GPU number @n and creates it if necessary. Returns NULL with the
 * reason in @gp if that fails.
 */
struct records_section *records_file_section(struct gpupart *gp, unsigned int n);
/* Returns the section of GPU number @n, or NULL if it does not exist. */
GPUPART_PRIVATE
struct records_section *records_file_find(unsigned int n);
/*
 * Maps the part of the section that the GPU writes once more. Returns NULL if memory is short.
 */
void *records_file_again(unsigned int n);

/*
 * This ring belongs to no stream. Each of its entries is an interval in which launches of an
 * executable graph followed each other. An entry is written when its interval is over; the
 * entries are in no particular order.
 */
#define RECORDS_GRAPH_RING	(STATE_NR_RINGS - 1)
#define RECORDS_GRAPH_KEY	3	/* function of these entries: odd, so its name is not
					 * looked up */
#define RECORDS_GRAPH_NAME	"(CUDA graphs)"

/* ------------------------------------------------------------------- GPUs */

/* Reads a counter that all CPUs have and that is very cheap to read. */
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

#define RECORDS_MAX_CONTEXTS	16	/* contexts of one GPU that exist at the same time */
#define RECORDS_HINT_BITS	10

/* The ring of a stream. Only the thread that launches on the stream writes to the ring. */
struct records_ring {
	_Alignas(64) _Atomic uint64_t issued;	/* copy of @issued of struct state_ring,
						 * which other processes can write */
	uint64_t mask;			/* number of entries - 1 */
	struct records_cell *cells;
	struct records_note *notes;
	uint64_t address;		/* address of the cells in the address space of the
					 * context: */
	const void *ctx;
	_Atomic uint64_t tmd;		/* address of the TMD of the ring's stream; 0: no
					 * stream */
	struct state_ring *shown;
	_Atomic uint64_t first;		/* up to this launch number the ring belonged to
					 * another stream */
	uint64_t unrecorded;		/* number of unrecorded launches of that stream and
					 * of earlier streams */
	_Atomic unsigned char busy;	/* 1: a launch is in the callback; or RECORDS_BROKEN */
	unsigned char context;		/* index in contexts[] */
	unsigned char number;
};

#define RECORDS_BROKEN	2	/* two launches were in the callback at once: the ring is no
				 * longer used */

struct records_context {
	_Atomic(const void *) ctx;	/* NULL: there is no context, or it was destroyed */
	void *mapped;			/* NULL: never used */
	uint64_t address;		/* address of @mapped in the address space of the
					 * context */
};

/* Belongs to an entry of state_records.graph. */
struct records_graph {
	struct state_graph *shown;
	struct records_graph_cell *cell;
	struct records_mark *owner;	/* mark of an executable graph that exists; NULL: the
					 * entry has no owner */
	unsigned int context;		/* context of the graph's nodes: its index in
					 * contexts[] plus 1; 0: none yet */
	bool spoilt;			/* the entry is not reused before that context is
					 * destroyed */
	bool launching;			/* one of the graph's launches is not counted yet */
};

struct records {
	const struct tmd_release_place *place[2];	/* slots to use, the preferred slot
							 * first */
	struct state_records *shown;
	struct records_section *section;	/* NULL until a context has a section */
	_Atomic uint64_t free;			/* bit n is set: ring n has no stream, but
						 * its launches may still be running */
	/* rings, found by TMD address; a hint may be wrong */
	struct records_ring *_Atomic hints[1u << RECORDS_HINT_BITS];
	struct records_ring rings[STATE_NR_RINGS];
	struct records_context contexts[RECORDS_MAX_CONTEXTS];
	struct records_graph graphs[STATE_NR_GRAPHS];
	atomic_bool folding;		/* a thread is writing the totals */
	unsigned int next_ring;		/* the ring at which the next fold starts */
	atomic_uint nr_running;		/* number of graphs with a time that is not in the
					 * totals yet */
	struct state_gpu *gpu;
	char why[192];				/* the reason why contexts have no records;
						 * "": there is no such reason */
};

/* ------------------------------------------------------------------- launches */

/*
 * Called in the launch callback, after masking. Gives the launch a record, or counts the launch
 * as unrecorded.
 */
void records_launch(struct records *records, const struct launch_params *params);

/*
 * Returns the ring of the calling thread's last launch and stores the launch's number in *seq.
 * Returns NULL if that launch has no record.
 */
const struct records_ring *records_last(uint64_t *seq);

/*
 * Returns whether launch @seq of @ring, which has a record, has ended, or whether its end can
 * never be known. *ns is set to the longest time that the launch can have taken, or to 0 if
 * this time is unknown. Must not be called in a callback.
 */
bool records_ended(const struct records *records, const struct records_ring *ring, uint64_t seq,
		   uint64_t *ns);

/*
 * Called when a launch function has ended with @result. A launch that failed after its callback
 * never runs.
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
 * Returns the index of @ctx in @records->contexts, or RECORDS_MAX_CONTEXTS if it is not there.
 */
static inline unsigned int records_context_of(struct records *records, const void *ctx)
{
	unsigned int n = 0;

	while (n < RECORDS_MAX_CONTEXTS && (!ctx || atomic_load(&records->contexts[n].ctx) != ctx))
		n++;
	return n;
}

/*
 * Returns whether the error @result means that the launch was not made. After any other error
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
 * Describes how the library knows that the launches of an executable graph have ended. Some
 * kernels of the graph are last kernels: no other node waits for them. Every kernel with the
 * same function as a last kernel is counted when it ends. Only one thread at a time may use a
 * mark, and the same is true for the executable graph.
 */
struct records_mark;

/*
 * Returns a mark for an executable graph made from @graph. Returns NULL if the ends of its
 * launches cannot be known.
 */
struct records_mark *records_mark_new(const struct cuda_api *cuda, void *graph);
/*
 * The next three functions do nothing if @mark is NULL. Kernels that are still running
 * continue.
 */
void records_mark_free(struct records_mark *mark);
/* From now on the ends of the graph's launches are unknown. */
void records_mark_unknown(struct records_mark *mark);
/* Called when the executable graph was updated to @graph. */
void records_mark_updated(struct records_mark *mark, const struct cuda_api *cuda, void *graph);

/*
 * Called in the launch callback for each node that is built. Removes the record that an earlier
 * build left in the TMD, and adds a record if the node is counted. @was: whether the node was
 * counted before. Returns whether the node is counted now.
 */
bool records_mark_node(struct records_mark *mark, struct records *records,
		       const struct tmd_map *map, const struct launch_params *params, bool was);

/*
 * Called when another build of the graph is used. @nr: the number of kernels of the new build
 * that are counted so far. Returns that number for the previous build.
 */
unsigned int records_mark_built(struct records_mark *mark, unsigned int nr);

/*
 * From now on the nodes of the executable graph may be built, for @records (may be NULL). Must
 * not be called in the launch callback.
 */
void records_graph_builds(struct records_mark *mark, struct records *records);
/*
 * Called before and after a launch of a graph. If @mark is NULL, the end of the launch is
 * unknown.
 */
void records_graph_begins(struct records_mark *mark, struct records *records);
void records_graph_ends(struct records_mark *mark, struct records *records, int result);

/*
 * Called in the launch callback with records->folding held. Adds the times of the graphs whose
 * launches have all ended, so that these times are added before later launches. Never waits.
 */
void records_graphs_fold(struct records *records);

/*
 * Called when context number @n is being destroyed, and again with @ended true when it is
 * destroyed and the GPU no longer writes to its memory.
 */
void records_graphs_gone(struct records *records, unsigned int n, bool ended);

/* ------------------------------------------------------------------- check */

/* A probe launch that shows whether the layout's row is correct. */
struct records_trial {
	const struct tmd_map *map;
	unsigned int slot;
	struct tmd_release release;
	uint64_t ended;		/* set by the launching function: GPU time in ns when the
				 * last block ended */
	const char *why;	/* set by the callback: what is wrong with the TMD, or NULL */
};

/* Called in the callback of the probe launch. Writes the slot if the TMD is as expected. */
void records_trial_launch(struct records_trial *trial, void *tmd);

/*
 * Proves with launches in the current context that the driver does not use the slots and that
 * the GPU writes the records. @launch: a function that makes one launch and waits for its end.
 * Returns 0, or -EPROTO with the reason in @gp.
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
 * Turns records on for launches in @ctx, which must be the current context. It may be called
 * any number of times. It calls the driver, so it must not be called in the launch callback.
 * Returns false if records stay off; @records->why is then the reason.
 */
bool records_context(struct records *records, const struct cuda_api *cuda, void *ctx);

/* ------------------------------------------------------------------- totals */

/* The data of a launch that has ended. */
struct records_entry {
	uint64_t time;		/* GPU time in ns at the end of the launch */
	uint64_t submitted;	/* the CPU counter at submission; 0: the launch never ran */
	uint64_t function;
};

/* Returns the CPU's time in ns at the value @counter of its counter. */
static inline uint64_t records_clock_ns(const struct state_clock *clock, uint64_t counter)
{
	int64_t since = counter - clock->counter;

	return clock->ns + (int64_t)((__int128)since * clock->scale >> 32);
}

/*
 * For a copy of the totals: takes note that a launch that ended at GPU time @end was seen now.
 * The copy keeps the clock rate of the process.
 */
GPUPART_PRIVATE
void records_clock_seen(struct state_clock *clock, uint64_t end);

/*
 * Adds the next launch of @ring, number @ring->folded + 1, to the totals. The clock in @totals
 * must already have seen a launch that ended.
 */
GPUPART_PRIVATE
void records_fold_entry(struct state_records *totals, struct state_ring *ring,
			const struct records_entry *entry);

/*
 * Adds up to @max launches of @ring to the totals. The caller holds records->folding. @own:
 * whether the calling thread launches on this ring. Returns the number of launches added.
 */
unsigned int records_fold_ring(struct state_records *totals, const struct records_ring *ring,
			       unsigned int max, bool own);

/*
 * Adds the interval from @begin to @end, which contains one or more launches, to the union.
 * Intervals may be added in any order. @end must be after @begin.
 */
void records_add(struct state_records *totals, uint64_t begin, uint64_t end);

/*
 * Like gpupart_records_read() of this process, but for the launches of one stream. @ring: the
 * ring of the stream; NULL: the stream has no ring yet. Values that are not counted by stream
 * are the values of the process.
 */
int records_read_ring(struct gpupart *gp, struct gpupart_records_reader *reader,
		      const struct records_ring *ring, struct gpupart_records *records,
		      size_t size);

/* Called before writing to the totals. Returns false if another thread is writing them. */
static inline bool records_totals_try(struct records *records)
{
	struct state_records *totals = records->shown;

	if (atomic_exchange_explicit(&records->folding, true, memory_order_acquire))
		return false;
	__atomic_store_n(&totals->version, totals->version + 1, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
	return true;
}

static inline void records_totals_unlock(struct records *records)
{
	struct state_records *totals = records->shown;

	__atomic_store_n(&totals->version, totals->version + 1, __ATOMIC_RELEASE);
	atomic_store_explicit(&records->folding, false, memory_order_release);
}

/*
 * Like records_totals_try(), but waits a short time for the lock. Returns false if the lock is
 * still held. Must not be called in the launch callback.
 */
bool records_totals_lock(struct records *records);

/* True if the totals have functions whose names records_names() has not looked up yet. */
extern atomic_bool records_unnamed;

/*
 * Asks the driver for the names of @functions. @records: the records that @functions belong to;
 * NULL: @functions are a copy. Must not be called in the launch callback.
 */
GPUPART_PRIVATE
void records_names(struct state_function *functions, struct records *records,
		   const struct cuda_api *cuda);
/*
 * Called when a module is being unloaded. Functions without a name stay without a name, because
 * they may belong to this module.
 */
void records_module_gone(struct records *records);

/*
 * Measures the rate of the CPU's counter between the first call and the second call. The second
 * call takes at most 1 ms.
 */
void records_clock_start(struct state_clock *clock);

#endif
