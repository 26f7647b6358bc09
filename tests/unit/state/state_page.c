// SPDX-License-Identifier: MIT
/*
 * Tests a reader that reads state pages of another user. An invalid page must not block or crash
 * the reader.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/state/state_page.h"
#include "tests/tap.h"

static struct gpupart *gp;
static char folder[64], path[128];

/* Returns the number of entries with this process's pid in the list. */
static int times_listed(void)
{
	static struct gpupart_process list[256];
	int nr = gpupart_process_list(gp, list, 256, sizeof(struct gpupart_process)), mine = 0;

	for (int i = 0; i < nr && i < 256; i++)
		mine += list[i].pid == getpid() && !strcmp(list[i].name, "job");
	return nr < 0 ? nr : mine;
}

static void too_long(int signal)
{
	static const char words[] = "not ok - the reader waits for ever\n";

	(void)signal;
	unlink(path);
	if (write(1, words, sizeof(words) - 1) < 0)
		_exit(2);
	_exit(1);
}

/* Creates a file in the folder. No process of this test belongs to this file. */
static int put_file(const char *name, size_t size)
{
	char file[128];
	int fd;

	snprintf(file, sizeof(file), "%s/%s", folder, name);
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	return fd < 0 || ftruncate(fd, size) || close(fd);
}

/* There are more threads than lanes, so some threads share lane 0. */
#define NR_THREADS	(2 * STATE_NR_LANES)
#define NR_COUNTS	20000

static pthread_barrier_t all_there;

static void *count_some(void *unused)
{
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < NR_COUNTS; i++)
		state_count(STATE_WIDENED_CLUSTER);
	/* No thread ends before all threads have counted. So no lane becomes free before that. */
	pthread_barrier_wait(&all_there);
	return unused;
}

static uint64_t counted(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters.widened_cluster;
}

static void test_threads(void)
{
	pthread_t threads[NR_THREADS];
	uint64_t before = counted();

	for (int round = 1; round <= 2; round++) {
		int nr = 0;

		pthread_barrier_init(&all_there, NULL, NR_THREADS);
		while (nr < NR_THREADS && !pthread_create(&threads[nr], NULL, count_some, NULL))
			nr++;
		if (nr < NR_THREADS) {
			tap_skip("only %d threads", nr);
			exit(tap_done());
		}
		while (nr)
			pthread_join(threads[--nr], NULL);
		tap_ok(counted() - before == (uint64_t)round * NR_THREADS * NR_COUNTS,
		       "%d threads lose no count, round %d", NR_THREADS, round);
		pthread_barrier_destroy(&all_there);
	}
	state_count(STATE_WIDENED_CLUSTER);
	tap_ok(state_lane, "a lane came free when its thread ended");
}

static void test_child(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		bool fresh = !counted();

		state_count(STATE_WIDENED_CLUSTER);
		_exit(!(fresh && counted() == 1));
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	tap_ok(!status, "the child of a fork counts from 0, its parent's threads gone");
}

/*
 * Tests that the child of a fork counts in a separate page. The counts of its parent must not
 * change.
 */
static bool child_counts_apart(bool memory)
{
	uint64_t counts = counted();
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		bool fresh = !counted();

		state_count(STATE_WIDENED_CLUSTER);
		_exit(!fresh || counted() != 1 ||
		      (!memory && gpupart_process_publish(NULL, "job") != -ENOMEM));
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	return !status && counts && counted() == counts;
}

#define NR_MAPPINGS	200000

static void test_child_without_memory(void)
{
	const size_t len = (size_t)NR_MAPPINGS * 4096;
	char *map = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct rlimit before, less;
	int nr = 0;
	bool apart;

	if (getenv("UNDER_VALGRIND")) {
		tap_skip("valgrind itself needs memory and mappings");
		if (map != MAP_FAILED)
			munmap(map, len);
		return;
	}
	getrlimit(RLIMIT_AS, &before);
	less = before;
	less.rlim_cur = 1 << 20;
	setrlimit(RLIMIT_AS, &less);
	apart = child_counts_apart(false);
	setrlimit(RLIMIT_AS, &before);
	tap_ok(apart, "one that may allocate no memory does so, too");
	/* Each page with other rights is a mapping, up to vm.max_map_count. */
	while (map != MAP_FAILED && nr < NR_MAPPINGS &&
	       !mprotect(map + nr * 4096l, 4096, PROT_READ))
		nr += 2;
	apart = child_counts_apart(true);
	munmap(map, len);
	if (nr < NR_MAPPINGS)
		tap_ok(apart, "and one with too many mappings: %d", nr);
	else
		tap_skip("vm.max_map_count is above %d", nr);
}

