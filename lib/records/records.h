/* SPDX-License-Identifier: MIT */
/*
 * Completion records: the GPU writes the end of each launch into memory of this process, which
 * other processes read through a file. See Documentation/internals/state-page.md.
 *
 * The driver has one TMD buffer for each stream, so a TMD's address identifies its stream. Two
 * launches of one stream are never in the launch callback at the same time, so each ring has
 * one writer and needs no lock. Functions that the launch callback calls cannot fail, do not
 * allocate, take no lock and have no unbounded loops.
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
 * After a head, the file has a section for each GPU in the state page: cells, which the GPU
 * writes and which are the only part registered with the driver, and one entry in @notes for
 * each launch, which the CPU writes.
 */
struct records_cell {
	_Atomic uint64_t payload;	/* sequence number of the launch; written after @time */
	_Atomic uint64_t time;		/* %globaltimer, in ns */
};

/*
 * Older layouts only write the lower 32 bits of a number. These are enough: an entry has the
 * number of this turn around the ring, or of the previous one.
 */
static inline bool records_has(const struct records_cell *cell, uint64_t seq)
{
	return (uint32_t)atomic_load_explicit(&cell->payload, memory_order_acquire) ==
	       (uint32_t)seq;
}

/* Whether the entry has this number, or a later one. */
static inline bool records_reached(const struct records_cell *cell, uint64_t seq)
{
	return (int32_t)((uint32_t)atomic_load_explicit(&cell->payload, memory_order_acquire) -
			 (uint32_t)seq) >= 0;
}

struct records_note {
	_Atomic uint64_t submitted;	/* the CPU counter; 0: the launch failed and never ran */
	_Atomic uint64_t function;
};

/* Of an executable graph. */
struct records_graph_cell {
	_Atomic uint32_t count;		/* last kernels that have ended; the GPU adds to it */
	uint32_t pad[3];
	struct records_cell end;	/* the last end; its payload is 1 */
};

#define RECORDS_LAYOUT		2
#define RECORDS_HEAD		65536
#define RECORDS_STRIDE		(1u << 20)	/* distance between sections */
#define RECORDS_NR_LONG		8		/* the rings with the lowest numbers are longer */
#define RECORDS_LONG		2048		/* in entries */
#define RECORDS_SHORT		256
#define RECORDS_NR_CELLS	\
	(RECORDS_NR_LONG * RECORDS_LONG + (STATE_NR_RINGS - RECORDS_NR_LONG) * RECORDS_SHORT)
#define RECORDS_REGISTERED	(512u << 10)	/* bytes of a section before its notes */

struct records_section {
	struct records_cell cells[RECORDS_NR_CELLS];	/* by ring */
	struct records_graph_cell graphs[STATE_NR_GRAPHS];
	char reserved[RECORDS_REGISTERED - RECORDS_NR_CELLS * sizeof(struct records_cell) -
		      STATE_NR_GRAPHS * sizeof(struct records_graph_cell)];
	struct records_note notes[RECORDS_NR_CELLS];
};

_Static_assert(offsetof(struct records_section, notes) == RECORDS_REGISTERED &&
	       sizeof(struct records_section) <= RECORDS_STRIDE, "a section must fit into 1 MiB");

/*
 * Kernels of @graph's launches that have not ended; negative: more have ended than were
 * launched.
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

/* The index of the ring's first entry among all cells of the section. */
static inline unsigned int records_first(unsigned int ring)
{
	return ring < RECORDS_NR_LONG ? ring * RECORDS_LONG
		: RECORDS_NR_LONG * RECORDS_LONG + (ring - RECORDS_NR_LONG) * RECORDS_SHORT;
}

/*
 * The number before the ring's first launch. At first the cell of entry i has payload i: an
 * entry is free if its cell's number is the next number minus the size of the ring.
 */
static inline uint64_t records_base(unsigned int ring)
{
	return records_entries(ring) - 1;
}

/* The section of GPU number @n, created if necessary; NULL with the reason in @gp. */
struct records_section *records_file_section(struct gpupart *gp, unsigned int n);
/* NULL: there is none. */
GPUPART_PRIVATE
struct records_section *records_file_find(unsigned int n);
/* Maps the part of it that the GPU writes once more; NULL: out of memory. */
void *records_file_again(unsigned int n);

/*
 * This ring belongs to no stream. Its entries are intervals in which launches of an executable
 * graph followed each other, written when they are over, in no order.
 */
#define RECORDS_GRAPH_RING	(STATE_NR_RINGS - 1)
#define RECORDS_GRAPH_KEY	3	/* their function: odd, so its name is not looked up */
#define RECORDS_GRAPH_NAME	"(CUDA graphs)"

/* ------------------------------------------------------------------- GPUs */

/* A counter that all CPUs have and that is very cheap to read. */
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

