/* SPDX-License-Identifier: MIT */
/* The memory in which measured processes leave their sums. */
#ifndef GPUPART_LIB_STAT_BLOCK_H
#define GPUPART_LIB_STAT_BLOCK_H

#include "lib/core/ctx.h"

#define STAT_MAX_PROCESSES 64

struct stat_block;

/* The memory that @id names; it stays. 0 or -errno. */
int stat_block_map(struct gpupart *gp, const char *id, struct stat_block **block);

/* A place in it, this process's from now on: 0, or -ENOSPC. */
int stat_block_join(struct gpupart *gp, struct stat_block *block,
		    struct gpupart_stat_process **place);

/* This process cannot be measured. */
void stat_block_refuse(struct stat_block *block);

#endif
