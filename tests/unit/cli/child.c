// SPDX-License-Identifier: MIT
/*
 * Tests code that runs in a child of the command. The child answers, hangs, crashes, or writes
 * much output.
 */
#include "tests/tap.h"
#include "cli/util/child.c"

static void answer(void *arg, void *result)
{
	*(int *)result = *(int *)arg + 1;
	printf("not for stdout\n");
	fflush(stdout);
}

static void hang(void *arg, void *result)
{
	(void)arg;
	(void)result;
	for (;;)
		pause();
}

static void crash(void *arg, void *result)
{
	(void)arg;
	(void)result;
	raise(SIGKILL);
}

static void leave(void *arg, void *result)
{
	(void)arg;
	(void)result;
	_exit(0);
}

static void big(void *arg, void *result)
{
	(void)arg;
	memset(result, 7, 1 << 20);
}

static int told[2];

static void tell_and_hang(void *arg, void *result)
{
	pid_t pid = getpid();

	if (write(told[1], &pid, sizeof(pid)) == sizeof(pid))
		hang(arg, result);
}

/* If the caller is killed, the child must not continue. */
static void test_orphan(void)
{
	pid_t asker, child = 0;
	bool gone = false;
	char why[128];
	int out;

	/* This process becomes the parent of the orphan. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		tap_skip("a child ends with its caller: it cannot be adopted here (qemu-user)");
		return;
	}
	if (pipe(told))
		return;
	fflush(stdout);
	asker = fork();
	if (!asker) {
		child_call(tell_and_hang, NULL, &out, sizeof(out), 60, why, sizeof(why));
		_exit(0);
	}
	if (read(told[0], &child, sizeof(child)) != sizeof(child))
		child = 0;
	kill(asker, SIGKILL);
	waitpid(asker, NULL, 0);
	for (int i = 0; child > 0 && !gone && i < 300; i++) {
		gone = waitpid(child, NULL, WNOHANG) == child;
		usleep(10000);
	}
	tap_ok(gone, "a child ends with the process that asked");
	if (!gone && child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

int main(void)
{
	static char large[1 << 20];
	int in = 41, out = 0, fds[2], saved, err;
	char why[128], text[64];
	long start;
	ssize_t n;

	/* During the call, stdout is a pipe, so that the test can read the output. */
	if (pipe(fds))
		return 1;
	fflush(stdout);
	saved = dup(1);
	dup2(fds[1], 1);
	err = child_call(answer, &in, &out, sizeof(out), 10, why, sizeof(why));
	fflush(stdout);
	dup2(saved, 1);
	close(fds[1]);
	n = read(fds[0], text, sizeof(text));
	tap_ok(!err && out == 42, "the answer comes back: %d, %d", err, out);
	tap_ok(n == 0, "what the child prints is not on stdout");

	start = now_ms();
	err = child_call(hang, NULL, &out, sizeof(out), 1, why, sizeof(why));
	tap_ok(err == -ETIMEDOUT && strstr(why, "1 s"), "a hang ends: %d, %s", err, why);
	tap_ok(now_ms() - start >= 900 && now_ms() - start < 5000, "in its time");
	tap_ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "nothing is left behind");

	err = child_call(crash, NULL, &out, sizeof(out), 10, why, sizeof(why));
	tap_ok(err == -ECHILD && strstr(why, "Killed"), "a crash is reported: %d, %s", err, why);
	err = child_call(leave, NULL, &out, sizeof(out), 10, why, sizeof(why));
	tap_ok(err == -ECHILD, "an end without an answer is reported: %d, %s", err, why);
	err = child_call(big, NULL, large, sizeof(large), 10, why, sizeof(why));
	tap_ok(!err && large[0] == 7 && large[sizeof(large) - 1] == 7,
	       "an answer larger than a pipe");
	test_orphan();
	return tap_done();
}
