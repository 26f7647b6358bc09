// SPDX-License-Identifier: MIT
/*
 * Kills processes that outlive their job. The TPCs of the job stay allocated until these
 * processes have ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cli/mps/mps_daemon.h"
#include "cli/util/process.h"
#include "slurm/orphans.h"

#define MAX_ENVIRONMENT (1 << 20)
/*
 * One pass reads at most this many bytes of environments, for all processes together. This limit
 * is necessary, because a user may have thousands of processes with environments of megabytes.
 */
#define MAX_ENVIRONMENTS (64 << 20)
/* Initial length of the list. */
#define ROOM 4096
#define WAIT_MS 2000
#define PAUSE_NS 20000000
/* Time limit for all calls to the node's MPS daemon during the kill of one job. */
#define MPS_MS 5000

/* Selects the processes to kill. */
struct meant {
	unsigned int job;
	const struct gpupart_grant *grant;
	size_t environment_left;	/* bytes of /proc/PID/environ that may still be read */
	struct mps_daemon *mps;		/* NULL: there is no daemon to use, or it does not
					 * answer */
	/* the time when MPS calls must end; 0 before the first call */
	long mps_until;
};

/*
 * Returns true if Slurm started the process as a part of the job in @meant. A `gpupart run`
 * inside the job has a different id.
 */
static bool started_in(int pid, struct meant *meant)
{
	size_t len = 0, max = meant->environment_left < MAX_ENVIRONMENT ?
			      meant->environment_left : MAX_ENVIRONMENT;
	char path[32], wanted[40], *text = malloc(max + 1);
	ssize_t n = 1;
	bool found = false;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	snprintf(wanted, sizeof(wanted), "SLURM_JOB_ID=%u", meant->job);
	fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	while (fd >= 0 && n > 0 && len < max) {
		n = read(fd, text + len, max - len);
		len += n > 0 ? n : 0;
	}
	if (fd >= 0)
		close(fd);
	meant->environment_left -= len;
	if (text)
		text[len] = 0;
	for (size_t at = 0; text && !found && at < len; at += strlen(text + at) + 1)
		found = !strcmp(text + at, wanted);
	free(text);
	return found;
}

/* Checks the owner first, because the state page of another user's process cannot be trusted. */
static bool is_meant(const struct gpupart_process *process, void *arg)
{
	struct meant *meant = arg;

	return process->uid == meant->grant->uid && (!strcmp(process->job, meant->grant->id) ||
						     started_in(process->pid, meant));
}

/*
 * Returns the same as is_meant(). Call this function for a process that will be killed. It first
 * ends the MPS work of the process, so that other clients of the daemon survive.
 */
static bool is_meant_and_idle(const struct gpupart_process *process, void *arg)
{
	struct meant *meant = arg;

	if (!is_meant(process, meant))
		return false;
	if (meant->mps && !meant->mps_until) {
		meant->mps_until = process_now_ms() + MPS_MS;
		if (mps_daemon_find_node(meant->mps))
			meant->mps = NULL;
	}
	if (meant->mps)
		mps_daemon_terminate(meant->mps, process->pid, meant->mps_until);
	return true;
}

/*
 * Lists the processes in one pass. To count the processes first would need a second pass, and
 * other users can make each pass slow.
 */
static void list_all(struct left *left)
{
	int room = ROOM;

	left->nr = 0;
	do {
		free(left->list);
		room += left->nr;
		left->list = calloc(room, sizeof(*left->list));
		left->nr = left->list ? gpupart_process_list(NULL, left->list, room,
							     sizeof(*left->list)) : 0;
	} while (left->nr > room);
}

/* Sends a signal to each process. Returns the number of processes that have not ended. */
static unsigned int kill_once(struct meant *meant, const struct left *left, const char **why)
{
	const struct gpupart_process *list = left->list;
	unsigned int nr = 0;
	int err;

	meant->environment_left = MAX_ENVIRONMENTS;
	for (int i = 0; i < left->nr; i++) {
		if (list[i].pid <= 1 || list[i].uid != meant->grant->uid)
			continue;
		err = gpupart_process_signal(NULL, &list[i], SIGKILL, is_meant_and_idle, meant);
		/*
		 * Without a pidfd, do not kill the process, because its pid may now belong to
		 * another process.
		 */
		if (err == -ENOSYS && is_meant(&list[i], meant))
			*why =
				"were not killed, because this kernel has no pidfd_open (Linux 5.3): kill them by hand";
		else if (err)
			continue;
		nr++;
	}
	return nr;
}

unsigned int left_kill(struct left *left, unsigned int job, const struct gpupart_grant *grant,
		       const char **why)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct mps_daemon mps;
	struct meant meant = { .job = job, .grant = grant, .mps = &mps };
	unsigned int nr;
	long until;

	*why = "were killed but have not ended";
	if (!left->list)
		list_all(left);
	nr = kill_once(&meant, left, why);
	/* At this point, the daemon has received a request about each process. */
	meant.mps = NULL;
	until = process_now_ms() + WAIT_MS;
	while (nr && process_now_ms() < until) {
		nanosleep(&pause, NULL);
		nr = kill_once(&meant, left, why);
		if (nr)
			continue;
		/* During the kill, the processes may have started other processes. */
		list_all(left);
		nr = kill_once(&meant, left, why);
	}
	return nr;
}
