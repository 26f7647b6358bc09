/* SPDX-License-Identifier: MIT */
/*
 * Bounds the total time of a program's outstanding launches, and lets some of them use the TPCs
 * of another program that has nothing outstanding. See Documentation/user/lending.md.
 *
 * Whether a kernel may use lent TPCs, and whether there is room for it, is decided at the begin
 * of the call that launches it, where the thread may wait. The launch callback then checks
 * whether the lender is idle at that moment.
 */
#ifndef GPUPART_LIB_CONFINE_LEND_H
#define GPUPART_LIB_CONFINE_LEND_H

#include "lib/confine/report.h"
#include "lib/confine/scope.h"

/* A thread waits for room for twice the bound, and for at least this time. */
#define LEND_LEAST_WAIT	1000000ull	/* in ns */

#define LEND_COLD	2	/* first runs of a kernel, which are not timed: caches are cold */
#define LEND_RUNS	5	/* runs, including these, after which its longest time is known */

/* The run of this process bounds its launches. */
extern atomic_bool lend_used;

/* What the callback needs of a lender; it never changes and is never freed. */
struct lend_from {
	const struct lend_block *block;
	struct tmd_allow tpcs;
	struct memfd_head *head;	/* of the memory that @block is in */
	struct lend_from *next;		/* that is no lender any more */
};

/* NULL: none. */
extern struct lend_from *_Atomic lend_from __attribute__((visibility("hidden")));

/* Called before launches are observed; returns true if they must be. */
bool lend_start(void);

/* Function addresses may be reused from now on. Takes no lock. */
void lend_forget(void);

/*
 * Called around a driver call that launches @function in @ctx. @plain: it may use lent TPCs.
 * The first function waits for room, without holding a lock.
 */
void lend_begins(const void *function, const void *ctx, const unsigned int grid[3], bool plain);
void lend_ends(int result);

/* Reads only what the watcher wrote; if the watcher stops, the lender counts as busy soon. */
static inline bool lend_is_idle(const struct lend_from *from)
{
	return from && atomic_load_explicit(&from->block->busy, memory_order_acquire) ==
		       atomic_load_explicit(&report_lend->idle, memory_order_relaxed) &&
	       records_counter() < atomic_load_explicit(&report_lend->lease, memory_order_relaxed);
}

/* Called after the launch got its record, or none. */
static inline void lend_recorded(struct scope_lend *lend, const struct gpupart_gpu *gpu)
{
	lend->records = atomic_load_explicit(&gpu->records, memory_order_acquire);
	lend->ring = lend->records ? records_last(&lend->seq) : NULL;
}

#endif
