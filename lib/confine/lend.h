/* SPDX-License-Identifier: MIT */
/*
 * Bounds the time of a program's outstanding launches, and lets some of them use the TPCs of
 * another program that has nothing outstanding. See Documentation/user/lending.md.
 *
 * Whether a kernel may be lent TPCs, and whether there is room for it, is decided at the begin of
 * the call that launches it, where the thread may wait. The launch callback looks whether the
 * lender is idle at that moment.
 */
#ifndef GPUPART_LIB_CONFINE_LEND_H
#define GPUPART_LIB_CONFINE_LEND_H

#include "lib/confine/report.h"
#include "lib/confine/scope.h"

/* A thread waits for room as long as twice the bound, and not less than this. */
#define LEND_LEAST_WAIT	1000000ull	/* ns */

#define LEND_COLD	2	/* runs of a kernel that count for nothing: caches are cold */
#define LEND_RUNS	5	/* with these, from which on its longest time is known */

/* This process's launches are bounded: its run says so. */
extern atomic_bool lend_used;

/* What the callback needs of a lender; it never changes, and stays while a launch is made. */
struct lend_from {
	const struct lend_block *block;
	struct tmd_allow tpcs;
	struct memfd_head *head;	/* of the memory that @block is in */
	struct lend_from *next;		/* that is no lender any more */
};

/* NULL: none. */
extern struct lend_from *_Atomic lend_from __attribute__((visibility("hidden")));

/* When launches are watched first, which it asks for by true. */
bool lend_start(void);

/* A function's address may be another's from now on. Takes no lock. */
void lend_forget(void);

/*
 * Around a call of the driver that launches @function in @ctx; @plain: that may be lent TPCs. The
 * first one waits for room, with no lock held.
 */
void lend_begins(const void *function, const void *ctx, const unsigned int grid[3], bool plain);
void lend_ends(int result);

/* By what was written there alone: a lender that is not watched any more is not idle for long. */
static inline bool lend_is_idle(const struct lend_from *from)
{
	return from && atomic_load_explicit(&from->block->busy, memory_order_acquire) ==
		       atomic_load_explicit(&report_lend->idle, memory_order_relaxed) &&
	       records_counter() < atomic_load_explicit(&report_lend->lease, memory_order_relaxed);
}

/* After that launch got its record, or none. */
static inline void lend_recorded(struct scope_lend *lend, const struct gpupart_gpu *gpu)
{
	lend->records = atomic_load_explicit(&gpu->records, memory_order_acquire);
	lend->ring = lend->records ? records_last(&lend->seq) : NULL;
}

#endif
