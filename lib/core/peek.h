/* SPDX-License-Identifier: MIT */
/* Reads this process's own memory, so that a bad address is an answer and no fault. */
#ifndef GPUPART_LIB_CORE_PEEK_H
#define GPUPART_LIB_CORE_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/core/ctx.h"

/* Up to @len bytes from @at; how many were there before the first page that is not. No lock. */
GPUPART_PRIVATE
size_t peek(const void *at, void *into, size_t len);

/* The word at @at; false where there is none. */
static inline bool peek_word(const void *at, uint64_t *word)
{
	return peek(at, word, sizeof(*word)) == sizeof(*word);
}

#endif
