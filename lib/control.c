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
#include "fsize.h"

#define CONTROL_ROOT "/dev/shm"

static struct control_block unseen;
struct control_block *control_self = &unseen;

static char own_path[64];
static pid_t own_pid;

static _Atomic uint64_t lanes_taken = 1;	/* lane 0 is nobody's */
static pthread_once_t lane_once = PTHREAD_ONCE_INIT;
static pthread_key_t lane_key;
static bool lane_key_made;
_Thread_local size_t control_lane;

_Static_assert(CONTROL_NR_LANES == 64, "lanes_taken has a bit for each");

static unsigned int lane_number(size_t lane)
{
	return (lane - offsetof(struct control_block, lanes)) / sizeof(struct control_lane);
}

/* The thread ends. Its counts stay, and the next that has the lane counts on. */
static void lane_leave(void *mark)
{
	size_t lane = control_lane;

	(void)mark;
	control_lane = 0;
	if (lane)
		atomic_fetch_and_explicit(&lanes_taken, ~((uint64_t)1 << lane_number(lane)),
					  memory_order_release);
}

static void lane_key_make(void)
{
	lane_key_made = !pthread_key_create(&lane_key, lane_leave);
}

static void lane_take(void)
{
	uint64_t taken = atomic_load_explicit(&lanes_taken, memory_order_relaxed);
	size_t lane;

	if (!~taken)
		return;
	/* Without a word of the thread's end the lane would be lost with it. */
	pthread_once(&lane_once, lane_key_make);
	if (!lane_key_made || pthread_setspecific(lane_key, &control_lane))
		return;
	do {
		if (!~taken)
			return;
		lane = __builtin_ctzll(~taken);
	} while (!atomic_compare_exchange_weak_explicit(&lanes_taken, &taken,
							taken | (uint64_t)1 << lane,
							memory_order_acquire,
							memory_order_relaxed));
	control_lane = offsetof(struct control_block, lanes[lane]);
}

void control_count_first(enum control_counter which)
{
	lane_take();
	if (control_lane)
		control_count(which);
	else
		__atomic_fetch_add(&control_self->lanes[0].counters[which], 1, __ATOMIC_RELAXED);
}

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
	if (control_self != &unseen)
		memcpy(&unseen, control_self, sizeof(unseen));
	atomic_store_explicit(&unseen.magic, 0, memory_order_relaxed);
	memset(unseen.lanes, 0, sizeof(unseen.lanes));
	atomic_store_explicit(&lanes_taken,
			      control_lane ? (uint64_t)1 << lane_number(control_lane) | 1 : 1,
			      memory_order_relaxed);
	control_self = &unseen;
	own_path[0] = 0;
}

int control_add_gpu(const char *pci)
{
	uint32_t place = atomic_load_explicit(&control_self->nr_gpus, memory_order_relaxed);

	if (place == CONTROL_MAX_GPUS)
		return -1;
	snprintf(control_self->gpus[place].pci, sizeof(control_self->gpus[place].pci), "%s", pci);
	atomic_store_explicit(&control_self->nr_gpus, place + 1, memory_order_release);
	return place;
}

void control_show_limit(int place, const struct gpupart_tpcset *limit)
{
	if (place < 0)
		return;
	for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
		atomic_store_explicit(&control_self->gpus[place].limit_tpcs[i],
				      limit ? limit->allowed[i] : 0, memory_order_relaxed);
}

static void sweep(const char *path);

int control_publish(const char *name)
{
	struct control_block *block;
	struct fsize_guard guard;
	char path[48], file[16];
	int dir, fd, err = 0;

	if (control_self != &unseen)
		return 0;
	fsize_guard_begin(&guard);
	control_dir(path, sizeof(path), geteuid());
	if (mkdir(path, 0700) && errno != EEXIST) {
		err = -errno;
		goto unguard;
	}
	dir = open_dir(path, geteuid());
	if (dir < 0) {
		err = dir;
		goto unguard;
	}
	sweep(path);
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
unguard:
	fsize_guard_end(&guard);
	return err;
}

