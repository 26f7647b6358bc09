// SPDX-License-Identifier: MIT
/* Answers queries about memory and processes, in each version of NVML's functions. */
#include <stdlib.h>
#include <string.h>
#include "sim/nvml/nvml.h"

/*
 * Returns the data about @device from the file. The caller frees the data. On an error, returns
 * NULL and sets *rc.
 */
static struct usage *ask(nvmlDevice_t device, const void *answer, nvmlReturn_t *rc)
{
	struct usage *usage = NULL;

	*rc = nvml_check(device);
	if (*rc == NVML_SUCCESS && !answer)
		*rc = NVML_ERROR_INVALID_ARGUMENT;
	if (*rc == NVML_SUCCESS) {
		usage = malloc(sizeof(*usage));
		*rc = usage ? usage_read(nvml_index(device), usage) : NVML_ERROR_UNKNOWN;
	}
	if (*rc == NVML_SUCCESS)
		*rc = kernel_keep_listed(usage);
	if (*rc == NVML_SUCCESS)
		return usage;
	free(usage);
	return NULL;
}

/*
 * Refuses versions that are newer than the versions in nvml_abi.h. A test can allow all versions.
 */
static bool is_known_version(uint32_t version, uint32_t known)
{
	return version == known || sim_faults()->nvml_newer;
}

/* --------------------------------------------------------------------------- memory */

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *memory)
{
	nvmlReturn_t rc;
	struct usage *usage = ask(device, memory, &rc);

	if (usage) {
		memory->total = usage->total;
		memory->used = usage->reserved + usage->used;
		memory->free = usage->total - memory->used;
	}
	free(usage);
	return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device,
					       struct nvml_memory_v2 *memory)
{
	nvmlReturn_t rc;
	struct usage *usage = ask(device, memory, &rc);

	if (usage && !is_known_version(memory->version, NVML_MEMORY_V2)) {
		rc = NVML_ERROR_VERSION_MISMATCH;
	} else if (usage) {
		memory->total = usage->total;
		memory->reserved = usage->reserved;
		memory->used = usage->used;
		memory->free = usage->total - usage->reserved - usage->used;
	}
	free(usage);
	return rc;
}

/* Confidential computing is off. */
EXPORT nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device,
								 struct nvml_memory *memory)
{
	nvmlReturn_t rc;
	struct usage *usage = ask(device, memory, &rc);

	if (usage)
		memset(memory, 0, sizeof(*memory));
	free(usage);
	return rc;
}

/* ------------------------------------------------------------------------ processes */

/* The kinds of processes in a list. Each bit is one kind. */
#define ALL	((1u << NR_USAGE_KINDS) - 1)

static unsigned int count(const struct usage *usage, unsigned int of)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < usage->nr; i++)
		nr += of >> usage->processes[i].kind & 1;
	return nr;
}

/* Stores one process. Each version of a function has a different format. */
typedef void (*form)(void *entries, unsigned int nr, const struct usage_process *process);

static void put_v1(void *entries, unsigned int nr, const struct usage_process *process)
{
	((struct nvml_process_v1 *)entries)[nr] =
		(struct nvml_process_v1){ process->pid, process->used };
}

static void put_v2(void *entries, unsigned int nr, const struct usage_process *process)
{
	((struct nvml_process_v2 *)entries)[nr] =
		(struct nvml_process_v2){ process->pid, process->used, ~0u, ~0u };
}

static void put_detail(void *entries, unsigned int nr, const struct usage_process *process)
{
	((struct nvml_process_detail *)entries)[nr] =
		(struct nvml_process_detail){ process->pid, process->used, ~0u, ~0u, 0 };
}

static void put_sample(void *entries, unsigned int nr, const struct usage_process *process)
{
	((struct nvml_sample *)entries)[nr] = (struct nvml_sample){ process->pid, 1000000 + nr,
								     50, 25, 0, 0 };
}

static void put_utilization(void *entries, unsigned int nr, const struct usage_process *process)
{
	((struct nvml_utilization *)entries)[nr] =
		(struct nvml_utilization){ 1000000 + nr, process->pid, 50, 25, 0, 0, 0, 0 };
}

static void put_pid(void *entries, unsigned int nr, const struct usage_process *process)
{
	((unsigned int *)entries)[nr] = process->pid;
}

