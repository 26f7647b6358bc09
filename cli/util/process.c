// SPDX-License-Identifier: MIT
/*
 * Identifies processes by their start times. Sends signals to processes and waits for processes.
 * Closes descriptors.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/util/process.h"

#define NAME_LEN 15
#define SKIP_6 " %*s %*s %*s %*s %*s %*s"

/*
 * Reads "PID (NAME) STATE ..." into @text. Sets *name to NAME, and sets *rest to the rest of the
 * text.
 */
static bool read_stat(int pid, char text[1024], char **name, char **rest)
{
	FILE *file;
	bool good;

	snprintf(text, 1024, "/proc/%d/stat", pid);
	file = fopen(text, "re");
	if (!file)
		return false;
	good = fgets(text, 1024, file);
	fclose(file);
	/* NAME may contain any character, such as a bracket. */
	*name = good ? strchr(text, '(') : NULL;
	*rest = good ? strrchr(text, ')') : NULL;
	if (!*name || !*rest)
		return false;
	(*name)++;
	*(*rest)++ = 0;
	return true;
}

int process_next(DIR *proc)
{
	struct dirent *entry;
	int pid = 0;

	while (pid <= 0 && (entry = readdir(proc)))
		pid = atoi(entry->d_name);
	return pid;
}

bool process_find_parent(int pid, struct process_parent *found)
{
	char text[1024], *name, *rest, state;

	memset(found, 0, sizeof(*found));
	found->process.pid = pid;
	if (pid <= 0 || !read_stat(pid, text, &name, &rest))
		return false;
	snprintf(found->name, sizeof(found->name), "%.15s", name);
	/* These are the fields 3, 4 and 22 of /proc/PID/stat; see proc(5). */
	if (sscanf(rest, " %c %d %*s %*s %*s %*s" SKIP_6 SKIP_6 " %*s %llu", &state,
		   &found->parent, &found->process.start) != 3 || state == 'Z' || state == 'X')
		found->process.start = 0;
	return found->process.start;
}

bool process_find(int pid, struct process *process)
{
	struct process_parent found;
	bool lives = process_find_parent(pid, &found);

	*process = found.process;
	return lives;
}

bool process_is_named(const struct process *process, const char *name)
{
	char text[1024], *found, *rest;

	return read_stat(process->pid, text, &found, &rest) && !strncmp(found, name, NAME_LEN);
}

bool process_lives(const struct process *process)
{
	struct process found;

	return process_find(process->pid, &found) && found.start == process->start;
}

/*
 * A process can declare any part of its memory as its environment. The kernel starts no program
 * with a larger environment than this.
 */
#define ENVIRON_MOST	(8u << 20)

void process_variable(int pid, const char *name, char *value, size_t len)
{
	char path[32], *text = malloc(ENVIRON_MOST + 1);
	const size_t name_len = strlen(name);
	size_t nr = 0;
	FILE *file;

	*value = 0;
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = text ? fopen(path, "re") : NULL;
	if (file) {
		nr = fread(text, 1, ENVIRON_MOST, file);
		text[nr] = 0;
		fclose(file);
	}
	for (const char *at = text; nr && at < text + nr && !*value; at += strlen(at) + 1)
		if (!strncmp(at, name, name_len) && at[name_len] == '=')
			snprintf(value, len, "%s", at + name_len + 1);
	free(text);
}

int process_signal(const struct process *process, int signal)
{
	int pidfd = syscall(SYS_pidfd_open, process->pid, 0), err = 0;

	if (pidfd < 0)
		return -errno;
	/*
	 * Check the process again. A pidfd always refers to the same process. But the pid may have
	 * been reused before the pidfd was opened.
	 */
	if (!process_lives(process))
		err = -ESRCH;
	else if (syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0))
		err = -errno;
	close(pidfd);
	return err;
}

uint64_t process_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

long process_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

unsigned long long process_ticks_now(void)
{
	return (unsigned long long)process_now_ms() * sysconf(_SC_CLK_TCK) / 1000;
}

void process_pause(long waited_ms)
{
	usleep(waited_ms < 100 ? 2000 : 50000);
}

int process_wait(pid_t pid, unsigned int seconds)
{
	long start = process_now_ms(), waited = 0;
	int wstatus;
	pid_t got;

	while (!seconds || waited < seconds * 1000L) {
		got = waitpid(pid, &wstatus, WNOHANG);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == pid)
			return WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : 128 + WTERMSIG(wstatus);
		process_pause(waited);
		waited = process_now_ms() - start;
	}
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -ETIMEDOUT;
}

void process_let_go(int in, int out, int keep, int keep_too)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir;

	dup2(in >= 0 ? in : null, 0);
	dup2(out >= 0 ? out : null, 1);
	dup2(out >= 0 ? out : null, 2);
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd > 2 && fd != keep && fd != keep_too && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}
