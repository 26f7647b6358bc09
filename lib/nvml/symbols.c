// SPDX-License-Identifier: MIT
/* See symbols.h. */
#include <string.h>
#include "lib/nvml/symbols.h"

/* GNU's hash table: four words, a filter, a first symbol for each bucket, a chain for it. */
struct gnu {
	uint32_t nr_buckets, first;
	const uint32_t *buckets, *chains;
};

/* The loader has put the object's place on these for some objects and not for others. */
static const void *at(const struct link_map *map, ElfW(Addr) address)
{
	return (const void *)(address < map->l_addr ? address + map->l_addr : address);
}

struct symbols symbols_of(const struct link_map *map)
{
	struct symbols symbols = { .list = NULL };

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

static struct gnu gnu_of(const uint32_t *hash)
{
	struct gnu gnu = { .nr_buckets = hash[0], .first = hash[1] };

	gnu.buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / 4);
	gnu.chains = gnu.buckets + gnu.nr_buckets;
	return gnu;
}

/* It does not say how many: the end of the chain that begins last does. */
static size_t count_gnu(const struct gnu *gnu)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < gnu->nr_buckets; i++)
		if (gnu->buckets[i] > last)
			last = gnu->buckets[i];
	if (last < gnu->first)
		return 0;
	while (!(gnu->chains[last - gnu->first] & 1))
		last++;
	return last + 1;
}

size_t symbols_count(const struct symbols *symbols)
{
	struct gnu gnu;

	if (!symbols->list)
		return 0;
	if (!symbols->gnu)
		return symbols->sysv ? symbols->sysv[1] : 0;
	gnu = gnu_of(symbols->gnu);
	return count_gnu(&gnu);
}

static bool is(const struct symbols *symbols, size_t nr, const char *name)
{
	const ElfW(Sym) *symbol = &symbols->list[nr];

	return symbol->st_shndx != SHN_UNDEF && !strcmp(symbols->names + symbol->st_name, name);
}

/* A chain's words are its symbols' hashes, but for the lowest bit: that ends it. */
static bool define_gnu(const struct symbols *symbols, const char *name)
{
	struct gnu gnu = gnu_of(symbols->gnu);
	uint32_t hash = 5381, nr;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	nr = gnu.nr_buckets ? gnu.buckets[hash % gnu.nr_buckets] : 0;
	if (nr < gnu.first)
		return false;
	for (;; nr++) {
		uint32_t word = gnu.chains[nr - gnu.first];

		if ((word | 1) == (hash | 1) && is(symbols, nr, name))
			return true;
		if (word & 1)
			return false;
	}
}

bool symbols_define(const struct symbols *symbols, const char *name)
{
	if (symbols->list && symbols->gnu)
		return define_gnu(symbols, name);
	for (size_t i = 0; i < symbols_count(symbols); i++)
		if (is(symbols, i, name))
			return true;
	return false;
}