/* Replaces the page's descriptor by a file of the program, like closefrom() and open(). */
static int take_descriptor(void)
{
	char link[64], to[256];
	ssize_t len;

	for (int fd = 3; fd < 256; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = 0;
		if (!strncmp(to, folder, strlen(folder)) && to[strlen(folder)])
			return dup2(STDERR_FILENO, fd);
	}
	return -1;
}

static void test_descriptor(void)
{
	int status = -1, fd;
	pid_t pid = fork();

	if (!pid) {
		if (gpupart_process_publish(gp, "child"))
			_exit(2);
		fd = take_descriptor();
		if (fd < 0)
			_exit(3);
		pid = fork();
		if (!pid)
			_exit(fcntl(fd, F_GETFD) < 0);
		if (waitpid(pid, &status, 0) != pid)
			_exit(4);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
	}
	waitpid(pid, &status, 0);
	tap_ok(!status, "a program's descriptor in the place of the block's is kept by a fork: %d",
	       WEXITSTATUS(status));
}

static void test_lock(void)
{
	char file[256], c;
	struct timespec begin, end;
	int told[2];
	pid_t pid;

	snprintf(file, sizeof(file), "%s/%d.%llx", folder, getpid(),
		 (unsigned long long)state_dir_pid_namespace());
	if (!tap_ok(!pipe(told), "a pipe"))
		return;
	pid = fork();
	if (!pid) {
		int fd = open(file, O_RDWR);

		if (fd < 0 || flock(fd, LOCK_EX) || write(told[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	close(told[1]);
	if (!tap_ok(read(told[0], &c, 1) == 1, "another process holds the block"))
		return;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	state_page_lock();
	state_page_unlock();
	clock_gettime(CLOCK_MONOTONIC, &end);
	tap_ok(end.tv_sec - begin.tv_sec >= 4 && end.tv_sec - begin.tv_sec < 20,
	       "it is passed by after a while");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	state_page_lock();
	state_page_unlock();
	clock_gettime(CLOCK_MONOTONIC, &end);
	tap_ok(end.tv_sec - begin.tv_sec < 4, "when it is gone there is nothing to wait for");
}

/* ----------------------------------------------------------------- owner of a page */

/* Returns the number of entries with @name. Stores the pid and uid of the entry. */
static int times_named(const char *name, struct gpupart_process *process)
{
	static struct gpupart_process list[4096];
	int nr = gpupart_process_list(gp, list, 4096, sizeof(struct gpupart_process)), times = 0;

	for (int i = 0; i < nr && i < 4096; i++)
		if (!strcmp(list[i].name, name)) {
			times++;
			*process = list[i];
		}
	return nr < 0 ? nr : times;
}

enum { STAYS, CLOSES, EXECS, DIES, IS_OTHER };

static const char *const acts[] = {
	[STAYS] = "stays", [CLOSES] = "closed all its descriptors",
	[EXECS] = "is another program", [DIES] = "is dead, its parent does not ask",
	[IS_OTHER] = "is another user's",
};

/*
 * Starts a child that publishes a state page as @name. The child writes to *told and then does
 * @act.
 */
static pid_t start_shown(const char *name, int act, int *told)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (gpupart_process_publish(gp, name))
			_exit(1);
		if (act == IS_OTHER && setuid(54321))
			_exit(1);
		/*
		 * The other end of the pipe sees either the byte, or the end of file after an exec
		 * or an exit.
		 */
		for (int i = 3; act == CLOSES && i < 1024; i++)
			if (i != fds[1])
				close(i);
		if (act == EXECS)
			execlp("sleep", "sleep", "30", NULL);
		if (act != DIES && write(fds[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(fds[1]);
	*told = fds[0];
	return pid;
}

static void wait_told(int told)
{
	char c;

	if (read(told, &c, 1) < 0)
		tap_ok(false, "a child tells");
	close(told);
}

static int end_child(pid_t pid)
{
	return kill(pid, SIGKILL) || waitpid(pid, NULL, 0) != pid;
}

static void block_path(char *file, size_t len, pid_t pid, uint64_t name_space)
{
	snprintf(file, len, "%s/%d.%llx", folder, pid, (unsigned long long)name_space);
}

static void test_acts(void)
{
	for (int act = STAYS; act <= IS_OTHER; act++) {
		bool lives = act == STAYS || act == CLOSES || act == IS_OTHER;
		struct gpupart_process process;
		char file[128];
		int told;
		pid_t pid;

		if (act == IS_OTHER && geteuid()) {
			tap_skip("another user: only as root");
			continue;
		}
		pid = start_shown("act", act, &told);
		wait_told(told);
		/*
		 * The status of the child may become available shortly after its descriptors are
		 * closed.
		 */
		for (int i = 0; i < 1000 && act == DIES && times_named("act", &process); i++)
			usleep(1000);
		tap_ok(times_named("act", &process) == lives &&
			       (!lives || (process.pid == pid && process.uid == geteuid())),
		       "one that %s is %slisted", acts[act], lives ? "" : "not ");
		block_path(file, sizeof(file), pid, state_dir_pid_namespace());
		tap_ok(!access(file, F_OK) == lives, "its block is %s", lives ? "kept" : "removed");
		tap_ok(!end_child(pid) && !times_named("act", &process) && access(file, F_OK),
		       "and both are gone with it");
	}
}

/* The child is in a new pid namespace, and the list is made outside the namespace. */
static void test_elsewhere(void)
{
	struct gpupart_process process;
	int told, fds[2], status;
	char seen = 0;
	pid_t pid;

	if (pipe(fds))
		return;
	pid = fork();
	if (!pid) {
		pid_t inner;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWPID))
			_exit(77);
		inner = start_shown("elsewhere", CLOSES, &told);
		wait_told(told);
		if (inner < 0 || write(fds[1], "x", 1) != 1)
			_exit(1);
		waitpid(inner, NULL, 0);
		_exit(0);
	}
	close(fds[1]);
	if (read(fds[0], &seen, 1) != 1) {
		waitpid(pid, &status, 0);
		tap_skip("no pid namespace can be made here");
	} else if (tap_ok(times_named("elsewhere", &process) == 1 && process.pid > 0,
			  "one of another pid namespace, its descriptors closed, is listed")) {
		kill(process.pid, SIGKILL);
		waitpid(pid, &status, 0);
		tap_ok(!times_named("elsewhere", &process), "and not when it is gone");
	}
	close(fds[0]);
}

/* Creates a page that claims to belong to @pid. Another user could create the same page. */
static int forge(const char *file, pid_t pid, const char *name)
{
	struct state_page *block = aligned_alloc(_Alignof(struct state_page), sizeof(*block));
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (!block || fd < 0)
		return -1;
	memset(block, 0, sizeof(*block));
	shared_init(&block->header, STATE_LAYOUT, sizeof(*block));
	block->header.pid = pid;
	block->header.start = state_dir_process_start(pid);
	block->header.pid_namespace = state_dir_pid_namespace();
	snprintf(block->header.name, sizeof(block->header.name), "%s", name);
	atomic_store(&block->header.magic, SHARED_MAGIC(SHARED_PROCESS));
	if (write(fd, block, sizeof(*block)) != sizeof(*block))
		return -1;
	free(block);
	return fd;
}

/*
 * Creates a file of user @uid. The file claims to belong to process @of. Keeps the file open and
 * locked.
 */
static pid_t start_forger(uid_t uid, pid_t of, bool locks, int *told)
{
	char path_of[128];
	int fds[2], fd;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(path_of, sizeof(path_of), "/dev/shm/gpupart-%u", uid);
		if (setgid(uid) || setuid(uid) || (mkdir(path_of, 0700) && errno != EEXIST))
			_exit(1);
		snprintf(path_of, sizeof(path_of), "/dev/shm/gpupart-%u/%d.%llx", uid,
			 of ? of : getpid(), (unsigned long long)state_dir_pid_namespace());
		fd = forge(path_of, of ? of : getpid(), "forged");
		if (fd < 0 || (locks && fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK })))
			_exit(1);
		if (write(fds[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(fds[1]);
	*told = fds[0];
	return pid;
}

static void remove_folder(uid_t uid)
{
	char of[64], file[400];
	struct dirent *entry;
	DIR *dir;

	snprintf(of, sizeof(of), "/dev/shm/gpupart-%u", uid);
	dir = opendir(of);
	while (dir && (entry = readdir(dir))) {
		snprintf(file, sizeof(file), "%s/%s", of, entry->d_name);
		unlink(file);
	}
	if (dir)
		closedir(dir);
	rmdir(of);
}

static void test_forged(void)
{
	static const char *const aliases[] = { "gpupart-00", "gpupart-+0", "gpupart- 0",
					       "gpupart-4294967296" };
	const uid_t uid = 54321;
	struct gpupart_process process;
	pid_t victim, forger;
	int told;

	block_path(path, sizeof(path), 1, state_dir_pid_namespace());
	close(forge(path, getppid(), "forged"));
	tap_ok(!times_named("forged", &process) && access(path, F_OK),
	       "a page without a process has no owner, and is removed");
	if (geteuid()) {
		tap_skip("other users' blocks: only as root");
		return;
	}
	victim = start_shown("victim", STAYS, &told);
	wait_told(told);
	for (int locks = 0; locks < 2; locks++) {
		forger = start_forger(uid, victim, locks, &told);
		wait_told(told);
		tap_ok(!times_named("forged", &process) && times_named("victim", &process) == 1 &&
			       process.uid == 0,
		       "nor is another user's that says it is a process of root's%s",
		       locks ? ", and is locked" : "");
		end_child(forger);
	}
	forger = start_forger(uid, 0, true, &told);
	wait_told(told);
	tap_ok(times_named("forged", &process) == 1 && process.pid == forger && process.uid == uid,
	       "one that another user's process has is listed as that user's");
	end_child(forger);
	remove_folder(uid);
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		snprintf(path, sizeof(path), "/dev/shm/%s", aliases[i]);
		mkdir(path, 0700);
		tap_ok(times_named("victim", &process) == 1, "a folder \"%s\" belongs to no user",
		       aliases[i]);
		rmdir(path);
	}
	end_child(victim);
}

int main(void)
{
	signal(SIGALRM, too_long);
	alarm(250);
	snprintf(folder, sizeof(folder), "/dev/shm/gpupart-%u", geteuid());
	struct gpupart_process self;

	if (gpupart_open(&gp) || gpupart_process_publish(gp, "job")) {
		tap_skip("nothing can be published here: %s", gp ? gpupart_error(gp) : "");
		return tap_done();
	}
	tap_ok(times_listed() == 1, "this process is listed");
	tap_ok(!gpupart_process_publish(gp, "other") && times_listed() == 1 &&
	       times_named("job", &self) == 1 && self.pid == getpid() &&
	       !times_named("other", &self), "under its first name, whatever a second call says");
	state_count(STATE_CONFINED);
	state_count(STATE_FREE);
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	tap_ok(counters.launches == 2 && counters.confined == 1,
	       "counts are kept when it is shown");
	test_threads();
	test_child();
	test_child_without_memory();
	test_descriptor();
	test_lock();
	test_acts();
	test_elsewhere();
	test_forged();

	snprintf(path, sizeof(path), "%s/1-pipe", folder);
	unlink(path);
	if (tap_ok(!mkfifo(path, 0600), "a pipe is made"))
		tap_ok(times_listed() == 1, "a pipe without a writer does not block the reader");
	unlink(path);
	tap_ok(!put_file("1-empty", 0) && !put_file("1-zero", sizeof(struct state_page)) &&
	       !put_file("1-long", sizeof(struct state_page) + 1) && times_listed() == 1,
	       "files that are no blocks are passed over");
	for (const char *const *name = (const char *const[]){ "1-empty", "1-zero", "1-long", NULL };
	     *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", folder, *name);
		tap_ok(!unlink(path), "and left alone: %s", *name);
	}
	gpupart_close(gp);
	return tap_done();
}
