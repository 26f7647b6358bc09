/* SPDX-License-Identifier: MIT */
/* Asks libcuda.so.1 who it is, in a child of its own. Knows nothing of sets. */
#ifndef GPUPART_CLI_CUDA_H
#define GPUPART_CLI_CUDA_H

struct cuda_probe {
	char path[256];		/* the file that was loaded */
	int version;		/* 13000 is 13.0 */
	int init;		/* what cuInit returned, 0 is good */
	int nr_devices;
	char pci[20];		/* of CUDA's device 0, lower case */
	char why[256];		/* the sentence where it failed */
};

/* 0, -ENOENT no libcuda.so.1, -EIO cuInit failed, -ETIMEDOUT, -ECHILD; never hangs. */
int cuda_probe(struct cuda_probe *probe);

#endif
