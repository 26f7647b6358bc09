// SPDX-License-Identifier: MIT
/*
 * The GPUs of a process, each with the limit that it has there: by its block. Must not know
 * who lives, which process.c found out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "control.h"
#include "process.h"

static bool is_of(const struct control_block *block, const struct gpupart_process *process)
{
	return atomic_load_explicit(&block->magic, memory_order_acquire) == CONTROL_MAGIC &&
	       block->pid == process->pid && block->pid_namespace == control_pid_namespace() &&
	       control_process_lives(process->pid, block->start);
}

/*
 * A copy of the block of a process of this pid namespace; NULL: it cannot be read. It may be
 * another user's: it is neither mapped nor waited for.
 */
static struct control_block *read_block(const struct gpupart_process *process)
{
	char file[48];
	struct control_block *block = NULL;
	struct stat st;
	int dir, fd;

	dir = control_open_dir(process->uid, false);
	if (dir < 0)
		return NULL;
	snprintf(file, sizeof(file), "%d.%llx", process->pid,
		 (unsigned long long)control_pid_namespace());
	fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	close(dir);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		block = aligned_alloc(_Alignof(struct control_block), sizeof(*block));
	if (block && (pread(fd, block, sizeof(*block), 0) != sizeof(*block) ||
		      !is_of(block, process))) {
		free(block);
		block = NULL;
	}
	close(fd);
	return block;
}

/* @process on one of its GPUs. A limit that is written at this moment is as it was listed. */
static void describe(const struct control_gpu *gpu, const struct gpupart_process *process,
		     struct gpupart_process *row)
{
	struct limit_sets sets;

	*row = *process;
	process_copy_text(row->pci, sizeof(row->pci), gpu->pci, sizeof(gpu->pci));
	process_copy_text(row->source, sizeof(row->source), gpu->source, sizeof(gpu->source));
	row->simulated = *(const unsigned char *)&gpu->simulated;
	if (limit_get(&gpu->limit, &sets))
		gpupart_tpcset_format_list(&sets.in_force, row->limit, sizeof(row->limit));
	else if (strcmp(row->pci, process->pci))
		row->limit[0] = 0;
}

static int by_pci(const void *a, const void *b)
{
	const struct gpupart_process *x = a, *y = b;

	return strcmp(x->pci, y->pci);
}

int gpupart_process_gpu_list(struct gpupart *gp, const struct gpupart_process *process,
			     struct gpupart_process *list, unsigned int max)
{
	/* To close a descriptor of our own file would give its lock up. */
	bool own = process->pid == getpid();
	struct control_block *copy = own || process->pid <= 0 ? NULL : read_block(process);
	const struct control_block *block = own ? control_self : copy;
	struct gpupart_process *rows;
	unsigned int nr = 0;

	if (block)
		nr = atomic_load_explicit(&block->nr_gpus, memory_order_acquire);
	if (nr > CONTROL_MAX_GPUS)
		nr = CONTROL_MAX_GPUS;
	/* What was listed is known, where there is no more to be had. */
	if (!nr) {
		free(copy);
		if (max && *process->pci)
			*list = *process;
		return *process->pci ? 1 : 0;
	}
	rows = malloc(nr * sizeof(*rows));
	for (unsigned int i = 0; rows && i < nr; i++)
		describe(&block->gpus[i], process, &rows[i]);
	free(copy);
	if (!rows)
		return ctx_fail(gp, -ENOMEM, "no memory for the GPUs of process %d", process->pid);
	qsort(rows, nr, sizeof(*rows), by_pci);
	memcpy(list, rows, (nr < max ? nr : max) * sizeof(*rows));
	free(rows);
	return nr;
}
