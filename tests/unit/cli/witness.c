// SPDX-License-Identifier: MIT
/*
 * Tests a scan of a process's descendants. It tests the results of the scan, and the number of
 * opened files of /proc.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "tests/tap.h"
#include "cli/util/process.c"
#include "cli/start/witness.c"

#define DEPTH 40
#define NR_LEAVES 100

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

static unsigned int nr_opened;

FILE *__wrap_fopen(const char *path, const char *mode)
{
	nr_opened++;
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
		pause();
	_exit(0);
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
 * The last process has NR_LEAVES children. Two of these children have libcuda: one child runs
 * this program, and one child runs a copy of this program.
 */
static void __attribute__((noreturn)) chain(int ready, const char *other)
{
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
	stay(ready);
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
	static struct witness witness;
	int ready[2], nr = 0;
	unsigned int opened;
	pid_t top, beside;
	char byte;

	if (argc > 1) {
		map_libcuda();
		signal(SIGUSR1, become_sleep);
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
	witness_look(&witness, beside, true);
	opened = nr_opened;
	tap_ok(!witness.nr, "nothing is below a process beside them");
	/* At any depth, the scan reads each process and each parent one time. */
	tap_ok(opened < 2 * nr_processes() + 100, "it opened %u files", opened);
	witness_look(&witness, top, true);
	tap_ok(witness.nr == 1 && witness.processes[0].looks == 1,
	       "one below, not of this program, has libcuda: %u", witness.nr);
	tap_ok(witness.nr && witness_is_below(witness.processes[0].process.pid, top) &&
	       !witness_is_below(witness.processes[0].process.pid, beside), "it is below");
	witness_look(&witness, top, true);
	tap_ok(witness.nr == 1 && witness.processes[0].looks == 2, "and the next time");
	/*
	 * The exit of a process frees its memory first. So a process that is ending shows no
	 * library.
	 */
	kill(witness.processes[0].process.pid, SIGUSR1);
	for (int i = 0; i < 20000 && !is_sleep(witness.processes[0].process.pid); i++)
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
