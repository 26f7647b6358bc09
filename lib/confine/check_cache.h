/* SPDX-License-Identifier: MIT */
/*
 * What the self-check of mask bits proved, kept for later programs of this user in the folder
 * gpupart/checked of XDG_CACHE_HOME or of HOME/.cache.
 */
#ifndef GPUPART_LIB_CONFINE_CHECK_CACHE_H
#define GPUPART_LIB_CONFINE_CHECK_CACHE_H

#include <sys/types.h>
#include "lib/core/ctx.h"

/*
 * File @name of the folder below @in or, where that is NULL, of the user's own: how many bytes were
 * read, -1: there is none that only this user and root can have written.
 */
ssize_t cache_read(const char *in, const char *name, void *data, size_t size);

/* Whether @key, of 16 letters, was kept. */
bool cache_has(const char *key);

/*
 * Keeps @data, whole or not at all: 0, -ENOENT no home, -EPERM root would write into another user's
 * folder, or what the file system refused.
 */
int cache_write(struct gpupart *gp, const char *name, const void *data, size_t len);

#endif
