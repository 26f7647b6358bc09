/* SPDX-License-Identifier: MIT */
/* Opens files that the user names, and never waits for a writer of a pipe. */
#ifndef GPUPART_CLI_UTIL_INPUT_H
#define GPUPART_CLI_UTIL_INPUT_H

#include <stdio.h>

/*
 * Opens @path for reading. @path may be a pipe that has a writer. If it cannot be opened, returns
 * NULL, with the reason in *why and the error in errno.
 */
FILE *input_open(const char *path, const char **why);

#endif
