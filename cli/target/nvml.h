/* SPDX-License-Identifier: MIT */
/* GPU memory of processes, clocks and power, as NVIDIA's management library tells. */
#ifndef GPUPART_CLI_TARGET_NVML_H
#define GPUPART_CLI_TARGET_NVML_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the GPU at @pci that process @pid has; -1 where that is not told. */
int64_t nvml_memory(const char *pci, int pid);
/* The next one asks the GPU again: for who looks again and again. */
void nvml_forget_memory(void);

/* The clock of the SMs of the GPU at @pci now, MHz; -1 where that is not told. */
int nvml_sm_clock(const char *pci);

/* Power and clocks of a GPU; -1: not told. */
struct nvml_state {
	int power_mw, sm_mhz, memory_mhz;
};

/* Those of the GPU at @pci now. False: nothing of it is told. */
bool nvml_state(const char *pci, struct nvml_state *state);

#endif
