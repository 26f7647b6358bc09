/* SPDX-License-Identifier: MIT */
/* The shared libraries that one of this process needs. */
#ifndef GPUPART_CLI_UTIL_SHARED_OBJECTS_H
#define GPUPART_CLI_UTIL_SHARED_OBJECTS_H

#include <limits.h>

struct needed {
	const char *name;	/* as it is asked for: libnl-3.so.200 */
	char path[PATH_MAX];	/* the file that was loaded */
};

/*
 * The library @name and all that it needs but the C library's own, which every system
 * has and which belong to its loader. How many, @max at most; -ENOENT if it is not loaded.
 */
int needed_list(const char *name, struct needed *list, int max);

#endif
