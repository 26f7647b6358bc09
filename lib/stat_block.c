// SPDX-License-Identifier: MIT
/*
 * See stat_block.h. A file without a name, that the measured open through the measuring
 * process's descriptor: nothing is left behind, however either of them ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "stat_block.h"

/* Another layout is another version. */
#define MAGIC	0x3174617470675full

struct stat_block {
	uint64_t magic, size;
	atomic_uint nr_processes;	/* that asked for a place */
	atomic_uint nr_refused;
	struct gpupart_stat_process processes[STAT_MAX_PROCESSES];
};

struct gpupart_stat {
	struct stat_block *block;
	int fd;
	char id[64];
};

int gpupart_stat_open(struct gpupart *gp, struct gpupart_stat **out, const char **id)
{
	struct gpupart_stat *stat = calloc(1, sizeof(*stat));
	int err;

	if (!stat)
		return ctx_fail(gp, -ENOMEM, "no memory");
	stat->fd = memfd_create("gpupart-stat", MFD_CLOEXEC);
	if (stat->fd < 0 || fchmod(stat->fd, 0600) ||
	    ftruncate(stat->fd, sizeof(struct stat_block))) {
		err = ctx_fail(gp, -errno, "no shared memory: %s", strerror(errno));
		goto free_stat;
	}
	stat->block = mmap(NULL, sizeof(struct stat_block), PROT_READ | PROT_WRITE, MAP_SHARED,
			   stat->fd, 0);
	if (stat->block == MAP_FAILED) {
		err = ctx_fail(gp, -errno, "no shared memory: %s", strerror(errno));
		goto free_stat;
	}
	stat->block->magic = MAGIC;
	stat->block->size = sizeof(struct stat_block);
	snprintf(stat->id, sizeof(stat->id), "/proc/%d/fd/%d", getpid(), stat->fd);
	*out = stat;
	*id = stat->id;
	return 0;

free_stat:
	if (stat->fd >= 0)
		close(stat->fd);
	free(stat);
	return err;
}

void gpupart_stat_close(struct gpupart_stat *stat)
{
	if (!stat)
		return;
	munmap(stat->block, sizeof(*stat->block));
	close(stat->fd);
	free(stat);
}

static void clean(char *text, size_t len)
{
	text[len - 1] = 0;
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

/* It is the program's memory too, and a program may have written anywhere. */
static void make_good(struct gpupart_stat_process *process)
{
	if (process->nr_gpus > GPUPART_STAT_MAX_GPUS)
		process->nr_gpus = GPUPART_STAT_MAX_GPUS;
	clean(process->name, sizeof(process->name));
	for (unsigned int i = 0; i < process->nr_gpus; i++)
		clean(process->gpus[i].pci, sizeof(process->gpus[i].pci));
}

int gpupart_stat_get(const struct gpupart_stat *stat, unsigned int n,
		     struct gpupart_stat_process *process)
{
	unsigned int nr = atomic_load(&stat->block->nr_processes);
	const uint64_t *from;
	uint64_t *to = (uint64_t *)process;

	_Static_assert(sizeof(*process) % 8 == 0, "counts are copied whole");
	if (n >= nr || n >= STAT_MAX_PROCESSES)
		return -ENOENT;
	from = (const uint64_t *)&stat->block->processes[n];
	/* In order: what says how many GPUs there are stands before them. */
	for (size_t i = 0; i < sizeof(*process) / 8; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	make_good(process);
	return 0;
}

unsigned int gpupart_stat_lost(const struct gpupart_stat *stat)
{
	unsigned int nr = atomic_load(&stat->block->nr_processes);

	return atomic_load(&stat->block->nr_refused) +
	       (nr > STAT_MAX_PROCESSES ? nr - STAT_MAX_PROCESSES : 0);
}

static int map_block(struct gpupart *gp, const char *id, int fd, struct stat_block **block)
{
	struct stat st;

	if (fstat(fd, &st))
		return ctx_fail(gp, -errno, "%.80s: %s", id, strerror(errno));
	*block = (size_t)st.st_size != sizeof(**block) ? MAP_FAILED :
		 mmap(NULL, sizeof(**block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*block == MAP_FAILED)
		return ctx_fail(gp, -EINVAL, "%.80s is not what this version of gpupart made", id);
	if ((*block)->magic == MAGIC && (*block)->size == sizeof(**block))
		return 0;
	munmap(*block, sizeof(**block));
	return ctx_fail(gp, -EINVAL, "%.80s is not what this version of gpupart made", id);
}

int stat_block_map(struct gpupart *gp, const char *id, struct stat_block **block)
{
	int fd, err;

	fd = open(id, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return ctx_fail(gp, -errno, "%.80s: %s", id, strerror(errno));
	err = map_block(gp, id, fd, block);
	close(fd);
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
