/* SPDX-License-Identifier: MIT */
/* Finds out whether this process has its own pid or user namespace, as in a container. */
#ifndef GPUPART_CLI_UTIL_NAMESPACES_H
#define GPUPART_CLI_UTIL_NAMESPACES_H

#include <stddef.h>

/* Describes the namespaces in @how. Returns advice, or NULL if they are the machine's. */
const char *namespaces_advice(char *how, size_t len);

#endif