/* The ring of a stream. Only the thread that launches on the stream writes it. */
struct records_ring {
	_Alignas(64) _Atomic uint64_t issued;	/* copy of state_ring's, which other processes
						 * can write */
	uint64_t mask;			/* number of entries - 1 */
	struct records_cell *cells;
	struct records_note *notes;
	uint64_t address;		/* of the cells, in the address space of @context: */
	const void *ctx;
	_Atomic uint64_t tmd;		/* of its stream; 0: none */
	struct state_ring *shown;
	_Atomic uint64_t first;		/* up to this launch it belonged to another stream */
	uint64_t unrecorded;		/* launches of that stream and those before */
	_Atomic unsigned char busy;	/* a launch is in the callback, or: */
	unsigned char context;		/* index in contexts[] */
	unsigned char number;
};

#define RECORDS_BROKEN	2	/* there were two at once: the ring is no longer used */

struct records_context {
	_Atomic(const void *) ctx;	/* NULL: none, or destroyed */
	void *mapped;			/* NULL: never used */
	uint64_t address;		/* of @mapped in the context's address space */
};

/* Belongs to an entry of state_records.graph. */
struct records_graph {
	struct state_graph *shown;
	struct records_graph_cell *cell;
	struct records_mark *owner;	/* of an executable graph that exists; NULL: none */
	unsigned int context;		/* of its nodes: index in contexts[] plus 1; 0: none yet */
	bool spoilt;			/* not reused before that context is destroyed */
	bool launching;			/* one of its launches is not counted yet */
};

struct records {
	const struct tmd_release_place *place[2];	/* slots to use, the preferred one first */
	struct state_records *shown;
	struct records_section *section;	/* NULL until a context has it */
	_Atomic uint64_t free;			/* bit n: ring n has no stream; launches may
						 * still be running */
	struct records_ring *_Atomic hints[1u << RECORDS_HINT_BITS];	/* by TMD; a hint may be
									 * wrong */
	struct records_ring rings[STATE_NR_RINGS];
	struct records_context contexts[RECORDS_MAX_CONTEXTS];
	struct records_graph graphs[STATE_NR_GRAPHS];
	atomic_bool folding;		/* a thread is writing the totals */
	unsigned int next_ring;		/* the ring at which the next fold starts */
	atomic_uint nr_running;		/* graphs with a time that is not in the totals yet */
	struct state_gpu *gpu;
	char why[192];				/* not "": the reason why contexts have no
						 * records */
};

/* ------------------------------------------------------------------- launches */

/*
 * Called in the launch callback after masking: gives the launch a record, or counts it as
 * unrecorded.
 */
void records_launch(struct records *records, const struct launch_params *params);

/* The record of the calling thread's last launch; NULL: none. */
const struct records_ring *records_last(uint64_t *seq);

/*
 * For launch @seq of @ring, which has a record: returns whether it has ended, or its end can
 * never be known. *ns is the longest time it can have taken, 0 if unknown. Not for callbacks.
 */
bool records_ended(const struct records *records, const struct records_ring *ring, uint64_t seq,
		   uint64_t *ns);

/*
 * A launch function has ended with @result; a launch that failed after its callback never runs.
 */
void records_launch_ends(int result);

/* The stream whose TMD is at @tmd is destroyed; or @ctx, with all its streams. */
void records_stream_gone(struct records *records, uint64_t tmd);
void records_context_gone(struct records *records, const void *ctx);
/* The ring of the stream whose TMD is at @tmd; NULL: none. */
GPUPART_PRIVATE
struct records_ring *records_ring_of(struct records *records, uint64_t tmd);
/* The index of @ctx in @records->contexts; RECORDS_MAX_CONTEXTS: none. */
static inline unsigned int records_context_of(struct records *records, const void *ctx)
{
	unsigned int n = 0;

	while (n < RECORDS_MAX_CONTEXTS && (!ctx || atomic_load(&records->contexts[n].ctx) != ctx))
		n++;
	return n;
}

/*
 * Whether an error means that the launch was not made; after other errors the context is lost.
 */
static inline bool records_not_made(int result)
{
	return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_OUT_OF_MEMORY ||
	       result == CUDA_ERROR_LAUNCH_RESOURCES || result == CUDA_ERROR_NOT_SUPPORTED ||
	       result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_PERMITTED;
}

/* ------------------------------------------------------------------- graphs */

/*
 * Describes how the completion of an executable graph's launches is known: all kernels whose
 * function is that of one of its last kernels count when they end. Only one thread at a time
 * may use it, like the executable.
 */
struct records_mark;

/* For an executable of @graph; NULL: the completion of its launches is unknown. */
struct records_mark *records_mark_new(const struct cuda_api *cuda, void *graph);
/* These functions ignore a NULL @mark. Kernels that are still running continue. */
void records_mark_free(struct records_mark *mark);
/* From now on the completion is unknown. */
void records_mark_unknown(struct records_mark *mark);
/* The executable was updated to @graph. */
void records_mark_updated(struct records_mark *mark, const struct cuda_api *cuda, void *graph);

/*
 * Called in the launch callback for each node that is built. Removes what an earlier build
 * left, and adds the record if the node counts. @was: it counted before. Returns whether it
 * counts now.
 */
bool records_mark_node(struct records_mark *mark, struct records *records,
		       const struct tmd_map *map, const struct launch_params *params, bool was);

