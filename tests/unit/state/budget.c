// SPDX-License-Identifier: MIT
/*
 * Measures the cost of root's scan of another user's folder. It counts the opened files and maps
 * in three cases: a process has many files, many processes have long maps, and there are more
 * files than the scan reads. For files with much content, it measures CPU time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/ledger/file.h"
#include "lib/state/state_page.h"
#include "tests/tap.h"

#define UID 54322
#define NR_FILES 300
#define NR_LEDGERS 2000
#define NR_USERS 20
#define NR_SHARERS 40
#define NR_MAPPINGS 20000
#define NR_ENVIRONMENTS 1000

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_openat(int dir, const char *file, int flags, ...);
int __wrap_openat(int dir, const char *file, int flags, ...);

static unsigned int nr_maps, nr_files, nr_statuses;
static char folder[48] = "/dev/shm/gpupart-54322";

FILE *__wrap_fopen(const char *path, const char *mode)
{
	nr_maps += !!strstr(path, "/maps");
	nr_statuses += !!strstr(path, "/status");
	return __real_fopen(path, mode);
}

int __wrap_openat(int dir, const char *file, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	nr_files++;
	return __real_openat(dir, file, flags, mode);
}

/*
 * Creates a state page of process @pid. Keeps the file open for writing, so that the file is not
 * removed.
 */
static int put_block(int pid, uint64_t name_space, uint64_t start, const char *name)
{
	struct state_page *block = aligned_alloc(_Alignof(struct state_page), sizeof(*block));
	char file[128];
	int fd;

	snprintf(file, sizeof(file), "%s/%d.%llx", folder, pid, (unsigned long long)name_space);
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || !block)
		_exit(1);
	memset(block, 0, sizeof(*block));
	shared_init(&block->header, STATE_LAYOUT, sizeof(*block));
	block->header.pid = pid;
	block->header.start = start;
	block->header.pid_namespace = name_space;
	snprintf(block->header.name, sizeof(block->header.name), "%s", name);
	atomic_store(&block->header.magic, SHARED_MAGIC(SHARED_PROCESS));
	if (write(fd, block, sizeof(*block)) != sizeof(*block))
		_exit(1);
	free(block);
	return fd;
}

static void map_much(void)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page * NR_MAPPINGS, PROT_READ,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	for (size_t i = 0; i < NR_MAPPINGS; i++)
		if (p == MAP_FAILED || mprotect(p + 2 * i * page, page, PROT_NONE))
			_exit(1);
}

/*
 * There is only one process, the first process of a pid namespace. Some files have the same pid
 * in other namespaces.
 */
static int many_files(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	map_much();
	for (int i = 0; i < NR_FILES; i++)
		put_block(1, i + 1, 1, "attack");
	put_block(1, state_dir_pid_namespace(), 1, "attack");
	if (write(*(int *)arg, "x", 1) == 1)
		pause();
	return 0;
}

static __attribute__((noreturn)) int sleeps(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/*
 * The processes share one address space, and each process has a file. Every second file has the
 * true start time.
 */
static int many_sharers(void *arg)
{
	static char stacks[NR_SHARERS][16384] __attribute__((aligned(16)));

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	map_much();
	for (int i = 0; i < NR_SHARERS; i++) {
		int pid = clone(sleeps, stacks[i] + sizeof(stacks[i]), CLONE_VM | SIGCHLD, NULL);

		put_block(pid, state_dir_pid_namespace(), i % 2 ? state_dir_process_start(pid) : 1,
			  i % 2 ? "sharer" : "liar");
	}
	if (write(*(int *)arg, "x", 1) == 1)
		pause();
	return 0;
}

static bool put_too_many(void)
{
	char file[128];
	int fd;

	for (int i = 0; i < STATE_DIR_MAX_FILES + 100; i++) {
		snprintf(file, sizeof(file), "%s/%d.1", folder, i + 1);
		fd = open(file, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || close(fd))
			return false;
	}
	return true;
}

static int too_many(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!put_too_many())
		_exit(1);
	if (write(*(int *)arg, "x", 1) == 1)
		pause();
	return 0;
}

