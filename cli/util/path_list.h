/* SPDX-License-Identifier: MIT */
/* Paths and lists of them, as in LD_PRELOAD: for the command and for Slurm's plugin. */
#ifndef GPUPART_CLI_UTIL_PATH_LIST_H
#define GPUPART_CLI_UTIL_PATH_LIST_H

#include <stdbool.h>
#include <string.h>

#define PATH_LIST_PRELOAD " :"	/* what separates the paths of LD_PRELOAD */
#define PATH_LIST_OTHERS  ":"	/* those of LD_AUDIT and LD_LIBRARY_PATH */

/* Whether @path itself, and not one that it is a part of, is in @list. */
static inline bool path_list_has(const char *list, const char *separators, const char *path)
{
	for (size_t len; *list; list += len + (list[len] != 0)) {
		len = strcspn(list, separators);
		if (len == strlen(path) && !strncmp(list, path, len))
			return true;
	}
	return false;
}

/* Whether the last component of @path is @name. */
static inline bool path_is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, name);
}

#endif
