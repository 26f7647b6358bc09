// SPDX-License-Identifier: MIT
/* Sets and reads the limit of another process through its state page. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/fault.h"
#include "lib/state/grant.h"
#include "lib/state/holder.h"
#include "lib/state/state_page.h"
#include "lib/state/progress.h"

struct gpupart_remote {
	int fd;				/* the state page of the process, open for writing */
	struct state_page *page;
	struct state_gpu *gpu;
	int pid;
	bool exempt;	/* grants do not limit this user */
};

/* ------------------------------------------------------------------- truncated state pages */

struct access {
	struct gpupart *gp;
	struct gpupart_remote *remote;
	int (*act)(struct gpupart *gp, struct gpupart_remote *remote, void *arg);
	void *arg;
};

static int access_page(void *arg)
{
	const struct access *access = arg;

	return access->act(access->gp, access->remote, access->arg);
}

/*
 * Calls @act, which accesses the state page. Returns the result of @act. If another process
 * truncated the page, returns -ESRCH.
 */
static int with_page(struct gpupart *gp, struct gpupart_remote *remote,
		      int (*act)(struct gpupart *gp, struct gpupart_remote *remote, void *arg),
		      void *arg)
{
	int err = fault_guard(access_page, &(struct access){ gp, remote, act, arg });

	return err != -EFAULT ? err : ctx_fail(gp, -ESRCH,
					       "the state page of process %d was truncated",
					       remote->pid);
}

/* ------------------------------------------------------------------- state pages */

static void close_page(struct gpupart_remote *remote)
{
	munmap(remote->page, sizeof(*remote->page));
	close(remote->fd);
}

/*
 * Returns the version of the state page in @file. If the page does not belong to @pid, returns
 * SHARED_NONE. This function does not open the file for writing. If it did, a process that deletes
 * orphans would take this process for the owner.
 */
static enum shared_version is_page_of(int dir, const char *file, int pid,
				       struct holder_table *table, struct stat *st)
{
	enum shared_version version;
	struct shared_seen seen;
	int fd = shared_open(dir, file, geteuid(), SHARED_PROCESS, STATE_LAYOUT, &seen,
			     &version);

	if (fd < 0)
		return SHARED_NONE;
	if (fstat(fd, st) || holder_pid(fd, geteuid(), &seen.header, table) != pid)
		version = SHARED_NONE;
	close(fd);
	return version;
}

/*
 * If the state page in @file belongs to @pid, opens it. If the page does not belong to @pid,
 * returns -ESRCH. If the page has another version, returns -EPROTO.
 */
static int open_page(int dir, const char *file, int pid, struct holder_table *table,
		      struct gpupart_remote *remote)
{
	struct stat found, st;
	enum shared_version version = is_page_of(dir, file, pid, table, &found);

