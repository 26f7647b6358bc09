/* SPDX-License-Identifier: MIT */
/*
 * Finds a symbol in a loaded object's own tables. dlsym() would take the loader's lock in the
 * middle of a program's call, and may return a symbol that an audit library put in its place.
 */
#ifndef GPUPART_LIB_CORE_SYMBOLS_H
#define GPUPART_LIB_CORE_SYMBOLS_H

#include <link.h>
#include <stdint.h>

struct symbols {
	uintptr_t base;			/* load address */
	const ElfW(Sym) *list;		/* NULL: none */
	const char *names;
	const uint32_t *gnu, *sysv;	/* hash tables; NULL if the object lacks this kind */
};

struct symbols symbols_of(const struct link_map *map);

/* The address of the symbol @name that the object defines, or 0. */
uintptr_t symbols_find(const struct symbols *symbols, const char *name);

#endif
