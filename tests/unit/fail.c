// SPDX-License-Identifier: MIT
/*
 * Tests the library's behaviour when an allocation or a system call fails. The test makes the
 * first call fail, then the second call, and so on, until every call has failed one time. The
 * test is linked with --wrap, so that this file receives all calls of the library. After each
 * failed call, the library must report an error or work without the result. No memory or
 * descriptor may leak. After the test, everything must work again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/ledger/ledger.h"
#include "lib/stat/shared_memory.h"
#include "lib/state/process.h"
#include "lib/state/state_page.h"
#include "lib/topo/topology.h"
#include "tests/ledger_leave.h"
#include "tests/tap.h"

#define PCI "0000:0d:00.0"

/* ---------------------------------------------------------------- calls that can fail */

/* This data is shared with children, because a scenario may continue in a child. */
static struct faults {
	unsigned int seen;	/* number of calls so far that can fail */
	/* the call with this number fails, counted from 1; 0: no call fails */
	unsigned int at;
	bool system;		/* system calls fail, not allocations */
	char which[32];		/* name of the call that failed */
} *faults;

#define MAX_LIVE 4096

/* blocks that this file allocated and did not free */
static void *live[MAX_LIVE];

static bool fails(const char *which, bool system)
{
	if (!faults || faults->system != system || ++faults->seen != faults->at)
		return false;
	snprintf(faults->which, sizeof(faults->which), "%s", which);
	return true;
}

static void *note(void *memory)
{
	for (int i = 0; memory && i < MAX_LIVE; i++)
		if (!live[i]) {
			live[i] = memory;
			break;
		}
	return memory;
}

static void forget(void *memory)
{
	for (int i = 0; memory && i < MAX_LIVE; i++)
		if (live[i] == memory) {
			live[i] = NULL;
			break;
		}
}

static unsigned int nr_live(void)
{
	unsigned int nr = 0;

	for (int i = 0; i < MAX_LIVE; i++)
		nr += live[i] != NULL;
	return nr;
}

/*
 * Wraps the function "result name(args)". If the call fails, errno is @err and the result is @bad.
 */
