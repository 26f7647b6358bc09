/* SPDX-License-Identifier: MIT */
/* The memory in which the processes of a run leave their reports. */
#ifndef GPUPART_LIB_CONFINE_REPORT_BLOCK_H
#define GPUPART_LIB_CONFINE_REPORT_BLOCK_H

#include <stdatomic.h>
#include "lib/core/memfd.h"

#define REPORT_MAGIC	0x3274726f70657267	/* "greport2", little endian */
#define REPORT_NAME	"gpupart-report"
#define REPORT_MAX_PROCESSES 256

struct report_block {
	struct memfd_head head;
	atomic_uint nr;		/* processes that asked for a place */
	atomic_uint nr_refused;	/* those without a place that were kept from CUDA */
	struct gpupart_report_process processes[REPORT_MAX_PROCESSES];
};

#endif
