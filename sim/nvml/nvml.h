/* SPDX-License-Identifier: MIT */
/*
 * Declarations of the simulated libnvidia-ml.so.1. The library's GPUs are captures, and a file
 * lists the processes on them. The functions have the behaviour that NVIDIA's nvml.h documents.
 */
#ifndef GPUPART_SIM_NVML_NVML_H
#define GPUPART_SIM_NVML_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/nvml/nvml_abi.h"
#include "sim/cuda/sim.h"

#define EXPORT	__attribute__((visibility("default")))
/* No header declares the functions of NVML, because programs find them by their names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* More values of nvmlReturn_t. */
#define NVML_ERROR_UNINITIALIZED	1
#define NVML_ERROR_INVALID_ARGUMENT	2
#define NVML_ERROR_NOT_SUPPORTED	3
#define NVML_ERROR_DRIVER_NOT_LOADED	9
#define NVML_ERROR_UNKNOWN		999

typedef int nvmlReturn_t;
typedef struct sim_gpu *nvmlDevice_t;

/*
 * Checks that the library is initialized and that @device is one of its devices. Returns 0 or
 * an error.
 */
nvmlReturn_t nvml_check(nvmlDevice_t device);
/* Returns the device's index in the order of PCI addresses. */
unsigned int nvml_index(nvmlDevice_t device);

enum usage_kind { USAGE_COMPUTE, USAGE_GRAPHICS, USAGE_MPS, NR_USAGE_KINDS };

#define USAGE_MAX_PROCESSES	1024	/* maximum number of processes on a GPU */

struct usage_process {
	enum usage_kind kind;
	uint32_t pid;
	uint64_t used;		/* bytes, or NVML_NOT_AVAILABLE */
};

/* The current data about one GPU. The data is from a file, and the fault nvml names this file. */
struct usage {
	uint64_t total, reserved, used;		/* bytes */
	unsigned int nr;
	struct usage_process processes[USAGE_MAX_PROCESSES];
};

/*
 * Reads the data about a GPU from the file of the fault nvml. If the file does not have the
 * format of README.md, prints a line on stderr and returns NVML_ERROR_UNKNOWN. Otherwise returns
 * 0.
 */
nvmlReturn_t usage_read(unsigned int gpu, struct usage *usage);

/*
 * The fault nvml-ioctl names a descriptor. Requests a list of processes through this descriptor,
 * and keeps only the processes in the list. Without the fault, does nothing. If the driver does
 * not answer, returns NVML_ERROR_UNKNOWN.
 */
nvmlReturn_t kernel_keep_listed(struct usage *usage);

#endif
