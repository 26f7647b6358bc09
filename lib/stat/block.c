// SPDX-License-Identifier: MIT
/* Maps the memory of block.h and takes this process's place in it. */
#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "lib/stat/block.h"

int stat_block_map(struct gpupart *gp, const char *id, struct stat_block **block)
{
	struct memfd_head *head;
	int err = memfd_map(gp, id, STAT_NAME, STAT_MAGIC, sizeof(**block), &head);

	if (!err)
		*block = (struct stat_block *)head;
	return err;
}

void stat_block_refuse(struct stat_block *block)
{
	atomic_fetch_add(&block->nr_refused, 1);
}

int stat_block_join(struct gpupart *gp, struct stat_block *block,
		    struct gpupart_stat_process **place)
{
	unsigned int nr = atomic_fetch_add(&block->nr_processes, 1);

	if (nr >= STAT_MAX_PROCESSES)
		return ctx_fail(gp, -ENOSPC, "%u processes are measured already",
				STAT_MAX_PROCESSES);
	*place = &block->processes[nr];
	prctl(PR_GET_NAME, (*place)->name);
	(*place)->pid = getpid();
	return 0;
}
