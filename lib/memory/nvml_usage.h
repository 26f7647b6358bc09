/* SPDX-License-Identifier: MIT */
/*
 * How much of a GPU's memory this process really has, as NVIDIA's management library (NVML) tells,
 * or the simulated driver.
 */
#ifndef GPUPART_LIB_MEMORY_NVML_USAGE_H
#define GPUPART_LIB_MEMORY_NVML_USAGE_H

#include "lib/driver/cuda.h"

/* Opens the library; may take some ms, and missing is no harm. Once, before the others. */
void memory_real_open(const struct cuda_api *cuda);

/*
 * Bytes that this process has of the GPU at @pci, which is CUDA's @device: contexts and code
 * too, managed memory not. -ENOENT: it is not among those that have any, which is also so in
 * a namespace of pids that the driver does not know of; -EOPNOTSUPP: nobody tells.
 */
int memory_real_own(const char *pci, int device, uint64_t *bytes);

/* Bytes that all have. */
bool memory_real_all(const char *pci, int device, uint64_t *bytes);

/* How many processes have some, this one among them or not; -1: nobody tells. */
int memory_real_processes(const char *pci, int device);

#endif
