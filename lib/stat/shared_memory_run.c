// SPDX-License-Identifier: MIT
/* Creates the shared memory of shared_memory.h. Reads the entries of the program's processes. */
#include <errno.h>
#include "lib/records/clocks.h"
#include "lib/stat/shared_memory.h"

/* Converts the public type to struct memfd. */
static struct stat_memory *memory_of(const struct gpupart_stat *stat)
{
	return (struct stat_memory *)((const struct memfd *)stat)->head;
}

int gpupart_stat_open(struct gpupart *gp, struct gpupart_stat **stat, const char **id)
{
	return memfd_open(gp, STAT_NAME, STAT_MAGIC, sizeof(struct stat_memory),
			  (struct memfd **)stat, id);
}

void gpupart_stat_close(struct gpupart_stat *stat)
{
	memfd_close((struct memfd *)stat);
}

int gpupart_stat_get(const struct gpupart_stat *stat, unsigned int n,
		     struct gpupart_stat_process *process)
{
	const struct stat_place *place = &memory_of(stat)->places[n];

	if (n >= atomic_load(&memory_of(stat)->nr_processes) || n >= GPUPART_STAT_MAX_PROCESSES)
		return -ENOENT;
	if (!atomic_load(&place->whole))
		return -EAGAIN;
	/* The program can also write to this memory, so check each value from it. */
	*process = place->process;
	clocks_measure();
	process->wait_ns = clocks_cpu_ns(process->wait_ns) - clocks_cpu_ns(0);
	if (process->nr_gpus > GPUPART_STAT_MAX_GPUS)
		process->nr_gpus = GPUPART_STAT_MAX_GPUS;
	memfd_clean(process->name, sizeof(process->name));
	for (unsigned int i = 0; i < GPUPART_STAT_MAX_GPUS; i++)
		memfd_clean(process->pci[i], sizeof(process->pci[i]));
	return 0;
}

void gpupart_stat_seen(const struct gpupart_stat *stat, unsigned int n)
{
	atomic_store(&memory_of(stat)->places[n].seen, true);
}

unsigned int gpupart_stat_lost(const struct gpupart_stat *stat)
{
	unsigned int nr = atomic_load(&memory_of(stat)->nr_processes);

	return nr > GPUPART_STAT_MAX_PROCESSES ? nr - GPUPART_STAT_MAX_PROCESSES : 0;
}
