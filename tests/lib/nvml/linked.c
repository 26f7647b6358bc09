// SPDX-License-Identifier: MIT
/*
 * A test program that is linked with libnvidia-ml. For each GPU, it prints the memory and the
 * processes that each form of the functions reports. It does not use gpupart.
 */
#include <stdio.h>
#include "lib/nvml/nvml_abi.h"

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned int *nr);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct nvml_memory_v2 *memory);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned int *nr, void *entries);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *nr, void *entries);

int main(void)
{
	struct nvml_process_v1 v1[16];
	struct nvml_process_v2 v3[16];
	struct nvml_memory memory;
	struct nvml_memory_v2 memory2 = { .version = NVML_MEMORY_V2 };
	unsigned int nr_gpus, nr;
	void *device;

	if (nvmlInit_v2() || nvmlDeviceGetCount_v2(&nr_gpus))
		return 1;
	for (unsigned int i = 0; i < nr_gpus; i++) {
		if (nvmlDeviceGetHandleByIndex_v2(i, &device) ||
		    nvmlDeviceGetMemoryInfo(device, &memory) ||
		    nvmlDeviceGetMemoryInfo_v2(device, &memory2))
			return 1;
		printf("%u: %zu %zu %zu, %zu %zu %zu %zu;", i, memory.total, memory.used,
		       memory.free, memory2.total, memory2.reserved, memory2.used, memory2.free);
		nr = 16;
		if (nvmlDeviceGetComputeRunningProcesses(device, &nr, v1))
			return 1;
		for (unsigned int p = 0; p < nr; p++)
			printf(" %u=%zu", v1[p].pid, v1[p].used);
		nr = 16;
		if (nvmlDeviceGetComputeRunningProcesses_v3(device, &nr, v3))
			return 1;
		for (unsigned int p = 0; p < nr; p++)
			printf(" %u:%zu", v3[p].pid, v3[p].used);
		printf("\n");
	}
	return 0;
}
