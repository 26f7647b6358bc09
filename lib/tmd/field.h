/* SPDX-License-Identifier: MIT */
/*
 * Reads the fields of a TMD, and sets mask bits. The functions run at each launch, so they are
 * inline.
 */
#ifndef GPUPART_LIB_TMD_FIELD_H
#define GPUPART_LIB_TMD_FIELD_H

#include <string.h>
#include "lib/tmd/layouts.h"
#include "lib/tmd/tmd.h"

#define WORDS64 (GPUPART_MAX_TMD_BITS / 64)

static inline struct tmd_allow allow_and(const struct tmd_allow *a, const struct tmd_allow *b)
{
	struct tmd_allow r;

	for (int i = 0; i < WORDS64; i++)
		r.tmd_bits[i] = a->tmd_bits[i] & b->tmd_bits[i];
	return r;
}

static inline struct tmd_allow allow_andnot(const struct tmd_allow *a, const struct tmd_allow *b)
{
	struct tmd_allow r;

	for (int i = 0; i < WORDS64; i++)
		r.tmd_bits[i] = a->tmd_bits[i] & ~b->tmd_bits[i];
	return r;
}

static inline bool allow_empty(const struct tmd_allow *a)
{
	uint64_t any = 0;

	for (int i = 0; i < WORDS64; i++)
		any |= a->tmd_bits[i];
	return !any;
}

static inline unsigned int allow_count(const struct tmd_allow *a)
{
	unsigned int nr = 0;

	for (int i = 0; i < WORDS64; i++)
		nr += __builtin_popcountll(a->tmd_bits[i]);
	return nr;
}

/* From the bits of @pool that @a does not have, adds the @nr lowest bits to @a. */
static inline void allow_add_lowest(struct tmd_allow *a, const struct tmd_allow *pool,
				    unsigned int nr)
{
	for (int i = 0; i < WORDS64 && nr; i++) {
		uint64_t word = pool->tmd_bits[i] & ~a->tmd_bits[i];

		for (; word && nr; word &= word - 1, nr--)
			a->tmd_bits[i] |= word & -word;
	}
}

static inline uint32_t field_read(const void *tmd, struct tmd_field f)
{
	const uint8_t *byte = (const uint8_t *)tmd + f.lo / 8;
	uint64_t word = 0;

	/*
	 * If a field begins at a byte boundary, it has at most 32 bits. Otherwise it has at most
	 * 18 bits. So 4 bytes contain the whole field.
	 */
	memcpy(&word, byte, 4);
	return (word >> (f.lo % 8)) & ((1ull << f.width) - 1);
}

static inline uint32_t product(const void *tmd, const struct tmd_field dim[3])
{
	uint64_t n = 1;

	for (int i = 0; i < 3; i++)
		n *= field_read(tmd, dim[i]);
	return n > UINT32_MAX ? UINT32_MAX : n;
}

#endif
