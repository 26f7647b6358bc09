// SPDX-License-Identifier: MIT
/* Entry points that need no context, for initialization, errors and devices. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/topo/topology.h"
#include "sim/cuda/callback_numbers.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
bool sim_ready;

static pthread_mutex_t init_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static bool ready(void)
{
	return __atomic_load_n(&sim_ready, __ATOMIC_ACQUIRE);
}

/* cuInit loads the injected library one time. */
static void load_injection(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void);
	void *library;

	if (!path || !*path)
		return;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		sim_print("CUDA_INJECTION64_PATH: %s", dlerror());
		return;
	}
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		initialize();
	else
		sim_print("CUDA_INJECTION64_PATH=%s has no InitializeInjection", path);
}

/* As with NVIDIA's driver, a forked child has no GPU and cannot initialize the driver again. */
static CUresult init_result;

static void after_fork(void)
{
	__atomic_store_n(&sim_ready, false, __ATOMIC_RELEASE);
	init_result = CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_init(&sim_lock, NULL);
	init_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

static bool all_hidden(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	return visible && !*visible;
}

static CUresult init(unsigned int flags)
{
	static bool begun;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (ready())
		return CUDA_SUCCESS;
	/*
	 * This lock is held while cuInit loads the injected library. Other threads wait for this
	 * lock, but the injected library may call the driver.
	 */
	pthread_mutex_lock(&init_lock);
	if (!begun) {
		begun = true;
		init_result = CUDA_ERROR_NOT_INITIALIZED;
		pthread_atfork(NULL, NULL, after_fork);
		sim_enter();
		init_result = gpu_setup();
		sim_leave();
		/* During this call the injected library may only query devices. */
		load_injection();
		/* Read the variable again, because the library may hide all GPUs. */
		if (!init_result && all_hidden())
			init_result = CUDA_ERROR_NO_DEVICE;
		__atomic_store_n(&sim_ready, init_result == CUDA_SUCCESS, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&init_lock);
	return init_result;
}

/* If a call began before the first subscription, the driver makes no end callback for this call. */
CUresult cuInit(unsigned int flags)
{
	struct args {
		unsigned int flags;
	};

	return API_CALL_CHANGED(cuInit, struct args, args, init(args.flags), flags);
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CU_VERSION;
	return CUDA_SUCCESS;
}

/* --------------------------------------------------------------------- errors */

static const struct {
	CUresult error;
	const char *name, *text;
} errors[] = {
#define ERROR(name, text) { name, #name, text }
	ERROR(CUDA_SUCCESS, "no error"),
	ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
	ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
	ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
	ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
	ERROR(CUDA_ERROR_ILLEGAL_STATE,
	      "the operation cannot be performed in the present state"),
	ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
	ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
	ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
	ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
	ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	      "part or all of the requested memory range is already mapped"),
	ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
	      "pointer does not correspond to a registered memory region"),
	ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
	ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	      "operation not permitted when stream is capturing"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
	      "operation failed due to a previous error during capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE,
	      "operation would result in a merge of separate capture sequences"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
	      "dependency created on uncaptured work in another stream"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
	      "operation would make the legacy stream depend on a capturing blocking stream"),
	ERROR(CUDA_ERROR_CAPTURED_EVENT,
	      "operation not permitted on an event last recorded in a capturing stream"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
	      "attempt to terminate a thread-local capture sequence from another thread"),
	ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
	      "the graph update was not performed because it included changes which violated "
	      "constraints specific to instantiated graph update"),
	ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
	ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration"),
	ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

static CUresult error_text(CUresult error, const char **out, bool name)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			*out = name ? errors[i].name : errors[i].text;
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
	return error_text(error, text, true);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	return error_text(error, text, false);
}

/* -------------------------------------------------------------------- devices */

/*
 * On an error, returns NULL and sets *error. The list of GPUs does not change after cuInit, so no
 * lock is needed.
 */
static struct sim_gpu *device_get(CUdevice device, const void *out, CUresult *error)
{
	struct sim_gpu *gpu = NULL;

	if (!ready())
		*error = CUDA_ERROR_NOT_INITIALIZED;
	else if (!out)
		*error = CUDA_ERROR_INVALID_VALUE;
	else if (!(gpu = gpu_get(device)))
		*error = CUDA_ERROR_INVALID_DEVICE;
	else
		*error = CUDA_SUCCESS;
	return gpu;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult error;

