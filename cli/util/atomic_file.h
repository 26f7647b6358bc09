/* SPDX-License-Identifier: MIT */
/* A file that is there whole or as it was. */
#ifndef GPUPART_CLI_UTIL_ATOMIC_FILE_H
#define GPUPART_CLI_UTIL_ATOMIC_FILE_H

/*
 * Writes @text to @path, with the mode of this user's file that is there or 0644: at no time is
 * less than all of the old or of the new there. What is no regular file (a pipe, a device) is
 * written to. 0 or -errno; -ELOOP: @path is a link of a user who is neither this one nor root.
 */
int whole_write(const char *path, const char *text);

/* Writes all of @text to @fd: 0 or -errno. */
int whole_put(int fd, const char *text);

#endif
