/* SPDX-License-Identifier: MIT */
/*
 * The simulated libnvidia-ml.so.1: GPUs that are captures, and processes that a file tells
 * of. As nvml.h documents its functions; knows no tenant and no quota.
 */
#ifndef GPUPART_SIM_NVML_NVML_H
#define GPUPART_SIM_NVML_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/nvml/nvml_abi.h"
#include "sim/cuda/sim.h"

#define EXPORT	__attribute__((visibility("default")))

/* More of nvmlReturn_t. */
#define NVML_ERROR_UNINITIALIZED	1
#define NVML_ERROR_INVALID_ARGUMENT	2
#define NVML_ERROR_NOT_SUPPORTED	3
#define NVML_ERROR_DRIVER_NOT_LOADED	9
#define NVML_ERROR_UNKNOWN		999

typedef int nvmlReturn_t;
typedef struct sim_gpu *nvmlDevice_t;

/* Between nvmlInit and nvmlShutdown, and a device of ours: 0, or what is wrong. */
nvmlReturn_t nvml_check(nvmlDevice_t device);
/* Its number by PCI address. */
unsigned int nvml_index(nvmlDevice_t device);

enum told_kind { TOLD_COMPUTE, TOLD_GRAPHICS, TOLD_MPS, NR_TOLD_KINDS };

#define TOLD_MAX	1024	/* processes of a GPU */

struct told_process {
	enum told_kind kind;
	uint32_t pid;
	uint64_t used;		/* bytes, or NVML_NOT_AVAILABLE */
};

/* What the file of the fault nvml says of a GPU now. */
struct told {
	uint64_t total, reserved, used;		/* bytes */
	unsigned int nr;
	struct told_process processes[TOLD_MAX];
};

/* 0, or NVML_ERROR_UNKNOWN with a line on stderr: the file is not as README.md has it. */
nvmlReturn_t told_read(unsigned int gpu, struct told *told);

/*
 * Leaves the processes that the kernel's driver lists, if the fault nvml-ioctl says by
 * which descriptor it is asked; NVML_ERROR_UNKNOWN: it does not answer.
 */
nvmlReturn_t kernel_keep_listed(struct told *told);

#endif
