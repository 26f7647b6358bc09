// SPDX-License-Identifier: MIT
/*
 * NVIDIA's MPS for `gpupart run`. Makes programs clients of a daemon that already runs. If no
 * daemon runs, gpupart starts a daemon for the user. This daemon ends after the user's last
 * program.
 *
 * The user's daemon is in a directory of the user. In this directory, gpupart has two files. A run
 * locks gpupart.lock while it searches, starts or ends a daemon. The file gpupart.users shows
 * whether the daemon has users. Each program has a keeper process, which holds a shared lock on
 * this file. The last keeper can get an exclusive lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/mps/mps.h"
#include "cli/mps/mps_daemon.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/process.h"

/* The driver's default. */
#define DEFAULT_PIPES	"/tmp/nvidia-mps"
/* NVIDIA's default for MPS clients is 2. With 2 connections, streams wait for each other. */
#define CONNECTIONS	"8"

#define LOCK_SECONDS	20	/* more time than another run needs to start a daemon */
#define QUIT_SECONDS	5	/* a daemon without clients ends within 1 s */
#define END_MS		5000	/* time limit for the end of a client's work */
#define MAX_PROCESSES	256

/* The longest socket name in the directory. It limits the length of the directory's path. */
#define LONGEST_SOCKET	"/control_privileged"
#define MAX_DIR		(sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof(LONGEST_SOCKET))

/* ---------------------------------------------------------------- the directory */

/*
 * Chooses the directory. It is in the user's runtime directory, or in /tmp with the user id in its
 * name. Checks the owner of the runtime directory: after su(1), the variable still names the
 * directory of the other user. The other user could replace the directory at any time.
 */
static void own_directory(char *dir, size_t len)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (runtime && *runtime == '/' && !stat(runtime, &st) && S_ISDIR(st.st_mode) &&
	    st.st_uid == geteuid())
		snprintf(dir, len, "%s/gpupart-mps", runtime);
	else
		snprintf(dir, len, "/tmp/gpupart-mps-%u", geteuid());
}

/* Creates a private directory. If the directory exists, checks that it is private. */
static int make_private(struct mps_daemon *own, const char *dir)
{
	struct stat st;

	if ((mkdir(dir, 0700) && errno != EEXIST) || lstat(dir, &st))
		return mps_daemon_fail(own, -errno, "%s: %s", dir, strerror(errno));
	if (S_ISLNK(st.st_mode))
		return mps_daemon_fail(own, -ENOTDIR, "%s is a symbolic link: must be a directory",
				       dir);
	if (!S_ISDIR(st.st_mode))
		return mps_daemon_fail(own, -ENOTDIR, "%s is not a directory", dir);
	if (st.st_uid != geteuid())
		return mps_daemon_fail(own, -EPERM, "%s belongs to user %u", dir, st.st_uid);
	if (st.st_mode & 077)
		return mps_daemon_fail(own, -EPERM,
				       "%s is accessible to other users (mode %03o): must be 700",
				       dir, st.st_mode & 0777);
	return 0;
}

static int make_directory(struct mps_daemon *own)
{
	char log[PATH_MAX];
	int err;

	if (strlen(own->dir) > MAX_DIR)
		return mps_daemon_fail(own, -ENAMETOOLONG,
				       "%s is too long for a socket: at most %zu bytes",
				       own->dir, MAX_DIR);
	err = make_private(own, own->dir);
	if (err)
		return err;
	mps_daemon_path(own, "log", log);
	return make_private(own, log);
}

static int open_own(struct mps_daemon *own, const char *name)
{
	char path[PATH_MAX];
	int fd;

	mps_daemon_path(own, name, path);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? mps_daemon_fail(own, -errno, "%s: %s", path, strerror(errno)) : fd;
}

