// SPDX-License-Identifier: MIT
/*
 * Tests a scan of a process's descendants. It tests the results of the scan, and the number of
 * opened files of /proc.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "tests/tap.h"
#include "cli/util/process.c"
#include "cli/start/witness.c"

#define DEPTH 40
#define NR_LEAVES 100
#define OTHER_USER 4711

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

static unsigned int nr_opened, nr_opened_of_chain;
static pid_t top;	/* the first process of the chain, and its process group */
static int lost;	/* this process cannot be read */

FILE *__wrap_fopen(const char *path, const char *mode)
{
	int pid = 0;

	nr_opened++;
	if (sscanf(path, "/proc/%d/", &pid) == 1 && pid == lost)
		return NULL;
	nr_opened_of_chain += pid && getpgid(pid) == top;
	return __real_fopen(path, mode);
}

static unsigned int nr_processes(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned int nr = 0;

	while (proc && (entry = readdir(proc)))
		nr += atoi(entry->d_name) > 0;
	if (proc)
		closedir(proc);
	return nr;
}

static void __attribute__((noreturn)) stay(int ready)
{
	if (write(ready, "", 1) == 1)
		for (;;)
			pause();
	_exit(0);
}

static void *stay_in_thread(void *ready)
{
	stay(*(int *)ready);
}

static void map_libcuda(void)
{
	char dir[] = "/tmp/gpupart-XXXXXX", path[64];
	int fd;

	if (!mkdtemp(dir))
		return;
	snprintf(path, sizeof(path), "%s/libcuda.so.1", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 4096) ||
	    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		printf("# %s cannot be mapped\n", path);
	unlink(path);
	rmdir(dir);
}

/*
 * Creates a chain of DEPTH processes, in which each process is a child of the previous process.
 * The last process has NR_LEAVES children, and its main thread ends. Two of these children have
 * libcuda: one child runs this program, and one child runs a copy of this program.
 */
static void __attribute__((noreturn)) chain(int ready, const char *other)
{
	pthread_t thread;
	char fd[16];

	for (int i = 1; i < DEPTH; i++)
		if (fork())
			stay(ready);
	for (int i = 0; i < NR_LEAVES; i++)
		if (!fork()) {
			if (!i)
				map_libcuda();
			if (i == 1) {
				snprintf(fd, sizeof(fd), "%d", ready);
				execl(other, other, fd, NULL);
			}
			stay(ready);
		}
	if (!pthread_create(&thread, NULL, stay_in_thread, &ready))
		syscall(SYS_exit, 0);
	_exit(1);
}

static void become_user(int sig)
{
	(void)sig;
	if (seteuid(0))
		_exit(1);
}

static uid_t owner(int pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	return stat(path, &st) ? (uid_t)-1 : st.st_uid;
}

/* A process of another user becomes a process of this user, which is root. */
static void check_owner(int ready[2], const char *other, int root)
{
	static struct witness witness;
	char fd[16], byte, *env[] = { "GPUPART_REPORT=this", NULL };
	pid_t pid;

	if (geteuid()) {
		printf("# not root: no process of another user\n");
		return;
	}
	setenv("GPUPART_REPORT", "this", 1);
	pid = fork();
	if (!pid) {
		snprintf(fd, sizeof(fd), "%d", ready[1]);
		execle(other, other, fd, "user", NULL, env);
		_exit(1);
	}
	tap_ok(read(ready[0], &byte, 1) == 1 && owner(pid) == OTHER_USER,
	       "a process of another user");
	witness_look(&witness, root, true);
	witness_look(&witness, root, true);
	tap_ok(!witness.nr, "it is not examined");
	kill(pid, SIGUSR2);
	for (int i = 0; i < 20000 && owner(pid); i++)
		usleep(1000);
	witness_look(&witness, root, true);
	tap_ok(witness.nr == 1, "as a process of this user it is found by its environment");
	unsetenv("GPUPART_REPORT");
	kill(pid, SIGKILL);
}

static void become_sleep(int sig)
{
	(void)sig;
	execlp("sleep", "sleep", "60", NULL);
}

static bool is_sleep(int pid)
{
	char text[1024], *name, *rest;

	return read_stat(pid, text, &name, &rest) && !strcmp(name, "sleep");
}

static char watched[] = "/tmp/gpupart-watched-XXXXXX";

/* Replaces the simulated driver's file. */
int paths_package(const char *name, char *path, size_t len)
{
	return snprintf(path, len, "%s", watched) < 0 || !strstr(name, "libcuda.so.1");
}

