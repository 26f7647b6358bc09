// SPDX-License-Identifier: MIT
/*
 * libgpupart-nvml.so: the functions that the loader calls when LD_AUDIT names it. Replaces the
 * management library's functions where a program binds or looks them up, and the ioctl that
 * that library binds. Other calls are not affected.
 */
#include "lib/nvml/copy.h"
#include "lib/nvml/share.h"

/*
 * The interface version that is needed; older loaders (glibc before 2.35) slow down every call.
 */
#define INTERFACE	2

#define EXPORT	__attribute__((visibility("default")))

/* 0: the loader unloads this library, and the program runs without it. */
EXPORT unsigned int la_version(unsigned int offered)
{
	return offered < INTERFACE || !share_setup() ? 0 : INTERFACE;
}

/*
 * Bindings from all objects matter. Bindings to these matter: the management library, and every
 * object with an ioctl, which is libc or a library that was preloaded before it.
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
