/* SPDX-License-Identifier: MIT */
/*
 * Stores the results of the self-check of mask bits, so that later programs of this user can use
 * them. The directory is gpupart/checked in XDG_CACHE_HOME, or in HOME/.cache.
 */
#ifndef GPUPART_LIB_CONFINE_CHECK_CACHE_H
#define GPUPART_LIB_CONFINE_CHECK_CACHE_H

#include <sys/types.h>
#include "lib/core/ctx.h"

/*
 * Reads file @name of the cache directory below @in. If @in is NULL, the function reads from the
 * user's own cache directory. Returns the number of bytes, or -1 if there is no such file. If
 * any other user except root could have written the file, the function treats the file as
 * missing.
 */
ssize_t cache_read(const char *in, const char *name, void *data, size_t size);

/* Returns true if @key, a string of 16 letters, is stored in the cache. */
bool cache_has(const char *key);

/*
 * Stores @data atomically. Returns 0, -ENOENT if there is no home, -EPERM if root would write
 * into another user's directory, or the file system's error.
 */
int cache_write(struct gpupart *gp, const char *name, const void *data, size_t len);

#endif
