// SPDX-License-Identifier: MIT
/*
 * Implements libgpupart-nvml.so. The dynamic loader calls these functions if LD_AUDIT names this
 * library. When a program binds to a function of the management library or looks up such a
 * function, the program gets a replacement. The management library itself gets a replacement of
 * ioctl(). Other calls are not affected.
 */
#include "lib/nvml/copy.h"
#include "lib/nvml/share.h"

/*
 * The required version of the audit interface. The loaders of glibc before 2.35 have an older
 * version, with which every call is slow.
 */
#define INTERFACE	2

#define EXPORT	__attribute__((visibility("default")))

/* If this function returns 0, the loader unloads this library. The program then runs without it. */
EXPORT unsigned int la_version(unsigned int offered)
{
	return offered < INTERFACE || !share_setup() ? 0 : INTERFACE;
}

/*
 * The loader must report all bindings to the management library and to objects that define ioctl.
 * These objects are libc and libraries that were preloaded before libc. The loader need not report
 * bindings to other objects.
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
		copy->taken = false;
	return 0;
}

EXPORT uintptr_t la_symbind64(ElfW(Sym) *sym, unsigned int nr, uintptr_t *from, uintptr_t *in,
			      unsigned int *flags, const char *name)
{
	struct copy *caller = copy_of(*from), *copy = copy_of(*in);

	(void)nr, (void)flags;
	/* If the library calls its own functions, these calls are not replaced. */
	if (caller)
		return copy_bind_call(caller, name, sym->st_value);
	return copy ? copy_bind(copy, name, sym->st_value) : sym->st_value;
}
