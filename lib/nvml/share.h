/* SPDX-License-Identifier: MIT */
/*
 * Reads this program's tenant: its quota on a GPU, its memory use on this GPU, and its processes.
 */
#ifndef GPUPART_LIB_NVML_SHARE_H
#define GPUPART_LIB_NVML_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct ledger_view;

struct share {
	uint64_t quota, used;		/* the tenant's quota and use, in bytes, on this GPU */
	struct ledger_view *view;	/* NULL: no process of the tenant is known yet */
	int gpu;			/* index of the GPU in the view, or -1 */
};

/*
 * Reads the environment. This function is called once, when the program starts. Returns false if
 * the program belongs to no tenant.
 */
bool share_setup(void);

/*
 * Reads the current share of the GPU at @pci. Any thread may call this function. If this GPU has
 * no quota, returns false. In this case the caller must not close the share.
 */
bool share_open(const char *pci, struct share *share);
/*
 * Does the same as share_open(), but for an unknown GPU. If each GPU has a quota, finds the
 * tenant's processes on all GPUs. If any GPU may lack a quota, returns false.
 */
bool share_open_everywhere(struct share *share);
void share_close(struct share *share);

/*
 * Returns whether @pid is a living process of the tenant. The number @pid is valid in this
 * program's pid namespace. The function sets *used to the bytes that the process uses on the GPU.
 */
bool share_has(const struct share *share, uint32_t pid, uint64_t *used);

#endif
