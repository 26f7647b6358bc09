// SPDX-License-Identifier: MIT
/*
 * libgpupart-nvml.so: the functions that the dynamic loader calls when LD_AUDIT names this
 * library. It replaces functions of the management library where a program binds to them or
 * looks them up. It also replaces the ioctl that the management library binds to. Other calls
 * are not affected.
 */
#include "lib/nvml/copy.h"
#include "lib/nvml/share.h"

/*
 * The version of the audit interface that is needed. Older loaders (glibc before 2.35) slow
 * down every call.
 */
#define INTERFACE	2

#define EXPORT	__attribute__((visibility("default")))

/* If it returns 0, the loader unloads this library, and the program runs without it. */
EXPORT unsigned int la_version(unsigned int offered)
{
	return offered < INTERFACE || !share_setup() ? 0 : INTERFACE;
}

/*
 * Bindings from every object matter. Only bindings to two kinds of objects matter: the
 * management library, and objects with an ioctl. The latter are libc and libraries that were
 * preloaded before it.
 */
EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
	struct copy *copy;

	(void)namespace;
	if (!map->l_name || !copy_is_nvml(map->l_name))
		return copy_may_call(map) ? LA_FLG_BINDFROM | LA_FLG_BINDTO : LA_FLG_BINDFROM;
	copy = copy_open(map);
	if (!copy)
		return 0;
	*cookie = (uintptr_t)copy;
	return LA_FLG_BINDFROM | LA_FLG_BINDTO;
}

EXPORT unsigned int la_objclose(uintptr_t *cookie)
{
	struct copy *copy = copy_of(*cookie);

	if (copy)
		copy_close(copy);
	return 0;
}

EXPORT uintptr_t la_symbind64(ElfW(Sym) *sym, unsigned int nr, uintptr_t *from, uintptr_t *in,
			      unsigned int *flags, const char *name)
{
	struct copy *caller = copy_of(*from), *copy = copy_of(*in);

	(void)nr, (void)flags;
	/* The library's calls of its own functions are not replaced. */
	if (caller)
		return copy_bind_call(caller, name, sym->st_value);
	return copy ? copy_bind(copy, name, sym->st_value) : sym->st_value;
}
