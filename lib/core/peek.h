/* SPDX-License-Identifier: MIT */
/* Reads this process's own memory. A bad address causes an error, not a fault. */
#ifndef GPUPART_LIB_CORE_PEEK_H
#define GPUPART_LIB_CORE_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/core/ctx.h"

/*
 * Reads up to @len bytes from @at. Returns the number of bytes before the first page that is not
 * mapped. The function takes no lock.
 */
GPUPART_PRIVATE
size_t peek(const void *at, void *into, size_t len);

/* Reads the word at @at. Returns false if the memory at @at is not mapped. */
static inline bool peek_word(const void *at, uint64_t *word)
{
	return peek(at, word, sizeof(*word)) == sizeof(*word);
}

#endif
