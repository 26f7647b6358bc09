/* SPDX-License-Identifier: MIT */
/* Scenario files that are installed with the command. */
#ifndef GPUPART_CLI_SIM_SCENARIO_FILES_H
#define GPUPART_CLI_SIM_SCENARIO_FILES_H

#include <stddef.h>

struct dirent;

/* Lists the files of the first directory that has any, like scandir(). Returns their number. */
int scenario_list(struct dirent ***entries);

/*
 * Writes the path of the installed scenario @name; @name itself if it is a file or contains a
 * slash. Returns 0 or an exit status.
 */
int scenario_find(const char *name, char *path, size_t len);

#endif
