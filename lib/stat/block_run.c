// SPDX-License-Identifier: MIT
/* Creates the memory of block.h and reads the sums that measured processes left in it. */
#include <errno.h>
#include "lib/stat/block.h"

/* The public name of a struct memfd. */
static struct stat_block *block_of(const struct gpupart_stat *stat)
{
	return (struct stat_block *)((const struct memfd *)stat)->head;
}

int gpupart_stat_open(struct gpupart *gp, struct gpupart_stat **stat, const char **id)
{
	return memfd_open(gp, STAT_NAME, STAT_MAGIC, sizeof(struct stat_block),
			  (struct memfd **)stat, id);
}

void gpupart_stat_close(struct gpupart_stat *stat)
{
	memfd_close((struct memfd *)stat);
}

/* It is the program's memory too, and a program may have written anywhere. */
static void make_good(struct gpupart_stat_process *process)
{
	if (process->nr_gpus > GPUPART_STAT_MAX_GPUS)
		process->nr_gpus = GPUPART_STAT_MAX_GPUS;
	memfd_clean(process->name, sizeof(process->name));
	for (unsigned int i = 0; i < process->nr_gpus; i++)
		memfd_clean(process->gpus[i].pci, sizeof(process->gpus[i].pci));
}

int gpupart_stat_get(const struct gpupart_stat *stat, unsigned int n,
		     struct gpupart_stat_process *process)
{
	unsigned int nr = atomic_load(&block_of(stat)->nr_processes);
	const uint64_t *from;
	uint64_t *to = (uint64_t *)process;

	_Static_assert(sizeof(*process) % 8 == 0, "counts are copied whole");
	if (n >= nr || n >= STAT_MAX_PROCESSES)
		return -ENOENT;
	from = (const uint64_t *)&block_of(stat)->processes[n];
	/* In order: what says how many GPUs there are stands before them. */
	for (size_t i = 0; i < sizeof(*process) / 8; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	make_good(process);
	return 0;
}

unsigned int gpupart_stat_lost(const struct gpupart_stat *stat)
{
	unsigned int nr = atomic_load(&block_of(stat)->nr_processes);

	return atomic_load(&block_of(stat)->nr_refused) +
	       (nr > STAT_MAX_PROCESSES ? nr - STAT_MAX_PROCESSES : 0);
}
