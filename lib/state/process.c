// SPDX-License-Identifier: MIT
/*
 * Processes seen, and their limits set, from outside: by their blocks. Must not know how
 * a limit reaches a launch.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "lib/core/rows.h"
#include "lib/state/grant.h"
#include "lib/state/holder.h"
#include "lib/state/process.h"
#include "lib/state/process_block.h"
#include "lib/state/progress.h"

#define LOCK_SECONDS 5

/* Nothing in a folder is followed or waited for. */
#define OPEN_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

void process_copy_text(char *to, size_t len, const char *from, size_t room)
{
	size_t i;

	for (i = 0; i < room && i + 1 < len && from[i]; i++)
		to[i] = from[i] >= 0x20 && from[i] < 0x7f ? from[i] : '?';
	to[i] = 0;
}

static uint32_t nr_gpus_of(const struct control_block *block)
{
	uint32_t nr = atomic_load_explicit(&block->header.nr_gpus, memory_order_acquire);

	return nr < CONTROL_MAX_GPUS ? nr : CONTROL_MAX_GPUS;
}

/* The GPU to show: the first with a limit, else the first. */
static void show_gpu(const struct control_block *block, struct gpupart_process *process)
{
	bool all_limited = nr_gpus_of(block);

	for (uint32_t g = nr_gpus_of(block); g-- > 0; ) {
		const struct control_gpu *gpu = &block->gpus[g];
		struct limit_sets sets;

		if (!limit_get(&gpu->limit, &sets))
			memset(&sets, 0, sizeof(sets));
		if (gpupart_tpcset_empty(&sets.in_force)) {
			all_limited = false;
			if (g || process->limit[0])
				continue;
		}
		gpupart_tpcset_format_list(&sets.in_force, process->limit, sizeof(process->limit));
		process_copy_text(process->pci, sizeof(process->pci), gpu->pci, sizeof(gpu->pci));
		process_copy_text(process->source, sizeof(process->source), gpu->source,
			  sizeof(gpu->source));
		process->simulated = *(const unsigned char *)&gpu->simulated;
	}
	process->nr_gpus = nr_gpus_of(block);
	/* What came of its environment is past: it got a limit from elsewhere since. */
	if (all_limited)
		process->problem[0] = 0;
}

static void describe_header(const struct shared_header *header, int pid, uid_t uid,
			    struct gpupart_process *process)
{
	memset(process, 0, sizeof(*process));
	process->pid = pid;
	process->uid = uid;
	process_copy_text(process->name, sizeof(process->name), header->name, sizeof(header->name));
	process_copy_text(process->job, sizeof(process->job), header->id, sizeof(header->id));
}

void process_copy_gpu(struct gpupart_process *process, const struct shared_gpu *gpu)
{
	process_copy_text(process->pci, sizeof(process->pci), gpu->pci, sizeof(gpu->pci));
	strcpy(process->source, gpu->simulated ? "" : "rm");
	process->simulated = gpu->simulated;
	gpupart_tpcset_format_list(&gpu->tpcs, process->limit, sizeof(process->limit));
}

/* Of another version: as describe() would, by the header alone. */
static void describe_other(const struct shared_seen *seen, int pid, uid_t uid,
			   struct gpupart_process *process)
{
	describe_header(&seen->header, pid, uid, process);
	process->other_version = true;
	process->nr_gpus = seen->nr_gpus;
	for (unsigned int g = seen->nr_gpus; g-- > 0; )
		if (!gpupart_tpcset_empty(&seen->gpus[g].tpcs) || (!g && !process->limit[0]))
			process_copy_gpu(process, &seen->gpus[g]);
}

static void describe(const struct control_block *block, int pid, uid_t uid,
		     struct gpupart_process *process)
{
	describe_header(&block->header, pid, uid, process);
	process_copy_text(process->problem, sizeof(process->problem), block->problem,
		  sizeof(block->problem));
	show_gpu(block, process);
	control_counters(block, &process->counters);
}

/*
 * A copy of the block in @fd. What others write meanwhile may tear it: it is made again
 * where a limit moved.
 */
static bool copy_block(int fd, struct control_block *block)
{
	for (int tries = 0; tries < 100; tries++) {
		bool same = true;

		if (pread(fd, block, sizeof(*block), 0) != sizeof(*block))
			return false;
		for (uint32_t g = 0; g < nr_gpus_of(block) && same; g++) {
			off_t at = offsetof(struct control_block, gpus[g].limit.published);
			uint64_t published;

			same = pread(fd, &published, sizeof(published), at) == sizeof(published) &&
			       published == block->gpus[g].limit.published;
		}
		if (same)
			break;
	}
	return true;
}

