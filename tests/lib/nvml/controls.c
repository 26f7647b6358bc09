// SPDX-License-Identifier: MIT
/*
 * An audit library of another tool. It records the requests of libnvidia-ml to the kernel driver.
 * For each control, it appends one line to the file NVML_CONTROLS. A line has the number of the
 * control, the bytes of its parameters and its status. For the list of processes, the line also
 * has the number of processes. The library does not use gpupart.
 */
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/topo/rm_ioctl.h"

#define EXPORT	__attribute__((visibility("default")))

unsigned int la_version(unsigned int offered);
unsigned int la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie);
uintptr_t la_symbind64(ElfW(Sym) *sym, unsigned int nr, uintptr_t *from, uintptr_t *in,
		       unsigned int *flags, const char *name);

static int (*real)(int fd, unsigned long request, ...);

static void note(const struct rm_control *control)
{
	const struct rm_gpu_pids *list = (void *)(uintptr_t)control->params;
	const bool pids = control->cmd == RM_GPU_GET_PIDS &&
			  control->params_size == sizeof(*list) && !control->status;
	const char *path = getenv("NVML_CONTROLS");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;

	if (fd < 0)
		return;
	if (pids)
		dprintf(fd, "%#x %u %u: %u of %#x\n", control->cmd, control->params_size,
			control->status, list->nr, list->id);
	else
		dprintf(fd, "%#x %u %u\n", control->cmd, control->params_size, control->status);
	close(fd);
}

static int noted(int fd, unsigned long request, void *arg)
{
	int rc = real(fd, request, arg);

	if (!rc && request == RM_IOCTL_CONTROL && arg)
		note(arg);
	return rc;
}

EXPORT unsigned int la_version(unsigned int offered)
{
	return offered;
}

EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
	(void)namespace;
	*cookie = 0;
	if (strstr(map->l_name, "/libnvidia-ml.so"))
		return LA_FLG_BINDFROM;
	return strstr(map->l_name, "/libc.so.") ? LA_FLG_BINDTO : 0;
}

EXPORT uintptr_t la_symbind64(ElfW(Sym) *sym, unsigned int nr, uintptr_t *from, uintptr_t *in,
			      unsigned int *flags, const char *name)
{
	(void)nr, (void)from, (void)in, (void)flags;
	if (strcmp(name, "ioctl"))
		return sym->st_value;
	real = (int (*)(int, unsigned long, ...))sym->st_value;
	return (uintptr_t)noted;
}
