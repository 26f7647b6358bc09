/* SPDX-License-Identifier: MIT */
/*
 * Queries the GPU memory that this process uses. NVIDIA's management library (NVML) or the
 * simulated driver reports this value.
 */
#ifndef GPUPART_LIB_MEMORY_NVML_USAGE_H
#define GPUPART_LIB_MEMORY_NVML_USAGE_H

#include "lib/driver/cuda.h"

/*
 * Opens the library. The call may take some ms. A missing library is not an error. Call this
 * function once, before the other functions.
 */
void memory_real_open(const struct cuda_api *cuda);

/*
 * Returns the bytes that this process uses on the GPU at @pci, which is CUDA's device @device.
 * These bytes include contexts and code, but not managed memory. If the process is not in the
 * driver's list, returns -ENOENT. This can happen in a pid namespace that the driver does not know.
 * If the driver does not report this usage, returns -EOPNOTSUPP.
 */
int memory_real_own(const char *pci, int device, uint64_t *bytes);

/* Returns the bytes that all processes together use. */
bool memory_real_all(const char *pci, int device, uint64_t *bytes);

/*
 * Returns the number of processes that use memory. This process need not be in the driver's list.
 * If the number is unknown, returns -1.
 */
int memory_real_processes(const char *pci, int device);

#endif
