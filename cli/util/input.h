/* SPDX-License-Identifier: MIT */
/*
 * Opens files that the user names. If a file is a pipe without a writer, does not wait for a
 * writer.
 */
#ifndef GPUPART_CLI_UTIL_INPUT_H
#define GPUPART_CLI_UTIL_INPUT_H

#include <stdio.h>

/*
 * Opens @path for reading. @path may be a pipe that has a writer. If @path cannot be opened,
 * returns NULL and sets *why to the reason and errno to the error.
 */
FILE *input_open(const char *path, const char **why);

#endif
