/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether this process has its own pid namespace or user namespace. Such namespaces are
 * usual in a container.
 */
#ifndef GPUPART_CLI_UTIL_NAMESPACES_H
#define GPUPART_CLI_UTIL_NAMESPACES_H

#include <stddef.h>

/*
 * Describes the namespaces in @how. If this process is in the namespaces of the machine, returns
 * NULL. Otherwise returns advice.
 */
const char *namespaces_advice(char *how, size_t len);

#endif
