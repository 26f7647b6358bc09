/* SPDX-License-Identifier: MIT */
/*
 * Searches lists of paths, such as LD_PRELOAD. The command and Slurm's plugin use these functions.
 */
#ifndef GPUPART_CLI_UTIL_PATH_LIST_H
#define GPUPART_CLI_UTIL_PATH_LIST_H

#include <stdbool.h>
#include <string.h>

#define PATH_LIST_PRELOAD " :"	/* separators of LD_PRELOAD */
#define PATH_LIST_OTHERS  ":"	/* separator of LD_AUDIT and LD_LIBRARY_PATH */

/* Returns whether @list contains exactly @path. */
static inline bool path_list_has(const char *list, const char *separators, const char *path)
{
	for (size_t len; *list; list += len + (list[len] != 0)) {
		len = strcspn(list, separators);
		if (len == strlen(path) && !strncmp(list, path, len))
			return true;
	}
	return false;
}

/* Returns whether the last component of @path is @name. */
static inline bool path_is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, name);
}

#endif
