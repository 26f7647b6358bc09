// SPDX-License-Identifier: MIT
/*
 * Tests how many bytes of environments root reads for another user. The limit is a total number
 * of bytes for each user, independent of the number of processes. Also tests how long a run waits
 * for the lock. If other runs acquire the lock in turn, the run waits until all of them have
 * released the lock. If a single run keeps the lock, the wait ends after a minute.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "tests/tap.h"
#include "cli/target/neighbours.c"
#include "cli/util/process.c"

#define UID		54325
#define NR_PROCESSES	30
#define NR_STRINGS	7
#define STRING		(120 << 10)

static size_t nr_bytes;
static char folder[] = "/tmp/neighbours.XXXXXX";

ssize_t __real_read(int fd, void *into, size_t len);
ssize_t __wrap_read(int fd, void *into, size_t len);

ssize_t __wrap_read(int fd, void *into, size_t len)
{
	ssize_t n = __real_read(fd, into, len);

	nr_bytes += n > 0 ? n : 0;
	return n;
}

/* Other functions of the tested file need these symbols. */
int shown_processes(struct gpupart *gp, struct gpupart_process **list)
{
	(void)gp;
	*list = NULL;
	return 0;
}

int shown_jobs(struct gpupart *gp, struct gpupart_job **list)
{
	(void)gp;
	*list = NULL;
	return 0;
}

bool shown_is_inside(const struct gpupart_job *jobs, int nr, const char *id, const char *around)
{
	(void)jobs;
	(void)nr;
	(void)id;
	(void)around;
	return false;
}

const struct gpupart_job *shown_job_on(const struct gpupart_job *jobs, int nr, const char *id,
				       const char *pci)
{
	(void)jobs;
	(void)nr;
	(void)id;
	(void)pci;
	return NULL;
}

/* All environments of this test have one GPU and one set. */
char *alloc_part(const char *list, char separator, unsigned int n)
{
	(void)separator;
	return n ? NULL : strdup(list);
}

void *alloc_zeroed(size_t nr, size_t size)
{
	return calloc(nr, size);
}

static char said[512], failed[512];

void cmd_note(const char *cmd, const char *fmt, ...)
{
	va_list ap;

	(void)cmd;
	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
}

const char *cmd_name;
struct gpupart *cmd_gp;

int cmd_fail(const char *cmd, int error, const char *fmt, ...)
{
	va_list ap;

	(void)cmd;
	va_start(ap, fmt);
	vsnprintf(failed, sizeof(failed), fmt, ap);
	va_end(ap);
	return error;
}

int state_dir_create(uid_t uid, char *why, size_t len)
{
	(void)uid;
	(void)why;
	(void)len;
	return 0;
}

const char *state_dir_path(uid_t uid, char *path)
{
	(void)uid;
	return strcpy(path, folder);
}

/* The test decides which process holds the lock. */
/* number of later holders; each holds the lock for one second less than a minute */
static unsigned int nr_holders;
static bool is_kept, is_free;
static uint64_t waited_us;

int __wrap_flock(int fd, int operation);
int __wrap_usleep(unsigned int us);

int __wrap_flock(int fd, int operation)
{
	(void)fd;
	(void)operation;
	errno = EWOULDBLOCK;
	return is_free ? 0 : -1;
}

int __wrap_usleep(unsigned int us)
{
	struct timespec times[2] = { { 0 } };
	char path[64];

	waited_us += us;
	if (is_kept || waited_us % 59000000)
		return 0;
	is_free = !nr_holders;
	times[1].tv_sec = nr_holders;
	snprintf(path, sizeof(path), "%s/lock", folder);
	if (nr_holders && nr_holders-- && utimensat(AT_FDCWD, path, times, 0))
		tap_ok(false, "the lock's time is set");
	return 0;
}

static void try_lock(void)
{
	char path[64];
	int status;

	if (!mkdtemp(folder))
		return;
	snprintf(path, sizeof(path), "%s/lock", folder);
	tap_ok(!mkdir(path, 0700), "a folder is in the lock's place");
	status = neighbours_lock();
	tap_ok(!status && strstr(said, "the lock cannot be acquired") &&
		       strstr(said, "lock: Is a directory"),
	       "there can be none: it goes on, and says so: %s", said);
	rmdir(path);
	said[0] = 0;
	is_kept = true;
	status = neighbours_lock();
	tap_ok(status == EXIT_FAILED && strstr(failed, path) && !*said && waited_us >= 60000000,
	       "one keeps it: it fails after %d s: %s", (int)(waited_us / 1000000), failed);
	is_kept = false;
	failed[0] = waited_us = 0;
	nr_holders = 20;
	status = neighbours_lock();
	tap_ok(!status && !*failed && !*said && is_free,
	       "20 have it one after the other, for 59 s each: it waits for all: %d s, %s%s",
	       (int)(waited_us / 1000000), failed, said);
	unlink(path);
	rmdir(folder);
}

/*
 * Starts a process of @uid with @nr long variables. When the process is ready, it writes a byte
 * to its pipe.
 */
static pid_t start(uid_t uid, unsigned int nr)
{
	static char text[NR_STRINGS][STRING];
	char *argv[] = { "neighbours", "wait", NULL }, *envp[NR_STRINGS + 2] = { NULL };
	int fds[2];
	pid_t pid;
	char c;

	for (unsigned int i = 0; i < nr; i++) {
		memset(text[i], 'a' + i, STRING - 1);
		text[i][1] = '=';
		envp[i] = text[i];
	}
	envp[nr] = "GPUPART_SET=0-7";
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fds[1], 1);
		if (setgid(uid) || setuid(uid))
			_exit(1);
		execve("/proc/self/exe", argv, envp);
		_exit(1);
	}
	close(fds[1]);
	if (__real_read(fds[0], &c, 1) != 1)
		tap_ok(false, "a process starts");
	close(fds[0]);
	return pid;
}

int main(int argc, char **argv)
{
	const struct args args = { .cmd = "test" };
	struct neighbours n = { .args = &args, .pci = "none" }, two[2] = { n, n };
	pid_t pids[NR_PROCESSES + 1];
	unsigned int nr_skipped;
	size_t nr_once;

	if (argc > 1 && !strcmp(argv[1], "wait")) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(1, "x", 1);
		pause();
	}
	try_lock();
	if (geteuid()) {
		tap_skip("another user's processes: only as root");
		return tap_done();
	}
	pids[NR_PROCESSES] = start(UID + 1, 0);
	nr_skipped = neighbours_to_be(&n, 1);
	tap_ok(!nr_skipped, "ordinary environments are read");
	for (int i = 0; i < NR_PROCESSES; i++)
		pids[i] = start(UID, NR_STRINGS);
	nr_bytes = 0;
	nr_skipped = neighbours_to_be(&n, 1);
	tap_ok(nr_bytes < MAX_ENVIRONMENTS + (1 << 20) &&
	       nr_skipped == NR_PROCESSES - (MAX_ENVIRONMENTS - 1) / (NR_STRINGS * STRING + 16),
	       "%d environments of %d KiB: %zu KiB are read, %u processes were not",
	       NR_PROCESSES, NR_STRINGS * STRING >> 10, nr_bytes >> 10, nr_skipped);
	nr_once = nr_bytes;
	nr_bytes = 0;
	tap_ok(neighbours_to_be(two, 2) == nr_skipped && nr_bytes == nr_once,
	       "of two GPUs no more is read: %zu KiB", nr_bytes >> 10);
	for (int i = 0; i <= NR_PROCESSES; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return tap_done();
}
