/* SPDX-License-Identifier: MIT */
/* Writes files where other users may write: never through their links, and whole or not at all. */
#ifndef GPUPART_CLI_UTIL_ATOMIC_FILE_H
#define GPUPART_CLI_UTIL_ATOMIC_FILE_H

#include <stdbool.h>

/*
 * Writes @text to @path, with the mode of this user's file that is there or 0644: at no time is
 * less than all of the old or of the new there. What is no regular file (a pipe, a device) is
 * written to. 0 or -errno; -ELOOP: @path is a link of a user who is neither this one nor root;
 * -ENXIO: a pipe that nobody reads.
 */
int whole_write(const char *path, const char *text);

/*
 * The same, and calls @then when all of @text is on the disk, before others see it at @path. If
 * that fails, its -errno is returned and @path stays as it was.
 */
int whole_write_with(const char *path, const char *text, int (*then)(void *arg), void *arg);

/*
 * Whether @path is a link: 0 it is none, 1 this user's or root's, -ELOOP another user's, which
 * could lead to any file of this user's.
 */
int whole_link(const char *path);

/*
 * Opens @path for writing, with open()'s @flags besides and mode 0666, but not through another
 * user's link. A descriptor, which the caller closes, or -errno; whole_words() has the text of
 * what whole_write(), whole_link() and whole_open() returned.
 */
int whole_open(const char *path, int flags);
const char *whole_words(int err);

/*
 * Whether a regular file of this user's at @path, which is no link and which nobody else can write,
 * has @text and nothing else.
 */
bool whole_is_there(const char *path, const char *text);

/* Writes all of @text to @fd: 0 or -errno. */
int whole_put(int fd, const char *text);

#endif