static int take_lock(struct mps_daemon *own, int lock)
{
	long start = process_now_ms(), waited;

	while (flock(lock, LOCK_EX | LOCK_NB)) {
		waited = process_now_ms() - start;
		if (waited >= QUIT_SECONDS * 1000L && mps_daemon_busy(own))
			return -EBUSY;
		if (waited >= LOCK_SECONDS * 1000L)
			return mps_daemon_fail(own, -EBUSY,
					       "another run has kept %s/gpupart.lock locked for too long",
					       own->dir);
		process_pause(waited);
	}
	return 0;
}

/* ------------------------------------------------------------------ users */

/*
 * Adds a user of the daemon. The caller holds the lock. A killed keeper may still hold
 * gpupart.users for a short time.
 */
static int add_user(struct mps_daemon *own)
{
	int users = open_own(own, "gpupart.users");
	long start = process_now_ms();

	if (users < 0)
		return users;
	while (flock(users, LOCK_SH | LOCK_NB)) {
		if (process_now_ms() - start >= 1000) {
			close(users);
			return mps_daemon_fail(
				own, -EBUSY, "another run keeps %s/gpupart.users locked", own->dir);
		}
		process_pause(0);
	}
	return users;
}

/* Removes a user of the daemon. After the last user, ends the daemon. The caller holds the lock. */
static void drop_user(struct mps_daemon *own, int users)
{
	flock(users, LOCK_UN);
	if (flock(users, LOCK_EX | LOCK_NB))
		return;
	mps_daemon_end(own);
	flock(users, LOCK_UN);
}

static void wait_for_program(int pidfd, const struct process *program)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	while (pidfd >= 0 && poll(&pfd, 1, -1) < 0 && errno == EINTR)
		;
	while (pidfd < 0 && process_lives(program))
		usleep(200000);
}

static void __attribute__((noreturn))
keep(struct mps_daemon *own, int users, int pidfd, const struct process *program)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };
	sigset_t none;
	int lock;

	/*
	 * Ignore signals to all processes of a job, because the keeper must still end the daemon.
	 */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "gpupart-mps");
	process_let_go(-1, -1, users, pidfd);
	(void)!chdir("/");	/* the keeper must not keep a file system busy */
	wait_for_program(pidfd, program);
	lock = open_own(own, "gpupart.lock");
	while (lock >= 0 && flock(lock, LOCK_EX) && errno == EINTR)
		;
	if (lock >= 0)
		drop_user(own, users);
	_exit(0);
}

/*
 * Starts the keeper. The keeper holds @users until this process ends. This process will execute the
 * program, which must not see a child that it did not start. So the keeper is not a child of this
 * process.
 */
static int leave_keeper(struct mps_daemon *own, int users)
{
	struct sigaction before, usual = { .sa_handler = SIG_DFL };
	int pidfd = syscall(SYS_pidfd_open, getpid(), 0), status;
	struct process program;
	pid_t pid;

	process_find(getpid(), &program);
	sigaction(SIGCHLD, &usual, &before);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		setsid();
		pid = fork();
		if (!pid)
			keep(own, users, pidfd, &program);
		_exit(pid < 0);
	}
	status = pid < 0 ? -EAGAIN : process_wait(pid, 0);
	sigaction(SIGCHLD, &before, NULL);
	if (pidfd >= 0)
		close(pidfd);
	return status ? mps_daemon_fail(own, -EAGAIN,
					"cannot create a process that ends the daemon")
		      : 0;
}

/*
 * Finds or starts a daemon, and starts a keeper as a user of the daemon. The caller holds the lock.
 */
static int use_daemon(struct mps_daemon *own)
{
	int users = add_user(own), err;

	if (users < 0)
		return users;
	err = mps_daemon_have(own);
	if (!err) {
		err = leave_keeper(own, users);
		if (err)
			drop_user(own, users);
	}
	/* The keeper has inherited the descriptor and its lock. */
	close(users);
	return err;
}

