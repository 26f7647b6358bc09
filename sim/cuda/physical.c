// SPDX-License-Identifier: MIT
/*
 * Simulates memory without a fixed address: arrays, physical memory and its mappings, and memory
 * that is shared with other processes and programs. A program can access only mapped bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "sim/cuda/callback_numbers.h"

/* ------------------------------------------------------------------------ arrays */

#define LAYERED		0x01
#define CUBE		0x04
#define NO_MEMORY	(0x40 | 0x80)	/* the array is sparse, or is mapped later */
#define MAX_SIDE	131072

struct sim_array {
	struct sim_array *next;
	struct sim_gpu *gpu;
	uint64_t bytes;
	bool mipmapped;
};

static struct sim_array *arrays;

static unsigned int element_bytes(unsigned int format)
{
	switch (format) {
	case 0x01: case 0x08:
		return 1;
	case 0x02: case 0x09: case 0x10:
		return 2;
	case 0x03: case 0x0a: case 0x20:
		return 4;
	}
	return 0;
}

static uint64_t level_bytes(const struct cu_array_3d_descriptor *d, unsigned int level)
{
	size_t width = d->width >> level, height = d->height >> level;
	size_t depth = d->flags & (LAYERED | CUBE) ? d->depth : d->depth >> level;

	return (uint64_t)(width ? width : 1) * (height ? height : 1) * (depth ? depth : 1) *
	       element_bytes(d->format) * d->channels;
}

static CUresult array_create(CUarray *out, const struct cu_array_3d_descriptor *d,
			     unsigned int levels, bool mipmapped)
{
	struct sim_array *array;
	struct sim_ctx *ctx;
	uint64_t bytes = 0;
	CUresult error;

	if (!out || !d || !d->width || d->width > MAX_SIDE || d->height > MAX_SIDE ||
	    d->depth > 16384 || !element_bytes(d->format) || !levels || levels > 18)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < levels; i++)
		bytes += level_bytes(d, i);
	bytes = d->flags & NO_MEMORY ? 0 : bytes > 1 << 20 ? vram_round(bytes) : bytes;
	array = calloc(1, sizeof(*array));
	sim_enter();
	ctx = ctx_current(&error);
	if (ctx && (!array || !room_charge(ctx->gpu, bytes)))
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (error) {
		free(array);
	} else {
		*array = (struct sim_array){ arrays, ctx->gpu, bytes, mipmapped };
		arrays = array;
		*out = array;
	}
	return sim_leave_with(error);
}

static CUresult array_destroy(CUarray array, bool mipmapped)
{
	struct sim_array **link = &arrays;
	CUresult error = CUDA_ERROR_INVALID_HANDLE;

	sim_enter();
	while (*link && *link != array)
		link = &(*link)->next;
	if (*link && array->mipmapped == mipmapped) {
		*link = array->next;
		room_discharge(array->gpu, array->bytes);
		free(array);
		error = CUDA_SUCCESS;
	}
	return sim_leave_with(error);
}

static CUresult plane_create(CUarray *out, const struct cu_array_descriptor *d)
{
	struct cu_array_3d_descriptor volume;

	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	volume = (struct cu_array_3d_descriptor){
		.width = d->width, .height = d->height, .format = d->format,
		.channels = d->channels,
	};
	return array_create(out, &volume, 1, false);
}

CUresult cuArrayCreate_v2(CUarray *array, const struct cu_array_descriptor *descriptor)
{
	struct args {
		CUarray *array;
		const struct cu_array_descriptor *descriptor;
	};

	return API_CALL_CHANGED(cuArrayCreate_v2, struct args, args,
				plane_create(args.array, args.descriptor), array, descriptor);
}

CUresult cuArray3DCreate_v2(CUarray *array, const struct cu_array_3d_descriptor *descriptor)
{
	struct args {
		CUarray *array;
		const struct cu_array_3d_descriptor *descriptor;
	};

	return API_CALL_CHANGED(cuArray3DCreate_v2, struct args, args,
				array_create(args.array, args.descriptor, 1, false), array,
				descriptor);
}

CUresult cuMipmappedArrayCreate(CUarray *array, const struct cu_array_3d_descriptor *descriptor,
				unsigned int levels)
{
	struct args {
		CUarray *array;
		const struct cu_array_3d_descriptor *descriptor;
		uint64_t levels;
	};

	return API_CALL_CHANGED(cuMipmappedArrayCreate, struct args, args,
				array_create(args.array, args.descriptor, args.levels, true),
				array, descriptor, levels);
}

