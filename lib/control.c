// SPDX-License-Identifier: MIT
/* The block by which another process sees this one. Must not know what a TMD is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "control.h"

#define CONTROL_ROOT "/dev/shm"

static struct control_block unseen;
struct control_block *control_self = &unseen;

static char own_path[64];
static pid_t own_pid;

static void control_dir(char *path, size_t len, uid_t uid)
{
	snprintf(path, len, CONTROL_ROOT "/gpupart-%u", uid);
}

/* Field 22 of /proc/PID/stat: when the process began. 0 where there is none. */
static uint64_t process_start(pid_t pid)
{
	char path[32], text[1024], *at;
	unsigned long long start = 0;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return 0;
	text[len] = 0;
	/* The name, field 2, may hold blanks and brackets: count from the last bracket. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	return start;
}

/* A folder that is ours alone, or no folder. */
static int open_dir(const char *path, uid_t uid)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != uid || (st.st_mode & 077)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static void forget_own(void)
{
	if (own_path[0] && own_pid == getpid())
		unlink(own_path);
}

/* The child of a fork has its parent's block mapped: it gets one that is its own. */
static void after_fork(void)
{
	memset(&unseen, 0, sizeof(unseen));
	control_self = &unseen;
	own_path[0] = 0;
}

int control_publish(const char *name)
{
	struct control_block *block;
	char path[48], file[16];
	int dir, fd, err = 0;

	if (control_self != &unseen)
		return 0;
	control_dir(path, sizeof(path), geteuid());
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	dir = open_dir(path, geteuid());
	if (dir < 0)
		return dir;
	snprintf(file, sizeof(file), "%d", getpid());
	unlinkat(dir, file, 0);	/* of a dead process that had our pid */
	fd = openat(dir, file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
		goto close_dir;
	}
	if (ftruncate(fd, sizeof(*block))) {
		err = -errno;
		goto close_fd;
	}
	block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (block == MAP_FAILED) {
		err = -errno;
		goto close_fd;
	}
	memcpy(block, &unseen, sizeof(*block));
	block->pid = getpid();
	block->start = process_start(getpid());
	snprintf(block->name, sizeof(block->name), "%s", name ? name : "");
	atomic_store_explicit(&block->magic, CONTROL_MAGIC, memory_order_release);
	control_self = block;
	own_pid = getpid();
	snprintf(own_path, sizeof(own_path), "%s/%s", path, file);
	atexit(forget_own);
	pthread_atfork(NULL, NULL, after_fork);
close_fd:
	if (err)
		unlinkat(dir, file, 0);
	close(fd);
close_dir:
	close(dir);
	return err;
}

static void counters_of(struct control_block *block, struct gpupart_counters *c)
{
	uint64_t n[CONTROL_NR_COUNTERS], launches = 0;

	for (int i = 0; i < CONTROL_NR_COUNTERS; i++) {
		n[i] = atomic_load_explicit(&block->counters[i], memory_order_relaxed);
		launches += n[i];
	}
	*c = (struct gpupart_counters){
		.launches = launches,
		.confined = n[CONTROL_CONFINED],
		.widened_empty = n[CONTROL_WIDENED_EMPTY],
		.widened_driver = n[CONTROL_WIDENED_DRIVER],
		.widened_cluster = n[CONTROL_WIDENED_CLUSTER],
		.widened_cooperative = n[CONTROL_WIDENED_COOPERATIVE],
		.unconfinable_version = n[CONTROL_UNCONFINABLE_VERSION],
		.unconfinable_map = n[CONTROL_UNCONFINABLE_MAP],
		.unconfinable_gpu = n[CONTROL_UNCONFINABLE_GPU],
	};
}

void gpupart_counters_get(struct gpupart_counters *counters)
{
	counters_of(control_self, counters);
}

/* Reads one block into *process; false (and the file swept) where its process is gone. */
static bool read_block(int dir, const char *file, struct gpupart_process *process)
{
	/* Another user's file may be anything: a pipe must not hold us, nor its end fault us. */
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct gpupart_tpcset limit;
	struct control_block block;
	struct stat st;
	bool whole;

	if (fd < 0)
		return false;
	whole = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == sizeof(block) &&
		read(fd, &block, sizeof(block)) == sizeof(block);
	close(fd);
	if (!whole || block.magic != CONTROL_MAGIC)
		return false;
	if (!block.start || process_start(block.pid) != block.start) {
		unlinkat(dir, file, 0);
		return false;
	}
	process->pid = block.pid;
	/* Nobody but its owner ends the strings in it: we do. */
	snprintf(process->name, sizeof(process->name), "%.63s", block.name);
	snprintf(process->pci, sizeof(process->pci), "%.19s", block.pci);
	for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
		limit.allowed[i] = block.limit_tpcs[i];
	gpupart_tpcset_format_list(&limit, process->limit, sizeof(process->limit));
	snprintf(process->problem, sizeof(process->problem), "%.255s", block.problem);
	counters_of(&block, &process->counters);
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct gpupart_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void list_dir(const char *path, uid_t uid, struct gpupart_process *list,
		     unsigned int max, unsigned int *nr)
{
	int fd = open_dir(path, uid);
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		struct gpupart_process process;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !read_block(dirfd(dir), entry->d_name, &process))
			continue;
		if (*nr < max)
			list[*nr] = process;
		++*nr;
	}
	closedir(dir);
}

int gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max)
{
	unsigned int nr = 0, uid;
	struct dirent *entry;
	char path[48];
	DIR *root;

	if (geteuid()) {
		control_dir(path, sizeof(path), geteuid());
		list_dir(path, geteuid(), list, max, &nr);
	} else {
		root = opendir(CONTROL_ROOT);
		if (!root)
			return ctx_fail(gp, -errno, CONTROL_ROOT " cannot be read: %s",
					strerror(errno));
		while ((entry = readdir(root))) {
			if (sscanf(entry->d_name, "gpupart-%u", &uid) != 1)
				continue;
			control_dir(path, sizeof(path), uid);
			list_dir(path, uid, list, max, &nr);
		}
		closedir(root);
	}
	qsort(list, nr < max ? nr : max, sizeof(*list), by_pid);
	return nr;
}
