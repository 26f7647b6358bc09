/* SPDX-License-Identifier: MIT */
/*
 * What the tenant that this program is of may have of a GPU, has, and which processes are its
 * own.
 */
#ifndef GPUPART_LIB_NVML_SHARE_H
#define GPUPART_LIB_NVML_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct ledger_view;

struct share {
	uint64_t quota, used;		/* bytes of the GPU */
	struct ledger_view *view;	/* NULL: no process of the tenant is known */
	int gpu;			/* its number in the view, or -1 */
};

/* From the environment, once, as the program starts; false: it is no tenant's. */
bool share_setup(void);

/* The share of the GPU at @pci now, in any thread; false: no quota there, nothing to close. */
bool share_open(const char *pci, struct share *share);
/*
 * Where a GPU is not known: the tenant's processes, on any, where each GPU has a quota;
 * false: one may have none.
 */
bool share_open_everywhere(struct share *share);
void share_close(struct share *share);

/*
 * Whether @pid, as this program's pid namespace numbers it, is a living process of the
 * tenant. *used is what it holds of the GPU, bytes.
 */
bool share_has(const struct share *share, uint32_t pid, uint64_t *used);

#endif
