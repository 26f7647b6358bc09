/* SPDX-License-Identifier: MIT */
/*
 * Bounds the total time of a program's outstanding launches. While another program has no
 * outstanding launches, this code lets some launches use the TPCs of that program. See
 * Documentation/user/lending.md.
 *
 * At the start of a driver call that launches a kernel, lend_begins() decides whether the kernel
 * may use lent TPCs. If the bound leaves no room for the launch, lend_begins() waits. Later, the
 * launch callback checks whether the lender is idle at that moment.
 */
#ifndef GPUPART_LIB_CONFINE_LEND_H
#define GPUPART_LIB_CONFINE_LEND_H

#include "lib/confine/report.h"
#include "lib/confine/scope.h"

/*
 * A thread waits for room for at most twice the bound. If twice the bound is shorter than this
 * time, it waits for at most this time.
 */
#define LEND_LEAST_WAIT	1000000ull	/* in ns */

#define LEND_COLD	2	/* the times of the first LEND_COLD runs of a kernel are ignored,
				 * because caches are cold */
#define LEND_RUNS	5	/* after this number of runs, the longest time of a kernel is
				 * known */

/* True if this process belongs to a run that bounds launches. */
extern atomic_bool lend_used;

/* The part of a lender that the callback reads. The members never change. */
struct lend_from {
	struct report_memory *memory;
	struct tmd_allow tpcs;
	struct lend_from *next;		/* the next entry in the list of earlier lenders */
};

/* The current lender, or NULL. */
extern struct lend_from *_Atomic lend_from __attribute__((visibility("hidden")));

/*
 * Called before the library observes launches. If lending needs observed launches, returns true.
 */
bool lend_start(void);

/* Called when function addresses may be reused. Takes no lock. */
void lend_forget(void);

/*
 * The first function is called before a driver call launches @function in @ctx, and the second
 * function is called afterwards. If @plain is false, the launch must not use lent TPCs. The first
 * function waits until there is room for the launch. While it waits, it holds no lock.
 */
void lend_begins(const void *function, const void *ctx, const unsigned int grid[3], bool plain);
void lend_ends(int result);

/*
 * Returns true if the lender is idle. The function reads memory that the watcher writes. If the
 * watcher stops, the lease expires soon, and the function returns false.
 */
static inline bool lend_is_idle(const struct lend_from *from)
{
	return from && atomic_load_explicit(&from->memory->lend.busy, memory_order_acquire) ==
		       atomic_load_explicit(&report_lend->idle, memory_order_relaxed) &&
	       records_counter() < atomic_load_explicit(&report_lend->lease, memory_order_relaxed);
}

/* Called when the library knows whether the launch has a record. */
static inline void lend_recorded(struct scope_lend *lend, const struct gpupart_gpu *gpu)
{
	lend->records = atomic_load_explicit(&gpu->records, memory_order_acquire);
	lend->ring = lend->records ? records_last(&lend->seq) : NULL;
	if (!lend->ring)
		atomic_fetch_add_explicit(&report_lend->unbounded, 1, memory_order_relaxed);
}

#endif
