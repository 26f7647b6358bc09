// SPDX-License-Identifier: MIT
/*
 * Calls NVIDIA's management library; see nvml.h. Opens the library when it is needed. The library
 * may be missing.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include "cli/target/nvml.h"

#define MAX_PROCESSES	256
#define NOT_REPORTED	(~0ull)
#define CLOCK_SM	1	/* NVML_CLOCK_SM */
#define CLOCK_MEMORY	2	/* NVML_CLOCK_MEM */

/* nvmlProcessInfo_t in NVIDIA's nvml.h, for nvmlDeviceGetComputeRunningProcesses_v3. */
struct process_info {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

static int (*find)(const char *pci, void **device);
static int (*list)(void *device, unsigned int *nr, struct process_info *infos);
static int (*clock_of)(void *device, int clock, unsigned int *mhz);
static int (*power_of)(void *device, unsigned int *mw);
static int (*memory_of)(void *device, unsigned long long total_free_used[3]);

static bool ready(void)
{
	static bool tried, started;
	int (*start)(void);
	void *lib;

	if (tried)
		return started;
	tried = true;
	lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!lib)
		return false;
	*(void **)&start = dlsym(lib, "nvmlInit_v2");
	*(void **)&find = dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2");
	if (start && find && !start()) {
		*(void **)&list = dlsym(lib, "nvmlDeviceGetComputeRunningProcesses_v3");
		*(void **)&clock_of = dlsym(lib, "nvmlDeviceGetClockInfo");
		*(void **)&power_of = dlsym(lib, "nvmlDeviceGetPowerUsage");
		*(void **)&memory_of = dlsym(lib, "nvmlDeviceGetMemoryInfo");
		started = true;
	}
	return started;
}

static char listed_pci[20];

void nvml_forget(void)
{
	*listed_pci = 0;
}

int64_t nvml_memory(const char *pci, int pid)
{
	static struct process_info infos[MAX_PROCESSES];
	static unsigned int nr;
	void *device;

	if (!ready())
		return -1;
	/*
	 * Keep the process list of the GPU, because callers query many processes of the same GPU in
	 * succession.
	 */
	if (strcmp(listed_pci, pci)) {
		nr = MAX_PROCESSES;
		if (!list || find(pci, &device) || list(device, &nr, infos))
			nr = 0;
		strncpy(listed_pci, pci, sizeof(listed_pci) - 1);
	}
	for (unsigned int i = 0; i < nr && i < MAX_PROCESSES; i++)
		if ((int)infos[i].pid == pid && infos[i].used != NOT_REPORTED)
			return infos[i].used;
	return -1;
}

static int read_clock(void *device, int clock)
{
	unsigned int mhz;

	return clock_of && !clock_of(device, clock, &mhz) ? (int)mhz : -1;
}

int nvml_sm_clock(const char *pci)
{
	void *device;

	return ready() && !find(pci, &device) ? read_clock(device, CLOCK_SM) : -1;
}

bool nvml_state(const char *pci, struct nvml_state *state)
{
	unsigned int mw;
	void *device;

	*state = (struct nvml_state){ -1, -1, -1 };
	if (!ready() || find(pci, &device))
		return false;
	if (power_of && !power_of(device, &mw))
		state->power_mw = mw;
	state->sm_mhz = read_clock(device, CLOCK_SM);
	state->memory_mhz = read_clock(device, CLOCK_MEMORY);
	return state->power_mw >= 0 || state->sm_mhz >= 0 || state->memory_mhz >= 0;
}

void nvml_gpu_memory(const char *pci, int64_t *used, int64_t *total)
{
	unsigned long long sizes[3];
	void *device;

	*used = *total = -1;
	if (!ready() || !memory_of || find(pci, &device) || memory_of(device, sizes))
		return;
	*total = sizes[0];
	*used = sizes[2];
}
