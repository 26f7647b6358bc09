/* SPDX-License-Identifier: MIT */
/*
 * Completion records: the GPU writes the end of each launch into memory of this process, which
 * others read through a file. See Documentation/internals/state-page.md.
 *
 * The driver has one TMD buffer for each stream, so a TMD's address names its stream, and two
 * launches of one stream are never in the launch callback at once: each ring has one writer, and
 * needs no lock. What the launch callback calls cannot fail, allocate, lock or loop without bound.
 */
#ifndef GPUPART_LIB_RECORDS_RECORDS_H
#define GPUPART_LIB_RECORDS_RECORDS_H

#include <stdatomic.h>
#include <time.h>
#include "lib/core/clock.h"
#include "lib/driver/callback.h"
#include "lib/driver/cuda.h"
#include "lib/driver/device.h"
#include "lib/state/process_block.h"
#include "lib/tmd/release.h"

/* ------------------------------------------------------------------- file */

/*
 * Behind a head, a section for each GPU of the block: cells, which the GPU writes and which alone
 * are registered with the driver, and what the CPU notes of each launch, its entry in @notes.
 */
struct records_cell {
	_Atomic uint64_t payload;	/* sequence number of the launch; written after @time */
	_Atomic uint64_t time;		/* %globaltimer, ns */
};

/*
 * Older layouts write the lower 32 bits of a number alone. They are enough: an entry has the number
 * of this turn around the ring, or of the last.
 */
static inline bool records_has(const struct records_cell *cell, uint64_t seq)
{
	return (uint32_t)atomic_load_explicit(&cell->payload, memory_order_acquire) ==
	       (uint32_t)seq;
}

/* That one, or one that used the entry later. */
static inline bool records_reached(const struct records_cell *cell, uint64_t seq)
{
	return (int32_t)((uint32_t)atomic_load_explicit(&cell->payload, memory_order_acquire) -
			 (uint32_t)seq) >= 0;
}

struct records_note {
	_Atomic uint64_t submitted;	/* CPU's counter; 0: the launch failed, and never ran */
	_Atomic uint64_t function;
};

/* Of an executable graph. */
struct records_graph_cell {
	_Atomic uint32_t count;		/* of last kernels that have ended, added by the GPU */
	uint32_t pad[3];
	struct records_cell end;	/* the last end; its payload is 1 */
};

#define RECORDS_LAYOUT		2
#define RECORDS_HEAD		65536
#define RECORDS_STRIDE		(1u << 20)	/* from one section to the next */
#define RECORDS_NR_LONG		8		/* rings with the lowest numbers */
#define RECORDS_LONG		2048		/* entries */
#define RECORDS_SHORT		256
#define RECORDS_NR_CELLS	\
	(RECORDS_NR_LONG * RECORDS_LONG + (CONTROL_NR_RINGS - RECORDS_NR_LONG) * RECORDS_SHORT)
#define RECORDS_REGISTERED	(512u << 10)	/* bytes of a section, up to its notes */

struct records_section {
	struct records_cell cells[RECORDS_NR_CELLS];	/* by ring */
	struct records_graph_cell graphs[CONTROL_NR_GRAPHS];
	char reserved[RECORDS_REGISTERED - RECORDS_NR_CELLS * sizeof(struct records_cell) -
		      CONTROL_NR_GRAPHS * sizeof(struct records_graph_cell)];
	struct records_note notes[RECORDS_NR_CELLS];
};

_Static_assert(offsetof(struct records_section, notes) == RECORDS_REGISTERED &&
	       sizeof(struct records_section) <= RECORDS_STRIDE, "a section is 1 MiB at most");

/* Kernels that @graph's launches have left to end; below 0: more ended than were launched. */
static inline int32_t records_graph_left(const struct control_graph *graph,
					 const struct records_graph_cell *cell)
{
	uint32_t all = (uint32_t)__atomic_load_n(&graph->issued, __ATOMIC_ACQUIRE) * graph->kernels;

	return all - atomic_load_explicit(&cell->count, memory_order_acquire);
}

