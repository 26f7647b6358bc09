/* SPDX-License-Identifier: MIT */
/* GPU memory of processes, clocks and power, from NVIDIA's management library. One thread. */
#ifndef GPUPART_CLI_TARGET_NVML_H
#define GPUPART_CLI_TARGET_NVML_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns how many bytes of the GPU at @pci process @pid uses, or -1 if this is not known. Keeps
 * the list of a GPU's processes until a caller queries another GPU or calls nvml_forget().
 */
int64_t nvml_memory(const char *pci, int pid);
void nvml_forget(void);

/* Reads the used and the total bytes of the GPU at @pci. Returns false if they are not known. */
bool nvml_gpu_memory(const char *pci, uint64_t *used, uint64_t *total);

/* Returns the current clock of the SMs of the GPU at @pci in MHz, or -1 if it is not known. */
int nvml_sm_clock(const char *pci);

/* Power and clocks of a GPU. A value is -1 if it is not known. */
struct nvml_state {
	int power_mw, sm_mhz, memory_mhz;
};

/* Reads the current values of the GPU at @pci. Returns false if no value is known. */
bool nvml_state(const char *pci, struct nvml_state *state);

#endif
