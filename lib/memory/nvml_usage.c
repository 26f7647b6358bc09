// SPDX-License-Identifier: MIT
/*
 * Queries the used memory from NVML or from the simulated driver. See nvml_usage.h. On an H200, a
 * query took about 10 us, so callers should query rarely.
 */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>
#include "lib/core/symbols.h"
#include "lib/memory/nvml_usage.h"

#define MAX_PROCESSES	256
#define NOT_REPORTED	UINT64_MAX

/* nvmlProcessInfo_t in NVIDIA's nvml.h, in the form for nvmlDeviceGetComputeRunningProcesses_v3. */
struct process_info {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

/* nvmlMemory_t */
struct memory_info {
	unsigned long long total, free, used;
};

static int (*find)(const char *pci, void **device);
static int (*list)(void *device, unsigned int *nr, struct process_info *infos);
static int (*info)(void *device, struct memory_info *memory);
static int (*simulated)(int device, uint64_t *own, uint64_t *all);
static int (*simulated_processes)(int device);

/*
 * Do not use dlsym() here. In a tenant, dlsym() returns replacements that report the quota, but
 * this file needs the true values.
 */
static void *own_symbol(void *lib, const char *name)
{
	struct symbols symbols;
	struct link_map *map;

	if (dlinfo(lib, RTLD_DI_LINKMAP, &map))
		return NULL;
	symbols = symbols_of(map);
	return (void *)symbols_find(&symbols, name);
}

void memory_real_open(const struct cuda_api *cuda)
{
	int (*start)(void);
	void *lib;

	simulated = cuda->sim_memory;
	simulated_processes = cuda->sim_processes;
	if (cuda->sim_capture)
		return;
	/* The library is never closed, because the program may use it too. */
	lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return;
	*(void **)&start = own_symbol(lib, "nvmlInit_v2");
	if (!start || start())
		return;
	*(void **)&list = own_symbol(lib, "nvmlDeviceGetComputeRunningProcesses_v3");
	*(void **)&info = own_symbol(lib, "nvmlDeviceGetMemoryInfo");
	*(void **)&find = own_symbol(lib, "nvmlDeviceGetHandleByPciBusId_v2");
}

int memory_real_own(const char *pci, int device, uint64_t *bytes)
{
	struct process_info infos[MAX_PROCESSES];
	unsigned int nr = MAX_PROCESSES, own = getpid();
	uint64_t all;
	void *handle;

	if (simulated)
		return !simulated(device, bytes, &all) && *bytes != NOT_REPORTED ? 0 : -EOPNOTSUPP;
	if (!find || !list || find(pci, &handle) || list(handle, &nr, infos))
		return -EOPNOTSUPP;
	for (unsigned int i = 0; i < nr && i < MAX_PROCESSES; i++)
		if (infos[i].pid == own && infos[i].used != NOT_REPORTED) {
			*bytes = infos[i].used;
			return 0;
		}
	return -ENOENT;
}

bool memory_real_all(const char *pci, int device, uint64_t *bytes)
{
	struct memory_info memory;
	uint64_t own;
	void *handle;

	if (simulated)
		return !simulated(device, &own, bytes);
	if (!find || !info || find(pci, &handle) || info(handle, &memory))
		return false;
	*bytes = memory.used;
	return true;
}

int memory_real_processes(const char *pci, int device)
{
	struct process_info infos[MAX_PROCESSES];
	unsigned int nr = MAX_PROCESSES;
	void *handle;

	if (simulated_processes)
		return simulated_processes(device);
	if (!find || !list || find(pci, &handle) || list(handle, &nr, infos))
		return -1;
	return nr;
}