/*
 * In two cases, *nr becomes the required number of entries: the list is too short, or the list is
 * NULL and *nr is 0. Source: nvml.h.
 */
static nvmlReturn_t list(nvmlDevice_t device, unsigned int of, form put, unsigned int *nr,
			 void *entries)
{
	unsigned int room, found = 0;
	nvmlReturn_t rc;
	struct usage *usage = ask(device, nr, &rc);

	if (!usage)
		return rc;
	room = *nr;
	if (room && !entries) {
		rc = NVML_ERROR_INVALID_ARGUMENT;
		goto free_usage;
	}
	*nr = count(usage, of);
	if (*nr > room) {
		rc = NVML_ERROR_INSUFFICIENT_SIZE;
		goto free_usage;
	}
	for (unsigned int i = 0; i < usage->nr; i++)
		if (of >> usage->processes[i].kind & 1)
			put(entries, found++, &usage->processes[i]);
free_usage:
	free(usage);
	return rc;
}

/* The form of the 535 drivers before 535.98. */
static form newest(void)
{
	return sim_faults()->nvml_wide ? put_detail : put_v2;
}

#define LISTS(name, kind) \
	EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned int *nr, void *entries) \
	{ \
		return list(device, 1u << (kind), put_v1, nr, entries); \
	} \
	EXPORT nvmlReturn_t name##_v2(nvmlDevice_t device, unsigned int *nr, void *entries) \
	{ \
		return list(device, 1u << (kind), put_v2, nr, entries); \
	} \
	EXPORT nvmlReturn_t name##_v3(nvmlDevice_t device, unsigned int *nr, void *entries) \
	{ \
		return list(device, 1u << (kind), newest(), nr, entries); \
	}

LISTS(nvmlDeviceGetComputeRunningProcesses, USAGE_COMPUTE)
LISTS(nvmlDeviceGetGraphicsRunningProcesses, USAGE_GRAPHICS)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, USAGE_MPS)

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
							  struct nvml_detail_list *details)
{
	nvmlReturn_t rc = nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!details || details->mode >= NR_USAGE_KINDS)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!is_known_version(details->version, NVML_DETAIL_LIST_V1))
		return NVML_ERROR_VERSION_MISMATCH;
	return list(device, 1u << details->mode, put_detail, &details->nr, details->processes);
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *nr,
						unsigned int *pids)
{
	return list(device, ALL, put_pid, nr, pids);
}

/*
 * The real library has functions that no header declares and only nvidia-smi uses. This function
 * represents them. It calls a second function through the loader.
 */
EXPORT nvmlReturn_t nvmlSimulatedPids(nvmlDevice_t device, unsigned int *nr, unsigned int *pids)
{
	return nvmlDeviceGetAccountingPids(device, nr, pids);
}

/* nvmlAccountingStats_t begins with two percentages. The other members stay unchanged. */
EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
						 void *stats)
{
	nvmlReturn_t rc;
	struct usage *usage = ask(device, stats, &rc);

	if (!usage)
		return rc;
	rc = NVML_ERROR_NOT_FOUND;
	for (unsigned int i = 0; i < usage->nr && rc != NVML_SUCCESS; i++)
		if (usage->processes[i].pid == pid) {
			memcpy(stats, (uint32_t[]){ 50, 25 }, 8);
			rc = NVML_SUCCESS;
		}
	free(usage);
	return rc;
}

/* ---------------------------------------------------------------------- utilization */

/*
 * If the list is NULL, the answer is a sufficient size, which may be larger than necessary. An
 * empty list is an error.
 */
static nvmlReturn_t samples(nvmlDevice_t device, form put, unsigned int *nr, void *entries)
{
	nvmlReturn_t rc = nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!nr)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!entries) {
		*nr = USAGE_MAX_PROCESSES;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	rc = list(device, ALL, put, nr, entries);
	return rc == NVML_SUCCESS && !*nr ? NVML_ERROR_NOT_FOUND : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
						    struct nvml_sample *entries,
						    unsigned int *nr,
						    unsigned long long last_seen)
{
	(void)last_seen;
	return samples(device, put_sample, nr, entries);
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
							  struct nvml_utilizations *all)
{
	nvmlReturn_t rc = nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!all)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!is_known_version(all->version, NVML_UTILIZATIONS_V1))
		return NVML_ERROR_VERSION_MISMATCH;
	return samples(device, put_utilization, &all->nr, all->processes);
}
