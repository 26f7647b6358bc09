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
#include "lib/core/rows.h"
#include "lib/state/process.h"
#include "lib/state/process_block.h"

static bool is_of(const struct shared_header *header, const struct gpupart_process *process)
{
	return header->pid == process->pid && header->pid_namespace == control_pid_namespace() &&
	       control_process_lives(process->pid, header->start);
}

/*
 * A copy of the block of a process of this pid namespace; NULL: it cannot be read, or is another
 * version's, whose GPUs are in @seen. It may be another user's: it is neither mapped nor waited
 * for.
 */
static struct control_block *read_block(const struct gpupart_process *process,
					struct shared_seen *seen)
{
	enum shared_version version = SHARED_NONE;
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
		version = shared_read(fd, SHARED_PROCESS, CONTROL_LAYOUT, seen);
	if (version == SHARED_NONE || !is_of(&seen->header, process))
		seen->nr_gpus = 0;
	else if (version == SHARED_SAME)
		block = aligned_alloc(_Alignof(struct control_block), sizeof(*block));
	if (block && pread(fd, block, sizeof(*block), 0) != sizeof(*block)) {
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

static int process_gpu_list_fill(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	return gpupart_process_gpu_list(gp, arg, rows, max, sizeof(struct gpupart_process));
}

int gpupart_process_gpu_list(struct gpupart *gp, const struct gpupart_process *process,
			     struct gpupart_process *list, unsigned int max, size_t size)
{
	/* To close a descriptor of our own file would give its lock up. */
	bool own = process->pid == getpid();
	struct shared_seen seen = { .nr_gpus = 0 };
	struct control_block *copy = own || process->pid <= 0 ? NULL : read_block(process, &seen);
	const struct control_block *block = own ? control_self : copy;
	struct gpupart_process *rows;
	unsigned int nr = seen.nr_gpus;

	if (size != sizeof(*list)) {
		free(copy);
		return rows_resized(gp, list, max, size, sizeof(*list), process_gpu_list_fill,
				    process);
	}
	if (block)
		nr = atomic_load_explicit(&block->header.nr_gpus, memory_order_acquire);
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
		if (block) {
			describe(&block->gpus[i], process, &rows[i]);
		} else {
			rows[i] = *process;
			process_copy_gpu(&rows[i], &seen.gpus[i]);
		}
	free(copy);
	if (!rows)
		return ctx_fail(gp, -ENOMEM, "no memory for the GPUs of process %d", process->pid);
	qsort(rows, nr, sizeof(*rows), by_pci);
	memcpy(list, rows, (nr < max ? nr : max) * sizeof(*rows));
	free(rows);
	return nr;
}