/* The block's name says whose it is, also where it is not whole. */
static bool parse_name(const char *file, int *pid, uint64_t *pid_namespace)
{
	unsigned long long name_space;
	char canonical[48];

	if (sscanf(file, "%d.%llx", pid, &name_space) != 2)
		return false;
	*pid_namespace = name_space;
	snprintf(canonical, sizeof(canonical), "%d.%llx", *pid, name_space);
	return !strcmp(canonical, file);
}

/*
 * Bytes of /proc/PID/maps in one look at another user's folder: a process can have any number
 * of mappings. A line has 50 bytes and more, so these are as many as one process has
 * (vm.max_map_count is 65530), or some dozens of ordinary processes.
 */
#define MAX_MAPS	(4u << 20)

/* Who looks, at whose folder. */
struct look {
	int dir;
	uid_t uid;
	struct holder_table table;
};

/*
 * Reads one block into *process; false where its process is gone, or is not found: then the
 * file is swept if nobody has it open. The folder is another user's where root looks:
 * nothing in it is trusted, nothing mapped, and nothing waited for.
 */
static bool read_block(struct look *look, const char *file, struct gpupart_process *process)
{
	struct control_block *block;
	uint64_t name_space, start = 0;
	int fd, pid = -ESRCH, named;
	enum shared_version version;
	struct shared_seen seen;
	struct stat st;

	if (!parse_name(file, &named, &name_space))
		return false;
	/* To close a descriptor of our own file would give its lock up. */
	if (control_is_own(look->dir, file)) {
		describe(control_self, getpid(), look->uid, process);
		return true;
	}
	fd = openat(look->dir, file, O_RDONLY | OPEN_FLAGS);
	if (fd < 0)
		return false;
	block = aligned_alloc(_Alignof(struct control_block), sizeof(*block));
	if (!block || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != look->uid)
		goto close_fd;
	version = shared_read(fd, SHARED_PROCESS, CONTROL_LAYOUT, &seen);
	if (version == SHARED_SAME && !copy_block(fd, block))
		version = SHARED_NONE;
	if (version != SHARED_NONE && seen.header.pid == named &&
	    seen.header.pid_namespace == name_space) {
		pid = holder_pid(fd, look->uid, &seen.header, &look->table);
		start = seen.header.start;
	}
	if (pid >= 0 && version == SHARED_OTHER)
		describe_other(&seen, pid, look->uid, process);
	else if (pid >= 0)
		describe(block, pid, look->uid, process);
	else if (holder_none(fd, named, start, name_space))
		unlinkat(look->dir, file, 0);
close_fd:
	free(block);
	close(fd);
	return pid >= 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct gpupart_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/*
 * A row for what was not looked at. It claims no TPCs: an entry whose maps were not read is
 * listed by its start time, with its limit, and counts as taken; what is in a file that was not
 * opened is not known. To count all TPCs as taken would let one user keep the others off the
 * GPU. To count none loses nothing: a user whose processes are not to be seen can remove their
 * files as well, and what a node gave away is in root's own files.
 */
static void describe_rest(const struct look *look, struct gpupart_process *process)
{
	memset(process, 0, sizeof(*process));
	process->uid = look->uid;
	snprintf(process->problem, sizeof(process->problem),
		 "user %u has more in /dev/shm/gpupart-%u than is looked at (%u files, %u MiB of maps): other processes of this user may run",
		 look->uid, look->uid, CONTROL_MAX_FILES, MAX_MAPS >> 20);
}

static void add_row(struct gpupart_process *list, unsigned int max, unsigned int *nr,
		    const struct gpupart_process *process)
{
	if (*nr < max)
		list[*nr] = *process;
	++*nr;
}

/* Adds to what is there; *nr may become more than @max, of which no more are written. */
static void list_dir(uid_t uid, struct gpupart_process *list, unsigned int max, unsigned int *nr)
{
	struct look look = { .dir = control_open_dir(uid, false), .uid = uid };
	struct gpupart_process *process = malloc(sizeof(*process));
	DIR *dir = look.dir >= 0 && process ? fdopendir(look.dir) : NULL;
	bool own = uid == geteuid();
	unsigned int files = 0;
	struct dirent *entry;

	look.table.maps_max = own ? 0 : MAX_MAPS;
	while (dir && (entry = readdir(dir)) && (++files <= CONTROL_MAX_FILES || own))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    read_block(&look, entry->d_name, process))
			add_row(list, max, nr, process);
	if (!own && dir && (files > CONTROL_MAX_FILES || holder_spent(&look.table))) {
		describe_rest(&look, process);
		add_row(list, max, nr, process);
	}
	if (dir)
		closedir(dir);
	else if (look.dir >= 0)
		close(look.dir);
	holder_table_free(&look.table);
	free(process);
}

