// SPDX-License-Identifier: MIT
/*
 * NVIDIA's MPS control daemon in a directory. Checks whether a daemon answers, starts a daemon, and
 * ends a daemon that gpupart started.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/mps/mps_daemon.h"
#include "cli/util/process.h"

#define CONTROL		"nvidia-cuda-mps-control"
#define ALSO_IN		"/usr/local/nvidia/bin:/usr/bin"	/* searched in addition to PATH */
#define STARTED		"gpupart.started" /* this file describes the daemon that gpupart started */

#define ANSWER_SECONDS	5
#define START_SECONDS	10
#define FOREVER		0
#define MAX_SERVERS	8	/* a daemon has one server, or several with -M */

/* States in the file STARTED. In the state STARTING, only the start time is valid. */
enum { STARTING = 's', RUNNING = 'r', QUITTING = 'q' };

struct started {
	struct process process;
	char state;
};

int mps_daemon_fail(struct mps_daemon *daemon, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(daemon->why, sizeof(daemon->why), fmt, ap);
	va_end(ap);
	return err;
}

void mps_daemon_path(const struct mps_daemon *daemon, const char *name, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s/%s", daemon->dir, name) >= PATH_MAX)
		*path = 0;
}

/* ------------------------------------------------------------------ NVIDIA's program */