static inline unsigned int records_entries(unsigned int ring)
{
	return ring < RECORDS_NR_LONG ? RECORDS_LONG : RECORDS_SHORT;
}

/* The ring's first entry among all cells of the section. */
static inline unsigned int records_first(unsigned int ring)
{
	return ring < RECORDS_NR_LONG ? ring * RECORDS_LONG
		: RECORDS_NR_LONG * RECORDS_LONG + (ring - RECORDS_NR_LONG) * RECORDS_SHORT;
}

/*
 * Launches are numbered on from this one. The cell of entry i has payload i at first: an entry is
 * free if its cell has the number that is the ring's size before the next.
 */
static inline uint64_t records_base(unsigned int ring)
{
	return records_entries(ring) - 1;
}

/* The section of the @n'th GPU, made where it is not there yet; NULL with the reason in @gp. */
struct records_section *records_file_section(struct gpupart *gp, unsigned int n);
/* NULL: none. */
GPUPART_PRIVATE
struct records_section *records_file_find(unsigned int n);
/* The part of it that the GPU writes, mapped once more; NULL: no room. */
void *records_file_again(unsigned int n);

/*
 * This ring is no stream's. Its entries are times in which launches of an executable graph followed
 * each other, written when they are over, in no order.
 */
#define RECORDS_GRAPH_RING	(CONTROL_NR_RINGS - 1)
#define RECORDS_GRAPH_KEY	3	/* their function: odd, so no name is asked for */
#define RECORDS_GRAPH_NAME	"(CUDA graphs)"

/* ------------------------------------------------------------------- GPUs */

/* A count that all CPUs have, and that costs next to nothing. */
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

#define RECORDS_MAX_CONTEXTS	16	/* of one GPU, that live at once */
#define RECORDS_HINT_BITS	10

/* A stream's, while it has the number. Only the thread that launches on it writes it. */
struct records_ring {
	_Alignas(64) _Atomic uint64_t issued;	/* as control_ring's, which others can write */
	uint64_t mask;			/* entries - 1 */
	struct records_cell *cells;
	struct records_note *notes;
	uint64_t address;		/* of the cells, in the address space of: */
	const void *ctx;
	_Atomic uint64_t tmd;		/* its stream's; 0: it has none */
	struct control_ring *shown;
	_Atomic uint64_t first;		/* up to this launch it was another stream's */
	uint64_t unrecorded;		/* of that one, and those before */
	_Atomic unsigned char busy;	/* a launch is in the callback, or: */
	unsigned char context;		/* its place in contexts[] */
	unsigned char number;
};

#define RECORDS_BROKEN	2	/* there were two: it is not used any more */

struct records_context {
	_Atomic(const void *) ctx;	/* NULL: none, or gone */
	void *mapped;			/* NULL: never used */
	uint64_t address;		/* of that in the context's address space */
};

/* An entry of control_records.graph. */
struct records_graph {
	struct control_graph *shown;
	struct records_graph_cell *cell;
	struct records_mark *owner;	/* of an executable graph that is there; NULL: none */
	unsigned int context;		/* of its nodes, place in contexts[] and 1; 0: none yet */
	bool spoilt;			/* not used again before that context is gone */
	bool launching;			/* a launch of it is not counted yet */
};

struct records {
	const struct tmd_release_place *place[2];	/* to use, the better one first */
	struct control_records *shown;
	struct records_section *section;	/* NULL until a context has it */
	_Atomic uint64_t free;			/* bit n: ring n has no stream; work may run yet */
	struct records_ring *_Atomic hints[1u << RECORDS_HINT_BITS];	/* by TMD, or another's */
	struct records_ring rings[CONTROL_NR_RINGS];
	struct records_context contexts[RECORDS_MAX_CONTEXTS];
	struct records_graph graphs[CONTROL_NR_GRAPHS];
	atomic_bool folding;		/* a thread writes the totals */
	unsigned int next_ring;		/* it looks at this one next, for launches to fold */
	atomic_uint nr_running;		/* graphs with a time that is not in the totals */
	struct control_gpu *gpu;
	char why[192];				/* not ""; why contexts have none */
};

/* ------------------------------------------------------------------- launches */

