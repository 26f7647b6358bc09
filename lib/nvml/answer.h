/* SPDX-License-Identifier: MIT */
/*
 * What a program of a tenant is told where it asks the management library: @which function
 * of @copy, and the arguments that it has there. On a GPU without a quota, and where the
 * library does not know the device, that function answers itself; its errors are passed on.
 * Any thread, any time; no lock is held while the library is called.
 */
#ifndef GPUPART_LIB_NVML_ANSWER_H
#define GPUPART_LIB_NVML_ANSWER_H

#include "lib/nvml/copy.h"
#include "lib/nvml/nvml_abi.h"

struct share;

/* The share of @device's GPU, to be closed; false: there is none, or no such device. */
bool answer_open(struct copy *copy, void *device, struct share *share);

/* Total: the quota, at most what the GPU has; used: the tenant's; free: never below 0. */
int answer_memory(struct copy *copy, enum copy_function which, void *device,
		  struct nvml_memory *memory);
int answer_memory_v2(struct copy *copy, enum copy_function which, void *device,
		     struct nvml_memory_v2 *memory);

/*
 * The tenant's processes alone; what one uses as the library has it, else as the ledger. As
 * in the library's own, a list that is too short for them, of none and NULL too, is
 * NVML_ERROR_INSUFFICIENT_SIZE with how many there are in *nr.
 */
int answer_list(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		void *processes);
int answer_details(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_detail_list *list);
int answer_pids(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		unsigned int *pids);

/* NVML_ERROR_NOT_FOUND where there is none of the tenant's; NULL asks for the room of all. */
int answer_samples(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_sample *samples, unsigned int *nr, unsigned long long last_seen);
int answer_utilizations(struct copy *copy, enum copy_function which, void *device,
			struct nvml_utilizations *list);

/* Of a process that is not the tenant's: NVML_ERROR_NOT_FOUND. */
int answer_stats(struct copy *copy, enum copy_function which, void *device, unsigned int pid,
		 void *stats);

/*
 * The ioctl that @copy calls, as it is; and where the answer is the list of a GPU's
 * processes, and each GPU has a quota, what remains of it are the tenant's.
 */
int answer_ioctl(struct copy *copy, int fd, unsigned long request, void *arg);

#endif
