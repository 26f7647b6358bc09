/* SPDX-License-Identifier: MIT */
/* Writes files atomically, and never through a symbolic link of another user. */
#ifndef GPUPART_CLI_UTIL_ATOMIC_FILE_H
#define GPUPART_CLI_UTIL_ATOMIC_FILE_H

#include <stdbool.h>

/*
 * Atomically replaces the file at @path by a file with the content @text. If the old file
 * belongs to this user, the new file gets the mode of the old file. Otherwise the mode is 0644.
 * If @path is a pipe or a device, writes the text to @path and does not replace it. Returns 0 or
 * -errno. -ELOOP means that @path is a symbolic link that belongs neither to this user nor to
 * root. -ENXIO means that @path is a pipe without a reader.
 */
int atomic_file_write(const char *path, const char *text);

/*
 * Does the same as atomic_file_write(). Calls @then when @text is on disk, before @path is
 * replaced. If @then fails, returns the -errno of @then and leaves @path unchanged.
 */
int atomic_file_write_with(const char *path, const char *text, int (*then)(void *arg), void *arg);

/*
 * Checks whether @path is a symbolic link. Returns 0 if it is not a link, and 1 if the link
 * belongs to this user or root. If the link belongs to another user, returns -ELOOP, because its
 * owner could make it point to any file of this user.
 */
int atomic_file_check_link(const char *path);

/*
 * Opens @path for writing with additional @flags and mode 0666. Does not follow another user's
 * link. Returns a descriptor, which the caller closes, or -errno. -ENXIO means that @path is a pipe
 * without a reader. atomic_file_strerror() describes errors of atomic_file_write(),
 * atomic_file_check_link() and atomic_file_open().
 */
int atomic_file_open(const char *path, int flags);
const char *atomic_file_strerror(int err);

/*
 * Returns whether @path is a regular file of this user that contains exactly @text. Returns false
 * for a link and for a file that others can write.
 */
bool atomic_file_has(const char *path, const char *text);

/* Writes all of @text to @fd. Returns 0 or -errno. */
int atomic_file_put(int fd, const char *text);

#endif
