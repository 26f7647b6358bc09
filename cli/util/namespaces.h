/* SPDX-License-Identifier: MIT */
/* Whether this process has pids or users of its own, as in a container. */
#ifndef GPUPART_CLI_UTIL_NAMESPACES_H
#define GPUPART_CLI_UTIL_NAMESPACES_H

#include <stddef.h>

/* NULL: they are the machine's, or what to do. @how says what they are. */
const char *namespaces_advice(char *how, size_t len);

#endif
