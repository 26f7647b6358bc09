/* SPDX-License-Identifier: MIT */
/*
 * Makes the value of GLIBC_TUNABLES that gives a program enough static TLS. The command and Slurm's
 * plugin use this value.
 */
#ifndef GPUPART_CLI_UTIL_TUNABLES_VALUE_H
#define GPUPART_CLI_UTIL_TUNABLES_VALUE_H

#include <stddef.h>

#define TUNABLES "GLIBC_TUNABLES"

/*
 * Bytes of static TLS that glibc reserves for libraries that it loads later. The default is 512
 * bytes. libgpupart.so.0 needs 545 bytes and alignment when cuInit loads it, so the default is too
 * small. With 4 KiB, the program's libraries have more room than they had without gpupart.
 */
#define TUNABLES_TLS 4096

/*
 * With LD_AUDIT, glibc lays out static TLS before it loads the program's libraries. Therefore these
 * bytes must be enough for all of these libraries. Some libraries, such as sanitizers and
 * allocators, need 64 KiB. The value is enough for two such libraries and for small libraries of 32
 * KiB together. A larger value would cost too much. glibc takes the bytes from the stack of every
 * thread, and a thread with a stack of 128 KiB could not be created.
 */
#define TUNABLES_TLS_AUDIT (160 << 10)

/* The library of ThreadSanitizer needs 786 KB (GCC 12). */
#define TUNABLES_TLS_TSAN (1 << 20)

/*
 * Returns a value of GLIBC_TUNABLES that reserves at least @bytes. @old is the old value, or NULL.
 * If the size in @old is larger, keeps this size. Keeps all other tunables. The caller frees the
 * result. Returns NULL if there is no memory.
 */
char *tunables_join(const char *old, size_t bytes);

#endif
