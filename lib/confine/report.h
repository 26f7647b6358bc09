/* SPDX-License-Identifier: MIT */
/*
 * The report of this process to its run. The report contains whether the process was confined,
 * and which launches ran outside the limit. The report is in memory of the run, so it remains
 * when this process ends.
 */
#ifndef GPUPART_LIB_CONFINE_REPORT_H
#define GPUPART_LIB_CONFINE_REPORT_H

#include <stdatomic.h>
#include "lib/core/memfd.h"
#include "lib/core/shared_header.h"
#include "lib/driver/cuda.h"

#define REPORT_MAGIC	0x3474726f70657267	/* "greport4", little endian */
#define REPORT_NAME	"gpupart-report"
#define REPORT_MAX_PROCESSES 256

/*
 * Data for lending. See Documentation/user/lending.md. The run's memory cannot be truncated, so
 * other processes can read this memory at each launch.
 */
struct lend_lender {
	char report[MEMFD_ID_LEN];	/* id of the report of the lender's run; "": no lender */
	char pci[20];
	struct gpupart_tpcset tpcs;	/* TPCs that the run may borrow */
};

#define LEND_MAX_BORROWERS 16	/* maximum number of borrowers of one lender at a time */

struct lend_block {
	/*
	 * These members are used in the report of a borrower. The borrower's run sets the next
	 * two members before the program starts. The run's watcher may change these two members
	 * together with @lender.
	 */
	/* Bound of the total time of outstanding launches with known times; 0: no bound. */
	uint64_t depth_ns;
	/*
	 * Bound of the total time of outstanding launches with lent TPCs. It is also the bound
	 * of each such launch. 0: no such launch is allowed.
	 */
	uint64_t limit_ns;
	/* The run's watcher writes the members from @lease to @lender. */
	_Atomic uint64_t lease;	/* @idle is valid until the CPU counter has this value */
	/* Value of the lender's @busy when the lender had no outstanding launches. */
	_Atomic uint64_t idle;
	/* incremented before and after each change of @lender, @depth_ns and @limit_ns */
	_Atomic uint64_t number;
	struct lend_lender lender;
	/* The borrower's processes count these events; see struct gpupart_lend_counts. */
	_Atomic uint64_t lent, revoked, waited, expired;
	char name[64];		/* the lender's job, for display; "": the run does not borrow */
	unsigned int weight;	/* relative length of the borrower's turns; 0 means 1 */
	uint64_t claimed;	/* value that the run's watcher last wrote to the lender's @until */
	/*
	 * These members are used in the report of a lender. A borrower's watcher sets @lends.
	 * After that, the lender's processes write @busy.
	 */
	_Alignas(64) _Atomic uint64_t lends;
	_Atomic uint64_t busy;	/* value of the CPU counter at the last launch */
	/* Number of GPU attaches by the run's processes. A GPU may be counted several times. */
	_Atomic uint64_t attached;
	/*
	 * The watchers of the lender's borrowers take turns; see Documentation/user/lending.md.
	 * Only the borrower with number @turn may use the TPCs. An entry of @borrowers is valid
	 * until the time that it contains, in CLOCK_MONOTONIC ns.
	 */
	_Atomic uint64_t turn, borrowers[LEND_MAX_BORROWERS];
	/* Until this time, launches of the borrower that had the last turn may be outstanding. */
	_Atomic uint64_t until;
};

/* The memory in which the processes of a run leave their reports. */
struct report_block {
	struct memfd_head head;
	atomic_uint nr;		/* number of processes that requested an entry */
	/* number of processes that have no entry and could not use CUDA */
	atomic_uint nr_refused;
	struct gpupart_report_process processes[REPORT_MAX_PROCESSES];
	struct lend_block lend;
};

/* gpupart_report_start() was called in this process. */
extern atomic_bool report_joined;

/* The lending data of this process's run, or NULL. */
extern struct lend_block *report_lend __attribute__((visibility("hidden")));

/*
 * In a run that lends TPCs, this function is called when readers of records can see a new
 * launch.
 */
static inline void report_busy(uint64_t counter)
{
	if (report_lend)
		atomic_store_explicit(&report_lend->busy, counter, memory_order_release);
}

/*
 * Called when the attach of a GPU has ended. If @err is not 0, the attach failed and @gp has the
 * error sentence. If @err is 0, the GPU of @info is attached.
 */
void report_attached(struct gpupart *gp, int err, const struct gpupart_gpu_info *info);

/*
 * Called after gpupart_strict_start() was called with @refuse set. @worked is true if the driver
 * calls now fail.
 */
void report_refused(bool worked);

/*
 * Called in the launch callback if a launch of @function in @module is outside the limit.
 * @kernel contains the reason, and the launch is counted for this reason. The name of the kernel
 * is read later.
 */
void report_outside(const void *function, const void *module,
		    const struct gpupart_report_kernel *kernel);

/*
 * Called when a module that contains the kernel @name was refused, because its kernels can
 * launch other kernels.
 */
void report_module_refused(const char *name);

/* True if some kernels have no name yet. Then report_names() must be called. */
extern atomic_bool report_unnamed __attribute__((visibility("hidden")));

/*
 * Finds the missing names of kernels. The launch callback must not call this function, because
 * it calls the driver.
 */
void report_names(const struct cuda_api *cuda);
/* Called when the functions of @module are no longer valid. */
void report_module_gone(const void *module);

#endif
