/* SPDX-License-Identifier: MIT */
/*
 * What this process leaves for the run that it belongs to: whether it was confined, and which
 * launches ran outside of its limit. Memory of the run's, which outlives this process.
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
 * Lending, Documentation/user/lending.md. The run's memory cannot be shortened, so others read
 * it at each launch.
 */
struct lend_lender {
	char report[MEMFD_ID_LEN];	/* of its run; "": none */
	char pci[20];
	struct gpupart_tpcset tpcs;	/* that may be borrowed */
};

struct lend_block {
	/* Of a borrower, by its run before the program is there. */
	uint64_t depth_ns;	/* outstanding launches, by known durations; 0: nothing of this */
	uint64_t limit_ns;	/* those that got lent TPCs, and the longest of these; 0: none */
	/* By the run's watcher. */
	_Atomic uint64_t lease;	/* the CPU's counter until which @idle holds */
	_Atomic uint64_t idle;	/* @busy of the lender when it had nothing outstanding */
	_Atomic uint64_t number;	/* counts up before and after a change of: */
	struct lend_lender lender;
	/* By the borrower's processes: launches, kernels, waits that came to their end. */
	_Atomic uint64_t lent, revoked, expired;
	/* Of a lender: @lends, by the watcher of a borrower; then its processes write @busy. */
	_Alignas(64) _Atomic uint64_t lends;
	_Atomic uint64_t busy;	/* the CPU's counter at the last launch */
	_Atomic uint64_t attached;	/* GPUs, by its processes, each once or several times */
};

/* The memory in which the processes of a run leave their reports. */
struct report_block {
	struct memfd_head head;
	atomic_uint nr;		/* processes that asked for a place */
	atomic_uint nr_refused;	/* those without a place that were kept from CUDA */
	struct gpupart_report_process processes[REPORT_MAX_PROCESSES];
	struct lend_block lend;
};

/* gpupart_report_start() was called in this process. */
extern atomic_bool report_joined;

/* Of the run that this process belongs to; NULL: none. */
extern struct lend_block *report_lend __attribute__((visibility("hidden")));

/* After a launch of a run that lends was made known to readers of its records. */
static inline void report_busy(uint64_t counter)
{
	if (report_lend)
		atomic_store_explicit(&report_lend->busy, counter, memory_order_release);
}

/* The attach of a GPU ended: with @err, for which @gp has the sentence, or on @info's. */
void report_attached(struct gpupart *gp, int err, const struct gpupart_gpu_info *info);

/* gpupart_strict_start() was to have all calls refused. */
void report_refused(bool worked);

/*
 * For the launch callback: a launch of @function, of @module, ran outside of the limit. @kernel
 * says why, and is counted by that; its name is found later.
 */
void report_outside(const void *function, const void *module,
		    const struct gpupart_report_kernel *kernel);

/* A module with the kernel @name was refused, since its kernels can launch others. */
void report_module_refused(const char *name);

/* There are kernels without a name: report_names() has something to do. */
extern atomic_bool report_unnamed __attribute__((visibility("hidden")));

/* Finds the names of kernels that have none yet. Not in the launch callback: calls the driver. */
void report_names(const struct cuda_api *cuda);
/* Functions of @module are no longer valid. */
void report_module_gone(const void *module);

#endif