static void counters_of(struct control_block *block, struct gpupart_counters *c)
{
	uint64_t n[CONTROL_NR_COUNTERS] = { 0 }, launches = 0;

	for (int lane = 0; lane < CONTROL_NR_LANES; lane++)
		for (int i = 0; i < CONTROL_NR_COUNTERS; i++)
			n[i] += __atomic_load_n(&block->lanes[lane].counters[i], __ATOMIC_RELAXED);
	for (int i = 0; i < CONTROL_NR_LAUNCHES; i++)
		launches += n[i];
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
		.graphs_reapplied = n[CONTROL_GRAPH_REAPPLIED],
		.graphs_stale = n[CONTROL_GRAPH_STALE],
		.next_dropped = n[CONTROL_NEXT_DROPPED],
		.device_launches = n[CONTROL_DEVICE_LAUNCHES],
	};
}

void gpupart_counters_get(struct gpupart_counters *counters)
{
	counters_of(control_self, counters);
}

/* Bytes of another process: printable ASCII or a question mark, and an end. */
static void copy_text(char *to, size_t len, const char *from, size_t room)
{
	size_t i;

	for (i = 0; i < room && i + 1 < len && from[i]; i++)
		to[i] = from[i] >= 0x20 && from[i] < 0x7f ? from[i] : '?';
	to[i] = 0;
}

/* The GPU to show: the first with a limit, else the first. */
static void show_gpu(struct control_block *block, struct gpupart_process *process)
{
	uint32_t nr = atomic_load_explicit(&block->nr_gpus, memory_order_relaxed);

	for (uint32_t g = nr < CONTROL_MAX_GPUS ? nr : CONTROL_MAX_GPUS; g-- > 0; ) {
		struct gpupart_tpcset limit;

		for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
			limit.allowed[i] = atomic_load_explicit(&block->gpus[g].limit_tpcs[i],
								memory_order_relaxed);
		if (g && gpupart_tpcset_empty(&limit))
			continue;
		if (!g && gpupart_tpcset_empty(&limit) && process->limit[0])
			continue;
		gpupart_tpcset_format_list(&limit, process->limit, sizeof(process->limit));
		copy_text(process->pci, sizeof(process->pci), block->gpus[g].pci,
			  sizeof(block->gpus[g].pci));
	}
}

/*
 * Reads one block into *process; false (and the file swept) where its process is gone.
 * The folder is another user's where root looks: nothing in it is trusted, nothing
 * mapped, and nothing waited for.
 */
static bool read_block(int dir, uid_t uid, const char *file, struct gpupart_process *process)
{
	struct control_block *block;
	bool alive = false;
	struct stat st;
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return false;
	block = aligned_alloc(_Alignof(struct control_block), sizeof(*block));
	if (!block || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != uid ||
	    pread(fd, block, sizeof(*block), 0) != sizeof(*block))
		goto close_fd;
	if (atomic_load_explicit(&block->magic, memory_order_acquire) == CONTROL_MAGIC) {
		alive = block->pid > 0 && block->start && process_start(block->pid) == block->start;
		if (!alive)
			unlinkat(dir, file, 0);
	}
	if (alive) {
		memset(process, 0, sizeof(*process));
		process->pid = block->pid;
		copy_text(process->name, sizeof(process->name), block->name, sizeof(block->name));
		copy_text(process->problem, sizeof(process->problem), block->problem,
			  sizeof(block->problem));
		show_gpu(block, process);
		counters_of(block, &process->counters);
	}
close_fd:
	free(block);
	close(fd);
	return alive;
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
		    !read_block(dirfd(dir), uid, entry->d_name, &process))
			continue;
		if (*nr < max)
			list[*nr] = process;
		++*nr;
	}
	closedir(dir);
}

/* Blocks of our own dead processes. */
static void sweep(const char *path)
{
	unsigned int nr = 0;

	list_dir(path, geteuid(), NULL, 0, &nr);
}

int gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max)
{
	unsigned int nr = 0, uid;
	struct dirent *entry;
	char path[48];
	int end;
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
			if (sscanf(entry->d_name, "gpupart-%u%n", &uid, &end) != 1 ||
			    entry->d_name[end])
				continue;
			control_dir(path, sizeof(path), uid);
			list_dir(path, uid, list, max, &nr);
		}
		closedir(root);
	}
	qsort(list, nr < max ? nr : max, sizeof(*list), by_pid);
	return nr;
}