static pid_t begin(int (*attack)(void *arg), bool nested);
static void end(pid_t pid);

/* Ledgers with the maximum number of processes. The files are sparse. */
static int many_slots(void *arg)
{
	struct ledger_header header = { 0 };
	char file[128];
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared_init(&header.shared, LEDGER_LAYOUT, sizeof(header));
	atomic_store(&header.shared.magic, SHARED_MAGIC(SHARED_LEDGER));
	header.shared.uid = UID;
	atomic_store(&header.nr_slots, LEDGER_MAX_SLOTS);
	for (int i = 0; i < NR_LEDGERS; i++) {
		snprintf(header.shared.name, sizeof(header.shared.name), "t%d", i);
		snprintf(file, sizeof(file), "%s/mem-t%d", folder, i);
		fd = open(file, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || write(fd, &header, sizeof(header)) != sizeof(header) ||
		    ftruncate(fd, LEDGER_END_OF(LEDGER_MAX_SLOTS)) || close(fd))
			_exit(1);
	}
	if (write(*(int *)arg, "x", 1) == 1)
		pause();
	return 0;
}

/* Pages and ledgers of a different version. Their GPUs have the maximum number of memory words. */
static int many_words(void *arg)
{
	struct {
		struct shared_header header;
		struct shared_gpu gpus[SHARED_MAX_GPUS];
	} page = { 0 };
	char file[128];
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared_init(&page.header, 4711, sizeof(page));
	page.header.uid = UID;
	atomic_store(&page.header.nr_gpus, SHARED_MAX_GPUS);
	for (int i = 0; i < SHARED_MAX_GPUS; i++)
		page.gpus[i].held = (struct shared_place){ .at = 64, .stride = 8, .nr = 4096 };
	for (int i = 0; i < NR_FILES; i++) {
		page.header.pid = i + 1;
		page.header.pid_namespace = 1;
		atomic_store(&page.header.magic,
			     SHARED_MAGIC(i % 2 ? SHARED_LEDGER : SHARED_PROCESS));
		snprintf(file, sizeof(file), i % 2 ? "%s/mem-t%d" : "%s/%d.1", folder, i + 1);
		fd = open(file, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || write(fd, &page, sizeof(page)) != sizeof(page) ||
		    ftruncate(fd, 1 << 16))
			_exit(1);
	}
	if (write(*(int *)arg, "x", 1) == 1)
		pause();
	return 0;
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Root reads that user's files and root's own tenants. */
static void try_tenants(const char *what, int (*attack)(void *arg))
{
	static struct gpupart_process processes[NR_FILES];
	static struct gpupart_tenant tenants[NR_LEDGERS];
	double begun, lists, looks;
	pid_t pid = begin(attack, false);

	if (!tap_ok(pid > 0, "files: %s", what))
		return;
	begun = cpu_seconds();
	gpupart_process_list(NULL, processes, NR_FILES, sizeof(*processes));
	lists = cpu_seconds();
	gpupart_tenant_list(NULL, tenants, NR_LEDGERS, sizeof(*tenants));
	looks = cpu_seconds();
	tap_ok(lists - begun < 2 && looks - lists < 2,
	       "processes are listed in %.1f s of CPU time, tenants in %.1f s", lists - begun,
	       looks - lists);
	end(pid);
}

/* Executes this program again with the longest possible environment. */
static int many_environments(void *arg)
{
	static char text[100000], *environment[61], number[16];
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	char *argv[] = { "budget", number, NULL };

	memset(text, 'a', sizeof(text) - 1);
	for (int i = 0; i < 60; i++)
		environment[i] = text;
	snprintf(number, sizeof(number), "%d", *(int *)arg);
	fcntl(*(int *)arg, F_SETFD, 0);
	setrlimit(RLIMIT_STACK, &all);
	execve("/proc/self/exe", argv, environment);
	return 1;
}

/* The executed program. Its children share the pages of its environment. */
static int sleep_many(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < NR_ENVIRONMENTS; i++)
		if (!fork())
			sleeps(NULL);
	if (write(fd, "x", 1) == 1)
		pause();
	return 0;
}

