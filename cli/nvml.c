// SPDX-License-Identifier: MIT
/* See nvml.h. Opened when it is asked for, and missing is no harm. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include "nvml.h"

#define MAX_PROCESSES	256
#define NOT_TOLD	(~0ull)
#define CLOCK_SM	1	/* NVML_CLOCK_SM */

/* nvml.h of NVIDIA's: nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3. */
struct process_info {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

static int (*find)(const char *pci, void **device);
static int (*list)(void *device, unsigned int *nr, struct process_info *infos);
static int (*clock_of)(void *device, int clock, unsigned int *mhz);

static bool ready(void)
{
	static bool tried;
	int (*start)(void);
	void *lib;

	if (tried)
		return list;
	tried = true;
	lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!lib)
		return false;
	*(void **)&start = dlsym(lib, "nvmlInit_v2");
	*(void **)&find = dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2");
	if (start && find && !start()) {
		*(void **)&list = dlsym(lib, "nvmlDeviceGetComputeRunningProcesses_v3");
		*(void **)&clock_of = dlsym(lib, "nvmlDeviceGetClockInfo");
	}
	return list;
}

int64_t nvml_memory(const char *pci, int pid)
{
	static struct process_info infos[MAX_PROCESSES];
	static unsigned int nr;
	static char of[20];
	void *device;

	if (!ready())
		return -1;
	/* A list a GPU: who asks for many processes asks GPU by GPU, and within a moment. */
	if (strcmp(of, pci)) {
		nr = MAX_PROCESSES;
		if (find(pci, &device) || list(device, &nr, infos))
			nr = 0;
		strncpy(of, pci, sizeof(of) - 1);
	}
	for (unsigned int i = 0; i < nr && i < MAX_PROCESSES; i++)
		if ((int)infos[i].pid == pid && infos[i].used != NOT_TOLD)
			return infos[i].used;
	return -1;
}

int nvml_sm_clock(const char *pci)
{
	unsigned int mhz;
	void *device;

	if (!ready() || !clock_of || find(pci, &device) || clock_of(device, CLOCK_SM, &mhz))
		return -1;
	return mhz;
}