/*
 * SIGIO reports that a process opened the driver's library. Like in the parent of a program,
 * SIGIO is blocked.
 */
static void check_watch(void)
{
	const struct timespec now = { 0 };
	int watch, file = mkostemp(watched, O_CLOEXEC);
	sigset_t io;

	sigemptyset(&io);
	sigaddset(&io, SIGIO);
	sigprocmask(SIG_BLOCK, &io, NULL);
	watch = witness_watch(true);
	tap_ok(watch >= 0 && !witness_woken(watch) && sigtimedwait(&io, NULL, &now) < 0,
	       "nothing opened it yet");
	close(file);
	close(open(watched, O_RDONLY | O_CLOEXEC));
	tap_ok(sigtimedwait(&io, NULL, &now) == SIGIO && witness_woken(watch),
	       "something opens %s", watched);
	tap_ok(!witness_woken(watch), "told once");
	close(watch);
	unlink(watched);
	tap_ok(!witness_woken(-1), "no watch: no report");
}

int main(int argc, char **argv)
{
	char other[] = "/tmp/gpupart-witness-XXXXXX", copy[96];
	static struct witness witness, witness_beside, witness_lost;
	struct process_parent found;
	int ready[2], nr = 0;
	unsigned int opened;
	pid_t beside;
	char byte;

	if (argc > 1) {
		map_libcuda();
		signal(SIGUSR1, become_sleep);
		signal(SIGUSR2, become_user);
		if (argc > 2 && (seteuid(OTHER_USER) || prctl(PR_SET_DUMPABLE, 1)))
			return 1;
		stay(atoi(argv[1]));
	}
	ready[0] = mkostemp(other, O_CLOEXEC);
	close(ready[0]);
	snprintf(copy, sizeof(copy), "cp /proc/%d/exe %s && chmod 700 %s", getpid(), other, other);
	if (system(copy) || pipe(ready))
		return 1;
	top = fork();
	if (!top) {
		setpgid(0, 0);
		chain(ready[1], other);
	}
	setpgid(top, top);
	beside = fork();
	if (!beside)
		stay(ready[1]);
	while (nr < DEPTH + NR_LEAVES + 1 && read(ready[0], &byte, 1) == 1)
		nr++;
	witness_look(&witness_beside, beside, true);
	opened = nr_opened;
	tap_ok(!witness_beside.nr, "nothing is below a process beside them");
	/* At any depth, the scan reads each process and each parent one time. */
	tap_ok(opened < 2 * nr_processes() + 100, "it opened %u files", opened);
	tap_ok(nr_opened_of_chain >= DEPTH + NR_LEAVES, "it read the processes of the chain");
	nr_opened_of_chain = 0;
	witness_look(&witness_beside, beside, true);
	tap_ok(!witness_beside.nr && !nr_opened_of_chain,
	       "the next scan reads none of them again: %u", nr_opened_of_chain);
	witness_look(&witness, top, true);
	tap_ok(witness.nr == 1 && witness.processes[0].looks == 1,
	       "one below, not of this program, has libcuda: %u", witness.nr);
	tap_ok(witness.nr && witness_is_below(witness.processes[0].process.pid, top) &&
	       !witness_is_below(witness.processes[0].process.pid, beside), "it is below");
	witness_look(&witness, top, true);
	tap_ok(witness.nr == 1 && witness.processes[0].looks == 2, "and the next time");
	process_find_parent(witness.processes[0].process.pid, &found);
	lost = found.parent;
	witness_look(&witness_lost, top, true);
	tap_ok(!witness_lost.nr, "a process whose parent ends during the scan is not found");
	lost = 0;
	witness_look(&witness_lost, top, true);
	tap_ok(witness_lost.nr == 1, "the next scan finds it");
	check_owner(ready, other, beside);
	/*
	 * The exit of a process frees its memory first. So a process that is ending shows no
	 * library.
	 */
	if (witness.nr)
		kill(witness.processes[0].process.pid, SIGUSR1);
	for (int i = 0; witness.nr && i < 20000 && !is_sleep(witness.processes[0].process.pid); i++)
		usleep(1000);
	witness_look(&witness, top, true);
	tap_ok(witness.processes[0].looks == 2, "without libcuda it is not forgotten");
	check_watch();
	kill(-top, SIGKILL);
	kill(beside, SIGKILL);
	while (wait(NULL) > 0)
		;
	unlink(other);
	return tap_done();
}
