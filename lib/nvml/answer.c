// SPDX-License-Identifier: MIT
/*
 * Answers two kinds of queries of a tenant's program. One kind asks for the total, used and free
 * memory. The other kind asks for the accounting data of a process.
 */
#include <stdio.h>
#include <string.h>
#include "lib/nvml/answer.h"
#include "lib/nvml/share.h"

bool answer_open(struct copy *copy, void *device, struct share *share)
{
	struct nvml_pci info;
	char pci[24];

	memset(&info, 0, sizeof(info));
	if (copy->pci(device, &info) != NVML_SUCCESS)
		return false;
	snprintf(pci, sizeof(pci), "%04x:%02x:%02x.0", info.domain, info.bus, info.device);
	return share_open(pci, share);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int answer_memory(struct copy *copy, enum copy_function which, void *device,
		  struct nvml_memory *memory)
{
	int (*real)(void *, struct nvml_memory *) = (void *)copy->real[which];
	struct nvml_memory all;
	struct share share;
	int rc;

	if (!memory || !answer_open(copy, device, &share))
		return real(device, memory);
	rc = real(device, &all);
	/* If the GPU does not have this kind of memory, do not report it to the tenant. */
	if (rc == NVML_SUCCESS) {
		memory->total = smaller(share.quota, all.total);
		memory->used = all.total ? share.used : 0;
		memory->free = memory->total - smaller(memory->used, memory->total);
	}
	share_close(&share);
	return rc;
}

int answer_memory_v2(struct copy *copy, enum copy_function which, void *device,
		     struct nvml_memory_v2 *memory)
{
	int (*real)(void *, void *) = (void *)copy->real[which];
	union {
		struct nvml_memory_v2 v2;
		char room[256];
	} all;
	struct share share;
	int rc;

	if (!memory || !answer_open(copy, device, &share))
		return real(device, memory);
	memset(&all, 0, sizeof(all));
	all.v2.version = memory->version;
	rc = real(device, &all);
	/*
	 * Only newer drivers support this version of the struct. Answer like a driver that does
	 * not support this version.
	 */
	if (rc == NVML_SUCCESS && memory->version != NVML_MEMORY_V2)
		rc = NVML_ERROR_VERSION_MISMATCH;
	if (rc == NVML_SUCCESS) {
		memory->total = smaller(share.quota, all.v2.total);
		memory->reserved = 0;
		memory->used = share.used;
		memory->free = memory->total - smaller(memory->used, memory->total);
	}
	share_close(&share);
	return rc;
}

int answer_stats(struct copy *copy, enum copy_function which, void *device, unsigned int pid,
		 void *stats)
{
	int (*real)(void *, unsigned int, void *) = (void *)copy->real[which];
	struct share share;
	uint64_t used;
	bool own;

	if (!answer_open(copy, device, &share))
		return real(device, pid, stats);
	own = share_has(&share, pid, &used);
	share_close(&share);
	return own ? real(device, pid, stats) : NVML_ERROR_NOT_FOUND;
}
