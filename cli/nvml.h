/* SPDX-License-Identifier: MIT */
/* GPU memory of processes and clocks, as NVIDIA's management library tells. Knows no partition. */
#ifndef GPUPART_CLI_NVML_H
#define GPUPART_CLI_NVML_H

#include <stdint.h>

/* Bytes of the GPU at @pci that process @pid has; -1 where that is not told. */
int64_t nvml_memory(const char *pci, int pid);

/* The clock of the SMs of the GPU at @pci now, MHz; -1 where that is not told. */
int nvml_sm_clock(const char *pci);

#endif