static void sort(struct gpupart_process *list, unsigned int nr, unsigned int max)
{
	if (nr && max)
		qsort(list, nr < max ? nr : max, sizeof(*list), by_pid);
}

unsigned int process_list_own(struct gpupart_process *list, unsigned int max)
{
	unsigned int nr = 0;

	list_dir(geteuid(), list, max, &nr);
	sort(list, nr, max);
	return nr;
}

static int process_list_fill(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	(void)arg;
	return gpupart_process_list(gp, rows, max, sizeof(struct gpupart_process));
}

int gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max,
			 size_t size)
{
	struct dirent *entry;
	unsigned int nr = 0;
	uid_t uid;
	DIR *root;

	if (size != sizeof(*list))
		return rows_resized(gp, list, max, size, sizeof(*list), process_list_fill, NULL);
	if (geteuid())
		return process_list_own(list, max);
	/* Our own first: there is room for those, however many others show. */
	list_dir(0, list, max, &nr);
	root = opendir("/dev/shm");
	if (!root && errno != ENOENT)
		return ctx_fail(gp, -errno, "/dev/shm cannot be read: %s", strerror(errno));
	while (root && (entry = readdir(root)))
		if (control_folder_uid(entry->d_name, &uid) && uid)
			list_dir(uid, list, max, &nr);
	if (root)
		closedir(root);
	sort(list, nr, max);
	return nr;
}

/* ------------------------------------------------------------------------- a signal */

/*
 * Whether that user could signal process @pid, as the kernel decides it: by the real and the
 * saved uid. So no user can make root signal what belongs to another one. What runs in root's
 * folder may have become another user.
 */
static bool is_of_user(const struct control_status *status, uid_t uid)
{
	return !uid || status->uids[0] == uid || status->uids[2] == uid;
}

/* What process @pid shows of itself in the folder of @uid now: its numbers name the file. */
static bool read_process(int pid, uid_t uid, struct gpupart_process *now)
{
	struct look look = { .uid = uid, .table.maps_max = MAX_MAPS };
	struct control_status status;
	char file[48];
	bool found;

	if (!control_proc_is_ours() || !control_read_status(pid, &status) ||
	    !is_of_user(&status, uid))
		return false;
	look.dir = control_open_dir(uid, false);
	if (look.dir < 0)
		return false;
	snprintf(file, sizeof(file), "%d.%llx", status.inner ? status.inner : pid,
		 (unsigned long long)control_namespace_of(pid));
	found = read_block(&look, file, now) && now->pid == pid;
	holder_table_free(&look.table);
	close(look.dir);
	return found;
}

int gpupart_process_signal(struct gpupart *gp, const struct gpupart_process *process, int signal,
			   bool (*still)(const struct gpupart_process *now, void *arg), void *arg)
{
	int pidfd = process->pid > 0 ? syscall(SYS_pidfd_open, process->pid, 0) : -1, err = 0;
	struct gpupart_process now;

	if (pidfd < 0 && process->pid > 0 && errno != ESRCH)
		return ctx_fail(gp, -errno,
				"process %d is not signalled, since its number may be another process's by now: pidfd_open (Linux 5.3) fails: %s",
				process->pid, strerror(errno));
	/* From here on the number cannot become another process's unnoticed. */
	if (pidfd < 0 || !read_process(process->pid, process->uid, &now) ||
	    (still && !still(&now, arg)))
		err = -ESRCH;
	else if (syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0))
		err = -errno;
	if (pidfd >= 0)
		close(pidfd);
	return !err ? 0 : ctx_fail(gp, err, "process %d of user %u is not signalled: %s",
				   process->pid, process->uid, err == -ESRCH ?
				   "it is gone, or is not the one that was listed" :
				   strerror(-err));
}

/* ---------------------------------------------------------------- another's limit */

/* A block of another process that is open for writing. */
struct opened {
	int fd;
	struct control_block *block;
};

static void close_block(struct opened *opened)
{
	munmap(opened->block, sizeof(*opened->block));
	close(opened->fd);
}

