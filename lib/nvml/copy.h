/* SPDX-License-Identifier: MIT */
/*
 * One loaded libnvidia-ml: its own functions, and ours that stand for them. A program may have
 * several, and a device of one is nothing to another.
 */
#ifndef GPUPART_LIB_NVML_COPY_H
#define GPUPART_LIB_NVML_COPY_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define COPY_MAX	4	/* more at a time are left as they are */

/* The functions that are answered here: X(@with, kind of answer.h, which one, name). */
#define COPY_FUNCTIONS(X, with) \
	X(with, memory, MEMORY, "nvmlDeviceGetMemoryInfo") \
	X(with, memory_v2, MEMORY_V2, "nvmlDeviceGetMemoryInfo_v2") \
	X(with, memory, PROTECTED, "nvmlDeviceGetConfComputeProtectedMemoryUsage") \
	X(with, list, COMPUTE, "nvmlDeviceGetComputeRunningProcesses") \
	X(with, list, COMPUTE_V2, "nvmlDeviceGetComputeRunningProcesses_v2") \
	X(with, list, COMPUTE_V3, "nvmlDeviceGetComputeRunningProcesses_v3") \
	X(with, list, GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses") \
	X(with, list, GRAPHICS_V2, "nvmlDeviceGetGraphicsRunningProcesses_v2") \
	X(with, list, GRAPHICS_V3, "nvmlDeviceGetGraphicsRunningProcesses_v3") \
	X(with, list, MPS, "nvmlDeviceGetMPSComputeRunningProcesses") \
	X(with, list, MPS_V2, "nvmlDeviceGetMPSComputeRunningProcesses_v2") \
	X(with, list, MPS_V3, "nvmlDeviceGetMPSComputeRunningProcesses_v3") \
	X(with, details, DETAILS, "nvmlDeviceGetRunningProcessDetailList") \
	X(with, samples, SAMPLES, "nvmlDeviceGetProcessUtilization") \
	X(with, utilizations, UTILIZATIONS, "nvmlDeviceGetProcessesUtilizationInfo") \
	X(with, pids, ACCOUNTING_PIDS, "nvmlDeviceGetAccountingPids") \
	X(with, stats, ACCOUNTING_STATS, "nvmlDeviceGetAccountingStats")

#define COPY_NUMBER(with, kind, id, name) COPY_##id,
enum copy_function {
	COPY_FUNCTIONS(COPY_NUMBER, 0)
	COPY_NR_FUNCTIONS
};

struct nvml_pci;

struct copy {
	bool taken;
	/* The library's own, or what another audit library put in their place before us. */
	_Atomic uintptr_t real[COPY_NR_FUNCTIONS];
	int (*pci)(void *device, struct nvml_pci *pci);
	_Atomic uintptr_t ioctl;	/* what it would call itself */
};

/* Whether an object of this path is a libnvidia-ml. */
bool copy_is_nvml(const char *path);

/*
 * A place for the library that @map is of, or NULL: none is free, or it does not tell a
 * device's PCI address. As the loader opens it, and closes it: one thread at a time.
 */
struct copy *copy_open(const struct link_map *map);
/* NULL where @cookie is of none. */
struct copy *copy_of(uintptr_t cookie);
void copy_close(struct copy *copy);

/* Our function in the place of @name at @address of @copy; @address where we have none. */
uintptr_t copy_bind(struct copy *copy, const char *name, uintptr_t address);

/* Whether @map defines what we may put ours in the place of where a copy calls it: ioctl. */
bool copy_may_call(const struct link_map *map);
/* The same of a function @name at @address that @copy calls. */
uintptr_t copy_bind_call(struct copy *copy, const char *name, uintptr_t address);

#endif