/*
 * In the launch callback, after the mask was applied: gives the launch a record if that is
 * possible, else counts it as unrecorded.
 */
void records_launch(struct records *records, const struct launch_params *params);

/* The record of the calling thread's last launch; NULL: it has none. */
const struct records_ring *records_last(uint64_t *seq);

/*
 * For launch @seq of @ring, from the time of its record on: whether it has ended, or nobody will
 * ever know; and how long it took at most, in *ns, 0 if that is not known. In no callback.
 */
bool records_ended(const struct records *records, const struct records_ring *ring, uint64_t seq,
		   uint64_t *ns);

/* A launch function has ended with @result: one that failed after its callback never runs. */
void records_launch_ends(int result);

/* The stream whose TMD is at @tmd goes; or all streams of @ctx, with that context. */
void records_stream_gone(struct records *records, uint64_t tmd);
void records_context_gone(struct records *records, const void *ctx);
/* The ring of the stream whose TMD is at @tmd; NULL: it has none. */
GPUPART_PRIVATE
struct records_ring *records_ring_of(struct records *records, uint64_t tmd);
/* The place of @ctx in @records->contexts; RECORDS_MAX_CONTEXTS: it has none. */
static inline unsigned int records_context_of(struct records *records, const void *ctx)
{
	unsigned int n = 0;

	while (n < RECORDS_MAX_CONTEXTS && (!ctx || atomic_load(&records->contexts[n].ctx) != ctx))
		n++;
	return n;
}

/* Errors that say of the launch itself that it was not made; by others the context is lost. */
static inline bool records_not_made(int result)
{
	return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_OUT_OF_MEMORY ||
	       result == CUDA_ERROR_LAUNCH_RESOURCES || result == CUDA_ERROR_NOT_SUPPORTED ||
	       result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_PERMITTED;
}

/* ------------------------------------------------------------------- graphs */

/*
 * What completion of an executable graph's launches is known by: all kernels with a function that
 * its last kernels have count when they end. Used by one thread at a time, as the executable is.
 */
struct records_mark;

/* Of an executable graph of @graph; NULL: the completion of its launches is unknown. */
struct records_mark *records_mark_new(const struct cuda_api *cuda, void *graph);
/* @mark NULL is ignored by these. What is still running of it goes on. */
void records_mark_free(struct records_mark *mark);
/* From now on the completion is unknown. */
void records_mark_unknown(struct records_mark *mark);
/* The executable was updated to @graph. */
void records_mark_updated(struct records_mark *mark, const struct cuda_api *cuda, void *graph);

/*
 * In the launch callback, for each node that is built: takes out what an earlier build left, and
 * puts the records in if the node is to be counted. @was: it was counted before. True: it is.
 */
bool records_mark_node(struct records_mark *mark, struct records *records,
		       const struct tmd_map *map, const struct launch_params *params, bool was);

/* Another build of the graph, of which @nr kernels count so far; returns those of the last one. */
unsigned int records_mark_built(struct records_mark *mark, unsigned int nr);

/* Its nodes may be built now, for @records (may be NULL); outside of the launch callback. */
void records_graph_builds(struct records_mark *mark, struct records *records);
/* Around a launch; @mark NULL: unknown. */
void records_graph_begins(struct records_mark *mark, struct records *records);
void records_graph_ends(struct records_mark *mark, struct records *records, int result);

/*
 * With records->folding, in the launch callback: the times of graphs whose launches have all ended,
 * before later launches are in the totals. Waits for nothing.
 */
void records_graphs_fold(struct records *records);

/* The context with place @n goes; @ended: it is gone, and nothing writes for it any more. */
void records_graphs_gone(struct records *records, unsigned int n, bool ended);

/* ------------------------------------------------------------------- check */

/* A launch of our own that shows whether the layout's row holds. */
struct records_trial {
	const struct tmd_map *map;
	unsigned int slot;
	struct tmd_release release;
	uint64_t ended;		/* by its launcher: when its last block ended, GPU ns */
	const char *why;	/* by the callback: NULL, or what is wrong with the TMD */
};

/* In the callback of that launch: writes the slot if its TMD is as it should be. */
void records_trial_launch(struct records_trial *trial, void *tmd);

