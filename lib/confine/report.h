/* SPDX-License-Identifier: MIT */
/*
 * The report that this process makes to its run. The report says whether the process was
 * confined, and lists the launches outside the limit. The memory of the report belongs to the
 * run. So when this process ends, the report remains.
 */
#ifndef GPUPART_LIB_CONFINE_REPORT_H
#define GPUPART_LIB_CONFINE_REPORT_H

#include <stdatomic.h>
#include "lib/core/memfd.h"
#include "lib/core/shared_header.h"
#include "lib/driver/cuda.h"
#include "lib/records/records.h"

#define REPORT_MAGIC	0x3574726f70657267	/* "greport5", little endian */
#define REPORT_NAME	"gpupart-report"
#define REPORT_MAX_PROCESSES 256

/*
 * Data for lending. See Documentation/user/lending.md. The memory of a run cannot be truncated.
 * So other processes can safely read this memory at each launch.
 */
struct lend_lender {
	char report[MEMFD_ID_LEN];	/* report id of the lender's run; "": no lender */
	char pci[20];
	struct gpupart_tpcset tpcs;	/* TPCs that the run may borrow */
};

#define LEND_MAX_BORROWERS 16	/* maximum number of simultaneous borrowers of a lender */

struct lend_memory {
	/*
	 * The following members are used in the report of a borrower's run. The run sets
	 * @depth_ns and @limit_ns before the program starts. The run's watcher may change these
	 * two members together with @lender.
	 */
	/* Maximum total time of the outstanding launches whose times are known; 0: no maximum. */
	uint64_t depth_ns;
	/*
	 * Maximum total time of the outstanding launches with lent TPCs. One such launch also has
	 * this maximum. If the value is 0, no such launch is allowed.
	 */
	uint64_t limit_ns;
	/* The run's watcher writes the members from @lease to @lender. */
	_Atomic uint64_t lease;	/* when the CPU counter has this value, @idle becomes invalid */
	/* The value that @busy in the lender's report had when the lender was idle. */
	_Atomic uint64_t idle;
	/* incremented before and after each change of @lender, @depth_ns and @limit_ns */
	_Atomic uint64_t number;
	struct lend_lender lender;
	/* Counters of the borrower's processes. See struct gpupart_lend_counts. */
	_Atomic uint64_t lent, revoked, waited, expired, unbounded;
	char name[64];		/* the lender's job, for display; "": the run does not borrow */
	unsigned int weight;	/* relative length of this borrower's turns; 0 means 1 */
	uint64_t claimed;	/* last value that this run's watcher wrote to the lender's
				 * @until */
	/*
	 * The following members are used in the report of a lender's run. A borrower's watcher
	 * sets @lends. After that, the lender's processes write @busy.
	 */
	_Alignas(64) _Atomic uint64_t lends;
	_Atomic uint64_t busy;	/* value of the CPU counter at the last launch */
	/*
	 * This number counts how often processes of the run attached a GPU. A GPU may be counted
	 * several times.
	 */
	_Atomic uint64_t attached;
	/*
	 * The borrowers take turns. See Documentation/user/lending.md. The borrower with number
	 * @turn may use the TPCs, and other borrowers may not. Each entry of @borrowers contains
	 * a time in CLOCK_MONOTONIC ns. The entry is valid until this time.
	 */
	_Atomic uint64_t turn, borrowers[LEND_MAX_BORROWERS];
	/* Until this time, the borrower of the last turn may have outstanding launches. */
	_Atomic uint64_t until;
};

/* The memory to which the processes of a run write their reports. */
struct report_memory {
	struct memfd_head head;
	atomic_uint nr;		/* number of processes that requested an entry so far */
	/* number of processes without an entry that could not use CUDA */
	atomic_uint nr_refused;
	struct gpupart_report_process processes[REPORT_MAX_PROCESSES];
	struct lend_memory lend;
};

/* Maps the report with the id @id. Errors are those of memfd_map(). */
static inline int report_map(struct gpupart *gp, const char *id, struct report_memory **memory)
{
	struct memfd_head *head;
	int err = memfd_map(gp, id, REPORT_NAME, REPORT_MAGIC, sizeof(**memory), &head);

	if (!err)
		*memory = (struct report_memory *)head;
	return err;
}

/* True if this process has called gpupart_report_start(). */
extern atomic_bool report_joined;

/* The lending data of this process's run, or NULL. */
extern struct lend_memory *report_lend __attribute__((visibility("hidden")));

/*
 * Called when readers of records can see a new launch. Only processes of a run that lends TPCs
 * call this function.
 */
static inline void report_busy(void)
{
	if (report_lend)
		atomic_store_explicit(&report_lend->busy, records_counter(),
				      memory_order_release);
}

/*
 * Called after the library tried to attach a GPU. If @err is 0, the GPU of @info is attached.
 * Otherwise @gp has the error message.
 */
void report_attached(struct gpupart *gp, int err, const struct gpupart_gpu_info *info);

/*
 * Called after gpupart_strict_start() was called with @refuse set. If @worked is true, driver
 * calls now fail.
 */
void report_refused(bool worked);

/*
 * Called in the launch callback if a launch of @function in @module is outside the limit. The
 * library counts the launch for the reason in @kernel. The name of the kernel is read later.
 */
void report_outside(const void *function, const void *module,
		    const struct gpupart_report_kernel *kernel);

/*
 * Called when the library refused a module because its kernels can launch other kernels. One of
 * these kernels is @name.
 */
void report_module_refused(const char *name);

/* If true, some kernels have no name yet, and report_names() must be called. */
extern atomic_bool report_unnamed __attribute__((visibility("hidden")));

/*
 * Reads the missing names of kernels from the driver. So the launch callback must not call this
 * function.
 */
void report_names(const struct cuda_api *cuda);
/* Called when the functions of @module are no longer valid. */
void report_module_gone(const void *module);

#endif
