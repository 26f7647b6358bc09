/* SPDX-License-Identifier: MIT */
/*
 * Implements the hash function FNV-1a with 64 bits, and a hash of words. FNV-1a computes the
 * checksum of a capture, the topology hash, and the name of a checked map. Each step of the hashes
 * is a bijection of the state, so a change of one byte or one word always changes the hash. The
 * hashes give no security.
 */
#ifndef GPUPART_LIB_CORE_HASH_H
#define GPUPART_LIB_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_INIT 0xcbf29ce484222325ull

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *byte = data;

	while (len--)
		hash = (hash ^ *byte++) * 0x100000001b3ull;
	return hash;
}

/*
 * Hashes @nr words of 64 bits, which is faster than hash_bytes(). Without the second
 * multiplication, changes of the high bits of two neighbouring words could cancel each other.
 */
static inline uint64_t hash_words(uint64_t hash, const void *words, size_t nr)
{
	for (const uint64_t *word = words; nr--; word++) {
		hash = (hash ^ *word) * 0x9e3779b97f4a7c15ull;
		hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9ull;
	}
	return hash;
}

#endif
