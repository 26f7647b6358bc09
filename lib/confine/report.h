/* SPDX-License-Identifier: MIT */
/*
 * What this process leaves for the run that it belongs to: whether it was confined, and which
 * launches ran outside of its limit. Memory of the run's, which outlives this process.
 */
#ifndef GPUPART_LIB_CONFINE_REPORT_H
#define GPUPART_LIB_CONFINE_REPORT_H

#include <stdatomic.h>
#include "lib/core/memfd.h"
#include "lib/driver/cuda.h"

#define REPORT_MAGIC	0x3274726f70657267	/* "greport2", little endian */
#define REPORT_NAME	"gpupart-report"
#define REPORT_MAX_PROCESSES 256

/* The memory in which the processes of a run leave their reports. */
struct report_block {
	struct memfd_head head;
	atomic_uint nr;		/* processes that asked for a place */
	atomic_uint nr_refused;	/* those without a place that were kept from CUDA */
	struct gpupart_report_process processes[REPORT_MAX_PROCESSES];
};

/* gpupart_report_start() was called in this process. */
extern atomic_bool report_joined;

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