	if (version != SHARED_SAME || found.st_size < (off_t)sizeof(*remote->page))
		return version == SHARED_OTHER ? -EPROTO : -ESRCH;
	remote->fd = openat(dir, file, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (remote->fd < 0)
		return -ESRCH;
	if (fstat(remote->fd, &st) || st.st_dev != found.st_dev || st.st_ino != found.st_ino)
		goto close_fd;
	remote->page = mmap(NULL, sizeof(*remote->page), PROT_READ | PROT_WRITE, MAP_SHARED,
			     remote->fd, 0);
	if (remote->page != MAP_FAILED)
		return 0;
close_fd:
	close(remote->fd);
	return -ESRCH;
}

static int find_page(struct gpupart *gp, struct gpupart_remote *remote)
{
	DIR *dir = state_dir_read(state_dir_open(geteuid(), false));
	int err = -ESRCH, pid = remote->pid;
	struct holder_table table = { 0 };
	struct dirent *entry;

	while (dir && err == -ESRCH && pid > 0 && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    !state_page_is_own(dirfd(dir), entry->d_name))
			err = open_page(dirfd(dir), entry->d_name, pid, &table, remote);
	holder_table_free(&table);
	if (dir)
		closedir(dir);
	if (err == -EPROTO)
		return ctx_fail(gp, err,
				"process %d uses another version of gpupart: only 'gpupart set' of that version can change its limit",
				pid);
	return err ? ctx_fail(gp, err,
			      "this user has no confined process %d: the process does not run, has not called cuInit, or runs without gpupart",
			      pid)
		   : 0;
}

/*
 * Locks the state page, so only one process writes to it at a time. If a process dies, the kernel
 * releases its lock.
 */
static int lock_page(struct gpupart *gp, const struct gpupart_remote *remote)
{
	int err = state_dir_lock_file(remote->fd);

	if (err == -EBUSY)
		return ctx_fail(gp, err,
				"another program has kept the state page of process %d locked for 5 s",
				remote->pid);
	return err ? ctx_fail(gp, err, "the state page of process %d: %s", remote->pid,
			      strerror(-err)) : 0;
}

static int check_outside(struct gpupart *gp, int pid, const struct state_gpu *gpu,
			 const struct gpupart_tpcset *set)
{
	unsigned int nr = atomic_load_explicit(&gpu->nr_tpcs, memory_order_acquire);
	int beyond;

	if (!nr || nr > GPUPART_MAX_TPCS)
		return ctx_fail(gp, -EAGAIN,
				"process %d cannot be confined on %.19s: the mask bits of this GPU are not proven yet",
				pid, gpu->pci);
	if (set && gpupart_tpcset_empty(set))
		return ctx_fail(gp, -EINVAL, "the set for process %d is empty", pid);
	beyond = set ? gpupart_tpcset_next(set, nr) : -1;
	if (beyond >= 0)
		return ctx_fail(gp, -EINVAL, "TPC %d does not exist: %.19s has TPCs 0-%u", beyond,
				gpu->pci, nr - 1);
	return 0;
}

/*
 * Checks that the grants of this user allow the set. If *set is NULL, no limit was requested. In
 * this case, the function sets *set to the set of all granted TPCs.
 */
static int keep_given(struct gpupart *gp, int pid, const struct state_gpu *gpu,
		      const struct gpupart_tpcset **set, struct grant_limit *given)
{
	char list[GPUPART_TPCSET_STRLEN], pci[20];

	snprintf(pci, sizeof(pci), "%.19s", gpu->pci);
	if (!grant_limit(geteuid(), pci, NULL, given))
		return 0;
	if (!*set)
		*set = &given->tpcs;
	if (gpupart_tpcset_subset(*set, &given->tpcs))
		return 0;
	gpupart_tpcset_format_list(&given->tpcs, list, sizeof(list));
	return ctx_fail(gp, -EPERM,
			"process %d can have only the TPCs that were granted to its user: %s of %s",
			pid, list, pci);
}

static int find_remote_gpu(struct gpupart *gp, struct gpupart_remote *remote, void *pci)
{
	struct state_page *page = remote->page;

	for (uint32_t g = 0; g < state_nr_gpus(page); g++) {
		remote->gpu = &page->gpus[g];
		if (!strncmp(remote->gpu->pci, pci, sizeof(remote->gpu->pci)))
			return check_outside(gp, remote->pid, remote->gpu, NULL);
	}
	return ctx_fail(gp, -ENODEV, "process %d does not use the GPU at %s", remote->pid,
			(const char *)pci);
}

int gpupart_remote_open(struct gpupart *gp, int pid, const char *pci,
			struct gpupart_remote **remote)
{
	struct gpupart_remote *new;
	int err;

