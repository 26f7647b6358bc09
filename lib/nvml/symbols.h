/* SPDX-License-Identifier: MIT */
/*
 * What a loaded object defines, by its own tables: dlsym() would take the loader's lock, in the
 * middle of somebody's call.
 */
#ifndef GPUPART_LIB_NVML_SYMBOLS_H
#define GPUPART_LIB_NVML_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols {
	const ElfW(Sym) *list;		/* NULL: it has none */
	const char *names;
	const uint32_t *gnu, *sysv;	/* the hash tables; NULL where it has not that kind */
};

struct symbols symbols_of(const struct link_map *map);

/* How many there are, defined and undefined. */
size_t symbols_count(const struct symbols *symbols);

/* Whether it defines the function @name. */
bool symbols_define(const struct symbols *symbols, const char *name);

#endif
