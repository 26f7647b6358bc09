// SPDX-License-Identifier: MIT
/* Calls a function in a child process. The function may hang or crash. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include "cli/util/child.h"

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void __attribute__((noreturn))
be_child(void (*fn)(void *, void *), void *arg, size_t len, int fd, pid_t parent)
{
	char *result = calloc(1, len);
	size_t done = 0;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!result || getppid() != parent)
		_exit(1);
	dup2(2, 1);
	fn(arg, result);
	while (done < len) {
		n = write(fd, result + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);
		done += n;
	}
	_exit(0);
}

/*
 * Reads @len bytes. If the other end was closed, returns -ECHILD. If the time @deadline, in ms, has
 * passed, returns -ETIMEDOUT. Otherwise returns 0.
 */
static int collect(int fd, char *result, size_t len, long deadline)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		long left = deadline - now_ms();
		int ready = poll(&pfd, 1, left > 0 ? left : 0);

		if (!ready)
			return -ETIMEDOUT;
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready < 0)
			continue;
		n = read(fd, result + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -ECHILD;
		done += n;
	}
	return 0;
}

/* Waits for the end of the child, for at most a second. */
static bool reap(pid_t pid, int *wstatus)
{
	for (int i = 0; i < 100; i++) {
		pid_t got = waitpid(pid, wstatus, WNOHANG);

		if (got == pid)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
		usleep(10000);
	}
	return false;
}

int child_call(void (*fn)(void *arg, void *result), void *arg, void *result, size_t len,
	       unsigned int seconds, char *why, size_t why_len)
{
	int fds[2], err, wstatus = 0;
	pid_t pid, parent = getpid();
	bool reaped;

	if (pipe2(fds, O_CLOEXEC)) {
		err = -errno;
		snprintf(why, why_len, "cannot create a pipe: %s", strerror(-err));
		return err;
	}
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		snprintf(why, why_len, "cannot create a process: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return -EAGAIN;
	}
	if (!pid) {
		close(fds[0]);
		be_child(fn, arg, len, fds[1], parent);
	}
	close(fds[1]);
	err = collect(fds[0], result, len, now_ms() + seconds * 1000L);
	close(fds[0]);
	if (err == -ETIMEDOUT) {
		kill(pid, SIGKILL);
		snprintf(why, why_len, "no answer after %u s", seconds);
	}
	reaped = reap(pid, &wstatus);
	if (err && err != -ETIMEDOUT)
		snprintf(why, why_len, "the child process died%s%s",
			 reaped && WIFSIGNALED(wstatus) ? ": " : "",
			 reaped && WIFSIGNALED(wstatus) ? strsignal(WTERMSIG(wstatus)) : "");
	return err;
}
