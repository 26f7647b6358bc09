/* SPDX-License-Identifier: MIT */
/* Scenario files that are installed with the command. */
#ifndef GPUPART_CLI_SIM_SCENARIO_FILES_H
#define GPUPART_CLI_SIM_SCENARIO_FILES_H

#include <stddef.h>

struct dirent;

/* The files of the first folder that has any, as scandir() returns them: how many. */
int scenario_list(struct dirent ***entries);

/*
 * The path of the installed scenario @name, or @name itself if it is a file or has a folder in it:
 * 0, or an error.
 */
int scenario_find(const char *name, char *path, size_t len);

#endif
