/* SPDX-License-Identifier: MIT */
/* Queries libcuda.so.1, in a child unless a function says otherwise. */
#ifndef GPUPART_CLI_TARGET_CUDA_H
#define GPUPART_CLI_TARGET_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#define CUDA_MAX_GPUS 32	/* at most this many addresses are read */

struct cuda_probe {
	int err;		/* 0 or -errno */
	char path[256];		/* of the loaded file */
	int version;		/* of CUDA; 13000 is 13.0 */
	int init;		/* result of cuInit; 0 is success */
	int nr_devices;
	char pci[CUDA_MAX_GPUS][20];	/* addresses in lower case, in CUDA's order */
	char why[256];		/* reason of a failure */
};

/* One GPU of the simulated driver. */
struct cuda_simulated {
	int err;		/* 0 or -errno */
	bool simulated;		/* libcuda.so.1 is the simulated driver */
	char capture[4096];
	char pci[20];		/* its simulated address, even if the capture has none */
	char why[256];		/* reason of a failure */
};

/* Returns 0, -ENOENT (no libcuda.so.1), -EIO (cuInit failed), -ETIMEDOUT or -ECHILD. */
int cuda_probe(struct cuda_probe *probe);

/*
 * If libcuda.so.1 is the simulated driver, finds its GPU @selector (an index, a PCI address, a
 * UUID; NULL: the first). Another driver is not queried. Returns 0, -ENODEV (no such GPU) or -EIO
 * (the driver did not start).
 */
int cuda_find_simulated(const char *selector, struct cuda_simulated *found);

/*
 * Return the bytes of memory of the GPU at @pci that CUDA reports, or 0 if they are not known.
 * cuda_memory() also returns 0 if @simulated does not match the installed libcuda.so.1.
 * cuda_memory_here() uses CUDA in this process.
 */
uint64_t cuda_memory(const char *pci, bool simulated);
uint64_t cuda_memory_here(const char *pci);

/* Addresses of the GPUs that CUDA reports in this process, in lower case. Returns how many. */
int cuda_gpus_here(char pci[CUDA_MAX_GPUS][20]);

#endif
