/* SPDX-License-Identifier: MIT */
/* Writes files atomically, and never through a symbolic link of another user. */
#ifndef GPUPART_CLI_UTIL_ATOMIC_FILE_H
#define GPUPART_CLI_UTIL_ATOMIC_FILE_H

#include <stdbool.h>

/*
 * Atomically replaces the file at @path by a file with the content @text. If the old file belongs
 * to this user, the new file gets the mode of the old file. Otherwise the mode is 0644. If @path is
 * a pipe or a device, writes @text to @path and does not replace @path. If @path is a symbolic link
 * of a user other than root and this user, returns -ELOOP. If @path is a pipe without a reader,
 * returns -ENXIO. Otherwise returns 0 or -errno.
 */
int atomic_file_write(const char *path, const char *text);

/*
 * Does the same as atomic_file_write(), and also calls @then. At this time, @text is on disk but
 * @path is not yet replaced. If @then fails, returns the -errno of @then and leaves @path
 * unchanged.
 */
int atomic_file_write_with(const char *path, const char *text, int (*then)(void *arg), void *arg);

/*
 * Checks whether @path is a symbolic link. If @path is not a link, returns 0. If the link belongs
 * to this user or root, returns 1. Otherwise returns -ELOOP, because the owner of the link could
 * make it point to any file of this user.
 */
int atomic_file_check_link(const char *path);

/*
 * Opens @path for writing, with the additional flags @flags and mode 0666. Does not follow another
 * user's link. Returns a descriptor or -errno. The caller closes the descriptor. If @path is a pipe
 * without a reader, returns -ENXIO. Function atomic_file_strerror() describes errors of
 * atomic_file_write(), atomic_file_check_link() and atomic_file_open().
 */
int atomic_file_open(const char *path, int flags);
const char *atomic_file_strerror(int err);

/*
 * Returns whether @path is a regular file of this user with exactly the content @text. If @path is
 * a link, or if other users can write the file, returns false.
 */
bool atomic_file_has(const char *path, const char *text);

/* Writes all of @text to @fd. Returns 0 or -errno. */
int atomic_file_put(int fd, const char *text);

#endif
