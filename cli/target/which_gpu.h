/* SPDX-License-Identifier: MIT */
/* Finds out whether --gpu selects a GPU of a running program. */
#ifndef GPUPART_CLI_TARGET_WHICH_GPU_H
#define GPUPART_CLI_TARGET_WHICH_GPU_H

#include <gpupart_manage.h>

/*
 * The GPUs that @selector selects: a GPU of this machine, and a GPU of the simulated driver. Each
 * GPU is found when it is needed.
 */
struct which_gpu {
	const char *selector;
	bool live_asked, simulated_asked;
	char live[20], simulated[20];	/* PCI addresses, or "" */
};

/*
 * Returns whether @which selects the GPU at @pci by its address, UUID or index. For a real GPU, the
 * index is the GPU's index on this machine. For a simulated GPU, it is the index in the simulated
 * driver of this process. If this process has no simulated driver, the index is @index. This is the
 * position in the program's list of GPUs.
 */
bool which_gpu_is(struct which_gpu *which, const char *pci, const char *source, bool simulated,
		  unsigned int index);

#endif
