/* SPDX-License-Identifier: MIT */
/*
 * Bounds the total time of a program's outstanding launches. It also lets some launches use the
 * TPCs of another program while that program has no outstanding launches. See
 * Documentation/user/lending.md.
 *
 * When a call that launches a kernel begins, lend_begins() decides whether the kernel may use
 * lent TPCs, and whether the bound leaves room for the launch. The thread may wait in
 * lend_begins(). The launch callback then checks whether the lender is idle at that moment.
 */
#ifndef GPUPART_LIB_CONFINE_LEND_H
#define GPUPART_LIB_CONFINE_LEND_H

#include "lib/confine/report.h"
#include "lib/confine/scope.h"

/* A thread waits for room for at most twice the bound or this time, whichever is longer. */
#define LEND_LEAST_WAIT	1000000ull	/* in ns */

#define LEND_COLD	2	/* number of first runs of a kernel that are not timed, because
				 * caches are cold */
#define LEND_RUNS	5	/* number of runs, including the first LEND_COLD, after which a
				 * kernel's longest time is known */

/* True if the run of this process bounds the launches of this process. */
extern atomic_bool lend_used;

/* The part of a lender that the callback reads. It never changes and is never freed. */
struct lend_from {
	const struct lend_block *block;
	struct tmd_allow tpcs;
	struct memfd_head *head;	/* head of the memory that contains @block */
	struct lend_from *next;		/* an earlier lender */
};

/* The current lender; NULL: there is none. */
extern struct lend_from *_Atomic lend_from __attribute__((visibility("hidden")));

/*
 * Called before launches are observed. Returns true if lending requires that launches are
 * observed.
 */
bool lend_start(void);

/* Called when function addresses may be reused from now on. Takes no lock. */
void lend_forget(void);

/*
 * Called before and after a driver call that launches @function in @ctx. @plain is true if the
 * launch may use lent TPCs. The first function waits until there is room for the launch; it
 * holds no lock while it waits.
 */
void lend_begins(const void *function, const void *ctx, const unsigned int grid[3], bool plain);
void lend_ends(int result);

/*
 * Returns true if the lender is idle. Reads only memory that the watcher writes. If the watcher
 * stops, the lease expires soon, and the function returns false.
 */
static inline bool lend_is_idle(const struct lend_from *from)
{
	return from && atomic_load_explicit(&from->block->busy, memory_order_acquire) ==
		       atomic_load_explicit(&report_lend->idle, memory_order_relaxed) &&
	       records_counter() < atomic_load_explicit(&report_lend->lease, memory_order_relaxed);
}

/*
 * Called after the launch was given a record, or after the library found that the launch has no
 * record.
 */
static inline void lend_recorded(struct scope_lend *lend, const struct gpupart_gpu *gpu)
{
	lend->records = atomic_load_explicit(&gpu->records, memory_order_acquire);
	lend->ring = lend->records ? records_last(&lend->seq) : NULL;
}

#endif
