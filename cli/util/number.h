/* SPDX-License-Identifier: MIT */
/* Numbers in words of the command line. */
#ifndef GPUPART_CLI_UTIL_NUMBER_H
#define GPUPART_CLI_UTIL_NUMBER_H

#include <stdbool.h>

/* Whether @text is a whole number from 1 to @most: it is *value. */
bool number_whole(const char *text, unsigned long most, unsigned long *value);

/* All of @text is a number, in decimal. */
bool number_decimal(const char *text, double *value);

#endif