/*
 * Whether @file is the block of @pid. Not opened for writing: who would sweep it meanwhile
 * would take us for its process.
 */
static enum shared_version is_block_of(int dir, const char *file, int pid,
				       struct holder_table *table, struct stat *st)
{
	int fd = openat(dir, file, O_RDONLY | OPEN_FLAGS), locker;
	enum shared_version version = SHARED_NONE;
	struct shared_seen seen;

	if (fd < 0)
		return version;
	locker = holder_lock_pid(fd);
	if ((locker < 0 || locker == pid) && !fstat(fd, st) && S_ISREG(st->st_mode) &&
	    st->st_uid == geteuid())
		version = shared_read(fd, SHARED_PROCESS, CONTROL_LAYOUT, &seen);
	if (version != SHARED_NONE && holder_pid(fd, geteuid(), &seen.header, table) != pid)
		version = SHARED_NONE;
	close(fd);
	return version;
}

/* The block in @file if it is the one of @pid: 0, -ESRCH, -EPROTO where it is another version's. */
static int open_block(int dir, const char *file, int pid, struct holder_table *table,
		      struct opened *opened)
{
	struct stat found, st;
	enum shared_version version = is_block_of(dir, file, pid, table, &found);

	if (version != SHARED_SAME || found.st_size < (off_t)sizeof(*opened->block))
		return version == SHARED_OTHER ? -EPROTO : -ESRCH;
	opened->fd = openat(dir, file, O_RDWR | OPEN_FLAGS);
	if (opened->fd < 0)
		return -ESRCH;
	if (fstat(opened->fd, &st) || st.st_dev != found.st_dev || st.st_ino != found.st_ino)
		goto close_fd;
	opened->block = mmap(NULL, sizeof(*opened->block), PROT_READ | PROT_WRITE, MAP_SHARED,
			     opened->fd, 0);
	if (opened->block != MAP_FAILED)
		return 0;
close_fd:
	close(opened->fd);
	return -ESRCH;
}

static int find_block(struct gpupart *gp, int pid, struct opened *opened)
{
	int fd = control_open_dir(geteuid(), false), err = -ESRCH;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct holder_table table = { 0 };
	struct dirent *entry;

	while (dir && err == -ESRCH && pid > 0 && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    !control_is_own(dirfd(dir), entry->d_name))
			err = open_block(dirfd(dir), entry->d_name, pid, &table, opened);
	holder_table_free(&table);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	if (err == -EPROTO)
		return ctx_fail(gp, err,
				"process %d runs under another version of gpupart: only 'gpupart set' of that version changes its limit",
				pid);
	return err ? ctx_fail(gp, err,
			      "process %d is none of this user's that confines launches: it has not called cuInit, or runs without gpupart",
			      pid)
		   : 0;
}

