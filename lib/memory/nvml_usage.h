/* SPDX-License-Identifier: MIT */
/*
 * The GPU memory that this process really uses, as NVIDIA's management library (NVML) or the
 * simulated driver reports it.
 */
#ifndef GPUPART_LIB_MEMORY_NVML_USAGE_H
#define GPUPART_LIB_MEMORY_NVML_USAGE_H

#include "lib/driver/cuda.h"

/*
 * Opens the library, which may take some ms; a missing library is not an error. Call it once,
 * before the others.
 */
void memory_real_open(const struct cuda_api *cuda);

/*
 * Bytes that this process uses on the GPU at @pci, CUDA's @device, including contexts and code
 * but not managed memory. -ENOENT: the process is not in the driver's list, which also happens
 * in a pid namespace that the driver does not know. -EOPNOTSUPP: usage is not reported.
 */
int memory_real_own(const char *pci, int device, uint64_t *bytes);

/* Bytes that all processes use. */
bool memory_real_all(const char *pci, int device, uint64_t *bytes);

/*
 * The number of processes that use memory, whether or not this one is in the list; -1: unknown.
 */
int memory_real_processes(const char *pci, int device);

#endif
