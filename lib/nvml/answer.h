/* SPDX-License-Identifier: MIT */
/*
 * Answers the queries of a tenant's program to the management library. In these functions, @which
 * is the function of @copy that the program called. The other arguments come from the program. If
 * the GPU has no quota, or the library does not know the device, the library's own function
 * answers. If that function fails, its error is returned. Any thread may call these functions at
 * any time. No lock is held while the library is called.
 */
#ifndef GPUPART_LIB_NVML_ANSWER_H
#define GPUPART_LIB_NVML_ANSWER_H

#include "lib/nvml/copy.h"
#include "lib/nvml/nvml_abi.h"

struct share;

/*
 * Finds the tenant's share of @device's GPU. The caller must close this share. Returns false if
 * there is no such share or no such device.
 */
bool answer_open(struct copy *copy, void *device, struct share *share);

/*
 * The reported total is the quota, but at most the GPU's memory. The reported used memory is the
 * memory that the tenant uses.
 */
int answer_memory(struct copy *copy, enum copy_function which, void *device,
		  struct nvml_memory *memory);
int answer_memory_v2(struct copy *copy, enum copy_function which, void *device,
		     struct nvml_memory_v2 *memory);

/*
 * Lists only the tenant's processes. For each process, the list contains the memory use that the
 * library reports. If the library reports no use, the list contains the use from the ledger. If the
 * program's list is too short, empty or NULL, the function stores the number of processes in *nr.
 * It then returns NVML_ERROR_INSUFFICIENT_SIZE, like the library itself.
 */
int answer_list(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		void *processes);
int answer_details(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_detail_list *list);
int answer_pids(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		unsigned int *pids);

/*
 * Returns NVML_ERROR_NOT_FOUND if there is no sample of the tenant. If the program passes NULL
 * instead of a list, the function reports the length that a list for all samples needs.
 */
int answer_samples(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_sample *samples, unsigned int *nr, unsigned long long last_seen);
int answer_utilizations(struct copy *copy, enum copy_function which, void *device,
			struct nvml_utilizations *list);

/* Returns NVML_ERROR_NOT_FOUND if @pid is not a process of the tenant. */
int answer_stats(struct copy *copy, enum copy_function which, void *device, unsigned int pid,
		 void *stats);

/*
 * Makes the ioctl of @copy. The answer may be a list of a GPU's processes. If each GPU has a quota,
 * the function removes the processes of other tenants from such a list.
 */
int answer_ioctl(struct copy *copy, int fd, unsigned long request, void *arg);

#endif
