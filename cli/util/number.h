/* SPDX-License-Identifier: MIT */
/* Parses numbers of the command line. */
#ifndef GPUPART_CLI_UTIL_NUMBER_H
#define GPUPART_CLI_UTIL_NUMBER_H

#include <stdbool.h>

/*
 * Reads a whole number from 1 to @most into *value. If @text is not such a number, returns false.
 */
bool number_whole(const char *text, unsigned long most, unsigned long *value);

/* Reads a decimal number into *value. If @text is not a decimal number, returns false. */
bool number_decimal(const char *text, double *value);

#endif