	if (!pci)
		return ctx_fail(gp, -EINVAL, "process %d: the PCI address of the GPU is missing",
				pid);
	new = calloc(1, sizeof(*new));
	if (!new)
		return ctx_fail(gp, -ENOMEM,
				"out of memory while opening the state page of process %d", pid);
	new->pid = pid;
	/* Check this one time, because the check takes longer than the change of a limit. */
	new->exempt = gpupart_grant_exempts(geteuid());
	err = find_page(gp, new);
	if (err)
		goto free_new;
	fault_catch();
	err = with_page(gp, new, find_remote_gpu, (void *)(uintptr_t)pci);
	if (err)
		goto close_page;
	*remote = new;
	return 0;

close_page:
	close_page(new);
free_new:
	free(new);
	return err;
}

static int check_holds(struct gpupart *gp, const struct gpupart_remote *remote)
{
	return holder_is(remote->fd, geteuid(), remote->pid)
		       ? 0
		       : ctx_fail(gp, -ESRCH,
				  "process %d has ended, or executes another program now",
				  remote->pid);
}

struct setting {
	const struct gpupart_tpcset *set;
	struct gpupart_tpcset *before;
};

static int set_limit(struct gpupart *gp, struct gpupart_remote *remote, void *arg)
{
	const struct setting *setting = arg;
	const struct gpupart_tpcset *set = setting->set;
	struct limit_sets sets;
	struct grant_limit given;
	int err = check_outside(gp, remote->pid, remote->gpu, set);

	if (!err && !remote->exempt)
		err = keep_given(gp, remote->pid, remote->gpu, &set, &given);
	if (err)
		return err;
	/*
	 * Without this flag, launches do not check for a set. Set the flag before the limit,
	 * because this process may die between the two writes.
	 */
	atomic_fetch_or_explicit(&remote->gpu->in_use, STATE_USED, memory_order_relaxed);
	if (!limit_set_outside(&remote->gpu->limit, remote->gpu->bit_of_tpc, set, &sets))
		return ctx_fail(gp, -EBUSY, "process %d keeps changing its inner limit: try again",
				remote->pid);
	if (setting->before)
		*setting->before = sets.in_force;
	return 0;
}

int gpupart_remote_set(struct gpupart *gp, struct gpupart_remote *remote,
		       const struct gpupart_tpcset *set, struct gpupart_tpcset *before)
{
	int err = check_holds(gp, remote) ?: lock_page(gp, remote);

	if (err)
		return err;
	err = with_page(gp, remote, set_limit, &(struct setting){ set, before });
	flock(remote->fd, LOCK_UN);
	return err;
}

static int get_limit(struct gpupart *gp, struct gpupart_remote *remote, void *set)
{
	struct limit_sets sets;

	if (!limit_get(&remote->gpu->limit, &sets))
		return ctx_fail(gp, -EBUSY, "the limit of process %d keeps changing",
				remote->pid);
	*(struct gpupart_tpcset *)set = sets.outer;
	return 0;
}

int gpupart_remote_get(struct gpupart *gp, const struct gpupart_remote *remote,
		       struct gpupart_tpcset *set)
{
	return check_holds(gp, remote) ?:
	       with_page(gp, (struct gpupart_remote *)(uintptr_t)remote, get_limit, set);
}

static int mark_lends(struct gpupart *gp, struct gpupart_remote *remote, void *none)
{
	(void)gp;
	(void)none;
	atomic_fetch_or(&remote->gpu->in_use, STATE_USED_LENDS);
	return 0;
}

void gpupart_remote_lends(struct gpupart_remote *remote)
{
	with_page(NULL, remote, mark_lends, NULL);
}

static int get_progress(struct gpupart *gp, struct gpupart_remote *remote, void *progress)
{
	(void)gp;
	progress_read(remote->page, progress);
	return 0;
}

int gpupart_remote_progress(struct gpupart *gp, const struct gpupart_remote *remote,
			    struct gpupart_progress *progress)
{
	return check_holds(gp, remote) ?:
	       with_page(gp, (struct gpupart_remote *)(uintptr_t)remote, get_progress, progress);
}

void gpupart_remote_close(struct gpupart_remote *remote)
{
	if (!remote)
		return;
	close_page(remote);
	free(remote);
}

int gpupart_process_limit_set(struct gpupart *gp, int pid, const char *pci,
			      const struct gpupart_tpcset *set, struct gpupart_tpcset *before)
{
	struct gpupart_remote *remote;
	int err = gpupart_remote_open(gp, pid, pci, &remote);

	if (err)
		return err;
	err = gpupart_remote_set(gp, remote, set, before);
	gpupart_remote_close(remote);
	return err;
}