CUresult cuArrayDestroy(CUarray array)
{
	return API_CALL(cuArrayDestroy, array_destroy(array, false), (uintptr_t)array);
}

CUresult cuMipmappedArrayDestroy(CUarray array)
{
	return API_CALL(cuMipmappedArrayDestroy, array_destroy(array, true),
			(uintptr_t)array);
}

/* --------------------------------------------------------------- physical memory */

struct physical {
	struct physical *next;
	struct sim_gpu *gpu;
	uint64_t handle, bytes;
	unsigned int handles, mappings;
};

struct mapping {
	struct mapping *next;
	struct physical *physical;
	uint64_t address, bytes;
};

static struct physical *physicals;
static struct mapping *mappings;

#define GRANULARITY (2ull << 20)

static struct physical *physical_find(uint64_t handle)
{
	struct physical *p = physicals;

	while (p && (p->handle != handle || !p->handles))
		p = p->next;
	return p;
}

static void physical_put(struct physical *physical)
{
	struct physical **link = &physicals;

	if (physical->handles || physical->mappings)
		return;
	while (*link != physical)
		link = &(*link)->next;
	*link = physical->next;
	room_discharge(physical->gpu, physical->bytes);
	free(physical);
}

static CUresult create(uint64_t *handle, uint64_t bytes, const struct cu_memory_properties *what)
{
	static uint64_t last = 1000;
	struct physical *physical;
	struct sim_gpu *gpu;
	CUresult error = CUDA_ERROR_OUT_OF_MEMORY;

	if (!handle || !what || !bytes || bytes % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	gpu = gpu_get(what->location.id);
	if (!gpu)
		return CUDA_ERROR_INVALID_DEVICE;
	physical = calloc(1, sizeof(*physical));
	sim_enter();
	if (what->location.type != CU_LOCATION_DEVICE)
		error = CUDA_ERROR_NOT_SUPPORTED;
	else if (physical && room_charge(gpu, bytes))
		error = CUDA_SUCCESS;
	if (error) {
		free(physical);
	} else {
		*physical = (struct physical){ physicals, gpu, ++last, bytes, 1, 0 };
		physicals = physical;
		*handle = physical->handle;
	}
	return sim_leave_with(error);
}

CUresult cuMemCreate(uint64_t *handle, size_t bytes, const struct cu_memory_properties *what,
		     uint64_t flags)
{
	struct args {
		uint64_t *handle;
		size_t bytes;
		const struct cu_memory_properties *what;
		uint64_t flags;
	};

	return API_CALL_CHANGED(cuMemCreate, struct args, args,
				create(args.handle, args.bytes, args.what), handle, bytes, what,
				flags);
}

static CUresult physical_release(uint64_t handle)
{
	struct physical *physical;

	sim_enter();
	physical = physical_find(handle);
	if (physical) {
		physical->handles--;
		physical_put(physical);
	}
	sim_leave();
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRelease(uint64_t handle)
{
	return API_CALL(cuMemRelease, physical_release(handle), handle);
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
			     CUdeviceptr wanted, uint64_t flags)
{
	char *start, *at;

	(void)alignment, (void)wanted, (void)flags;
	if (!address || !bytes || bytes % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	start = mmap(NULL, bytes + GRANULARITY, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	at = start + (GRANULARITY - (uintptr_t)start % GRANULARITY) % GRANULARITY;
	if (at > start)
		munmap(start, at - start);
	munmap(at + bytes, start + GRANULARITY - at);
	*address = (uintptr_t)at;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	return munmap((void *)(uintptr_t)address, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult map(uint64_t address, uint64_t bytes, uint64_t handle)
{
	struct mapping *mapping = calloc(1, sizeof(*mapping));
	struct physical *physical;
	CUresult error = CUDA_ERROR_INVALID_VALUE;

	sim_enter();
	physical = physical_find(handle);
	if (physical && mapping && bytes && bytes <= physical->bytes) {
		*mapping = (struct mapping){ mappings, physical, address, bytes };
		mappings = mapping;
		physical->mappings++;
		error = CUDA_SUCCESS;
	} else {
		free(mapping);
	}
	return sim_leave_with(error);
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle, uint64_t flags)
{
	return API_CALL(cuMemMap, map(address, bytes, handle), address, bytes, offset,
			handle, flags);
}

static CUresult unmap(uint64_t address, uint64_t bytes)
{
	struct mapping **link = &mappings, *mapping;
	CUresult error = CUDA_ERROR_INVALID_VALUE;

	sim_enter();
	while ((mapping = *link)) {
		if (mapping->address < address || mapping->address >= address + bytes) {
			link = &mapping->next;
			continue;
		}
		*link = mapping->next;
		mapping->physical->mappings--;
		physical_put(mapping->physical);
		free(mapping);
		error = CUDA_SUCCESS;
	}
	return sim_leave_with(error);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	return API_CALL(cuMemUnmap, unmap(address, bytes), address, bytes);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const void *access, size_t nr)
{
	if (!access || !nr || mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult retain(uint64_t *handle, uint64_t address)
{
	CUresult error = CUDA_ERROR_INVALID_VALUE;
	struct mapping *mapping;

	sim_enter();
	for (mapping = mappings; mapping && handle; mapping = mapping->next)
		if (address - mapping->address < mapping->bytes) {
			mapping->physical->handles++;
			*handle = mapping->physical->handle;
			error = CUDA_SUCCESS;
			break;
		}
	return sim_leave_with(error);
}

CUresult cuMemRetainAllocationHandle(uint64_t *handle, void *address)
{
	return API_CALL(cuMemRetainAllocationHandle, retain(handle, (uintptr_t)address),
			(uintptr_t)handle, (uintptr_t)address);
}

/* Simulated processes do not share memory. An import succeeds, but uses no memory. */
#define SHARED_MAGIC 0x51a7ed

CUresult cuMemExportToShareableHandle(void *shared, uint64_t handle, int type, uint64_t flags)
{
	bool there;

	(void)type, (void)flags;
	sim_enter();
	there = physical_find(handle);
	sim_leave();
	if (!shared || !there)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)shared = SHARED_MAGIC;
	return CUDA_SUCCESS;
}

static CUresult import(uint64_t *handle, void *shared)
{
	static uint64_t last = 1ull << 40;
	struct physical *physical;

	if (!handle || (uintptr_t)shared != SHARED_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_enter();
	*physical = (struct physical){ physicals, gpu_get(0), ++last, 0, 1, 0 };
	physicals = physical;
	*handle = physical->handle;
	sim_leave();
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(uint64_t *handle, void *shared, int type)
{
	return API_CALL(cuMemImportFromShareableHandle, import(handle, shared),
			(uintptr_t)handle, (uintptr_t)shared, API_NARROW(type));
}

CUresult cuIpcGetMemHandle(struct cu_ipc_handle *handle, CUdeviceptr address)
{
	bool there;

	sim_enter();
	there = handle && memory_valid(address, 1);
	sim_leave();
	if (!there)
		return CUDA_ERROR_INVALID_VALUE;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->bytes, &address, sizeof(address));
	return CUDA_SUCCESS;
}

#define IPC_SPACE (2ull << 20)

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, struct cu_ipc_handle handle,
			       unsigned int flags)
{
	struct args {
		CUdeviceptr *address;
		struct cu_ipc_handle handle;
		uint64_t flags;
	};

	return API_CALL_PARAMS(cuIpcOpenMemHandle_v2,
			       memory_allocate(address, IPC_SPACE, ROOM_MAPPED),
			       (&(const struct args){ address, handle, API_NARROW(flags) }));
}

static CUresult ipc_close(uint64_t address)
{
	bool there;

	sim_enter();
	there = memory_destroy(address, ROOM_MAPPED);
	sim_leave();
	return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	return API_CALL(cuIpcCloseMemHandle, ipc_close(address), address);
}

struct sim_external {
	uint64_t bytes;
};

static CUresult external_import(CUexternalMemory *memory,
				const struct cu_external_descriptor *descriptor)
{
	struct sim_external *external;

	if (!memory || !descriptor || !descriptor->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	external = calloc(1, sizeof(*external));
	if (!external)
		return CUDA_ERROR_OUT_OF_MEMORY;
	external->bytes = descriptor->bytes;
	*memory = external;
	return CUDA_SUCCESS;
}

CUresult cuImportExternalMemory(CUexternalMemory *memory,
				const struct cu_external_descriptor *descriptor)
{
	return API_CALL(cuImportExternalMemory, external_import(memory, descriptor),
			(uintptr_t)memory, (uintptr_t)descriptor);
}

static CUresult external_destroy(CUexternalMemory memory)
{
	free(memory);
	return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
	return API_CALL(cuDestroyExternalMemory, external_destroy(memory),
			(uintptr_t)memory);
}
