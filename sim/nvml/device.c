// SPDX-License-Identifier: MIT
/*
 * Initializes and shuts down the simulated management library, and answers queries about the list
 * of GPUs.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "sim/nvml/nvml.h"

static atomic_uint users;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
	nvmlReturn_t rc = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!sim_nr_gpus && gpu_open_all() == CUDA_SUCCESS)
		gpu_sort_by_address();
	if (sim_nr_gpus)
		atomic_fetch_add(&users, 1);
	else
		rc = NVML_ERROR_DRIVER_NOT_LOADED;
	pthread_mutex_unlock(&lock);
	return rc;
}

EXPORT nvmlReturn_t nvmlInit(void)
{
	return nvmlInit_v2();
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return nvmlInit_v2();
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t rc = NVML_ERROR_UNINITIALIZED;

	pthread_mutex_lock(&lock);
	if (atomic_load(&users)) {
		atomic_fetch_sub(&users, 1);
		rc = NVML_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t rc)
{
	switch (rc) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_VERSION_MISMATCH: return "Argument version mismatch";
	}
	return "Unknown Error";
}

static bool is_ours(nvmlDevice_t device)
{
	for (unsigned int i = 0; i < sim_nr_gpus; i++)
		if (sim_gpus[i] == device)
			return true;
	return false;
}

nvmlReturn_t nvml_check(nvmlDevice_t device)
{
	if (!atomic_load(&users))
		return NVML_ERROR_UNINITIALIZED;
	return is_ours(device) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

unsigned int nvml_index(nvmlDevice_t device)
{
	unsigned int i = 0;

	while (i + 1 < sim_nr_gpus && sim_gpus[i] != device)
		i++;
	return i;
}

/* Copies @text into the program's buffer of @len bytes. */
static nvmlReturn_t give_text(char *to, unsigned int len, const char *text, const char *more)
{
	if (!to)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) + strlen(more) >= len)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	sprintf(to, "%s%s", text, more);
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int len)
{
	if (!atomic_load(&users))
		return NVML_ERROR_UNINITIALIZED;
	return give_text(version, len, sim_gpus[0]->info.driver, "");
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *nr)
{
	if (!atomic_load(&users))
		return NVML_ERROR_UNINITIALIZED;
	if (!nr)
		return NVML_ERROR_INVALID_ARGUMENT;
	*nr = sim_nr_gpus;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *nr)
{
	return nvmlDeviceGetCount_v2(nr);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (!atomic_load(&users))
		return NVML_ERROR_UNINITIALIZED;
	if (index >= sim_nr_gpus || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = sim_gpus[index];
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t find(bool (*fits)(nvmlDevice_t device, const char *text), const char *text,
			 nvmlDevice_t *device)
{
	if (!atomic_load(&users))
		return NVML_ERROR_UNINITIALIZED;
	if (!text || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < sim_nr_gpus; i++)
		if (fits(sim_gpus[i], text)) {
			*device = sim_gpus[i];
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

/* NVIDIA's library writes the PCI domain with leading zeros, for example 00000000:01:00.0. */
static bool is_at(nvmlDevice_t device, const char *pci)
{
	unsigned int a[4], b[4];

	return sscanf(pci, "%x:%x:%x.%x", &a[0], &a[1], &a[2], &a[3]) == 4 &&
	       sscanf(device->info.pci, "%x:%x:%x.%x", &b[0], &b[1], &b[2], &b[3]) == 4 &&
	       !memcmp(a, b, sizeof(a));
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvmlDevice_t *device)
{
	return find(is_at, pci, device);
}

static bool is_called(nvmlDevice_t device, const char *uuid)
{
	return !strcasecmp(device->info.uuid, uuid);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	return find(is_called, uuid, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	nvmlReturn_t rc = nvml_check(device);

	if (rc == NVML_SUCCESS && !index)
		rc = NVML_ERROR_INVALID_ARGUMENT;
	if (rc == NVML_SUCCESS)
		*index = nvml_index(device);
	return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int len)
{
	nvmlReturn_t rc = nvml_check(device);

	return rc ? rc : give_text(name, len, device->info.name, " (simulated)");
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int len)
{
	nvmlReturn_t rc = nvml_check(device);

	return rc ? rc : give_text(uuid, len, device->info.uuid, "");
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct nvml_pci *pci)
{
	nvmlReturn_t rc = nvml_check(device);
	uint32_t ids[2] = { 0, 0 };

	if (rc == NVML_SUCCESS && !pci)
		rc = NVML_ERROR_INVALID_ARGUMENT;
	if (rc != NVML_SUCCESS)
		return rc;
	/*
	 * Writes only the 68 bytes of nvmlPciInfo_t. These bytes end with two ids and the long
	 * form of the address.
	 */
	sscanf(device->info.pci, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
	snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0",
		 pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
	memcpy(pci->rest, ids, sizeof(ids));
	snprintf(pci->rest + sizeof(ids), 32, "%08X:%02X:%02X.0", pci->domain, pci->bus,
		 pci->device);
	return NVML_SUCCESS;
}
