/* SPDX-License-Identifier: MIT */
/*
 * Sets GLIBC_TUNABLES for a program. With this value, the program's libraries have enough static
 * TLS.
 */
#ifndef GPUPART_CLI_UTIL_TUNABLES_H
#define GPUPART_CLI_UTIL_TUNABLES_H

/*
 * Raises the TLS size in this process's environment. If @audited is NULL, the size is for an
 * injected library. Otherwise this process starts the program @audited with LD_AUDIT, and the size
 * is for this program.
 */
void tunables_raise(const char *audited);

#endif
