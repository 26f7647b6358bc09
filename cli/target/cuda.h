/* SPDX-License-Identifier: MIT */
/* Asks libcuda.so.1 who it is, in a child of its own. */
#ifndef GPUPART_CLI_TARGET_CUDA_H
#define GPUPART_CLI_TARGET_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#define CUDA_MAX_GPUS 32	/* whose addresses are asked for */

struct cuda_probe {
	int err;		/* 0 or -errno, of the process that asked */
	char path[256];		/* the file that was loaded */
	int version;		/* 13000 is 13.0 */
	int init;		/* what cuInit returned, 0 is good */
	int nr_devices;
	char pci[CUDA_MAX_GPUS][20];	/* addresses in lower case, in CUDA's order */
	char why[256];		/* the sentence where it failed */
};

/* One GPU of the simulated driver. */
struct cuda_simulated {
	int err;		/* likewise */
	bool simulated;		/* false: libcuda.so.1 is another driver, or not there */
	char capture[4096];
	char pci[20];		/* the address it plays, also where the capture tells none */
	char why[256];		/* the sentence where it failed */
};

/* 0, -ENOENT no libcuda.so.1, -EIO cuInit failed, -ETIMEDOUT, -ECHILD; never hangs. */
int cuda_probe(struct cuda_probe *probe);

/*
 * If libcuda.so.1 is the simulated driver: the GPU that @selector (an index, a PCI
 * address, a UUID; NULL the first) is there. 0, also where it is another driver, which
 * is not asked anything; -ENODEV no such GPU, -EIO the driver did not start.
 */
int cuda_find_simulated(const char *selector, struct cuda_simulated *found);

/*
 * Bytes of memory of the GPU at @pci, as CUDA tells them to programs; 0: not told, which is
 * also so where @simulated is not what libcuda.so.1 is. cuda_memory_here() asks in this
 * process, of which CUDA then has a part.
 */
uint64_t cuda_memory(const char *pci, bool simulated);
uint64_t cuda_memory_here(const char *pci);

/* The addresses of the GPUs that CUDA shows to this process, in lower case. Returns how many. */
int cuda_gpus_here(char pci[CUDA_MAX_GPUS][20]);

#endif