/*
 * Shows with launches in the current context that the driver leaves the slots alone and that the
 * GPU writes what they say; @launch makes one and waits for it. -EPROTO with the reason.
 */
int records_check(struct gpupart *gp, const struct cuda_api *cuda, const struct tmd_map *map,
		  int (*launch)(struct gpupart *gp, struct records_trial *trial, void *arg),
		  void *arg);

/* ------------------------------------------------------------------- contexts */

/* 0; -EOPNOTSUPP where @map's layout has no slots for them. */
int records_possible(struct gpupart *gp, const struct tmd_map *map);

/* Records of @gpu from now on, on contexts that are told of: 0, -EOPNOTSUPP, -ENOMEM. */
int records_start(struct gpupart *gp, struct control_gpu *gpu, const struct tmd_map *map,
		  struct records **started);

/*
 * Launches in @ctx, which is current, are recorded from now on. Any number of times; outside of
 * the launch callback, since it calls the driver. False: they are not, for @records->why.
 */
bool records_context(struct records *records, const struct cuda_api *cuda, void *ctx);

/* ------------------------------------------------------------------- totals */

/* What is read of a launch that has ended. */
struct records_entry {
	uint64_t time;		/* end, GPU ns */
	uint64_t submitted;	/* CPU's counter, 0: it never ran */
	uint64_t function;
};

/* The CPU's time at its @counter, ns. */
static inline uint64_t records_clock_ns(const struct control_clock *clock, uint64_t counter)
{
	int64_t since = counter - clock->counter;

	return clock->ns + (int64_t)((__int128)since * clock->scale >> 32);
}

/* In a copy: a launch that ended at @end was seen now. The rate stays the process's. */
GPUPART_PRIVATE
void records_clock_seen(struct control_clock *clock, uint64_t end);

/*
 * The next launch of @ring, whose number is @ring->folded + 1, into the totals. @totals' clock has
 * seen one that ended.
 */
GPUPART_PRIVATE
void records_fold_entry(struct control_records *totals, struct control_ring *ring,
			const struct records_entry *entry);

/*
 * Up to @max launches of @ring, with records->folding; @own: the calling thread launches on it. How
 * many it were.
 */
unsigned int records_fold_ring(struct control_records *totals, const struct records_ring *ring,
			       unsigned int max, bool own);

/* A launch, or several without a gap, into the union; in any order. @end is behind @begin. */
void records_add(struct control_records *totals, uint64_t begin, uint64_t end);

/*
 * gpupart_records_read() of this process for one stream's launches; @ring NULL: it had none yet.
 * What is not told by stream is the process's.
 */
int records_read_ring(struct gpupart *gp, struct gpupart_records_reader *reader,
		      const struct records_ring *ring, struct gpupart_records *records,
		      size_t size);

/* Around what writes the totals; false: another thread does. */
static inline bool records_totals_try(struct records *records)
{
	struct control_records *totals = records->shown;

	if (atomic_exchange_explicit(&records->folding, true, memory_order_acquire))
		return false;
	__atomic_store_n(&totals->version, totals->version + 1, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
	return true;
}

static inline void records_totals_unlock(struct records *records)
{
	struct control_records *totals = records->shown;

	__atomic_store_n(&totals->version, totals->version + 1, __ATOMIC_RELEASE);
	atomic_store_explicit(&records->folding, false, memory_order_release);
}

/* Waits for moments; false: it is held all the time. Not in the launch callback. */
bool records_totals_lock(struct records *records);

/* There are functions in the totals that records_names() was not called for. */
extern atomic_bool records_unnamed;

/*
 * Outside of the launch callback: asks the driver for the names of @functions, which are those of
 * @records, or a copy if @records is NULL.
 */
GPUPART_PRIVATE
void records_names(struct control_function *functions, struct records *records,
		   const struct cuda_api *cuda);
/* A module goes: functions that have no name yet get none. */
void records_module_gone(struct records *records);

/* Measures the counter's rate, since the first call; the second one takes 1 ms at most. */
void records_clock_start(struct control_clock *clock);

#endif
