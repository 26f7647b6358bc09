/* SPDX-License-Identifier: MIT */
/*
 * The answers of a tenant's program to its queries of the management library: @which function
 * of @copy, with its arguments. For a GPU without a quota, or a device that the library does
 * not know, the library's own function answers; its errors are passed on. Any thread may call
 * these at any time; no lock is held while the library is called.
 */
#ifndef GPUPART_LIB_NVML_ANSWER_H
#define GPUPART_LIB_NVML_ANSWER_H

#include "lib/nvml/copy.h"
#include "lib/nvml/nvml_abi.h"

struct share;

/*
 * The tenant's share of @device's GPU, which must be closed; false: there is none, or no such
 * device.
 */
bool answer_open(struct copy *copy, void *device, struct share *share);

/* Total: the quota, at most the GPU's memory; used: by the tenant; free: never negative. */
int answer_memory(struct copy *copy, enum copy_function which, void *device,
		  struct nvml_memory *memory);
int answer_memory_v2(struct copy *copy, enum copy_function which, void *device,
		     struct nvml_memory_v2 *memory);

/*
 * Lists only the tenant's processes. Their use is that of the library, else that of the ledger.
 * As in the library itself, a list that is too short (including length 0 and NULL) gives
 * NVML_ERROR_INSUFFICIENT_SIZE, with the number of processes in *nr.
 */
int answer_list(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		void *processes);
int answer_details(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_detail_list *list);
int answer_pids(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		unsigned int *pids);

/*
 * NVML_ERROR_NOT_FOUND if there is no sample of the tenant; NULL asks for the room that all
 * need.
 */
int answer_samples(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_sample *samples, unsigned int *nr, unsigned long long last_seen);
int answer_utilizations(struct copy *copy, enum copy_function which, void *device,
			struct nvml_utilizations *list);

/* For a process that is not the tenant's: NVML_ERROR_NOT_FOUND. */
int answer_stats(struct copy *copy, enum copy_function which, void *device, unsigned int pid,
		 void *stats);

/*
 * Makes the ioctl of @copy. If the answer is the list of a GPU's processes, and each GPU has a
 * quota, only the tenant's processes remain in it.
 */
int answer_ioctl(struct copy *copy, int fd, unsigned long request, void *arg);

#endif