static bool is_program(const char *path)
{
	struct stat st;

	return *path == '/' && !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

int mps_daemon_find_control(struct mps_daemon *daemon)
{
	const char *const lists[] = { getenv("PATH"), ALSO_IN };

	for (size_t i = 0; i < 2; i++)
		for (const char *at = lists[i]; at && *at; at += strspn(at, ":")) {
			int len = strcspn(at, ":");

			if (snprintf(daemon->control, PATH_MAX, "%.*s/" CONTROL, len, at) <
				    PATH_MAX &&
			    is_program(daemon->control))
				return 0;
			at += len;
		}
	*daemon->control = 0;
	return mps_daemon_fail(daemon, -ENOENT, "there is no " CONTROL " on PATH or in " ALSO_IN);
}

/* The daemon serves all programs, so it must not get variables for one program. */
static bool is_for_one_program(const char *variable)
{
	static const char *const prefixes[] = { "CUDA_", "GPUPART_", "LD_PRELOAD=", "LD_AUDIT=" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/*
 * Makes the environment of NVIDIA's program. Called in the child process that executes NVIDIA's
 * program.
 */
static char **control_environment(const struct mps_daemon *daemon)
{
	size_t nr = 0, kept = 0;
	char **list;

	while (environ[nr])
		nr++;
	list = calloc(nr + 3, sizeof(*list));
	if (!list || asprintf(&list[0], MPS_DAEMON_PIPES "=%s", daemon->dir) < 0 ||
	    asprintf(&list[1], MPS_DAEMON_LOGS "=%s/log", daemon->dir) < 0)
		return NULL;
	for (size_t i = 0; i < nr; i++)
		if (!is_for_one_program(environ[i]))
			list[2 + kept++] = environ[i];
	return list;
}

static void __attribute__((noreturn))
be_control(const struct mps_daemon *daemon, char *option, int in, int out)
{
	char *argv[] = { CONTROL, option, NULL };
	char **list = control_environment(daemon);
	sigset_t none;

	/* 'gpupart run' has blocked all signals. Unblock them here. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/*
	 * A process group in its own session gets no signals of a terminal. It can be killed as a
	 * group.
	 */
	setsid();
	process_let_go(in, out, -1, -1);
	/*
	 * A daemon must not keep a file system busy. A query may use a relative path, so it stays
	 * in the current directory.
	 */
	if (list && !(option && chdir("/")))
		execve(daemon->control, argv, list);
	_exit(127);
}

/*
 * Runs NVIDIA's program with @option, or with @word as input. The program writes its output to
 * @out. If @out is -1, the output is discarded. Returns the exit status of the program, or -errno.
 */
static int control(const struct mps_daemon *daemon, char *option, const char *word, int out,
		   unsigned int seconds)
{
	struct sigaction before, usual = { .sa_handler = SIG_DFL };
	int fds[2] = { -1, -1 }, status = 0;
	pid_t pid;

	if (word && pipe2(fds, O_CLOEXEC))
		return -errno;
	/* Write before the reader starts, so that the reader cannot have closed the pipe. */
	if (word && write(fds[1], word, strlen(word)) < 0)
		status = -errno;
	if (word)
		close(fds[1]);
	/* If the caller ignored SIGCHLD, the exit status would be lost. */
	sigaction(SIGCHLD, &usual, &before);
	if (!status) {
		fflush(NULL);
		pid = fork();
		if (!pid)
			be_control(daemon, option, fds[0], out);
		status = pid < 0 ? -errno : process_wait(pid, seconds);
	}
	sigaction(SIGCHLD, &before, NULL);
	if (word)
		close(fds[0]);
	return status;
}

/*
 * Returns whether a process listens at a socket. Connects with a socket type that the daemon does
 * not use. The kernel's error code then shows whether a process listens. The daemon does not notice
 * the attempt.
 */
static bool is_listened_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	bool listened;
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	listened = !connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
		   errno == EPROTOTYPE;
	close(fd);
	return listened;
}

bool mps_daemon_answers(const struct mps_daemon *daemon)
{
	char path[PATH_MAX];
	int status;

	mps_daemon_path(daemon, "control", path);
	if (access(path, F_OK))
		return false;
	/* A container may have the pipes, but not NVIDIA's program. */
	if (!*daemon->control)
		return is_listened_at(path);
	status = control(daemon, NULL, "get_server_list\n", -1, ANSWER_SECONDS);
	/*
	 * On an H200, one in six calls failed although the daemon had answered. Therefore try
	 * twice.
	 */
	if (status > 0)
		status = control(daemon, NULL, "get_server_list\n", -1, ANSWER_SECONDS);
	return !status;
}

int mps_daemon_find_node(struct mps_daemon *daemon)
{
	char path[PATH_MAX];
	struct stat st;

	strcpy(daemon->dir, MPS_DAEMON_NODE);
	if (lstat(daemon->dir, &st))
		return mps_daemon_fail(daemon, -errno, "%s: %s", daemon->dir, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid || st.st_mode & 022)
		return mps_daemon_fail(daemon, -EPERM,
				       "%s must be a directory that only root can write to",
				       daemon->dir);
	mps_daemon_find_control(daemon);
	mps_daemon_path(daemon, "control", path);
	/*
	 * Only root can send commands to root's daemon, but all users can connect to it as clients.
	 */
	if (geteuid() ? is_listened_at(path) : mps_daemon_answers(daemon))
		return 0;
	return mps_daemon_fail(daemon, -ECONNREFUSED, "the node's MPS daemon does not answer in %s",
			       daemon->dir);
}

/* ------------------------------------------------------------------ identity */

static bool read_started(const struct mps_daemon *daemon, struct started *started)
{
	char path[PATH_MAX];
	FILE *file;
	int nr;

	mps_daemon_path(daemon, STARTED, path);
	file = fopen(path, "re");
	if (!file)
		return false;
	nr = fscanf(file, "%d %llu %c", &started->process.pid, &started->process.start,
		    &started->state);
	fclose(file);
	return nr == 3;
}

/* Write the file atomically, because readers may not hold the lock. */
static int write_started(struct mps_daemon *daemon, const struct process *process, char state)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	FILE *file;
	bool bad;

	mps_daemon_path(daemon, STARTED, path);
	mps_daemon_path(daemon, STARTED ".new", fresh);
	file = fopen(fresh, "we");
	bad = !file || fprintf(file, "%d %llu %c\n", process->pid, process->start, state) < 0;
	if (file && fclose(file))
		bad = true;
	if (bad || rename(fresh, path))
		return mps_daemon_fail(daemon, -EIO, "%s: %s", path, strerror(errno));
	return 0;
}

static void forget_started(const struct mps_daemon *daemon)
{
	char path[PATH_MAX];

	mps_daemon_path(daemon, STARTED, path);
	unlink(path);
}

/*
 * Finds the daemon in the directory. Another program may have started the daemon. Checks the name
 * of the process, because pids are reused.
 */
static bool find_any(const struct mps_daemon *daemon, struct process *process)
{
	char path[PATH_MAX];
	int pid = 0;
	FILE *file;

	mps_daemon_path(daemon, CONTROL ".pid", path);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%d", &pid) != 1)
		pid = 0;
	fclose(file);
	return process_find(pid, process) && process_is_named(process, CONTROL);
}

/*
 * Calls control() with a time limit, which ends at @until (in ms). If less than a second is left,
 * returns -ETIMEDOUT.
 */
static int control_until(const struct mps_daemon *daemon, const char *word, int out, long until)
{
	long left = until - process_now_ms();

	return left < 1000 ? -ETIMEDOUT : control(daemon, NULL, word, out, left / 1000);
}

static unsigned int list_servers(const struct mps_daemon *daemon, int pids[MAX_SERVERS], long until)
{
	int fd = memfd_create("servers", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned int nr = 0;

	if (!file) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (!control_until(daemon, "get_server_list\n", fd, until) && !lseek(fd, 0, SEEK_SET))
		while (nr < MAX_SERVERS && fscanf(file, "%d", &pids[nr]) == 1)
			nr++;
	fclose(file);
	return nr;
}

void mps_daemon_terminate(const struct mps_daemon *daemon, int pid, long until)
{
	int servers[MAX_SERVERS];
	struct process process;
	unsigned int nr;
	char word[64];

	/* If the pid file is wrong, the daemon is in another pid namespace. Then do nothing. */
	if (!*daemon->control || !find_any(daemon, &process))
		return;
	nr = list_servers(daemon, servers, until);
	for (unsigned int i = 0; i < nr; i++) {
		snprintf(word, sizeof(word), "terminate_client %d %d\n", servers[i], pid);
		control_until(daemon, word, -1, until);
	}
}

static bool find_started(const struct mps_daemon *daemon, struct process *process, char *state)
{
	unsigned long long span = START_SECONDS * sysconf(_SC_CLK_TCK);
	struct started started;

	if (!read_started(daemon, &started) || !find_any(daemon, process))
		return false;
	*state = started.state;
	/* A run started the daemon, and was killed before it could write the pid. */
	if (started.state == STARTING)
		return process->start >= started.process.start &&
		       process->start <= started.process.start + span;
	return process->pid == started.process.pid && process->start == started.process.start;
}

int mps_daemon_busy(struct mps_daemon *daemon)
{
	struct process process;
	char state;

	if (!find_started(daemon, &process, &state) || state != QUITTING)
		return 0;
	return mps_daemon_fail(daemon, -EBUSY,
			       "the daemon in %s waits until processes of earlier runs have ended",
			       daemon->dir);
}

/* ------------------------------------------------------------------ start */

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_size;
}

/*
 * Copies a file's last non-empty line to @line. Ignores the text before @offset. Adds ": "
 * before the text.
 */
static bool last_line(const char *path, off_t offset, char *line, size_t len)
{
	FILE *file = fopen(path, "re");
	char text[512];
	bool found = false;

	if (!file)
		return false;
	if (!fseeko(file, offset, SEEK_SET))
		while (fgets(text, sizeof(text), file)) {
			text[strcspn(text, "\r\n")] = 0;
			if (!text[strspn(text, " \t")])
				continue;
			found = true;
			snprintf(line, len, ": %.200s", text);
		}
	fclose(file);
	return found;
}

/* Kills a started daemon that does not answer. */
static void kill_started(const struct mps_daemon *daemon)
{
	long start = process_now_ms();
	struct process process;
	char state;

	if (!find_started(daemon, &process, &state))
		return;
	/*
	 * If the kernel has no pidfds, the daemon keeps running. Later runs find it by
	 * find_started().
	 */
	if (process_signal(&process, SIGTERM))
		return;
	while (process_lives(&process) && process_now_ms() - start < 1000)
		process_pause(process_now_ms() - start);
	process_signal(&process, SIGKILL);
}

/*
 * When the daemon answers, returns 0. If the daemon does not answer, kills it and returns -errno.
 */
static int start_and_wait(struct mps_daemon *daemon)
{
	char log[PATH_MAX], said[PATH_MAX], line[256] = "";
	long start = process_now_ms();
	int out, status;
	off_t before;

	mps_daemon_path(daemon, "log/control.log", log);
	mps_daemon_path(daemon, "log/gpupart-start.log", said);
	before = size_of(log);
	out = open(said, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	status = control(daemon, "-d", NULL, out, START_SECONDS);
	if (out >= 0)
		close(out);
	while (!status && process_now_ms() - start < START_SECONDS * 1000L) {
		if (mps_daemon_answers(daemon))
			return 0;
		process_pause(process_now_ms() - start);
	}
	if (!last_line(log, before, line, sizeof(line)))
		last_line(said, 0, line, sizeof(line));
	kill_started(daemon);
	if (status > 0)
		return mps_daemon_fail(daemon, -EIO, "%s -d failed with status %d%s",
				       daemon->control, status, line);
	return mps_daemon_fail(daemon, -ETIMEDOUT,
			       "%s -d started no daemon that answers within %d s%s",
			       daemon->control, START_SECONDS, line);
}

static int start_daemon(struct mps_daemon *daemon)
{
	/* Write the file first. If this run is killed, a later run then finds the daemon. */
	struct process process = { .start = process_ticks_now() };
	int err;

	err = write_started(daemon, &process, STARTING) ?:
	      start_and_wait(daemon);
	if (!err && find_any(daemon, &process))
		err = write_started(daemon, &process, RUNNING);
	if (err)
		forget_started(daemon);
	return err;
}

int mps_daemon_have(struct mps_daemon *daemon)
{
	struct process process;
	int err;

	err = mps_daemon_busy(daemon);
	if (err || mps_daemon_answers(daemon))
		return err;
	if (find_any(daemon, &process))
		return mps_daemon_fail(daemon, -ETIMEDOUT,
				       "the daemon in %s (process %d) does not answer",
				       daemon->dir, process.pid);
	return start_daemon(daemon);
}

void mps_daemon_end(struct mps_daemon *daemon)
{
	long start = process_now_ms();
	struct process process;
	char state;

	/* Do not wait forever for a daemon that does not answer. A later run will end it. */
	if (!find_started(daemon, &process, &state) || !mps_daemon_answers(daemon) ||
	    write_started(daemon, &process, QUITTING))
		return;
	/*
	 * Ignore the exit status, which is about the servers. Wait for the end of the daemon
	 * instead.
	 */
	control(daemon, NULL, "quit\n", -1, FOREVER);
	while (process_lives(&process))
		process_pause(process_now_ms() - start);
	forget_started(daemon);
}
