/* SPDX-License-Identifier: MIT */
/* Reads /proc/PID/mountinfo; see proc_pid_mountinfo(5). */
#ifndef GPUPART_CLI_UTIL_MOUNTS_H
#define GPUPART_CLI_UTIL_MOUNTS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct mounts_line {
	dev_t device;
	char root[4096];	/* the mounted directory or file, as a path in its file system */
	char at[4096];		/* the mount point */
	int len;		/* bytes of this line in the file */
};

/* Reads the next line of @file. If there is none, returns false. */
bool mounts_next(FILE *file, struct mounts_line *line);

/*
 * Finds the device of the folder @path, and the path of this folder in its file system. Writes
 * both to @found as if the folder was mounted. If that fails, returns false.
 */
bool mounts_find(const char *path, struct mounts_line *found);

/*
 * If @line mounts a file or folder inside @folder, returns its path in @folder. Otherwise returns
 * NULL. @folder: from mounts_find().
 */
const char *mounts_inside(const struct mounts_line *line, const struct mounts_line *folder);

#endif
