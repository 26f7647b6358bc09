// SPDX-License-Identifier: MIT
/*
 * How the simulated management library asks the kernel's driver: by ioctl, which whoever tests
 * it answers. Must not know what is told of GPUs otherwise.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "lib/topo/rm_ioctl.h"
#include "sim/nvml/nvml.h"

#define SUBDEVICE	0x2080	/* NV20_SUBDEVICE_0; it stands for an object of that class, too */

int nvmlSimulatedIoctl(int fd, unsigned long request, void *arg);

/* As this library calls it; no real one has this function. */
EXPORT int nvmlSimulatedIoctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

/* Room for as many as the driver tells of; what is there is what it would write. */
static void fill(struct rm_gpu_pids *list, const struct told *told)
{
	memset(list, 0, sizeof(*list));
	list->id = SUBDEVICE;
	for (unsigned int i = 0; i < told->nr && i < RM_GPU_PIDS_MAX; i++)
		list->pids[list->nr++] = told->processes[i].pid;
}

static bool lists(const struct rm_gpu_pids *list, uint32_t pid)
{
	for (uint32_t i = 0; i < list->nr; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

nvmlReturn_t kernel_keep_listed(struct told *told)
{
	uint64_t fd = sim_faults()->nvml_ioctl;
	struct rm_control control = { .object = SUBDEVICE, .cmd = RM_GPU_GET_PIDS };
	struct rm_gpu_pids list;
	unsigned int nr = 0;

	if (fd == UINT64_MAX)
		return NVML_SUCCESS;
	fill(&list, told);
	control.params = (uintptr_t)&list;
	control.params_size = sizeof(list);
	if (nvmlSimulatedIoctl(fd, RM_IOCTL_CONTROL, &control) || control.status)
		return NVML_ERROR_UNKNOWN;
	for (unsigned int i = 0; i < told->nr; i++)
		if (lists(&list, told->processes[i].pid))
			told->processes[nr++] = told->processes[i];
	told->nr = nr;
	return NVML_SUCCESS;
}
