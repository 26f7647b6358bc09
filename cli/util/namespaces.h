/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether this process has its own pid or user namespace, which is usual in a container.
 */
#ifndef GPUPART_CLI_UTIL_NAMESPACES_H
#define GPUPART_CLI_UTIL_NAMESPACES_H

#include <stddef.h>

/*
 * Describes the namespaces in @how. Returns advice, or NULL if this process is in the namespaces
 * of the machine.
 */
const char *namespaces_advice(char *how, size_t len);

#endif
