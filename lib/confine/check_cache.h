/* SPDX-License-Identifier: MIT */
/*
 * Stores what the self-check of mask bits proved, for later programs of this user: in the
 * directory gpupart/checked of XDG_CACHE_HOME or of HOME/.cache.
 */
#ifndef GPUPART_LIB_CONFINE_CHECK_CACHE_H
#define GPUPART_LIB_CONFINE_CHECK_CACHE_H

#include <sys/types.h>
#include "lib/core/ctx.h"

/*
 * Reads file @name of the directory below @in or, if that is NULL, of the user's own. Returns
 * the number of bytes, or -1 if there is no such file that only this user and root can have
 * written.
 */
ssize_t cache_read(const char *in, const char *name, void *data, size_t size);

/* Whether @key, 16 letters, is stored. */
bool cache_has(const char *key);

/*
 * Stores @data atomically. Returns 0, -ENOENT if there is no home, -EPERM if root would write
 * into another user's directory, or the file system's error.
 */
int cache_write(struct gpupart *gp, const char *name, const void *data, size_t len);

#endif
