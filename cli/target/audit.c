// SPDX-License-Identifier: MIT
/* The audit library in a program's environment, and whether the loader takes it here. */
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

/* Whether @list, as LD_AUDIT has it, names the file at @path. */
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

/* Last in the list: what the program is told has been through the others. */
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

	/* The loader takes a colon for the end of the name, and "$" for the begin of a word. */
	if (!err && strpbrk(path, ":$"))
		err = -EINVAL;
	if (!err)
		err = put_last(path);
	if (err == -EINVAL)
		remark("LD_AUDIT takes no path with a colon or '$' (%s): " AUDIT_WHOLE, path);
	else if (err)
		remark(PATHS_NVML ": %s: " AUDIT_WHOLE, strerror(-err));
}

/* In a child: whether a program that is started with the library at @path has it. */
static void try_it(void *path, void *result)
{
	char line[PATH_MAX + 128];
	FILE *maps;

	setenv("LD_AUDIT", path, 1);
	setenv("GPUPART_TENANT", "doctor", 1);
	unsetenv("GPUPART_DISABLE");
	/* Standard output of a child is the standard error of ours. */
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
		snprintf(text, len, "%s: inside 'run --mem' NVML tells the share (glibc %s)", path,
			 gnu_get_libc_version());
	else
		snprintf(text, len,
			 "the loader of glibc %s does not take %s%s%s: inside 'run --mem' "
			 AUDIT_WHOLE, gnu_get_libc_version(), path, err ? ": " : "",
			 err ? why : "");
	return !err && taken;
}
