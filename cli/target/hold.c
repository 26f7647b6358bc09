// SPDX-License-Identifier: MIT
/* Writes the grant that holds the containers of one CDI device to its set. See hold.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/cmd.h"
#include "cli/target/hold.h"
#include "lib/private.h"

#define HOLD_ROOT "/run/gpupart/cdi"

/* Makes the folders of @path that are not there, with mode 0755 whatever the umask is. */
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

int hold_container(const char *class, const char *device, struct gpupart_grant *grant,
		   char folder[PATH_MAX])
{
	int status;

	snprintf(folder, PATH_MAX, HOLD_ROOT "/%s/%s", class, device);
	strcpy(grant->id, GPUPART_GRANT_CONTAINER);
	status = make_folders(folder);
	if (!status && gpupart_grant_put_in(cmd_gp, folder, grant))
		status = failure("%s", gpupart_error(cmd_gp));
	return status;
}
