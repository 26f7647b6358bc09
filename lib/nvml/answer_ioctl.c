// SPDX-License-Identifier: MIT
/*
 * The management library asks the kernel's driver for the processes of a GPU. This code removes the
 * processes of other tenants from the answer. The functions from which nvidia-smi gets its lists
 * are in no header. But all these functions use this ioctl.
 */
#include <string.h>
#include "lib/nvml/answer.h"
#include "lib/nvml/share.h"
#include "lib/topo/rm_ioctl.h"

/*
 * Returns the list in an answer. Returns NULL if the answer is not a list, is an error, or has
 * an unknown form.
 */
static struct rm_gpu_pids *find_list(const struct rm_control *control)
{
	struct rm_gpu_pids *list = (struct rm_gpu_pids *)(uintptr_t)control->params;

	if (control->cmd != RM_GPU_GET_PIDS || control->params_size != sizeof(*list) ||
	    control->status || control->flags & RM_CONTROL_SERIALIZED || !list)
		return NULL;
	return list->id_type == RM_GPU_PIDS_OF_CLASS && list->nr <= RM_GPU_PIDS_MAX ? list : NULL;
}

/* The removed entries are also set to zero. */
static void keep_own(struct rm_gpu_pids *list, const struct share *share)
{
	uint32_t nr = 0;
	uint64_t used;

	for (uint32_t i = 0; i < list->nr; i++)
		if (share_has(share, list->pids[i], &used))
			list->pids[nr++] = list->pids[i];
	memset(list->pids + nr, 0, (list->nr - nr) * sizeof(list->pids[0]));
	list->nr = nr;
}

/* ioctl() sets the program's errno. No other call here can change errno. */
int answer_ioctl(struct copy *copy, int fd, unsigned long request, void *arg)
{
	int (*real)(int, unsigned long, ...) = (void *)copy->ioctl;
	int rc = real(fd, request, arg);
	struct rm_gpu_pids *list = NULL;
	struct share share;

	if (!rc && request == RM_IOCTL_CONTROL && arg)
		list = find_list(arg);
	if (!list || !share_open_everywhere(&share))
		return rc;
	keep_own(list, &share);
	share_close(&share);
	return rc;
}
