/* SPDX-License-Identifier: MIT */
/* Reads this process's own memory, so that a bad address is an answer and no fault. */
#ifndef GPUPART_LIB_CORE_PEEK_H
#define GPUPART_LIB_CORE_PEEK_H

#include <stddef.h>

/* Up to @len bytes from @at; how many were there before the first page that is not. No lock. */
size_t peek(const void *at, void *into, size_t len);

#endif
