/* SPDX-License-Identifier: MIT */
/*
 * Implements the hash function FNV-1a with 64 bits. It computes the checksum of a capture, the
 * topology hash, and the name of a checked map. Each step is a bijection of the state, so a change
 * of one byte always changes the hash. The hash gives no security.
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

#endif
