/* SPDX-License-Identifier: MIT */
/* Makes the value of GLIBC_TUNABLES with enough static TLS, for the command and Slurm's plugin. */
#ifndef GPUPART_CLI_UTIL_TUNABLES_VALUE_H
#define GPUPART_CLI_UTIL_TUNABLES_VALUE_H

#include <stddef.h>

#define TUNABLES "GLIBC_TUNABLES"

/*
 * Bytes of static TLS that glibc reserves for libraries that it loads later. The default is 512,
 * but libgpupart.so.0 alone needs 545 and alignment when cuInit loads it. With 4 KiB a program's
 * libraries have more than they had without gpupart.
 */
#define TUNABLES_TLS 4096

/*
 * With LD_AUDIT glibc lays out static TLS before it loads the program's libraries, so these bytes
 * must be enough for all of them. Some libraries need 64 KiB (sanitizers, allocators): this is room
 * for two of them, and 32 KiB for small ones. More would cost too much: the bytes are taken from
 * the stack of every thread, and a thread with a stack of 128 KiB could not be created. /
 */
#define TUNABLES_TLS_AUDIT (160 << 10)

/* ThreadSanitizer's library alone needs 786 KB (GCC 12). */
#define TUNABLES_TLS_TSAN (1 << 20)

/*
 * Returns @old, a value of GLIBC_TUNABLES or NULL, with a size of at least @bytes. A larger size
 * and other tunables are kept. The caller frees the result; NULL: no memory. /
 */
char *tunables_join(const char *old, size_t bytes);

#endif
