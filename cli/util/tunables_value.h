/* SPDX-License-Identifier: MIT */
/* GLIBC_TUNABLES with room for static TLS: for the command and for Slurm's plugin. */
#ifndef GPUPART_CLI_UTIL_TUNABLES_VALUE_H
#define GPUPART_CLI_UTIL_TUNABLES_VALUE_H

#include <stddef.h>

#define TUNABLES "GLIBC_TUNABLES"

/*
 * Bytes of static TLS that glibc keeps for libraries which it loads later. It has 512, of which
 * libgpupart.so.0 takes 545 and alignment when cuInit loads it, so that a library of the
 * program's may find none left, or take them first. 4 KiB leave more than there was without
 * gpupart.
 */
#define TUNABLES_TLS 4096

/*
 * With LD_AUDIT glibc lays out the static TLS before it loads what the program is linked with:
 * all of it comes out of these bytes. Libraries with 64 KiB are known (sanitizers, allocators):
 * room for two, and 32 KiB for small ones. Not more, since the stack of every thread is smaller
 * by these bytes: a thread that asks for a stack of 128 KiB cannot be created.
 */
#define TUNABLES_TLS_AUDIT (160 << 10)

/* ThreadSanitizer's library alone has 786 KB (GCC 12). */
#define TUNABLES_TLS_TSAN (1 << 20)

/*
 * @old (NULL: none), a value of GLIBC_TUNABLES, with room for at least @bytes: a larger size in
 * it stays, and so do other tunables. The caller frees it; NULL: no memory.
 */
char *tunables_join(const char *old, size_t bytes);

#endif
