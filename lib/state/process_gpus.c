// SPDX-License-Identifier: MIT
/* Lists the GPUs of a process. Each GPU has one row. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/core/rows.h"
#include "lib/private.h"
#include "lib/state/process.h"
#include "lib/state/state_page.h"

static bool is_of(const struct shared_header *header, const struct gpupart_process *process)
{
	return header->pid == process->pid && header->pid_namespace == state_dir_pid_namespace() &&
	       state_dir_process_lives(process->pid, header->start);
}

/*
 * Copies the state page of a process in this pid namespace. If the page cannot be read, returns
 * NULL. If the page has another version, stores its GPUs in @seen and returns NULL. The page may
 * belong to another user, so this function does not map it or wait for it.
 */
static struct state_page *read_listed(const struct gpupart_process *process,
					struct shared_seen *seen)
{
	STATE_CLOSED int dir = state_dir_open(process->uid, false), fd = -1;
	struct state_page *page = NULL;
	enum shared_version version;
	char file[48];

	if (dir < 0)
		return NULL;
	snprintf(file, sizeof(file), "%d.%llx", process->pid,
		 (unsigned long long)state_dir_pid_namespace());
	fd = shared_open(dir, file, process->uid, SHARED_PROCESS, STATE_LAYOUT, seen, &version);
	if (fd < 0)
		return NULL;
	if (version == SHARED_NONE || !is_of(&seen->header, process))
		seen->nr_gpus = 0;
	else if (version == SHARED_SAME)
		page = aligned_alloc(_Alignof(struct state_page), sizeof(*page));
	if (page && pread(fd, page, STATE_LISTED, 0) == STATE_LISTED)
		return page;
	free(page);
	return NULL;
}

/*
 * Fills a row for @process on one of its GPUs. If another process is writing the limit at this
 * moment, the row gets the limit from @process.
 */
static void describe_on(const struct state_gpu *gpu, const struct gpupart_process *process,
			struct gpupart_process *row)
{
	struct limit_sets sets;
	bool whole = limit_get(&gpu->limit, &sets);

	*row = *process;
	process_show(gpu, whole ? &sets.in_force : NULL, row);
	if (!whole && strcmp(row->pci, process->pci))
		row->limit[0] = 0;
}

static int by_pci(const void *a, const void *b)
{
	const struct gpupart_process *x = a, *y = b;

	return strcmp(x->pci, y->pci);
}

static int list_gpus(struct gpupart *gp, const void *arg, void *list, unsigned int max)
{
	const struct gpupart_process *process = arg;
	/* Do not open this process's own file, because the close would release the lock on it. */
	bool own = process->pid == getpid();
	struct shared_seen seen = { .nr_gpus = 0 };
	struct state_page *copy = own || process->pid <= 0 ? NULL : read_listed(process, &seen);
	const struct state_page *page = own ? state_page_own : copy;
	struct gpupart_process *rows;
	unsigned int nr = page ? state_nr_gpus(page) : seen.nr_gpus;

	/* If the GPUs are unknown, return the row of @process itself. */
	if (!nr) {
		free(copy);
		if (max && *process->pci)
			*(struct gpupart_process *)list = *process;
		return *process->pci ? 1 : 0;
	}
	rows = malloc(nr * sizeof(*rows));
	for (unsigned int i = 0; rows && i < nr; i++)
		if (page) {
			describe_on(&page->gpus[i], process, &rows[i]);
		} else {
			rows[i] = *process;
			process_show_other(&rows[i], &seen.gpus[i]);
		}
	free(copy);
	if (!rows)
		return ctx_fail(gp, -ENOMEM, "out of memory while listing the GPUs of process %d",
				process->pid);
	qsort(rows, nr, sizeof(*rows), by_pci);
	memcpy(list, rows, (nr < max ? nr : max) * sizeof(*rows));
	free(rows);
	return nr;
}

int gpupart_process_gpu_list(struct gpupart *gp, const struct gpupart_process *process,
			     struct gpupart_process *list, unsigned int max, size_t size)
{
	return rows_resized(gp, list, max, size, sizeof(*list), list_gpus, process);
}
