// SPDX-License-Identifier: MIT
/*
 * libgpupart-nvml.so: what the loader calls where LD_AUDIT names it. Puts our functions where a
 * program binds or looks up the management library's, and where that library binds ioctl; is in
 * the way of no other call.
 */
#include "lib/nvml/copy.h"
#include "lib/nvml/share.h"

/* What the interface has to have; earlier loaders (glibc before 2.35) slow every call down. */
#define INTERFACE	2

#define EXPORT	__attribute__((visibility("default")))

/* 0: the loader takes us away again, and the program runs as if we had not been there. */
EXPORT unsigned int la_version(unsigned int offered)
{
	return offered < INTERFACE || !share_setup() ? 0 : INTERFACE;
}

/*
 * Who binds something: everybody. In whom it is bound: the management library, and whoever
 * has an ioctl, which is libc, or what was preloaded to be asked before it.
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
	/* Its calls of its own functions stay its own. */
	if (caller)
		return copy_bind_call(caller, name, sym->st_value);
	return copy ? copy_bind(copy, name, sym->st_value) : sym->st_value;
}