static bool is_listed(const char *name)
{
	static struct gpupart_job list[256];
	int nr = gpupart_job_list(NULL, list, 256, sizeof(list[0]));

	while (nr-- > 0)
		if (nr < 256 && !strcmp(list[nr].name, name))
			return true;
	return false;
}

/* Root lists its own jobs. One of these jobs has ended. */
static void try_jobs(void)
{
	pid_t pid = begin(many_environments, false), job = fork();
	struct gpupart_topology *topo;
	char id[GPUPART_JOB_STRLEN];
	struct gpupart_tpcset set;
	struct gpupart *gp;
	double begun, first;
	int nr;

	if (!job) {
		if (gpupart_open(&gp) || gpupart_topology_open(gp, "sample:h200", NULL, &topo))
			_exit(1);
		set = gpupart_topology_all(topo);
		_exit(gpupart_job_begin(gp, "ended", topo, "0000:01:00.0", &set, id) != 0);
	}
	waitpid(job, &nr, 0);
	if (!tap_ok(pid > 0 && !nr, "%d environments of 6 MB, and an ended job", NR_ENVIRONMENTS))
		return;
	begun = cpu_seconds();
	is_listed("");
	first = cpu_seconds() - begun;
	tap_ok(first < 1.5, "jobs are listed in %.1f s of CPU time", first);
	end(pid);
	for (nr = 0; nr < 100 && is_listed("ended"); nr++)
		usleep(200000);
	tap_ok(nr < 100, "after the end of these processes, the job is removed");
}

static uid_t listed = UID;	/* look() looks at this user's processes */

struct seen {
	int named, rest, claims;
};

static struct seen look(const char *name)
{
	static struct gpupart_process list[8192];
	struct seen seen = { 0 };
	char exceeds[64];
	int nr;

	snprintf(exceeds, sizeof(exceeds), "of user %u exceeds", listed);
	nr_maps = nr_files = nr_statuses = 0;
	nr = gpupart_process_list(NULL, list, 8192, sizeof(struct gpupart_process));
	for (int i = 0; i < nr && i < 8192; i++) {
		if (list[i].uid != listed)
			continue;
		seen.named += !strcmp(list[i].name, name);
		if (!list[i].pid && strstr(list[i].problem, exceeds))
			seen.rest++, seen.claims += list[i].limit[0] || list[i].pci[0];
	}
	return seen;
}

static void remove_folder(void)
{
	struct dirent *entry;
	char file[400];
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir))) {
		snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name);
		unlink(file);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
}

/*
 * Starts a process of the user that runs @attack. Returns its pid, or -1 if this is not possible.
 */