/*
 * Another build of the graph is used, of which @nr kernels count so far; returns the number for
 * the previous build.
 */
unsigned int records_mark_built(struct records_mark *mark, unsigned int nr);

/*
 * Its nodes may be built from now on, for @records (may be NULL). Not for the launch callback.
 */
void records_graph_builds(struct records_mark *mark, struct records *records);
/* Called around a launch; @mark NULL: unknown. */
void records_graph_begins(struct records_mark *mark, struct records *records);
void records_graph_ends(struct records_mark *mark, struct records *records, int result);

/*
 * Called in the launch callback with records->folding held: adds the times of graphs whose
 * launches have all ended, before later launches are in the totals. Never waits.
 */
void records_graphs_fold(struct records *records);

/*
 * Context number @n is being destroyed; @ended: it is destroyed, and the GPU no longer writes
 * for it.
 */
void records_graphs_gone(struct records *records, unsigned int n, bool ended);

/* ------------------------------------------------------------------- check */

/* A probe launch that shows whether the layout's row is correct. */
struct records_trial {
	const struct tmd_map *map;
	unsigned int slot;
	struct tmd_release release;
	uint64_t ended;		/* set by its launcher: when its last block ended, GPU ns */
	const char *why;	/* set by the callback: NULL, or what is wrong with the TMD */
};

/* Called in the callback of that launch: writes the slot if its TMD is as expected. */
void records_trial_launch(struct records_trial *trial, void *tmd);

/*
 * Proves with launches in the current context that the driver leaves the slots alone and that
 * the GPU writes the records. @launch makes one launch and waits for it. -EPROTO with the
 * reason.
 */
int records_check(struct gpupart *gp, const struct cuda_api *cuda, const struct tmd_map *map,
		  int (*launch)(struct gpupart *gp, struct records_trial *trial, void *arg),
		  void *arg);

/* ------------------------------------------------------------------- contexts */

/* Returns 0, or -EOPNOTSUPP if @map's layout has no slots for records. */
int records_possible(struct gpupart *gp, const struct tmd_map *map);

/* Turns records on for @gpu; contexts must be reported. Returns 0, -EOPNOTSUPP or -ENOMEM. */
int records_start(struct gpupart *gp, struct state_gpu *gpu, const struct tmd_map *map,
		  struct records **started);

/*
 * Turns records on for launches in @ctx, the current context. May be called any number of
 * times. It calls the driver, so not for the launch callback. Returns false if they stay off,
 * for the reason @records->why.
 */
bool records_context(struct records *records, const struct cuda_api *cuda, void *ctx);

/* ------------------------------------------------------------------- totals */

/* The data of a launch that has ended. */
struct records_entry {
	uint64_t time;		/* its end, GPU ns */
	uint64_t submitted;	/* the CPU counter; 0: it never ran */
	uint64_t function;
};

/* The CPU's time in ns at its @counter. */
static inline uint64_t records_clock_ns(const struct state_clock *clock, uint64_t counter)
{
	int64_t since = counter - clock->counter;

	return clock->ns + (int64_t)((__int128)since * clock->scale >> 32);
}

/* In a copy: a launch that ended at @end was seen now. The rate stays that of the process. */
GPUPART_PRIVATE
void records_clock_seen(struct state_clock *clock, uint64_t end);

/*
 * Adds the next launch of @ring, number @ring->folded + 1, to the totals. Their clock must have
 * seen a launch that ended.
 */
GPUPART_PRIVATE
void records_fold_entry(struct state_records *totals, struct state_ring *ring,
			const struct records_entry *entry);

/*
 * Adds up to @max launches of @ring, with records->folding held. @own: the calling thread
 * launches on it. Returns their number.
 */
unsigned int records_fold_ring(struct state_records *totals, const struct records_ring *ring,
			       unsigned int max, bool own);

/*
 * Adds an interval of one or more launches to the union; intervals may come in any order. @end
 * must be after @begin.
 */
void records_add(struct state_records *totals, uint64_t begin, uint64_t end);

/*
 * Like gpupart_records_read() of this process, for one stream's launches. @ring NULL: it has
 * none yet. Values that are not counted by stream are those of the process.
 */
int records_read_ring(struct gpupart *gp, struct gpupart_records_reader *reader,
		      const struct records_ring *ring, struct gpupart_records *records,
		      size_t size);

/* Called around writes to the totals; false: another thread is writing them. */
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

/* Waits a short time; false: the lock is still held. Not for the launch callback. */
bool records_totals_lock(struct records *records);

/* The totals have functions for which records_names() was not called yet. */
extern atomic_bool records_unnamed;

/*
 * Asks the driver for the names of @functions, which belong to @records, or are a copy if
 * @records is NULL. Not for the launch callback.
 */
GPUPART_PRIVATE
void records_names(struct state_function *functions, struct records *records,
		   const struct cuda_api *cuda);
/* A module is being unloaded: its functions that have no name yet get none. */
void records_module_gone(struct records *records);

/*
 * Measures the counter's rate between the first call and the second, which takes at most 1 ms.
 */
void records_clock_start(struct state_clock *clock);

#endif
