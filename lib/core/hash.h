/* SPDX-License-Identifier: MIT */
/*
 * The hash function FNV-1a with 64 bits. It makes the checksum of captures, the topology hash
 * and the name of a checked map. Each step is a bijection of the state, so one changed byte
 * always changes the hash. The hash is not for security.
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
