/* SPDX-License-Identifier: MIT */
/* Which GPU of a running program --gpu means. */
#ifndef GPUPART_CLI_TARGET_WHICH_GPU_H
#define GPUPART_CLI_TARGET_WHICH_GPU_H

#include <gpupart_manage.h>

/* What @selector means on this machine and to its simulated driver, found when asked for. */
struct which_gpu {
	const char *selector;
	bool live_asked, simulated_asked;
	char live[20], simulated[20];	/* PCI addresses; "" none */
};

/*
 * Whether @which means the GPU at @pci: by its address; by its UUID; by an index, which is
 * this machine's or, of a simulated GPU, that of the simulated driver which is in use here,
 * else @index, the place among those that the program uses.
 */
bool which_gpu_is(struct which_gpu *which, const char *pci, const char *source, bool simulated,
		  unsigned int index);

#endif
