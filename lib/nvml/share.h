/* SPDX-License-Identifier: MIT */
/* The tenant of this program: its quota and use on a GPU, and its processes. */
#ifndef GPUPART_LIB_NVML_SHARE_H
#define GPUPART_LIB_NVML_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct ledger_view;

struct share {
	uint64_t quota, used;		/* bytes of the GPU */
	struct ledger_view *view;	/* NULL: no process of the tenant is known */
	int gpu;			/* its index in the view, or -1 */
};

/* Reads the environment, once, at the start of the program; false: no tenant. */
bool share_setup(void);

/*
 * The current share of the GPU at @pci, from any thread; false: no quota there, and nothing to
 * close.
 */
bool share_open(const char *pci, struct share *share);
/*
 * For an unknown GPU: the tenant's processes on any GPU, if each GPU has a quota; false if one
 * may have none.
 */
bool share_open_everywhere(struct share *share);
void share_close(struct share *share);

/*
 * Whether @pid, in this program's pid namespace, is a living process of the tenant. *used is
 * its use of the GPU in bytes.
 */
bool share_has(const struct share *share, uint32_t pid, uint64_t *used);

#endif