#define ALLOCATES(name, arguments, values)                \
	void *__real_##name arguments;                    \
	void *__wrap_##name arguments;                    \
	void *__wrap_##name arguments                     \
	{                                                 \
		if (fails(#name, false)) {                \
			errno = ENOMEM;                   \
			return NULL;                      \
		}                                         \
		return note(__real_##name values);        \
	}

ALLOCATES(malloc, (size_t size), (size))
ALLOCATES(calloc, (size_t nr, size_t size), (nr, size))
ALLOCATES(aligned_alloc, (size_t to, size_t size), (to, size))
ALLOCATES(strdup, (const char *text), (text))
ALLOCATES(strndup, (const char *text, size_t len), (text, len))

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);

void *__wrap_realloc(void *memory, size_t size)
{
	if (fails("realloc", false)) {
		errno = ENOMEM;
		return NULL;
	}
	forget(memory);
	return note(__real_realloc(memory, size));
}

void __wrap_free(void *memory)
{
	forget(memory);
	__real_free(memory);
}

#define CALLS_SYSTEM(type, name, arguments, values, bad, err) \
	type __real_##name arguments;                         \
	type __wrap_##name arguments;                         \
	type __wrap_##name arguments                          \
	{                                                     \
		if (fails(#name, true)) {                     \
			errno = err;                          \
			return bad;                           \
		}                                             \
		return __real_##name values;                  \
	}

CALLS_SYSTEM(ssize_t, read, (int fd, void *to, size_t len), (fd, to, len), -1, EIO)
CALLS_SYSTEM(ssize_t, write, (int fd, const void *from, size_t len), (fd, from, len), -1, ENOSPC)
CALLS_SYSTEM(ssize_t, pread, (int fd, void *to, size_t len, off_t at), (fd, to, len, at), -1, EIO)
CALLS_SYSTEM(ssize_t, pwrite, (int fd, const void *from, size_t len, off_t at),
	     (fd, from, len, at), -1, ENOSPC)
CALLS_SYSTEM(void *, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t offset),
	     (at, len, prot, flags, fd, offset), MAP_FAILED, ENOMEM)
CALLS_SYSTEM(int, madvise, (void *at, size_t len, int advice), (at, len, advice), -1, EINVAL)
CALLS_SYSTEM(int, ftruncate, (int fd, off_t len), (fd, len), -1, EFBIG)
CALLS_SYSTEM(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EPERM)
CALLS_SYSTEM(int, posix_fallocate, (int fd, off_t at, off_t len), (fd, at, len), ENOSPC,
	     ENOSPC)
CALLS_SYSTEM(int, memfd_create, (const char *name, unsigned int flags), (name, flags), -1,
	     EMFILE)
CALLS_SYSTEM(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, EROFS)
CALLS_SYSTEM(int, renameat, (int from, const char *old, int to, const char *new),
	     (from, old, to, new), -1, ENOSPC)
CALLS_SYSTEM(DIR *, opendir, (const char *path), (path), NULL, EMFILE)
CALLS_SYSTEM(DIR *, fdopendir, (int fd), (fd), NULL, ENOMEM)
CALLS_SYSTEM(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
CALLS_SYSTEM(ssize_t, readlink, (const char *path, char *to, size_t len), (path, to, len), -1,
	     EACCES)

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);

/* The compiler may read uninitialized values if the result does not depend on them. */
int __wrap_fstat(int fd, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	if (fails("fstat", true)) {
		errno = EIO;
		return -1;
	}
	return __real_fstat(fd, st);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
	if (fails("open", true)) {
		errno = EMFILE;
		return -1;
	}
	return __real_open(path, flags, 0600);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	if (fails("openat", true)) {
		errno = EMFILE;
		return -1;
	}
	return __real_openat(dir, path, flags, 0600);
}

/* ---------------------------------------------------------------------- scenarios */

static struct gpupart *gp;
static struct gpupart_topology *board;	/* created while no call fails */
static char tenant[64];

static int capture_read_and_written(void)
{
	struct gpupart_topology *topo;
	char *text;
	int err = gpupart_topology_open(gp, "tests/data/gh100-h200-e/capture.txt", NULL, &topo);

	if (err)
		return err;
	err = gpupart_topology_capture(gp, topo, "words", &text);
	if (!err)
		free(text);
	gpupart_topology_close(topo);
	return err;
}

static int sample_opened(void)
{
	struct gpupart_topology *topo;
	int err = gpupart_topology_open(gp, "sample:h200", NULL, &topo);

	/* The library searches its own folder, which is the folder of this test. */
	if (!err)
		gpupart_topology_close(topo);
	return err == -ENOENT ? 0 : err;
}

static int plan_made(void)
{
	static const struct gpupart_demand demands[] = {
		{ .name = "a", .min_tpcs = 8, .gpcs = true, .apart = "b" },
		{ .name = "b", .min_tpcs = 9, .spread = true },
		{ .name = "c", .min_tpcs = 4, .cluster = 4 },
	};
	static struct gpupart_plan plan;

	return gpupart_plan_make(gp, board, NULL, demands, 3, &plan);
}

static int plan_refused(void)
{
	static const struct gpupart_demand demands[] = {
		{ .name = "a", .min_tpcs = 40, .apart = "b" }, { .name = "b", .min_tpcs = 40 },
	};
	static struct gpupart_plan plan;
	int err = gpupart_plan_make(gp, board, NULL, demands, 2, &plan);

	return err == -ENOSPC ? 0 : err ? err : -EPROTO;
}

static int set_parsed(void)
{
	struct gpupart_tpcset set;

	return gpupart_set_parse(gp, board, "gpc:0+ugpu:1+1-3", &set);
}

static int tenant_joined(void)
{
	static struct gpupart_tenant list[4];
	struct ledger *ledger;
	int gpu, nr, err = ledger_join(tenant, &ledger);

	if (err)
		return err;
	gpu = ledger_gpu(ledger, PCI);
	if (gpu >= 0) {
		err = ledger_set_quota(ledger, gpu, 1000, NULL);
		if (!err)
			err = ledger_charge(ledger, gpu, 400);
		ledger_used(ledger, gpu);
		if (ledger_used_own(ledger, gpu) != (err ? 0 : 400))
			err = 1;
	}
	nr = gpupart_tenant_list(gp, list, 4, sizeof(struct gpupart_tenant));
	ledger_leave(ledger, true);
	return gpu < 0 ? gpu : err ? err : nr < 0 ? nr : 0;
}

static int processes_listed(void)
{
	static struct gpupart_process list[4], gpus[4];
	int nr = gpupart_process_list(gp, list, 4, sizeof(struct gpupart_process)), on = 0;

	for (int i = 0; i < nr && i < 4 && on >= 0; i++)
		on = gpupart_process_gpu_list(gp, &list[i], gpus, 4,
					      sizeof(struct gpupart_process));
	return nr < 0 ? nr : on < 0 ? on : 0;
}

/* A process cannot remove its state page. So each time, a new process makes a state page. */
static int published(void)
{
	static struct gpupart_gpu_info info = { .pci = PCI, .source = "rm" };
	int status = 1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		int err = state_add_gpu(&info, 1) ? 0 : -ENOMEM;

		if (!err)
			err = state_page_publish("name", "");
		if (!err && !process_list_own(NULL, 0))
			err = -ENOENT;
		exit(err < 0 ? 2 : err);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status) == 2 ? -EIO : WEXITSTATUS(status);
}

