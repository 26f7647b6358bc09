/* SPDX-License-Identifier: MIT */
/* Masks of SMs or TPCs: arrays of 64-bit words. */
#ifndef GPUPART_SIM_PIPE_MASK_H
#define GPUPART_SIM_PIPE_MASK_H

#include <stdbool.h>
#include <stdint.h>

static inline bool mask_has(const uint64_t *mask, unsigned int bit)
{
	return mask[bit / 64] >> bit % 64 & 1;
}

static inline void mask_add(uint64_t *mask, unsigned int bit)
{
	mask[bit / 64] |= 1ull << bit % 64;
}

static inline void mask_del(uint64_t *mask, unsigned int bit)
{
	mask[bit / 64] &= ~(1ull << bit % 64);
}

static inline unsigned int mask_count(const uint64_t *mask, unsigned int words)
{
	unsigned int i, nr = 0;

	for (i = 0; i < words; i++)
		nr += __builtin_popcountll(mask[i]);
	return nr;
}

/* Returns the number of set bits in [from, to). */
static inline unsigned int mask_count_range(const uint64_t *mask, unsigned int from,
					    unsigned int to)
{
	unsigned int w, nr = 0;
	uint64_t word;

	for (w = from / 64; w * 64 < to; w++) {
		word = mask[w];
		if (w == from / 64)
			word &= ~0ull << from % 64;
		if (to - w * 64 < 64)
			word &= ~(~0ull << (to - w * 64));
		nr += __builtin_popcountll(word);
	}
	return nr;
}

/* Returns the first set bit from @from on, or -1. */
static inline int mask_next(const uint64_t *mask, unsigned int words, unsigned int from)
{
	unsigned int i = from / 64;
	uint64_t word;

	if (i >= words)
		return -1;
	word = mask[i] & (~0ull << from % 64);
	while (!word)
		if (++i == words)
			return -1;
		else
			word = mask[i];
	return i * 64 + __builtin_ctzll(word);
}

#endif
