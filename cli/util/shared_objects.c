// SPDX-License-Identifier: MIT
/* The shared libraries that one of this process needs, as the loader found them. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "cli/util/paths.h"
#include "cli/util/shared_objects.h"

/* The C library's own, and its loader. */
static bool is_system(const char *name)
{
	static const char *const names[] = {
		"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2",
		"librt.so.1",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return !strncmp(name, "ld-", 3) || !strncmp(name, "ld64.", 5);
}

static const struct link_map *loaded(const char *name)
{
	void *program = dlopen(NULL, RTLD_NOW);
	struct link_map *map = NULL;

	if (!program || dlinfo(program, RTLD_DI_LINKMAP, &map))
		return NULL;
	while (map) {
		const char *file = strrchr(map->l_name, '/');

		if (!strcmp(file ? file + 1 : map->l_name, name))
			break;
		map = map->l_next;
	}
	dlclose(program);
	return map;
}

static const char *string_table(const struct link_map *map)
{
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			/* On some machines the loader leaves it as the file has it. */
			return (const char *)(d->d_un.d_ptr < map->l_addr ?
					      map->l_addr + d->d_un.d_ptr : d->d_un.d_ptr);
	return NULL;
}

/*
 * The folder without links, the name as it is: what a link there leads to has another name
 * with the next update.
 */
static int full_path(const char *path, char *full, size_t len)
{
	const char *file = strrchr(path, '/');
	char folder[PATH_MAX];
	int err;

	if (!file || snprintf(folder, sizeof(folder), "%.*s/.", (int)(file - path), path) >=
			     (int)sizeof(folder))
		return -ENAMETOOLONG;
	err = paths_full(folder, full, len);
	if (err)
		return err;
	if (strlen(full) + strlen(file) >= len)
		return -ENAMETOOLONG;
	strcat(full, file);
	return 0;
}

static bool listed(const char *name, const struct needed *list, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name))
			return true;
	return false;
}

static int add(const char *name, struct needed *list, int nr, int max)
{
	const struct link_map *map;
	const char *strings;

	if (is_system(name) || listed(name, list, nr))
		return nr;
	map = loaded(name);
	strings = map ? string_table(map) : NULL;
	if (!strings || full_path(map->l_name, list[nr].path, sizeof(list[nr].path)))
		return -ENOENT;
	list[nr++].name = name;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL && nr >= 0 && nr < max; d++)
		if (d->d_tag == DT_NEEDED)
			nr = add(strings + d->d_un.d_val, list, nr, max);
	return nr;
}

int needed_list(const char *name, struct needed *list, int max)
{
	return add(name, list, 0, max);
}
