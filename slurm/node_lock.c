// SPDX-License-Identifier: MIT
/* Locks a file, so that only one process at a time makes plans. See node_lock.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "slurm/node_lock.h"

/* Only root can lock the file. When the process ends, the kernel releases the lock. */
int node_lock(const char *path, int seconds, char *why, size_t len)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int fd, err;

	if (mkdir("/run/gpupart", 0755) && errno != EEXIST) {
		err = -errno;
		snprintf(why, len, "/run/gpupart: %s", strerror(-err));
		return err;
	}
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
		snprintf(why, len, "%s: %s", path, strerror(-err));
		return err;
	}
	for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB); ms++) {
		if (ms == seconds * 1000)
			goto close_fd;
		nanosleep(&pause, NULL);
	}
	return fd;

close_fd:
	close(fd);
	snprintf(why, len, "%s: the start of another job has held the lock for %d s", path,
		 seconds);
	return -EBUSY;
}
