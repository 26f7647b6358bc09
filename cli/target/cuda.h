/* SPDX-License-Identifier: MIT */
/*
 * Queries libcuda.so.1. Most functions query CUDA in a child process. The comments of the other
 * functions say so.
 */
#ifndef GPUPART_CLI_TARGET_CUDA_H
#define GPUPART_CLI_TARGET_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#define CUDA_MAX_GPUS 32	/* maximum number of GPU addresses */

struct cuda_probe {
	int err;		/* 0 or -errno */
	char path[256];		/* path of the loaded libcuda.so.1 */
	int version;		/* version of CUDA; 13000 is 13.0 */
	int init;		/* result of cuInit; 0 is success */
	int nr_devices;
	char pci[CUDA_MAX_GPUS][20];	/* addresses in lower case, in CUDA's order */
	char why[256];		/* reason of the failure */
};

/* One GPU of the simulated driver. */
struct cuda_simulated {
	int err;		/* 0 or -errno */
	bool simulated;		/* libcuda.so.1 is the simulated driver */
	char capture[4096];
	char pci[20];	/* simulated address of the GPU, even if the capture has no address */
	char why[256];		/* reason of the failure */
};

/* Returns 0, -ENOENT (no libcuda.so.1), -EIO (cuInit failed), -ETIMEDOUT or -ECHILD. */
int cuda_probe(struct cuda_probe *probe);

/*
 * If libcuda.so.1 is the simulated driver, finds a simulated GPU. Does not query any other driver.
 * The selector is an index, a PCI address, a UUID, or NULL for the first GPU. If there is no such
 * GPU, returns -ENODEV. If the driver did not start, returns -EIO. Otherwise returns 0.
 */
int cuda_find_simulated(const char *selector, struct cuda_simulated *found);

/*
 * These functions ask CUDA for the memory size of the GPU at @pci. They return the size in bytes.
 * If the size is not known, they return 0. If @simulated does not match the installed libcuda.so.1,
 * cuda_memory() also returns 0. The function cuda_memory_here() uses CUDA in this process.
 */
uint64_t cuda_memory(const char *pci, bool simulated);
uint64_t cuda_memory_here(const char *pci);

/*
 * Uses CUDA in this process. Stores the addresses, in lower case, of all GPUs that CUDA reports.
 * Returns the number of GPUs.
 */
int cuda_gpus_here(char pci[CUDA_MAX_GPUS][20]);

#endif
