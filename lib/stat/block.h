/* SPDX-License-Identifier: MIT */
/* The memory in which measured processes leave their sums. */
#ifndef GPUPART_LIB_STAT_BLOCK_H
#define GPUPART_LIB_STAT_BLOCK_H

#include <stdatomic.h>
#include "lib/core/memfd.h"

/* Another layout is another version. */
#define STAT_MAGIC	0x3374617470675full
#define STAT_NAME	"gpupart-stat"
#define STAT_MAX_PROCESSES 64

struct stat_block {
	struct memfd_head head;
	atomic_uint nr_processes;	/* that asked for a place */
	atomic_uint nr_refused;
	struct gpupart_stat_process processes[STAT_MAX_PROCESSES];
};

/* The memory that @id names; it stays. 0 or -errno. */
int stat_block_map(struct gpupart *gp, const char *id, struct stat_block **block);

/* A place in it, this process's from now on: 0, or -ENOSPC. */
int stat_block_join(struct gpupart *gp, struct stat_block *block,
		    struct gpupart_stat_process **place);

/* This process cannot be measured. */
void stat_block_refuse(struct stat_block *block);

#endif
