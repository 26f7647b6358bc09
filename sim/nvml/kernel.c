// SPDX-License-Identifier: MIT
/*
 * Requests a list of processes from the kernel driver with an ioctl. In tests, the test answers
 * the ioctl.
 */
#include <string.h>
#include <sys/ioctl.h>
#include "lib/topo/rm_ioctl.h"
#include "sim/nvml/nvml.h"

/* class NV20_SUBDEVICE_0; also the handle of an object of this class */
#define SUBDEVICE	0x2080

/*
 * Makes all ioctl calls of this library under a separate name. The real library has no function
 * with this name.
 */
EXPORT int nvmlSimulatedIoctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

/*
 * Fills the list with the entries that the driver would write. The list is long enough for all
 * these entries.
 */
static void fill(struct rm_gpu_pids *list, const struct usage *usage)
{
	memset(list, 0, sizeof(*list));
	list->id = SUBDEVICE;
	for (unsigned int i = 0; i < usage->nr && i < RM_GPU_PIDS_MAX; i++)
		list->pids[list->nr++] = usage->processes[i].pid;
}

static bool lists(const struct rm_gpu_pids *list, uint32_t pid)
{
	for (uint32_t i = 0; i < list->nr; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

nvmlReturn_t kernel_keep_listed(struct usage *usage)
{
	uint64_t fd = sim_faults()->nvml_ioctl;
	struct rm_control control = { .object = SUBDEVICE, .cmd = RM_GPU_GET_PIDS };
	struct rm_gpu_pids list;
	unsigned int nr = 0;

	if (fd == UINT64_MAX)
		return NVML_SUCCESS;
	fill(&list, usage);
	control.params = (uintptr_t)&list;
	control.params_size = sizeof(list);
	if (nvmlSimulatedIoctl(fd, RM_IOCTL_CONTROL, &control) || control.status)
		return NVML_ERROR_UNKNOWN;
	for (unsigned int i = 0; i < usage->nr; i++)
		if (lists(&list, usage->processes[i].pid))
			usage->processes[nr++] = usage->processes[i];
	usage->nr = nr;
	return NVML_SUCCESS;
}
