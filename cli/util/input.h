/* SPDX-License-Identifier: MIT */
/* Opens files that the user names. Does not wait for the writer of a pipe. */
#ifndef GPUPART_CLI_UTIL_INPUT_H
#define GPUPART_CLI_UTIL_INPUT_H

#include <stdio.h>

/*
 * Opens @path for reading. If @path is a pipe, it must have a writer. If opening fails, sets *why
 * to the reason, sets errno, and returns NULL.
 */
FILE *input_open(const char *path, const char **why);

#endif
