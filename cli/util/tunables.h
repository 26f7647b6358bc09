/* SPDX-License-Identifier: MIT */
/* Room for static TLS in a program's environment. */
#ifndef GPUPART_CLI_UTIL_TUNABLES_H
#define GPUPART_CLI_UTIL_TUNABLES_H

/*
 * Raises it in this process's environment: for an injected library, or, where @audited names
 * the program, for a program that is started with LD_AUDIT.
 */
void tunables_raise(const char *audited);

#endif
