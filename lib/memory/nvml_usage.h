/* SPDX-License-Identifier: MIT */
/*
 * The GPU memory that this process really uses, as NVIDIA's management library (NVML) or the
 * simulated driver reports it.
 */
#ifndef GPUPART_LIB_MEMORY_NVML_USAGE_H
#define GPUPART_LIB_MEMORY_NVML_USAGE_H

#include "lib/driver/cuda.h"

/*
 * Opens the library, which may take some ms. A missing library is not an error. Must be called
 * once, before the other functions.
 */
void memory_real_open(const struct cuda_api *cuda);

/*
 * Returns the bytes that this process uses on the GPU at @pci, which is CUDA's device @device.
 * These bytes include contexts and code, but not managed memory. -ENOENT: the process is not in
 * the driver's list. This also happens in a pid namespace that the driver does not know.
 * -EOPNOTSUPP: the driver does not report this usage.
 */
int memory_real_own(const char *pci, int device, uint64_t *bytes);

/* Returns the bytes that all processes together use. */
bool memory_real_all(const char *pci, int device, uint64_t *bytes);

/*
 * Returns the number of processes that use memory, whether or not this process is in the
 * driver's list. Returns -1 if the number is unknown.
 */
int memory_real_processes(const char *pci, int device);

#endif
