/* SPDX-License-Identifier: MIT */
/*
 * The report of this process to its run: whether it was confined, and which launches ran
 * outside its limit. It is in memory of the run, which outlives this process.
 */
#ifndef GPUPART_LIB_CONFINE_REPORT_H
#define GPUPART_LIB_CONFINE_REPORT_H

#include <stdatomic.h>
#include "lib/core/memfd.h"
#include "lib/core/shared_header.h"
#include "lib/driver/cuda.h"

#define REPORT_MAGIC	0x3374726f70657267	/* "greport3", little endian */
#define REPORT_NAME	"gpupart-report"
#define REPORT_MAX_PROCESSES 256

/*
 * Lending: see Documentation/user/lending.md. The run's memory cannot be truncated, so other
 * processes can read it at each launch.
 */
struct lend_lender {
	char report[MEMFD_ID_LEN];	/* of its run; "": none */
	char pci[20];
	struct gpupart_tpcset tpcs;	/* that may be borrowed */
};

struct lend_block {
	/* Of a borrower, set by its run before the program starts. */
	uint64_t depth_ns;	/* bound of outstanding launches with known times; 0: none */
	uint64_t limit_ns;	/* bound of those with lent TPCs, and of each of these; 0: none */
	/* Written by the run's watcher. */
	_Atomic uint64_t lease;	/* the CPU counter until which @idle is valid */
	_Atomic uint64_t idle;	/* @busy of the lender when it had nothing outstanding */
	_Atomic uint64_t number;	/* incremented before and after a change of: */
	struct lend_lender lender;
	/* Counts by the borrower's processes: launches, kernels, waits that timed out. */
	_Atomic uint64_t lent, revoked, expired;
	/*
	 * Of a lender: @lends is set by a borrower's watcher; then its processes write @busy.
	 */
	_Alignas(64) _Atomic uint64_t lends;
	_Atomic uint64_t busy;	/* the CPU counter at the last launch */
	_Atomic uint64_t attached;	/* GPUs that its processes attached, each once or more */
};

/* The memory in which the processes of a run leave their reports. */
struct report_block {
	struct memfd_head head;
	atomic_uint nr;		/* processes that asked for an entry */
	atomic_uint nr_refused;	/* processes without an entry that were kept from CUDA */
	struct gpupart_report_process processes[REPORT_MAX_PROCESSES];
	struct lend_block lend;
};

/* gpupart_report_start() was called in this process. */
extern atomic_bool report_joined;

/* That of the run that this process belongs to; NULL: none. */
extern struct lend_block *report_lend __attribute__((visibility("hidden")));

/* Called after a launch of a lending run is visible to readers of its records. */
static inline void report_busy(uint64_t counter)
{
	if (report_lend)
		atomic_store_explicit(&report_lend->busy, counter, memory_order_release);
}

/*
 * The attach of a GPU has ended: with @err, for which @gp has the error sentence, or with
 * success on @info's GPU.
 */
void report_attached(struct gpupart *gp, int err, const struct gpupart_gpu_info *info);

/* gpupart_strict_start() was asked to refuse all calls. */
void report_refused(bool worked);

/*
 * For the launch callback: a launch of @function, of @module, ran outside the limit. @kernel
 * holds the reason, by which it is counted; the name is found later.
 */
void report_outside(const void *function, const void *module,
		    const struct gpupart_report_kernel *kernel);

/* A module with the kernel @name was refused, because its kernels can launch others. */
void report_module_refused(const char *name);

/* Some kernels have no name yet: report_names() has work to do. */
extern atomic_bool report_unnamed __attribute__((visibility("hidden")));

/* Finds the missing names of kernels. Calls the driver, so not for the launch callback. */
void report_names(const struct cuda_api *cuda);
/* Functions of @module are no longer valid. */
void report_module_gone(const void *module);

#endif