static int use_own(struct mps_daemon *own)
{
	int lock, err;

	if (!*own->control)
		return -ENOENT;
	err = make_directory(own);
	lock = err ? err : open_own(own, "gpupart.lock");
	if (lock < 0)
		return lock;
	err = take_lock(own, lock) ?: use_daemon(own);
	close(lock);
	return err;
}

/* ------------------------------------------------------------------ for run */

/* Returns whether a daemon answers in @dir. If @dir is the directory of @own, returns false. */
static bool other_answers(const struct mps_daemon *own, const char *dir)
{
	struct mps_daemon other = *own;

	return strcmp(dir, own->dir) &&
	       snprintf(other.dir, sizeof(other.dir), "%s", dir) < (int)sizeof(other.dir) &&
	       mps_daemon_answers(&other);
}

bool mps_join(bool simulated)
{
	static const char turns[] =
		"programs on this GPU run in time slices instead of at the same time";
	const char *named = getenv(MPS_DAEMON_PIPES);
	static struct mps_daemon own, node;	/* too large for a small stack */
	struct mps_daemon *used;
	char log[PATH_MAX];
	int err;

	if (simulated) {
		remark("--mps: the simulated driver has no MPS: %s", turns);
		return false;
	}
	named = named ? named : "";
	mps_daemon_find_control(&own);
	own_directory(own.dir, sizeof(own.dir));
	if (!*named || !strcmp(named, MPS_DAEMON_NODE) || !other_answers(&own, named)) {
		err = mps_daemon_find_node(&node);
		if (err && err != -ENOENT)
			remark("--mps: %s", node.why);
		used = err ? &own : &node;
		if (err && use_own(&own)) {
			remark("--mps: %s: %s", own.why, turns);
			return false;
		}
		if (*named && strcmp(named, used->dir))
			remark("--mps: no daemon answers in %s (%s): using %s", named,
			       MPS_DAEMON_PIPES, used->dir);
		setenv(MPS_DAEMON_PIPES, used->dir, 1);
		if (used == &own) {
			mps_daemon_path(&own, "log", log);
			setenv(MPS_DAEMON_LOGS, log, 1);
		}
	}
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", CONNECTIONS, 0);
	return true;
}

void mps_end_client(int pid)
{
	const char *named = getenv(MPS_DAEMON_PIPES);
	long until = process_now_ms() + END_MS;
	static struct mps_daemon own, daemon;	/* too large for a small stack */
	struct stat st;

	own_directory(own.dir, sizeof(own.dir));
	const char *const dirs[] = {
		named && *named ? named : DEFAULT_PIPES, own.dir, MPS_DAEMON_NODE
	};

	mps_daemon_find_control(&daemon);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		/* A daemon of another user ignores commands of this user. */
		if (snprintf(daemon.dir, sizeof(daemon.dir), "%s", dirs[i]) < PATH_MAX &&
		    !lstat(daemon.dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
			mps_daemon_terminate(&daemon, pid, until);
}

/*
 * Returns whether a process that starts now would be a client of MPS. Asks the kernel instead of
 * the daemon, because any user can listen in the default directory without answering.
 */
static bool is_client(void)
{
	const char *named = getenv(MPS_DAEMON_PIPES);
	struct mps_daemon nowhere = { 0 };

	return other_answers(&nowhere, named && *named ? named : DEFAULT_PIPES);
}

void mps_note_turns(const char *pci)
{
	struct gpupart_process *list = calloc(MAX_PROCESSES, sizeof(*list));
	int nr = list ? gpupart_process_list(cmd_gp, list, MAX_PROCESSES, sizeof(*list)) : 0;
	int others = 0, first = 0;

	for (int i = 0; i < nr && i < MAX_PROCESSES; i++)
		if (list[i].pid != getpid() && !strcasecmp(list[i].pci, pci) && !others++)
			first = list[i].pid;
	free(list);
	if (!others || is_client())
		return;
	remark(
		"process %d%s also uses GPU %s: the programs run on this GPU in time slices; start all of them with --mps to run them at the same time",
		first, others > 1 ? " and others" : "", pci);
}
