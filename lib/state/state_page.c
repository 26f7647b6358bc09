// SPDX-License-Identifier: MIT
/* Creates and publishes the state page of this process. Other processes read this page. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/fsize.h"
#include "lib/state/state_page.h"

/* This size is a multiple of every page size up to 64 KiB. */
#define STATE_PAGE	65536
#define STATE_SIZE	\
	((sizeof(struct state_page) + STATE_PAGE - 1) / STATE_PAGE * STATE_PAGE)

/*
 * The maximum value that a reader accepts for a counter of one thread. A damaged page can
 * contain any value. This maximum prevents an overflow of sums.
 */
#define MAX_COUNT	(1ull << 48)

/*
 * This state page is used until something must be stored. It is also used if memory is short. This
 * page is never published.
 */
static struct state_page unseen;
struct state_page *state_page_own = &unseen;
static pthread_once_t place_once = PTHREAD_ONCE_INIT;

/* The file that is mapped over the state page. If the pid is 0, there is no such file. */
static struct {
	pid_t pid;
	int fd;
	dev_t dev;
	ino_t ino;
	char path[96];
} own = { .fd = -1 };

/*
 * The child of a fork uses this memory for its state page. The memory is allocated when this
 * process's page is published, so a child always has it. The parent does not write to this memory.
 */
static void *child_page;

static _Atomic uint64_t lanes_taken = 1;	/* lane 0 belongs to no thread */
static pthread_once_t lane_once = PTHREAD_ONCE_INIT;
static pthread_key_t lane_key;
static bool lane_key_made;
_Thread_local struct state_lane *state_lane;

_Static_assert(STATE_NR_LANES == 64, "lanes_taken has a bit for each lane");

