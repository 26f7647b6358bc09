/* SPDX-License-Identifier: MIT */
/* Finds out whether --gpu selects a GPU of a running program. */
#ifndef GPUPART_CLI_TARGET_WHICH_GPU_H
#define GPUPART_CLI_TARGET_WHICH_GPU_H

#include <gpupart_manage.h>

/* The GPUs that @selector means on this machine and in its simulated driver, found on demand. */
struct which_gpu {
	const char *selector;
	bool live_asked, simulated_asked;
	char live[20], simulated[20];	/* PCI addresses, or "" */
};

/*
 * Whether @which selects the GPU at @pci by its address, UUID or index. The index is that of this
 * machine. For a simulated GPU it is that of the simulated driver of this process or, without one,
 * @index, the position among the GPUs of the program.
 */
bool which_gpu_is(struct which_gpu *which, const char *pci, const char *source, bool simulated,
		  unsigned int index);

#endif
