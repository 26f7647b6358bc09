/* SPDX-License-Identifier: MIT */
/*
 * Gets the GPU memory of processes, clocks and power from NVIDIA's management library. Call these
 * functions from one thread.
 */
#ifndef GPUPART_CLI_TARGET_NVML_H
#define GPUPART_CLI_TARGET_NVML_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns how many bytes process @pid uses on the GPU at @pci. If this is not known, returns -1.
 * Keeps the list of a GPU's processes until a caller queries another GPU or calls nvml_forget().
 */
int64_t nvml_memory(const char *pci, int pid);
void nvml_forget(void);

/*
 * Reads the used memory and the total memory of the GPU at @pci, in bytes. If the values are not
 * known, they are -1.
 */
void nvml_gpu_memory(const char *pci, int64_t *used, int64_t *total);

/*
 * Returns the current SM clock, in MHz, of the GPU at @pci. If the clock is not known, returns -1.
 */
int nvml_sm_clock(const char *pci);

/* Power and clocks of a GPU. If a value is not known, it is -1. */
struct nvml_state {
	int power_mw, sm_mhz, memory_mhz;
};

/* Reads the current values of the GPU at @pci. If no value is known, returns false. */
bool nvml_state(const char *pci, struct nvml_state *state);

#endif