/* Allocates whole pages, over which a file can be mapped later. Returns NULL if memory is short. */
static void *pages_allocate(void)
{
	void *pages = mmap(NULL, STATE_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static void place_make(void)
{
	void *place = pages_allocate();

	if (!place)
		return;
	memcpy(place, &unseen, offsetof(struct state_page, records));
	state_page_own = place;
}

struct state_page *state_page_location(void)
{
	pthread_once(&place_once, place_make);
	return state_page_own;
}

static unsigned int lane_number(const struct state_lane *lane)
{
	return lane - state_page_own->lanes;
}

/*
 * This function is called when a thread ends. The counts in its lane are kept. The next thread that
 * gets this lane adds to these counts.
 */
static void lane_leave(void *mark)
{
	struct state_lane *lane = state_lane;

	(void)mark;
	state_lane = NULL;
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
	unsigned int lane;

	if (!~taken)
		return;
	/*
	 * The key makes a callback run at the end of the thread. Without the callback, the lane
	 * would never become free.
	 */
	pthread_once(&lane_once, lane_key_make);
	if (!lane_key_made || pthread_setspecific(lane_key, &state_lane))
		return;
	do {
		if (!~taken)
			return;
		lane = __builtin_ctzll(~taken);
	} while (!atomic_compare_exchange_weak_explicit(&lanes_taken, &taken,
							taken | (uint64_t)1 << lane,
							memory_order_acquire,
							memory_order_relaxed));
	state_lane = &state_page_own->lanes[lane];
}

static struct state_lane *lane_now(void)
{
	if (!state_lane) {
		pthread_once(&place_once, place_make);
		lane_take();
	}
	return state_lane ?: state_page_own->lanes;
}

void state_count_first(enum state_counter which)
{
	/* Several threads may share lane 0. */
	__atomic_fetch_add(&lane_now()->counters[which], 1, __ATOMIC_RELAXED);
}

struct state_lane *state_lane_first(struct state_lane *spare)
{
	struct state_lane *lane = lane_now();

	__atomic_store_n(&lane->launching, 1, __ATOMIC_RELAXED);
	return state_lane ? lane : spare;
}

void state_lane_add(const struct state_lane *spare)
{
	for (int i = 0; i < STATE_NR_COUNTERS; i++)
		__atomic_fetch_add(&state_page_own->lanes->counters[i], spare->counters[i],
				   __ATOMIC_RELAXED);
}

/* The rounding corrects a count that was lost while the state page was moved into its file. */
void state_graph_begin(void)
{
	struct state_lane *lane = lane_now();

	__atomic_store_n(&lane->graphs, (lane->graphs + 1) | 1, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_seq_cst);
}

void state_graph_end(void)
{
	struct state_lane *lane = state_lane;

	if (lane)
		__atomic_store_n(&lane->graphs, (lane->graphs + 1) & ~1ull, __ATOMIC_RELEASE);
}

bool state_page_is_own(int dir, const char *file)
{
	struct stat st;

	return own.pid == getpid() && !fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) &&
	       st.st_dev == own.dev && st.st_ino == own.ino;
}

/*
 * Returns true if the descriptor still belongs to this process's file. Some programs close all
 * unknown descriptors.
 */
static bool is_own_fd(void)
{
	struct stat st;

	return !fstat(own.fd, &st) && st.st_dev == own.dev && st.st_ino == own.ino;
}

static void path_of_records(char path[128], const char *dot)
{
	const char *file = strrchr(own.path, '/') + 1;

	snprintf(path, 128, "%.*s%s%s" STATE_RECORDS, (int)(file - own.path), own.path, dot,
		 file);
}

/*
 * Deletes the state page last. While the state page exists, no process deletes the other file as an
 * orphan.
 */
static void forget_own(void)
{
	char path[128];

	if (own.pid != getpid())
		return;
	path_of_records(path, "");
	unlink(path);
	unlink(own.path);
}

int state_file_create(void)
{
	struct fsize_guard guard;
	char path[128];
	int fd;

	if (own.pid != getpid())
		return -ENOENT;
	path_of_records(path, ".");
	fsize_guard_begin(&guard);
	/*
	 * If there is already a file, it belongs to a dead process that had this process's pid.
	 * A GPU may still be writing to this old file.
	 */
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	fsize_guard_end(&guard);
	return fd < 0 ? -errno : fd;
}

int state_file_publish(void)
{
	char from[128], to[128];

	if (own.pid != getpid())
		return -ENOENT;
	path_of_records(from, ".");
	path_of_records(to, "");
	return rename(from, to) ? -errno : 0;
}

/*
 * In the child of a fork, replaces the mapping of the parent's state page with a private copy. A
 * process with too many mappings cannot move pages, but it can replace pages. If the kernel refuses
 * both, the function unmaps the page. Then the child's next access to the page kills the child.
 * This is necessary, because the child must not count in its parent's page.
 */
static void after_fork(void)
{
	if (own.pid) {
		memcpy(child_page, state_page_own, sizeof(*state_page_own));
		if (mremap(child_page, STATE_SIZE, STATE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED,
			   state_page_own) == MAP_FAILED) {
			if (mmap(state_page_own, STATE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
				munmap(state_page_own, STATE_SIZE);
			memcpy(state_page_own, child_page, sizeof(*state_page_own));
			munmap(child_page, STATE_SIZE);
		}
		child_page = NULL;
		if (is_own_fd())
			close(own.fd);
	}
	own.pid = 0;
	own.fd = -1;
	atomic_store_explicit(&state_page_own->header.magic, 0, memory_order_relaxed);
	memset(state_page_own->lanes, 0, sizeof(state_page_own->lanes));
	memset(&state_page_own->progress, 0, sizeof(state_page_own->progress));
	memset(state_page_own->records, 0, sizeof(state_page_own->records));
	atomic_store_explicit(&lanes_taken,
			      state_lane ? (uint64_t)1 << lane_number(state_lane) | 1 : 1,
			      memory_order_relaxed);
}

/*
 * Fills the GPU entry that other versions read. Instead of a set, the entry contains the place
 * of the limit's words. This place is written only once, so it stays correct if a writer of the
 * limit dies.
 */
static void show_shared(uint32_t place, const struct gpupart_gpu_info *info)
{
	const uint32_t limit = offsetof(struct state_page, gpus) +
			       place * sizeof(struct state_gpu) +
			       offsetof(struct state_gpu, limit);
	struct shared_gpu *shared = &state_page_own->shared[place];

	*shared = (struct shared_gpu){
		.simulated = info->simulated,
		.set = { .at = limit + offsetof(struct limit, slot[0].tpcs),
			 .stride = sizeof(struct ring_slot), .nr = LIMIT_SLOTS,
			 .count_at = limit + offsetof(struct limit, published) },
	};
	snprintf(shared->pci, sizeof(shared->pci), "%s", info->pci);
}

struct state_gpu *state_add_gpu(const struct gpupart_gpu_info *info, uint64_t topology_hash)
{
	struct state_gpu *gpu;
	uint32_t place;
	bool room;

	pthread_once(&place_once, place_make);
	place = atomic_load_explicit(&state_page_own->header.nr_gpus, memory_order_relaxed);
	room = place < STATE_MAX_GPUS;
	gpu = room ? &state_page_own->gpus[place] : malloc(sizeof(*gpu));
	if (!gpu)
		return NULL;
	memset(gpu, 0, sizeof(*gpu));
	snprintf(gpu->pci, sizeof(gpu->pci), "%s", info->pci);
	snprintf(gpu->source, sizeof(gpu->source), "%s", info->source);
	gpu->simulated = info->simulated;
	gpu->topology_hash = topology_hash;
	if (room) {
		show_shared(place, info);
		atomic_store_explicit(&state_page_own->header.nr_gpus, place + 1,
				      memory_order_release);
	}
	return gpu;
}

static bool in_page(const struct state_gpu *gpu)
{
	return gpu >= state_page_own->gpus && gpu < state_page_own->gpus + STATE_MAX_GPUS;
}

void state_remove_gpu(struct state_gpu *gpu)
{
	if (in_page(gpu))
		atomic_fetch_sub_explicit(&state_page_own->header.nr_gpus, 1, memory_order_relaxed);
	else
		free(gpu);
}

struct state_records *state_records(const struct state_gpu *gpu)
{
	return in_page(gpu) ? &state_page_own->records[gpu - state_page_own->gpus] : NULL;
}

void state_publish_map(struct state_gpu *gpu, const struct tmd_map *map)
{
	memcpy(gpu->bit_of_tpc, map->bit_of_tpc, sizeof(gpu->bit_of_tpc));
	if (in_page(gpu))
		state_page_own->shared[gpu - state_page_own->gpus].nr_tpcs = map->nr_tpcs;
	atomic_store_explicit(&gpu->nr_tpcs, map->nr_tpcs, memory_order_release);
}

/*
 * Maps the file over the state page. Then removes the dot from the file name @file. If other
 * threads count something between the copy and the mapping, these counts are lost. Limits are not
 * lost, because the caller holds the lock that writers of limits need.
 */
static int move_into(int fd, int dir, const char *file)
{
	ssize_t written;
	/*
	 * Allocate all pages now. If the kernel could not allocate a page at the first write to it,
	 * the kernel would kill the program.
	 */
	int err = posix_fallocate(fd, 0, STATE_SIZE);

	if (err)
		return -err;
	/*
	 * This process holds the lock as long as it lives. The lock identifies this process in
	 * pid namespaces in which its pid is not visible: see process.c.
	 */
	fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET });
	written = pwrite(fd, state_page_own, sizeof(*state_page_own), 0);
	if (written != (ssize_t)sizeof(*state_page_own))
		return written < 0 ? -errno : -ENOSPC;
	if (mmap(state_page_own, STATE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 0) == MAP_FAILED)
		return -errno;
	atomic_store_explicit(&state_page_own->header.magic, SHARED_MAGIC(SHARED_PROCESS),
			      memory_order_release);
	return renameat(dir, file, dir, file + 1) ? -errno : 0;
}

int state_page_publish(const char *name, const char *job)
{
	static bool registered;
	struct shared_header *header;
	struct fsize_guard guard;
	struct stat st;
	char file[48];
	int dir, fd, err;

	if (own.pid)
		return 0;
	pthread_once(&place_once, place_make);
	if (!child_page)
		child_page = pages_allocate();
	if (state_page_own == &unseen || !child_page)
		return -ENOMEM;
	fsize_guard_begin(&guard);
	dir = state_dir_open(geteuid(), true);
	err = dir < 0 ? dir : 0;
	if (err)
		goto unguard;
	header = &state_page_own->header;
	shared_init(header, STATE_LAYOUT, sizeof(*state_page_own));
	header->pid = getpid();
	header->uid = geteuid();
	header->start = state_dir_process_start(getpid());
	header->pid_namespace = state_dir_pid_namespace();
	snprintf(header->name, sizeof(header->name), "%s", name ? name : "");
	snprintf(header->id, sizeof(header->id), "%s", job ? job : "");
	/*
	 * Scans ignore file names that begin with a dot. If no process has the file open for
	 * writing, a scan would delete the file, because its process seems to be dead.
	 */
	snprintf(file, sizeof(file), ".%d.%llx", getpid(),
		 (unsigned long long)header->pid_namespace);
	/* If there is an old file, it belongs to a dead process that had this process's pid. */
	fd = openat(dir, file, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	err = fd < 0 || fstat(fd, &st) ? -errno : move_into(fd, dir, file);
	if (err) {
		unlinkat(dir, file, 0);
		close(fd);
		goto close_dir;
	}
	own.fd = fd;
	own.dev = st.st_dev;
	own.ino = st.st_ino;
	own.pid = getpid();
	snprintf(own.path, sizeof(own.path), STATE_DIR_ROOT "/gpupart-%u/%s", geteuid(), file + 1);
	if (!registered) {
		registered = true;
		atexit(forget_own);
		pthread_atfork(NULL, NULL, after_fork);
	}
close_dir:
	close(dir);
unguard:
	fsize_guard_end(&guard);
	return err;
}

/*
 * Other writers hold the lock for a very short time. But a writer may have been stopped. A stopped
 * writer must not prevent this program from using its GPU. So this program waits no longer than
 * writers wait for each other.
 */
void state_page_lock(void)
{
	if (own.pid == getpid() && is_own_fd())
		state_dir_lock_file(own.fd);
}

void state_page_unlock(void)
{
	if (own.pid == getpid() && is_own_fd())
		flock(own.fd, LOCK_UN);
}

#define SAME_PLACE(member, counter) \
	_Static_assert(offsetof(struct gpupart_counters, member) == (counter) * sizeof(uint64_t), \
		       "the counters are in the order of enum state_counter")
SAME_PLACE(confined, STATE_CONFINED);
SAME_PLACE(widened_cooperative, STATE_WIDENED_COOPERATIVE);
SAME_PLACE(unconfinable_gpu, STATE_UNCONFINABLE_GPU);
SAME_PLACE(next_dropped, STATE_NEXT_DROPPED);
SAME_PLACE(device_launches, STATE_NR_COUNTERS - 1);

void state_page_counters(const struct state_page *page, struct gpupart_counters *c)
{
	uint64_t *n = (uint64_t *)c;

	memset(c, 0, sizeof(*c));
	for (int lane = 0; lane < STATE_NR_LANES; lane++)
		for (int i = 0; i < STATE_NR_COUNTERS; i++) {
			uint64_t count = __atomic_load_n(&page->lanes[lane].counters[i],
							 __ATOMIC_RELAXED);

			n[i] += count < MAX_COUNT ? count : MAX_COUNT;
		}
	for (int i = STATE_FREE + 1; i < STATE_NR_LAUNCHES; i++)
		c->launches += n[i];
}

void gpupart_counters_get(struct gpupart_counters *counters)
{
	state_page_counters(state_page_own, counters);
}
