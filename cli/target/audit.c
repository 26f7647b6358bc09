// SPDX-License-Identifier: MIT
/* Adds the audit library to LD_AUDIT, and tests whether the loader accepts it. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/target/audit.h"
#include "cli/util/child.h"
#include "cli/util/message.h"
#include "cli/util/paths.h"

/* Returns whether @list contains the file at @path. The format of @list is that of LD_AUDIT. */
static bool names(const char *list, const char *path)
{
	char one[PATH_MAX];
	size_t len;

	for (; *list; list += len + (list[len] == ':')) {
		len = strcspn(list, ":");
		if (len >= sizeof(one))
			continue;
		memcpy(one, list, len);
		one[len] = 0;
		if (paths_same(one, path))
			return true;
	}
	return false;
}

/*
 * Appends @path to LD_AUDIT. So the answers of the library at @path pass through all other
 * libraries in the list.
 */
static int put_last(const char *path)
{
	const char *others = getenv("LD_AUDIT");
	char *joined;

	if (!others || !*others)
		return setenv("LD_AUDIT", path, 1) ? -errno : 0;
	if (names(others, path))
		return 0;
	if (asprintf(&joined, "%s:%s", others, path) < 0)
		return -ENOMEM;
	setenv("LD_AUDIT", joined, 1);
	free(joined);
	return 0;
}

void audit_join(void)
{
	char path[PATH_MAX];
	int err = paths_package(PATHS_NVML, path, sizeof(path));

	/* For the loader, a colon ends the path and "$" begins a variable. */
	if (!err && strpbrk(path, ":$"))
		err = -EINVAL;
	if (!err)
		err = put_last(path);
	if (err == -EINVAL)
		remark("LD_AUDIT cannot contain a path with a colon or '$' (%s): " AUDIT_WHOLE,
		       path);
	else if (err)
		remark(PATHS_NVML ": %s: " AUDIT_WHOLE, strerror(-err));
}

/*
 * Runs in a child. Starts a program with the library at @path. If the program loads the library,
 * sets *result.
 */
static void try_it(void *path, void *result)
{
	char line[PATH_MAX + 128];
	FILE *maps;

	setenv("LD_AUDIT", path, 1);
	setenv("GPUPART_TENANT", "doctor", 1);
	unsetenv("GPUPART_DISABLE");
	/* The child's stdout is this command's stderr. */
	maps = popen("exec cat /proc/self/maps 2>/dev/null", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, path))
			*(bool *)result = true;
	if (maps)
		pclose(maps);
}

bool audit_works(const char *path, char *text, size_t len)
{
	bool taken = false;
	char why[128];
	int err = child_call(try_it, (void *)path, &taken, sizeof(taken), 10, why, sizeof(why));

	if (!err && taken)
		snprintf(text, len, "%s: inside 'run --mem' NVML reports the quota (glibc %s)",
			 path, gnu_get_libc_version());
	else
		snprintf(text, len,
			 "the loader of glibc %s does not load %s%s%s: inside 'run --mem' "
			 AUDIT_WHOLE, gnu_get_libc_version(), path, err ? ": " : "",
			 err ? why : "");
	return !err && taken;
}
