/* SPDX-License-Identifier: MIT */
/* Writes files atomically, and never through a symbolic link of another user. */
#ifndef GPUPART_CLI_UTIL_ATOMIC_FILE_H
#define GPUPART_CLI_UTIL_ATOMIC_FILE_H

#include <stdbool.h>

/*
 * Atomically replaces the file at @path by a file with the content @text. If the old file belongs
 * to this user, the new one gets its mode; otherwise the mode is 0644. A pipe or a device is not
 * replaced but written to. Returns 0 or -errno. -ELOOP means that @path is a symbolic link of a
 * user other than this user and root. -ENXIO means that @path is a pipe without a reader.
 */
int atomic_file_write(const char *path, const char *text);

/*
 * The same, and calls @then after @text is on disk and before it replaces @path. If @then fails,
 * returns its -errno and leaves @path unchanged.
 */
int atomic_file_write_with(const char *path, const char *text, int (*then)(void *arg), void *arg);

/*
 * Checks whether @path is a symbolic link. Returns 0 if it is not, and 1 if the link belongs to
 * this user or root. Returns -ELOOP if the link belongs to another user, who could point it to any
 * file of this user.
 */
int atomic_file_check_link(const char *path);

/*
 * Opens @path for writing with additional @flags and mode 0666, but not through another user's
 * link. Returns a descriptor, which the caller closes, or -errno: -ENXIO for a pipe without a
 * reader.
 * atomic_file_strerror() describes errors of atomic_file_write(), atomic_file_check_link() and
 * atomic_file_open().
 */
int atomic_file_open(const char *path, int flags);
const char *atomic_file_strerror(int err);

/*
 * Whether @path is a regular file of this user with exactly @text as its content, not a link and
 * not writable by others.
 */
bool atomic_file_has(const char *path, const char *text);

/* Writes all of @text to @fd. Returns 0 or -errno. */
int atomic_file_put(int fd, const char *text);

#endif
