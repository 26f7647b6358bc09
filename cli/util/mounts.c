// SPDX-License-Identifier: MIT
/* Reads /proc/PID/mountinfo; see mounts.h. */
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "cli/util/mounts.h"

bool mounts_next(FILE *file, struct mounts_line *line)
{
	unsigned int major, minor;

	if (fscanf(file, "%*d %*d %u:%u %4095s %4095s%*[^\n]%n", &major, &minor, line->root,
		   line->at, &line->len) != 4)
		return false;
	line->device = makedev(major, minor);
	return true;
}

bool mounts_find(const char *path, struct mounts_line *found)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	struct mounts_line line;
	struct stat st;
	size_t len;

	*found->root = 0;
	/* A mount is listed after the mounts that it covers. */
	while (file && !stat(path, &st) && mounts_next(file, &line)) {
		len = strcmp(line.at, "/") ? strlen(line.at) : 0;
		if (line.device != st.st_dev || strncmp(path, line.at, len) || path[len] != '/' ||
		    strlen(line.root) + strlen(path + len) >= sizeof(found->root))
			continue;
		strcpy(found->root, strcmp(line.root, "/") ? line.root : "");
		strcat(found->root, path + len);
		found->device = line.device;
	}
	if (file)
		fclose(file);
	return *found->root;
}

const char *mounts_inside(const struct mounts_line *line, const struct mounts_line *folder)
{
	size_t len = strlen(folder->root);

	return line->device == folder->device && !strncmp(line->root, folder->root, len) &&
	       line->root[len] == '/' ? line->root + len + 1 : NULL;
}
