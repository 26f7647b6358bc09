/* SPDX-License-Identifier: MIT */
/* Scenario files that are installed with the command. */
#ifndef GPUPART_CLI_SIM_SCENARIO_FILES_H
#define GPUPART_CLI_SIM_SCENARIO_FILES_H

#include <stddef.h>

struct dirent;

/*
 * Finds the first directory that is not empty. Lists the files in this directory in the same way as
 * scandir(). Returns the number of files.
 */
int scenario_list(struct dirent ***entries);

/*
 * Writes a path to @path. If @name is a file or contains a slash, the path is @name. Otherwise the
 * path is that of the installed scenario @name. Returns 0 or an exit status.
 */
int scenario_find(const char *name, char *path, size_t len);

#endif