	if (device_get(ordinal, device, &error))
		*device = ordinal;
	return error;
}

CUresult cuDeviceGetCount(int *count)
{
	if (!ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = sim_nr_gpus;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	CUresult error;
	struct sim_gpu *gpu = device_get(device, name, &error);

	if (gpu && len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpu)
		snprintf(name, len, "%s (simulated)",
			 gpu->info.name[0] ? gpu->info.name : "unnamed GPU");
	return error;
}

CUresult cuDeviceGetUuid_v2(struct cu_uuid *uuid, CUdevice device)
{
	CUresult error;
	struct sim_gpu *gpu = device_get(device, uuid, &error);

	if (gpu)
		*uuid = gpu->uuid;
	return error;
}

CUresult cuDeviceGetUuid(struct cu_uuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceGetPCIBusId(char *text, int len, CUdevice device)
{
	CUresult error;
	struct sim_gpu *gpu = device_get(device, text, &error);

	if (gpu && len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpu) {
		snprintf(text, len, "%s", gpu->info.pci);
		for (int i = 0; text[i]; i++)	/* in upper case, as in NVIDIA's driver */
			if (text[i] >= 'a' && text[i] <= 'f')
				text[i] -= 'a' - 'A';
	}
	return error;
}

struct address {
	unsigned int domain, bus, device, function;
};

static bool parse_address(const char *text, struct address *address)
{
	memset(address, 0, sizeof(*address));
	if (sscanf(text, "%x:%x:%x.%x", &address->domain, &address->bus, &address->device,
		   &address->function) >= 3)
		return true;
	return sscanf(text, "%x:%x.%x", &address->bus, &address->device,
		      &address->function) >= 2;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
	struct address wanted, address;

	if (!ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!device || !text || !parse_address(text, &wanted))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < sim_nr_gpus; i++)
		if (parse_address(sim_gpus[i]->info.pci, &address) &&
		    !memcmp(&address, &wanted, sizeof(address))) {
			*device = i;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult total_of(size_t *bytes, CUdevice device)
{
	CUresult error;
	struct sim_gpu *gpu = device_get(device, bytes, &error);

	if (gpu)
		*bytes = gpu->memory;
	return error;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	return API_CALL(cuDeviceTotalMem_v2, total_of(bytes, device), (uintptr_t)bytes,
			API_NARROW(device));
}

static CUresult find_attribute(const struct sim_gpu *gpu, const struct address *address,
			       int attribute, int *value)
{
	const struct pipe_chip *sm = sim_chip();
	const struct sim_faults *faults = sim_faults();
	const struct {
		enum cu_device_attribute attribute;
		int value;
	} rows[] = {
		{ CU_DEVICE_MAX_THREADS_PER_BLOCK, sm->block_threads },
		{ CU_DEVICE_MAX_BLOCK_DIM_X, sm->block_threads },
		{ CU_DEVICE_MAX_BLOCK_DIM_Y, sm->block_threads },
		{ CU_DEVICE_MAX_BLOCK_DIM_Z, SIM_MAX_BLOCK_Z },
		{ CU_DEVICE_MAX_GRID_DIM_X, SIM_MAX_GRID_X },
		{ CU_DEVICE_MAX_GRID_DIM_Y, SIM_MAX_GRID_YZ },
		{ CU_DEVICE_MAX_GRID_DIM_Z, SIM_MAX_GRID_YZ },
		{ CU_DEVICE_MAX_SHARED_PER_BLOCK, SIM_SHARED_DEFAULT },
		{ CU_DEVICE_CONSTANT_MEMORY, 65536 },
		{ CU_DEVICE_WARP_SIZE, 32 },
		{ CU_DEVICE_MAX_PITCH, INT32_MAX },
		{ CU_DEVICE_MAX_REGISTERS_PER_BLOCK, sm->registers * sm->quarters },
		{ CU_DEVICE_MAX_REGISTERS_PER_SM, sm->registers * sm->quarters },
		{ CU_DEVICE_CLOCK_KHZ, 1000000 },	/* a tick of %globaltimer is 1 ns */
		{ CU_DEVICE_NR_SMS, gpu->nr_sms },
		{ CU_DEVICE_CONCURRENT_KERNELS, 1 },
		{ CU_DEVICE_UNIFIED_ADDRESSING, 1 },
		{ CU_DEVICE_COOPERATIVE_LAUNCH, 1 },
		{ CU_DEVICE_STREAM_PRIORITIES, 1 },
		{ CU_DEVICE_PCI_BUS, address->bus },
		{ CU_DEVICE_PCI_DEVICE, address->device },
		{ CU_DEVICE_PCI_DOMAIN, address->domain },
		{ CU_DEVICE_MAX_THREADS_PER_SM, sm->warps * sm->quarters * 32 },
		{ CU_DEVICE_CC_MAJOR, faults->cc[0] },
		{ CU_DEVICE_CC_MINOR, faults->cc[1] },
		{ CU_DEVICE_MAX_SHARED_PER_SM, sm->shared },
		{ CU_DEVICE_MAX_SHARED_PER_BLOCK_OPTIN, sm->shared - sm->shared_reserved },
		{ CU_DEVICE_MAX_BLOCKS_PER_SM, sm->blocks },
		{ CU_DEVICE_RESERVED_SHARED_PER_BLOCK, sm->shared_reserved },
		{ CU_DEVICE_CLUSTER_LAUNCH, gpu->clusters },
		{ CU_DEVICE_MPS_ENABLED, faults->mps },
	};

	if (attribute == CU_DEVICE_MPS_ENABLED && faults->no_mps_attribute)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((int)rows[i].attribute == attribute) {
			*value = rows[i].value;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult attribute_of(int *value, int attribute, CUdevice device)
{
	struct address address = { 0 };
	CUresult error;
	struct sim_gpu *gpu = device_get(device, value, &error);

	if (gpu)
		parse_address(gpu->info.pci, &address);
	return gpu ? find_attribute(gpu, &address, attribute, value) : error;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	struct args {
		int *value, attribute;
		CUdevice device;
	};

	return API_CALL_PARAMS(cuDeviceGetAttribute, attribute_of(value, attribute, device),
			       (&(const struct args){ value, attribute, device }));
}

static CUresult resource_of(CUdevice device, struct cu_resource *resource, int type)
{
	CUresult error;
	struct sim_gpu *gpu = device_get(device, resource, &error);

	return gpu ? gpu_resource(gpu, NULL, resource, type) : error;
}

CUresult cuDeviceGetDevResource(CUdevice device, struct cu_resource *resource, int type)
{
	return API_CALL(cuDeviceGetDevResource, resource_of(device, resource, type),
			API_NARROW(device), (uintptr_t)resource, API_NARROW(type));
}

/* ------------------------------------------------------------- own functions */

/* A library that cuInit injects may call these functions before cuInit has returned. */
const char *gpupart_sim_capture(int device)
{
	struct sim_gpu *gpu = gpu_get(device);

	return gpu ? gpu->path : NULL;
}

int gpupart_sim_gpu_info(int device, char pci[20], char uuid[48])
{
	struct sim_gpu *gpu = gpu_get(device);

	if (!gpu || !pci || !uuid)
		return gpu ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	snprintf(pci, 20, "%s", gpu->info.pci);
	snprintf(uuid, 48, "%s", gpu->info.uuid);
	return CUDA_SUCCESS;
}

int gpupart_sim_topology(int device, struct gpupart_topology *topo, size_t size)
{
	struct sim_gpu *gpu = gpu_get(device);

	if (!gpu || size != sizeof(*topo))
		return gpu ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	*topo = *gpu->topo;
	topo->info = gpu->info;
	topo->info.simulated = true;
	topo->nr_registers = 0;
	topo->registers = NULL;
	return CUDA_SUCCESS;
}

int gpupart_sim_memory(int device, uint64_t *own, uint64_t *all)
{
	struct sim_gpu *gpu = gpu_get(device);
	static uint64_t others;

	if (!gpu || !own || !all)
		return gpu ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	sim_enter();
	/* The other process uses more memory with each call. */
	others += sim_faults()->other_memory;
	*all = gpu->memory_taken + others;
	*own = sim_faults()->no_memory_figure ? UINT64_MAX : gpu->memory_taken;
	sim_leave();
	return CUDA_SUCCESS;
}

int gpupart_sim_processes(int device)
{
	struct sim_gpu *gpu = gpu_get(device);

	if (!gpu)
		return -1;
	return (gpu->memory_taken > 0) + (sim_faults()->other_memory > 0);
}
