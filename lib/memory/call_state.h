/* SPDX-License-Identifier: MIT */
/*
 * A driver call that allocates or frees memory, from its begin to its end, and functions that
 * the handlers of such calls share. The caller of each function, except memory_uncounted(),
 * holds memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_CALL_STATE_H
#define GPUPART_LIB_MEMORY_CALL_STATE_H

#include "lib/memory/account.h"
#include "lib/memory/allocations.h"
#include "lib/memory/watched_functions.h"

struct memory_now;

/* The handlers for one kind of calls, called with the lock held; begin and undo may be NULL. */
struct memory_handler {
	void (*begin)(struct memory_now *now);
	void (*end)(struct memory_now *now);	/* called if the driver call succeeded */
	/* Frees @got, the result of such a call. */
	void (*undo)(const struct memory_now *now, uint64_t got);
	uint8_t by;				/* kind of key of its items */
	bool failed_too;			/* the end is also needed if the call failed */
};

struct memory_now {
	const struct memory_call *call;	/* NULL: no call is in flight */
	const struct memory_handler *handler;
	const uint64_t *words;		/* its arguments */
	const struct cuda_call_params *params;
	struct memory_gpu *gpu;
	uint64_t charged, before;
	uint64_t grows;			/* requested from a pool, which may grow for it */
	struct memory_item *taken;	/* removed from the table at the begin of a free */
	struct memory_change change;	/* of the arguments of a call that is refused */
	bool refused, in_flight, blind;
	bool small;			/* in a slab */
	bool lost;			/* its GPU is unknown: uncounted if it succeeds */
	bool ignored;			/* the begin found that the end need not be observed */
};

/* The value that the driver wrote to the address in the first argument. */
static inline uint64_t memory_now_first(const struct memory_now *now)
{
	return now->words[0];
}

static inline uint64_t memory_now_out(const struct memory_now *now)
{
	return *(const uint64_t *)(uintptr_t)now->words[0];
}

/*
 * NULL, and then not counted, if there is no such device or the tenant's file cannot be joined.
 */
struct memory_gpu *memory_now_device(int device);
/* The GPU of the current context; NULL also if there is none. */
struct memory_gpu *memory_now_gpu(void);
/* The only GPU, once known, if CUDA shows one device; else NULL. */
struct memory_gpu *memory_now_only_gpu(void);

/* The call changes the memory of @gpu: it is not measured before memory_now_flight_ends(). */
void memory_now_flight_begins(struct memory_now *now, struct memory_gpu *gpu);
void memory_now_flight_ends(struct memory_now *now);

/* Adds an item for the call's GPU; NULL: out of memory, and the call is uncounted. */
struct memory_item *memory_now_note(const struct memory_now *now, enum memory_key by,
				    uint64_t key, uint64_t bytes);

/* Makes the driver refuse the call; only at its begin. */
void memory_now_refuse(struct memory_now *now);
/* At the end: makes the call fail with out of memory. */
void memory_now_out_of_memory(const struct memory_now *now);
/* Frees the result of a call that succeeded; this may wait for a GPU. */
void memory_now_undo(const struct memory_now *now);

/* Records a call that may have allocated an unknown amount. */
void memory_uncounted(const char *name);

/*
 * Handlers of calls whose memory can only be found by measuring: what the driver allocates for
 * contexts and modules, memory of graphs, and memory that another process is charged for.
 */
void memory_own_ctx_begins(struct memory_now *now);
void memory_own_module_begins(struct memory_now *now);
void memory_own_ends(struct memory_now *now);
void memory_own_ctx_destroyed(struct memory_now *now);
void memory_own_primary_released(struct memory_now *now);
void memory_own_primary_reset(struct memory_now *now);
void memory_own_module_unloaded(struct memory_now *now);
void memory_own_limit_set(struct memory_now *now);

/* Graphs with nodes that allocate memory. */
void memory_own_graph_made(struct memory_now *now);
void memory_own_graph_begins(struct memory_now *now);
void memory_own_graph_ends(struct memory_now *now);
void memory_own_graph_destroyed(struct memory_now *now);
void memory_own_graph_trimmed(struct memory_now *now);

void memory_own_foreign_begins(struct memory_now *now);
void memory_own_foreign_ends(struct memory_now *now);

/* Called in the child of a fork. */
void memory_now_forked(void);

#endif