/* One at a time; whoever dies gives it up. A stopped one must not stop us for ever. */
static int lock_block(struct gpupart *gp, int pid, const struct opened *opened)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < LOCK_SECONDS * 1000; i++) {
		if (!flock(opened->fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return ctx_fail(gp, -errno, "the block of process %d: %s", pid,
					strerror(errno));
		nanosleep(&pause, NULL);
	}
	return ctx_fail(gp, -EBUSY, "another program has held the block of process %d for %d s",
			pid, LOCK_SECONDS);
}

static struct control_gpu *find_gpu(struct control_block *block, const char *pci)
{
	for (uint32_t g = 0; g < nr_gpus_of(block); g++)
		if (!strncmp(block->gpus[g].pci, pci, sizeof(block->gpus[g].pci)))
			return &block->gpus[g];
	return NULL;
}

static int check_outside(struct gpupart *gp, int pid, const struct control_gpu *gpu,
			 const struct gpupart_tpcset *set)
{
	unsigned int nr = atomic_load_explicit(&gpu->nr_tpcs, memory_order_acquire);
	int beyond;

	if (!nr || nr > GPUPART_MAX_TPCS)
		return ctx_fail(gp, -EAGAIN,
				"process %d cannot be confined on %.19s: its mask bits are not proven (yet)",
				pid, gpu->pci);
	if (set && gpupart_tpcset_empty(set))
		return ctx_fail(gp, -EINVAL, "the set for process %d is empty", pid);
	beyond = set ? gpupart_tpcset_next(set, nr) : -1;
	if (beyond >= 0)
		return ctx_fail(gp, -EINVAL, "TPC %d is not there: %.19s has TPCs 0-%u", beyond,
				gpu->pci, nr - 1);
	return 0;
}

/* What the node gave this user is no process's to leave; NULL, no limit, becomes that. */
static int keep_given(struct gpupart *gp, int pid, const struct control_gpu *gpu,
		      const struct gpupart_tpcset **set, struct gpupart_tpcset *given)
{
	char list[GPUPART_TPCSET_STRLEN], pci[20];

	snprintf(pci, sizeof(pci), "%.19s", gpu->pci);
	if (!node_tpcs(geteuid(), pci, given))
		return 0;
	if (!*set)
		*set = given;
	if (gpupart_tpcset_subset(*set, given))
		return 0;
	gpupart_tpcset_format_list(given, list, sizeof(list));
	return ctx_fail(gp, -EPERM,
			"process %d cannot have TPCs that this node did not give its user: those are %s of %s",
			pid, list, pci);
}

struct gpupart_remote {
	struct opened opened;
	struct control_gpu *gpu;
	int pid;
};

int gpupart_remote_open(struct gpupart *gp, int pid, const char *pci,
			struct gpupart_remote **remote)
{
	struct gpupart_remote *new;
	int err;

	if (!pci)
		return ctx_fail(gp, -EINVAL, "no GPU's PCI address is given for process %d", pid);
	new = calloc(1, sizeof(*new));
	if (!new)
		return ctx_fail(gp, -ENOMEM, "no memory for process %d", pid);
	new->pid = pid;
	err = find_block(gp, pid, &new->opened);
	if (err)
		goto free_new;
	new->gpu = find_gpu(new->opened.block, pci);
	err = new->gpu ? check_outside(gp, pid, new->gpu, NULL)
		       : ctx_fail(gp, -ENODEV, "process %d does not use the GPU at %s", pid, pci);
	if (err)
		goto close_block;
	*remote = new;
	return 0;

close_block:
	close_block(&new->opened);
free_new:
	free(new);
	return err;
}

/* Its number may be another's by now; its lock on the file is not. */
static bool still_holds(const struct gpupart_remote *remote)
{
	struct holder_table table = { 0 };
	int pid = holder_lock_pid(remote->opened.fd);

	if (pid < 0) {
		pid = holder_pid(remote->opened.fd, geteuid(), &remote->opened.block->header,
				 &table);
		holder_table_free(&table);
	}
	return pid == remote->pid;
}

int gpupart_remote_set(struct gpupart *gp, struct gpupart_remote *remote,
		       const struct gpupart_tpcset *set, struct gpupart_tpcset *before)
{
	struct gpupart_tpcset given;
	struct limit_sets sets;
	int err = check_outside(gp, remote->pid, remote->gpu, set);

	if (!err)
		err = keep_given(gp, remote->pid, remote->gpu, &set, &given);
	if (!err && !still_holds(remote))
		err = ctx_fail(gp, -ESRCH, "process %d is gone, or became another program",
			       remote->pid);
	if (!err)
		err = lock_block(gp, remote->pid, &remote->opened);
	if (err)
		return err;
	/* Perhaps launches were not looked at; first, since we may die in between. */
	atomic_fetch_or_explicit(&remote->gpu->in_use, CONTROL_USED, memory_order_relaxed);
	if (!limit_set_outside(&remote->gpu->limit, remote->gpu->bit_of_tpc, set, &sets))
		err = ctx_fail(gp, -EBUSY, "process %d sets its own limit all the time",
			       remote->pid);
	else if (before)
		*before = sets.in_force;
	flock(remote->opened.fd, LOCK_UN);
	return err;
}

int gpupart_remote_get(struct gpupart *gp, const struct gpupart_remote *remote,
		       struct gpupart_tpcset *set)
{
	struct limit_sets sets;

	if (!still_holds(remote))
		return ctx_fail(gp, -ESRCH, "process %d is gone, or became another program",
				remote->pid);
	if (!limit_get(&remote->gpu->limit, &sets))
		return ctx_fail(gp, -EBUSY, "the limit of process %d is changed all the time",
				remote->pid);
	*set = sets.outer;
	return 0;
}

int gpupart_remote_progress(struct gpupart *gp, const struct gpupart_remote *remote,
			    struct gpupart_progress *progress)
{
	if (!still_holds(remote))
		return ctx_fail(gp, -ESRCH, "process %d is gone, or became another program",
				remote->pid);
	progress_read(remote->opened.block, progress);
	return 0;
}

void gpupart_remote_close(struct gpupart_remote *remote)
{
	if (!remote)
		return;
	close_block(&remote->opened);
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
