// SPDX-License-Identifier: MIT
/*
 * Processes that outlive their job: their TPCs are nobody else's before they are gone. Must not
 * know why they were left.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "left.h"

#define MAX_ENVIRONMENT (1 << 20)
#define TRIES 100
#define PAUSE_NS 20000000

/* Whether it was started by Slurm in that job, as of a run inside it, which has its own id. */
static bool started_in(int pid, unsigned int job)
{
	char path[32], wanted[40], *text = malloc(MAX_ENVIRONMENT + 1);
	size_t len = 0;
	ssize_t n = 1;
	bool found = false;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	snprintf(wanted, sizeof(wanted), "SLURM_JOB_ID=%u", job);
	fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	while (fd >= 0 && n > 0 && len < MAX_ENVIRONMENT) {
		n = read(fd, text + len, MAX_ENVIRONMENT - len);
		len += n > 0 ? n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (text)
		text[len] = 0;
	for (size_t at = 0; text && !found && at < len; at += strlen(text + at) + 1)
		found = !strcmp(text + at, wanted);
	free(text);
	return found;
}

/* Each is told again, until it is gone. What a block says is believed of its user's alone. */
static unsigned int kill_once(unsigned int job, const struct gpupart_grant *grant)
{
	int room = gpupart_process_list(NULL, NULL, 0) + 16, nr;
	struct gpupart_process *list = room > 0 ? calloc(room, sizeof(*list)) : NULL;
	unsigned int left = 0;

	nr = list ? gpupart_process_list(NULL, list, room) : 0;
	for (int i = 0; i < nr && i < room; i++)
		if (list[i].pid > 1 && list[i].uid == grant->uid &&
		    (!strcmp(list[i].job, grant->id) || started_in(list[i].pid, job)) &&
		    !kill(list[i].pid, SIGKILL))
			left++;
	free(list);
	return left;
}

unsigned int left_kill(unsigned int job, const struct gpupart_grant *grant)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	unsigned int left = kill_once(job, grant);

	for (int i = 0; left && i < TRIES; i++) {
		nanosleep(&pause, NULL);
		left = kill_once(job, grant);
	}
	return left;
}
