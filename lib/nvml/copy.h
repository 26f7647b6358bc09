/* SPDX-License-Identifier: MIT */
/*
 * Describes one loaded copy of libnvidia-ml, with its functions and their replacements. A program
 * may load several copies. A device handle is valid only in the copy that created the handle.
 */
#ifndef GPUPART_LIB_NVML_COPY_H
#define GPUPART_LIB_NVML_COPY_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define COPY_MAX	4	/* maximum number of copies at the same time; further copies
				 * are not changed */

/* The functions that are replaced. Each row contains X(@with, kind in answer.h, member, name). */
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
	/*
	 * The library's own functions. If another audit library replaced a function earlier, the
	 * member points to the function of that library.
	 */
	_Atomic uintptr_t real[COPY_NR_FUNCTIONS];
	int (*pci)(void *device, struct nvml_pci *pci);
	_Atomic uintptr_t ioctl;	/* the ioctl function that the library would
					 * call without a replacement */
};

/* Returns whether @path is the path of a copy of libnvidia-ml. */
bool copy_is_nvml(const char *path);

/*
 * Reserves an entry for the copy of the library that @map describes. Returns NULL if no entry is
 * free or if the library cannot report PCI addresses. When the loader closes the library, the
 * caller sets @taken to false. Two threads never open or close libraries at the same time.
 */
struct copy *copy_open(const struct link_map *map);
/* Returns the copy to which @cookie belongs, or NULL. */
struct copy *copy_of(uintptr_t cookie);

/*
 * Returns the replacement of the function @name, which is at @address in @copy. Returns @address
 * if the function has no replacement.
 */
uintptr_t copy_bind(struct copy *copy, const char *name, uintptr_t address);

/* Returns true if @map defines ioctl. When a copy calls this function, the call is replaced. */
bool copy_may_call(const struct link_map *map);
/*
 * Does the same as copy_bind(), but for a function that @copy calls. The function is @name at
 * @address.
 */
uintptr_t copy_bind_call(struct copy *copy, const char *name, uintptr_t address);

#endif
