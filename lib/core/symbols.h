/* SPDX-License-Identifier: MIT */
/*
 * Finds a symbol in the tables of a loaded object. The library does not use dlsym() for two
 * reasons. First, dlsym() acquires the loader's lock in the middle of a call of the program.
 * Second, it may return the symbol of an audit library instead of the requested symbol.
 */
#ifndef GPUPART_LIB_CORE_SYMBOLS_H
#define GPUPART_LIB_CORE_SYMBOLS_H

#include <link.h>
#include <stdint.h>

struct symbols {
	uintptr_t base;			/* load address */
	const ElfW(Sym) *list;		/* NULL: none */
	const char *names;
	const uint32_t *gnu, *sysv;	/* hash tables; NULL if the object has no table of this
					 * kind */
};

struct symbols symbols_of(const struct link_map *map);

/* Returns the address of the symbol @name. If the object does not define @name, returns 0. */
uintptr_t symbols_find(const struct symbols *symbols, const char *name);

#endif
