/* SPDX-License-Identifier: MIT */
/*
 * A driver call that gets or gives back memory, from its begin to its end, and what the
 * handlers of such calls share. The caller of each function but memory_uncounted() holds
 * memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_CALL_STATE_H
#define GPUPART_LIB_MEMORY_CALL_STATE_H

#include "lib/memory/account.h"
#include "lib/memory/allocations.h"
#include "lib/memory/watched_functions.h"

struct memory_now;

/* What is done for the calls of one kind, under the lock; begin and undo may be NULL. */
struct memory_handler {
	void (*begin)(struct memory_now *now);
	void (*end)(struct memory_now *now);	/* if the call succeeded */
	/* Gives back @got, what such a call got. */
	void (*undo)(const struct memory_now *now, uint64_t got);
	uint8_t by;				/* the key of its items */
	bool failed_too;			/* the end is wanted also if the call failed */
};

struct memory_now {
	const struct memory_call *call;	/* NULL: none is under way */
	const struct memory_handler *handler;
	const uint64_t *words;		/* its arguments */
	const struct cuda_call_params *params;
	struct memory_gpu *gpu;
	uint64_t charged, before;
	uint64_t grows;			/* asked of a pool, which may grow for it */
	struct memory_item *taken;	/* out of the table by the begin of a free */
	struct memory_change change;	/* of the arguments, of a call that is refused */
	bool refused, in_flight, blind;
	bool small;			/* in a slab */
	bool lost;			/* its GPU is not known: uncounted, if it succeeds */
	bool ignored;			/* the begin found that its end need not be seen */
};

/* Its first argument, and what the driver wrote to where that points. */
static inline uint64_t memory_now_first(const struct memory_now *now)
{
	return now->words[0];
}

static inline uint64_t memory_now_out(const struct memory_now *now)
{
	return *(const uint64_t *)(uintptr_t)now->words[0];
}

/* NULL if there is no such device or the tenant's file cannot be joined: not counted then. */
struct memory_gpu *memory_now_device(int device);
/* The current context's; NULL also if none is current. */
struct memory_gpu *memory_now_gpu(void);
/* The only GPU, once known, where CUDA shows one device; else NULL. */
struct memory_gpu *memory_now_only_gpu(void);

/* The call changes what @gpu has: it is not measured before memory_now_flight_ends(). */
void memory_now_flight_begins(struct memory_now *now, struct memory_gpu *gpu);
void memory_now_flight_ends(struct memory_now *now);

/* A new item of the call's GPU; NULL: out of memory, and the call is uncounted. */
struct memory_item *memory_now_note(const struct memory_now *now, enum memory_key by,
				    uint64_t key, uint64_t bytes);

/* The driver refuses the call: from the begin of it. */
void memory_now_refuse(struct memory_now *now);
/* At the end: the call fails with out of memory. */
void memory_now_out_of_memory(const struct memory_now *now);
/* Gives back what a call got that succeeded; this may wait for a GPU. */
void memory_now_undo(const struct memory_now *now);

/* A call was seen that may get memory and whose amount is not known. */
void memory_uncounted(const char *name);

/*
 * Handlers of calls whose amount of memory is only known by measuring: what the driver takes for
 * itself with contexts and modules, graphs' memory, and memory that another process is charged for.
 */
void memory_own_ctx_begins(struct memory_now *now);
void memory_own_module_begins(struct memory_now *now);
void memory_own_ends(struct memory_now *now);
void memory_own_ctx_destroyed(struct memory_now *now);
void memory_own_primary_released(struct memory_now *now);
void memory_own_primary_reset(struct memory_now *now);
void memory_own_module_unloaded(struct memory_now *now);
void memory_own_limit_set(struct memory_now *now);

/* Graphs with nodes that get memory. */
void memory_own_graph_made(struct memory_now *now);
void memory_own_graph_begins(struct memory_now *now);
void memory_own_graph_ends(struct memory_now *now);
void memory_own_graph_destroyed(struct memory_now *now);
void memory_own_graph_trimmed(struct memory_now *now);

void memory_own_foreign_begins(struct memory_now *now);
void memory_own_foreign_ends(struct memory_now *now);

/* In the child of a fork. */
void memory_now_forked(void);

#endif
