/* SPDX-License-Identifier: MIT */
/*
 * What a loaded object defines, by its own tables: dlsym() would take the loader's lock, in the
 * middle of somebody's call, and may give what an audit library put in its place.
 */
#ifndef GPUPART_LIB_CORE_SYMBOLS_H
#define GPUPART_LIB_CORE_SYMBOLS_H

#include <link.h>
#include <stdint.h>

struct symbols {
	uintptr_t base;			/* where the object is loaded */
	const ElfW(Sym) *list;		/* NULL: it has none */
	const char *names;
	const uint32_t *gnu, *sysv;	/* the hash tables; NULL where it has not that kind */
};

struct symbols symbols_of(const struct link_map *map);

/* The address of what it defines by that name, or 0. */
uintptr_t symbols_find(const struct symbols *symbols, const char *name);

#endif
