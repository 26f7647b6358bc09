/* SPDX-License-Identifier: MIT */
/*
 * Makes a value of GLIBC_TUNABLES. With this value, a program has enough static TLS. The command
 * and Slurm's plugin use this function.
 */
#ifndef GPUPART_CLI_UTIL_TUNABLES_VALUE_H
#define GPUPART_CLI_UTIL_TUNABLES_VALUE_H

#include <stddef.h>

#define TUNABLES "GLIBC_TUNABLES"

/*
 * The size, in bytes, of the static TLS for libraries that are loaded later. The default of glibc
 * is 512 bytes. This is too small, because libgpupart.so.0 needs 545 bytes and alignment when
 * cuInit loads this library. With 4 KiB, the program's own libraries have more room than without
 * gpupart.
 */
#define TUNABLES_TLS 4096

/*
 * With LD_AUDIT, glibc lays out static TLS before it loads the program's libraries. Therefore the
 * size must be enough for all of these libraries. Some libraries, such as sanitizers and
 * allocators, need 64 KiB. The size is enough for two such libraries, plus 32 KiB for small
 * libraries. A larger size would cost too much. The TLS is a part of the stack of every thread. A
 * thread with a stack of 128 KiB could not be created.
 */
#define TUNABLES_TLS_AUDIT (160 << 10)

/* The library of ThreadSanitizer needs 786 KB (GCC 12). */
#define TUNABLES_TLS_TSAN (1 << 20)

/*
 * Returns a value of GLIBC_TUNABLES that reserves at least @bytes bytes. The old value is @old, or
 * NULL. If the size in @old is larger, keeps this size. Keeps all other tunables. The caller frees
 * the result. If there is no memory, returns NULL.
 */
char *tunables_join(const char *old, size_t bytes);

#endif
