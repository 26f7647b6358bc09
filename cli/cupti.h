/* SPDX-License-Identifier: MIT */
/* Instructions per cycle, as NVIDIA's profiling library could tell. Knows no tenant. */
#ifndef GPUPART_CLI_CUPTI_H
#define GPUPART_CLI_CUPTI_H

#include <stddef.h>

/*
 * Why instructions per cycle are no signal here, in words: no library, no right to count, or
 * what the library that there is counts. Loads it, and counts nothing. Returns @why.
 */
const char *cupti_why_not(char *why, size_t len);

#endif
