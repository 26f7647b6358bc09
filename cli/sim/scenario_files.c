// SPDX-License-Identifier: MIT
/*
 * Finds the scenario files of this build or package. If there are none, finds the installed files.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/sim/scenario_files.h"
#include "cli/util/message.h"
#include "cli/util/paths.h"

static bool folder_of(unsigned int i, char *folder, size_t len)
{
	char package[PATH_MAX];

	if (i > 1)
		return false;
	if (i || paths_package("../../share/gpupart/scenarios", package, sizeof(package)) ||
	    paths_full(package, folder, len))
		snprintf(folder, len, "%s", GPUPART_DATADIR "/scenarios");
	return true;
}

static int is_scenario(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 5 && !strcmp(entry->d_name + len - 5, ".yaml");
}

int scenario_list(struct dirent ***entries)
{
	char folder[PATH_MAX];
	int nr;

	for (unsigned int i = 0; folder_of(i, folder, sizeof(folder)); i++) {
		nr = scandir(folder, entries, is_scenario, alphasort);
		if (nr > 0)
			return nr;
		if (!nr)
			free(*entries);
	}
	return 0;
}

int scenario_find(const char *name, char *path, size_t len)
{
	char folder[PATH_MAX];

	for (unsigned int i = 0; !strchr(name, '/') && access(name, F_OK) &&
	     folder_of(i, folder, sizeof(folder)); i++)
		if (snprintf(path, len, "%s/%s.yaml", folder, name) < (int)len &&
		    !access(path, F_OK))
			return 0;
	snprintf(path, len, "%s", name);
	if (strchr(name, '/') || !access(name, F_OK))
		return 0;
	return usage_error("there is no file and no installed scenario '%s': see 'gpupart sim "
			   "--list'",
			   name);
}
