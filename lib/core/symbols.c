// SPDX-License-Identifier: MIT
/* Finds symbols of a loaded object. See symbols.h. */
#include <stdbool.h>
#include <string.h>
#include "lib/core/symbols.h"

/* The loader relocates these pointers for some objects and not for others. */
static const void *at(const struct link_map *map, ElfW(Addr) address)
{
	return (const void *)(address < map->l_addr ? address + map->l_addr : address);
}

struct symbols symbols_of(const struct link_map *map)
{
	struct symbols symbols = { .base = map->l_addr };

	for (const ElfW(Dyn) *dyn = map->l_ld; dyn && dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_SYMTAB)
			symbols.list = at(map, dyn->d_un.d_ptr);
		else if (dyn->d_tag == DT_STRTAB)
			symbols.names = at(map, dyn->d_un.d_ptr);
		else if (dyn->d_tag == DT_GNU_HASH)
			symbols.gnu = at(map, dyn->d_un.d_ptr);
		else if (dyn->d_tag == DT_HASH)
			symbols.sysv = at(map, dyn->d_un.d_ptr);
	}
	if (!symbols.names)
		symbols.list = NULL;
	return symbols;
}

static bool is(const struct symbols *symbols, uint32_t nr, const char *name)
{
	const ElfW(Sym) *symbol = &symbols->list[nr];

	return symbol->st_shndx != SHN_UNDEF && !strcmp(symbols->names + symbol->st_name, name);
}

/*
 * Returns the index of a symbol. If there is no such symbol, returns 0. The table begins with four
 * words. After them, it has a filter, the first symbol of each bucket, and chains of hashes. The
 * lowest bit of a hash marks the end of its chain.
 */
static uint32_t find_gnu(const struct symbols *symbols, const char *name)
{
	const uint32_t *head = symbols->gnu, first = head[1];
	const uint32_t *buckets = head + 4 + head[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chains = buckets + head[0];
	uint32_t hash = 5381, nr;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	nr = head[0] ? buckets[hash % head[0]] : 0;
	for (; nr && nr >= first; nr++) {
		if ((chains[nr - first] | 1) == (hash | 1) && is(symbols, nr, name))
			return nr;
		if (chains[nr - first] & 1)
			break;
	}
	return 0;
}

static uint32_t find_sysv(const struct symbols *symbols, const char *name)
{
	for (uint32_t nr = 1; symbols->sysv && nr < symbols->sysv[1]; nr++)
		if (is(symbols, nr, name))
			return nr;
	return 0;
}

uintptr_t symbols_find(const struct symbols *symbols, const char *name)
{
	uint32_t nr = 0;

	if (symbols->list)
		nr = symbols->gnu ? find_gnu(symbols, name) : find_sysv(symbols, name);
	return nr ? symbols->base + symbols->list[nr].st_value : 0;
}