static pid_t begin(int (*attack)(void *arg), bool nested)
{
	int fds[2], status;
	char c;
	pid_t pid;

	remove_folder();
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (nested && unshare(CLONE_NEWPID))
			_exit(77);
		if (nested) {
			pid = fork();
			if (pid) {
				close(fds[1]);
				waitpid(pid, &status, 0);
				_exit(0);
			}
		}
		if (setgid(UID) || setuid(UID) || mkdir(folder, 0700))
			_exit(1);
		_exit(attack(&fds[1]));
	}
	close(fds[1]);
	if (read(fds[0], &c, 1) != 1) {
		waitpid(pid, &status, 0);
		pid = -1;
	}
	close(fds[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	remove_folder();
}

static void name_folder(unsigned int uid)
{
	snprintf(folder, sizeof(folder), "/dev/shm/gpupart-%u", uid);
}

/*
 * Tests a user with many processes. Each process has a file, and the pid namespace of this file
 * does not exist.
 */
static void try_users(void)
{
	unsigned int nr_one = 0;
	int fds[NR_USERS];

	for (int i = 0; i < NR_USERS; i++) {
		name_folder(UID + 1 + i);
		remove_folder();
		if (mkdir(folder, 0700))
			_exit(1);
		fds[i] = put_block(1, i + 1, 1, "attack");
		if (fchown(fds[i], UID + 1 + i, -1) || chown(folder, UID + 1 + i, -1))
			_exit(1);
		look("");
		nr_one = i ? nr_one : nr_statuses;
	}
	tap_ok(nr_one && nr_statuses < NR_USERS / 2 * nr_one,
	       "a folder of another namespace: %u processes are asked; %d such: %u", nr_one,
	       NR_USERS, nr_statuses);
	for (int i = 0; i < NR_USERS; i++) {
		close(fds[i]);
		name_folder(UID + 1 + i);
		remove_folder();
	}
	name_folder(UID);
}

/*
 * In some containers, root has uid 0 of the host. Such containers can create files in root's own
 * folder.
 */
static void try_roots_own(void)
{
	struct seen seen;

	listed = 0;
	name_folder(0);
	if (tap_ok((!mkdir(folder, 0700) || errno == EEXIST) && put_too_many(),
		   "root's own folder of %d files", STATE_DIR_MAX_FILES + 100)) {
		seen = look("");
		tap_ok(nr_files <= STATE_DIR_MAX_FILES && seen.rest == 1 && !seen.claims,
		       "%u are opened, and the list says so", nr_files);
		seen = look("");
		tap_ok(!seen.rest, "dead ones were removed: the next look is whole");
	}
	listed = UID;
	name_folder(UID);
}

int main(int argc, char **argv)
{
	struct seen seen;
	pid_t pid;

	if (argc > 1)
		return sleep_many(atoi(argv[1]));
	if (geteuid()) {
		tap_skip("another user's folder: only as root");
		return tap_done();
	}
	pid = begin(many_files, true);
	if (pid < 0) {
		tap_skip("no pid namespace can be made here");
	} else {
		seen = look("attack");
		tap_ok(nr_maps <= 1, "%d files of one process: its maps are opened %u times",
		       NR_FILES, nr_maps);
		tap_ok(!seen.named, "and none is taken for its block");
		end(pid);
	}
	pid = begin(many_sharers, false);
	if (tap_ok(pid > 0, "%d processes with one memory of %d mappings", NR_SHARERS,
		   2 * NR_MAPPINGS)) {
		seen = look("sharer");
		tap_ok(nr_maps < NR_SHARERS / 2, "maps are opened %u times", nr_maps);
		tap_ok(seen.rest == 1, "the list says that the user has more");
		tap_ok(seen.named >= NR_SHARERS / 2 - (int)nr_maps,
		       "those whose maps were not read are listed by their start time: %d",
		       seen.named);
		tap_ok(look("liar").named == 0, "and not with another one");
		end(pid);
	}
	pid = begin(too_many, false);
	if (tap_ok(pid > 0, "a folder of %d files", STATE_DIR_MAX_FILES + 100)) {
		seen = look("");
		tap_ok(nr_files <= STATE_DIR_MAX_FILES, "%u are opened", nr_files);
		tap_ok(seen.rest == 1 && !seen.claims,
		       "the list says that the user has more, and claims no TPCs for it");
		seen = look("");
		tap_ok(!seen.rest, "dead ones were removed: the next look is whole");
		end(pid);
	}
	try_roots_own();
	try_users();
	try_tenants("2000 ledgers of 4096 slots", many_slots);
	try_tenants("300 of another version, with much to add up", many_words);
	try_jobs();
	return tap_done();
}
