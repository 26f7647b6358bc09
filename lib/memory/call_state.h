/* SPDX-License-Identifier: MIT */
/*
 * Declares the state of a driver call that allocates or frees memory. The state exists from the
 * start to the end of the call. Also declares functions that the handlers of such calls share. The
 * caller of each function except memory_uncounted() holds memory_device_lock().
 */
#ifndef GPUPART_LIB_MEMORY_CALL_STATE_H
#define GPUPART_LIB_MEMORY_CALL_STATE_H

#include "lib/memory/account.h"
#include "lib/memory/allocations.h"
#include "lib/memory/watched_functions.h"

struct memory_now;

/*
 * The handlers for one kind of call. They are called with the lock held. The members @begin and
 * @undo may be NULL.
 */
struct memory_handler {
	void (*begin)(struct memory_now *now);
	void (*end)(struct memory_now *now);	/* called only if the driver call succeeded */
	/* Frees @got, the result of a call that succeeded. */
	void (*undo)(const struct memory_now *now, uint64_t got);
	uint8_t by;				/* kind of the keys of items that the
						 * call creates */
	bool failed_too;			/* @end is also called if the driver call
						 * failed */
};

struct memory_now {
	const struct memory_call *call;	/* NULL: no call is in flight */
	const struct memory_handler *handler;
	const uint64_t *words;		/* the call's arguments */
	const struct cuda_call_params *params;
	struct memory_gpu *gpu;
	uint64_t charged, before;
	uint64_t grows;			/* bytes requested from a pool, which may have to grow */
	struct memory_item *taken;	/* item that was removed from the table at the start of a
					 * call that frees it */
	struct memory_change change;	/* the original arguments, if the call is refused */
	bool refused, in_flight, blind;
	bool lost;			/* the GPU of the call is unknown: the call is
					 * uncounted if it succeeds */
	bool ignored;			/* the library need not observe the end of the call */
};

/* Returns the value that the driver wrote to the address in the first argument. */
static inline uint64_t memory_now_first(const struct memory_now *now)
{
	return now->words[0];
}

static inline uint64_t memory_now_out(const struct memory_now *now)
{
	return *(const uint64_t *)(uintptr_t)now->words[0];
}

/*
 * Returns the GPU of a device. If there is no such device, or if this process cannot join the
 * tenant's file, returns NULL. The memory is then not counted.
 */
struct memory_gpu *memory_now_device(int device);
/* Returns the GPU of the current context. Also returns NULL if there is no current context. */
struct memory_gpu *memory_now_gpu(void);

extern struct memory_gpu *_Atomic memory_only_gpu __attribute__((visibility("hidden")));
/*
 * If CUDA shows only one device and its GPU is known, returns this GPU. Otherwise returns NULL.
 * This function needs no lock.
 */
static inline struct memory_gpu *memory_now_only_gpu(void)
{
	return atomic_load_explicit(&memory_only_gpu, memory_order_acquire);
}

/*
 * This function is called when a driver call begins to change the memory of @gpu. The memory of
 * @gpu is not measured before memory_now_flight_ends() is called.
 */
void memory_now_flight_begins(struct memory_now *now, struct memory_gpu *gpu);
void memory_now_flight_ends(struct memory_now *now);

/* Adds an item for the call's GPU. If memory is short, returns NULL, and the call is uncounted. */
struct memory_item *memory_now_note(const struct memory_now *now, enum memory_key by,
				    uint64_t key, uint64_t bytes);

/* Makes the driver refuse the call. This function may be called only at the start of the call. */
void memory_now_refuse(struct memory_now *now);
/*
 * Makes the call fail with the error "out of memory". This function is called at the end of the
 * call.
 */
void memory_now_out_of_memory(const struct memory_now *now);
/* Frees the result of a call that succeeded. This function may wait for a GPU. */
void memory_now_undo(const struct memory_now *now);

/* Records a call that may have allocated an unknown number of bytes. */
void memory_uncounted(const char *name);

/*
 * These handlers are for calls that allocate an amount of memory that must be measured. There are
 * three kinds of such memory. These are memory of the driver for contexts and modules, memory of
 * graphs, and memory that is charged to another process.
 */
void memory_own_ctx_begins(struct memory_now *now);
void memory_own_module_begins(struct memory_now *now);
void memory_own_ends(struct memory_now *now);
void memory_own_ctx_destroyed(struct memory_now *now);
void memory_own_primary_released(struct memory_now *now);
void memory_own_primary_reset(struct memory_now *now);
void memory_own_module_unloaded(struct memory_now *now);
void memory_own_limit_set(struct memory_now *now);

/* These handlers are for graphs with nodes that allocate memory. */
void memory_own_graph_made(struct memory_now *now);
void memory_own_graph_begins(struct memory_now *now);
void memory_own_graph_ends(struct memory_now *now);
void memory_own_graph_destroyed(struct memory_now *now);
void memory_own_graph_trimmed(struct memory_now *now);

void memory_own_foreign_begins(struct memory_now *now);
void memory_own_foreign_ends(struct memory_now *now);

/* The child of a fork calls this function. */
void memory_now_forked(void);

#endif
