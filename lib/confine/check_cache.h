/* SPDX-License-Identifier: MIT */
/*
 * Stores the results of the self-check of mask bits. Later programs of this user can use these
 * results. The directory of the results is gpupart/checked in XDG_CACHE_HOME. If XDG_CACHE_HOME
 * is not set, the directory is gpupart/checked in HOME/.cache.
 */
#ifndef GPUPART_LIB_CONFINE_CHECK_CACHE_H
#define GPUPART_LIB_CONFINE_CHECK_CACHE_H

#include <sys/types.h>
#include "lib/core/ctx.h"

/*
 * Reads the file @name in the cache directory below @in. If @in is NULL, the function uses the
 * user's own cache directory. Returns the number of bytes that it read. If the file does not
 * exist, returns -1. If a user other than this user and root could have written the file, also
 * returns -1.
 */
ssize_t cache_read(const char *in, const char *name, void *data, size_t size);

/* Returns true if the cache contains @key, which is a string of 16 letters. */
bool cache_has(const char *key);

/*
 * Writes @data to the file @name atomically. Returns 0 or an error. If the user has no home
 * directory, the error is -ENOENT. If root would write into another user's directory, the error
 * is -EPERM.
 */
int cache_write(struct gpupart *gp, const char *name, const void *data, size_t len);

#endif