static int stat_shared(void)
{
	struct memfd_head *head = NULL;
	struct gpupart_stat *stat;
	const char *id;
	int err = gpupart_stat_open(gp, &stat, &id);

	if (err)
		return err;
	err = memfd_map(gp, id, STAT_NAME, STAT_MAGIC, sizeof(struct stat_memory), &head);
	gpupart_stat_close(stat);
	return err;
}

static int job_begun(void)
{
	char id[GPUPART_JOB_STRLEN], path[200];
	struct gpupart_tpcset set = { { 0xf } };
	static struct gpupart_job list[4];
	int err = gpupart_job_begin(gp, "fail-test", board, PCI, &set, id);

	if (err)
		return err;
	gpupart_job_list(gp, list, 4, sizeof(struct gpupart_job));
	set.allowed[0] = 3;
	err = gpupart_job_limit_set(gp, id, &set, NULL);
	snprintf(path, sizeof(path), "/dev/shm/gpupart-%u/job-%s", geteuid(), id);
	unlink(path);
	return err;
}

static int gpus_listed(void)
{
	static struct gpupart_gpu_info list[4];
	int err = gpupart_gpu_list(gp, NULL, list, 4, sizeof(struct gpupart_gpu_info));

	/* "No driver" and an empty answer are valid results here. */
	return err >= 0 || err == -ENODEV || err == -EACCES || err == -EOPNOTSUPP ? 0 : err;
}

/* ------------------------------------------------------------------------- loop */

static unsigned int nr_descriptors(void)
{
	unsigned int nr = 0;

	for (int fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/*
 * Makes each call of @what fail one time. Returns the number of calls. If a check failed, prints
 * a message and returns -1.
 */
static int walk(const char *what, int (*scenario)(void), bool system)
{
	unsigned int descriptors = nr_descriptors(), memory = nr_live(), at;
	bool good = true;

	faults->system = system;
	for (at = 1; good && at < 5000; at++) {
		int err;

		gp->error[0] = 0;
		faults->seen = 0;
		faults->which[0] = 0;
		faults->at = at;
		err = scenario();
		faults->at = 0;
		/* All calls that can fail have failed. */
		if (!faults->which[0])
			break;
		good = err <= 0 && nr_descriptors() == descriptors && nr_live() == memory;
		if (!good)
			printf("# %s: %s (%u): %d '%s', %u of %u descriptors, %u of %u in memory\n",
			       what, faults->which, at, err, gp->error, nr_descriptors(),
			       descriptors, nr_live(), memory);
	}
	return good && !scenario() ? (int)at - 1 : -1;
}

static void check(const char *what, int (*scenario)(void))
{
	int nr = walk(what, scenario, false);

	tap_ok(nr >= 0, "%s: each of %d allocations failed once", what, nr);
	nr = walk(what, scenario, true);
	tap_ok(nr >= 0, "%s: each of %d calls of the system failed once", what, nr);
}

int main(void)
{
	/*
	 * Before the test, each scenario runs one time. In this run, libc allocates the memory
	 * that it keeps.
	 */
	struct faults *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	snprintf(tenant, sizeof(tenant), "test-fail-%d", getpid());
	if (shared == MAP_FAILED || gpupart_open(&gp) ||
	    gpupart_topology_open(gp, "tests/data/gh100-h200-e/capture.txt", NULL, &board))
		return 1;
	tap_ok(!tenant_joined() && !processes_listed() && !job_begun(),
	       "without a fault all goes well");
	faults = shared;
	check("a capture, read and written", capture_read_and_written);
	check("a sample", sample_opened);
	check("a plan", plan_made);
	check("a plan that is refused", plan_refused);
	check("a set", set_parsed);
	check("a tenant", tenant_joined);
	check("processes", processes_listed);
	check("a block that is shown", published);
	check("stat's memory", stat_shared);
	check("a job", job_begun);
	check("the GPUs", gpus_listed);
	gpupart_topology_close(board);
	gpupart_close(gp);
	return tap_done();
}
