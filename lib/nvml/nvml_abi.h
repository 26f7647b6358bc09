/* SPDX-License-Identifier: MIT */
/*
 * The structures of NVIDIA's management library that are used here. The lists without a version and
 * the _v2 lists come from the public nvml.h of version 11. The _v3 lists, MemoryInfo_v2 and the
 * detail lists come from the nvml.h of version 12.2.140. The source of ProcessesUtilizationInfo is
 * NVIDIA's pynvml.py of 2025. Drivers have this struct since branch 550.
 */
#ifndef GPUPART_LIB_NVML_NVML_ABI_H
#define GPUPART_LIB_NVML_NVML_ABI_H

#include <stdint.h>

/* Values of nvmlReturn_t that are returned or checked here. */
#define NVML_SUCCESS			0
#define NVML_ERROR_NOT_FOUND		6
#define NVML_ERROR_INSUFFICIENT_SIZE	7
#define NVML_ERROR_VERSION_MISMATCH	25

/* If a memory size is unknown, NVML_VALUE_NOT_AVAILABLE has this value. */
#define NVML_NOT_AVAILABLE	UINT64_MAX

/* NVML_STRUCT_VERSION computes the version that the caller writes into its struct. */
#define NVML_VERSION_OF(type, number)	((uint32_t)(sizeof(type) | (uint32_t)(number) << 24))

struct nvml_memory {		/* nvmlMemory_t, in bytes */
	uint64_t total, free, used;
};

struct nvml_memory_v2 {		/* nvmlMemory_v2_t, in bytes */
	uint32_t version;
	uint64_t total, reserved, free, used;
};

#define NVML_MEMORY_V2	NVML_VERSION_OF(struct nvml_memory_v2, 2)

/*
 * The beginning of nvmlPciInfo_t. The three versions of the struct have the same beginning. The
 * whole struct has 68 bytes.
 */
struct nvml_pci {
	char bus_id_legacy[16];
	uint32_t domain, bus, device;
	char rest[100];
};

struct nvml_process_v1 {	/* nvmlProcessInfo_v1_t */
	uint32_t pid;
	uint64_t used;
};

struct nvml_process_v2 {	/* nvmlProcessInfo_v2_t, for _v2 and _v3 */
	uint32_t pid;
	uint64_t used;
	uint32_t gpu_instance, compute_instance;
};

/*
 * nvmlProcessDetail_v1_t. In branch 535, drivers before 535.98 used this struct in the _v3 lists,
 * too.
 */
struct nvml_process_detail {
	uint32_t pid;
	uint64_t used;
	uint32_t gpu_instance, compute_instance;
	uint64_t used_protected;
};

struct nvml_detail_list {	/* nvmlProcessDetailList_v1_t */
	uint32_t version, mode, nr;
	struct nvml_process_detail *processes;
};

#define NVML_DETAIL_LIST_V1	NVML_VERSION_OF(struct nvml_detail_list, 1)

struct nvml_sample {		/* nvmlProcessUtilizationSample_t */
	uint32_t pid;
	uint64_t time;
	uint32_t sm, memory, encoder, decoder;
};

struct nvml_utilization {	/* nvmlProcessUtilizationInfo_v1_t */
	uint64_t time;
	uint32_t pid;
	uint32_t sm, memory, encoder, decoder, jpeg, optical_flow;
};

struct nvml_utilizations {	/* nvmlProcessesUtilizationInfo_v1_t */
	uint32_t version, nr;
	uint64_t last_seen;
	struct nvml_utilization *processes;
};

#define NVML_UTILIZATIONS_V1	NVML_VERSION_OF(struct nvml_utilizations, 1)

#endif
