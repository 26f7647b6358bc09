/* SPDX-License-Identifier: MIT */
/* Sets GLIBC_TUNABLES for a program, so that its libraries have enough static TLS. */
#ifndef GPUPART_CLI_UTIL_TUNABLES_H
#define GPUPART_CLI_UTIL_TUNABLES_H

/*
 * Raises the size in this process's environment. If @audited is NULL, the size is for an
 * injected library. Otherwise the size is for the program @audited, which this process starts
 * with LD_AUDIT.
 */
void tunables_raise(const char *audited);

#endif
