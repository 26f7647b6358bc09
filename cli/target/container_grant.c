// SPDX-License-Identifier: MIT
/*
 * Writes the grants of containers; see container_grant.h. Each container has a directory for its
 * grants.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/target/container_grant.h"
#include "lib/private.h"

/* Creates the missing directories of @path with mode 0755. The umask does not change this mode. */
static int make_folders(char *path)
{
	for (char *slash = path; slash; *slash = '/') {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = 0;
		if (!mkdir(path, 0755) ? chmod(path, 0755) : errno != EEXIST)
			return failure("%s: %s", path, strerror(errno));
		if (!slash)
			break;
	}
	return 0;
}

int hold_container(const char *folder, const struct gpupart_grant *grant)
{
	struct gpupart_grant copy = *grant;
	char path[PATH_MAX];
	int status, err = 0;

	snprintf(path, sizeof(path), "%s", folder);
	status = make_folders(path);
	if (status)
		return status;
	/*
	 * Both grants apply to user 0 of the container. If both had a quota, the sum of the quotas
	 * would apply.
	 */
	copy.memory = 0;
	if (*copy.id)
		err = gpupart_grant_put_in(cmd_gp, folder, &copy);
	copy.memory = grant->memory;
	strcpy(copy.id, GPUPART_GRANT_CONTAINER);
	if (err || gpupart_grant_put_in(cmd_gp, folder, &copy))
		return failure("%s", gpupart_error(cmd_gp));
	return 0;
}

void hold_remove(const char *folder)
{
	char path[PATH_MAX];
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
}
