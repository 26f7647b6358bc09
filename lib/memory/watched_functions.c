// SPDX-License-Identifier: MIT
/*
 * This file contains data: see watched_functions.h. The layouts of arguments come from
 * generated_cuda_meta.h. The layouts of structures come from cuda.h.
 */
#include <string.h>
#include "lib/memory/watched_functions.h"

#define ROW(name, group, kind, device_at)	{ { CBID_##name, group, MEMORY_##kind }, device_at }
#define NOW(name, kind)			ROW(name, 0, kind, 0)
#define NOW_AT(name, kind, device_at)	ROW(name, 0, kind, device_at)
#define LATER(name, kind)		ROW(name, MEMORY_LATER, kind, 0)
/* Rows for @name and @name_ptsz. In the second function, stream 0 is the thread's own stream. */
#define BOTH(name, group, kind, own) \
	ROW(name, group, kind, 0), ROW(name##_ptsz, group, kind, own)

/* Every driver has the first of these functions. */
const struct memory_call memory_calls[] = {
	NOW(cuMemAlloc_v2, LINEAR), NOW(cuMemAllocPitch_v2, PITCH),
	NOW(cuMemAllocManaged, MANAGED), NOW(cuMemFree_v2, FREE), NOW(cuArrayCreate_v2, ARRAY),
	NOW(cuArray3DCreate_v2, ARRAY_3D), NOW(cuMipmappedArrayCreate, MIPMAP),
	NOW(cuArrayDestroy, ARRAY_FREE), NOW(cuMipmappedArrayDestroy, ARRAY_FREE),
	NOW(cuMemCreate, PHYSICAL), NOW(cuMemRelease, RELEASE), NOW(cuMemMap, MAP),
	NOW(cuMemUnmap, UNMAP), NOW(cuMemRetainAllocationHandle, RETAIN),
	NOW(cuMemImportFromShareableHandle, IMPORT), NOW(cuIpcOpenMemHandle, IPC_OPEN),
	NOW(cuIpcOpenMemHandle_v2, IPC_OPEN), NOW(cuIpcCloseMemHandle, IPC_CLOSE),
	NOW(cuImportExternalMemory, EXTERNAL), NOW(cuDestroyExternalMemory, EXTERNAL_FREE),
	BOTH(cuMemAllocAsync, 0, ASYNC, MEMORY_OWN_STREAM),
	BOTH(cuMemAllocFromPoolAsync, 0, ASYNC_POOL, MEMORY_OWN_STREAM),
	/*
	 * These functions also free memory from cuMemAlloc(). For a pool, the size of the pool is
	 * charged.
	 */
	BOTH(cuMemFreeAsync, 0, FREE, 0),
	NOW(cuMemPoolCreate, POOL_MADE), NOW(cuMemPoolDestroy, POOL_GOES),
	NOW(cuMemPoolTrimTo, POOL_CHANGED), NOW(cuMemPoolSetAttribute, POOL_CHANGED),
	NOW(cuDeviceSetMemPool, POOL_CHANGED), NOW(cuMemSetMemPool, POOL_CHANGED),
	NOW(cuMemGetDefaultMemPool, POOL_FOUND), NOW(cuMemGetMemPool, POOL_FOUND),
	NOW_AT(cuCtxCreate, CTX_MADE, 12), NOW_AT(cuCtxCreate_v2, CTX_MADE, 12),
	NOW_AT(cuCtxCreate_v3, CTX_MADE, 24), NOW_AT(cuCtxCreate_v4, CTX_MADE, 20),
	NOW_AT(cuGLCtxCreate, CTX_MADE, 12), NOW_AT(cuGLCtxCreate_v2, CTX_MADE, 12),
	NOW_AT(cuVDPAUCtxCreate, CTX_MADE, 12), NOW_AT(cuVDPAUCtxCreate_v2, CTX_MADE, 12),
	NOW_AT(cuDevicePrimaryCtxRetain, PRIMARY_MADE, 8), NOW(cuCtxDestroy, CTX_GOES),
	NOW(cuCtxDestroy_v2, CTX_GOES), NOW(cuCtxDetach, CTX_GOES),
	NOW(cuDevicePrimaryCtxRelease, PRIMARY_RELEASED),
	NOW(cuDevicePrimaryCtxRelease_v2, PRIMARY_RELEASED),
	NOW(cuDevicePrimaryCtxReset, PRIMARY_RESET),
	NOW(cuDevicePrimaryCtxReset_v2, PRIMARY_RESET), NOW(cuModuleLoad, MODULE_MADE),
	NOW(cuModuleLoadData, MODULE_MADE), NOW(cuModuleLoadDataEx, MODULE_MADE),
	NOW(cuModuleLoadFatBinary, MODULE_MADE), NOW(cuModuleUnload, MODULE_GOES),
	NOW(cuLibraryLoadData, LIBRARY_MADE), NOW(cuLibraryLoadFromFile, LIBRARY_MADE),
	NOW(cuLibraryUnload, LIBRARY_GOES), NOW(cuCtxSetLimit, LIMIT_SET),
	BOTH(cuStreamBeginCapture, 0, CAPTURE_BEGINS, 0),
	BOTH(cuStreamBeginCapture_v2, 0, CAPTURE_BEGINS, 0),
	BOTH(cuStreamBeginCaptureToGraph, 0, CAPTURE_BEGINS, 0),
	BOTH(cuStreamEndCapture, 0, CAPTURE_ENDS, 0),
	NOW(cuGraphInstantiate, GRAPH_MADE), NOW(cuGraphInstantiate_v2, GRAPH_MADE),
	NOW(cuGraphInstantiateWithFlags, GRAPH_MADE),
	BOTH(cuGraphInstantiateWithParams, 0, GRAPH_MADE, 0),
	BOTH(cuGraphLaunch, MEMORY_LATER, GRAPH_RUNS, 0),
	BOTH(cuGraphUpload, MEMORY_LATER, GRAPH_RUNS, 0),
	LATER(cuGraphExecDestroy, GRAPH_GOES), LATER(cuDeviceGraphMemTrim, GRAPH_TRIMMED),
	NOW(cuMemGetInfo_v2, ASK_FREE), NOW(cuDeviceTotalMem_v2, ASK_TOTAL),
	/* Old functions for 32-bit addresses. Programs of today cannot call them. */
	NOW(cuMemAlloc, UNCOUNTED), NOW(cu64MemAlloc, UNCOUNTED), NOW(cuMemAllocPitch, UNCOUNTED),
	NOW(cu64MemAllocPitch, UNCOUNTED), NOW(cuArrayCreate, UNCOUNTED),
	NOW(cuArray3DCreate, UNCOUNTED), NOW(cu64ArrayCreate, UNCOUNTED),
	NOW(cu64Array3DCreate, UNCOUNTED),
	{ { 0, 0, 0 }, 0 },
};

/* The structures CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR, in this order. */
struct plane {
	size_t width, height;
	unsigned int format, channels;
};

struct volume {
	size_t width, height, depth;
	unsigned int format, channels, flags;
};

/* The first members of CUmemAllocationProp. */
struct physical {
	int type, handles;
	struct {
		int type, id;
	} location;
};

/* CUDA_ARRAY3D_* flags. Layers and faces are stored in the same way as depth. */
#define ARRAY_SPARSE	0x40
#define ARRAY_DEFERRED	0x80

_Static_assert(sizeof(struct plane) <= sizeof(((struct memory_change *)0)->descriptor) &&
	       sizeof(struct volume) <= sizeof(((struct memory_change *)0)->descriptor),
	       "the copy must fit");

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t up_to(uint64_t n, uint64_t unit)
{
	return n > UINT64_MAX - unit ? UINT64_MAX : (n + unit - 1) / unit * unit;
}

/*
 * Returns the number of bits that a CUarray_format uses for one channel of an element. If the
 * format itself determines the number of channels, sets *channels to this number.
 */
static unsigned int bits_of(unsigned int format, unsigned int *channels)
{
	switch (format) {
	case 0x01: case 0x08:				/* INT8 */
		return 8;
	case 0x02: case 0x09: case 0x10:		/* INT16, HALF */
		return 16;
	case 0x03: case 0x0a: case 0x20:		/* INT32, FLOAT */
		return 32;
	case 0xc0: case 0xc3:
	case 0xc1: case 0xc4:
	case 0xc2: case 0xc5:				/* ?NORM_INT8X1, 2, 4 */
		*channels = 1u << (format - 0xc0) % 3;
		return 8;
	case 0xc6: case 0xc9:
	case 0xc7: case 0xca:
	case 0xc8: case 0xcb:				/* ?NORM_INT16X1, 2, 4 */
		*channels = 1u << (format - 0xc6) % 3;
		return 16;
	case 0x91: case 0x92: case 0x97: case 0x98:	/* BC1, BC4: 8 bytes for 4 x 4 */
		*channels = 1;
		return 4;
	}
	*channels = 1;
	if (format >= 0x93 && format <= 0x9e)		/* BC2 to BC7: 16 bytes */
		return 8;
	return 32;					/* multi-planar formats have at most 32
							 * bits */
}

/* The width and height are rounded up to the blocks of the memory layout. */
#define ROW_UNIT	64
#define ROWS_UNIT	8

static uint64_t array_bytes(size_t width, size_t height, size_t depth, unsigned int format,
			    unsigned int channels)
{
	uint64_t row;
	unsigned int bits = bits_of(format, &channels);

	row = times(times(width, channels ? channels : 1), bits) / 8;
	if (height)
		row = up_to(row, ROW_UNIT);
	return times(times(row, height ? up_to(height, ROWS_UNIT) : 1), depth ? depth : 1);
}

static uint64_t volume_bytes(const struct volume *v, unsigned int levels)
{
	/*
	 * Each level of an array has the same number of layers and faces, so all levels have the
	 * same depth.
	 */
	bool layered = v->flags & (0x01 | 0x04);
	uint64_t sum = 0, level;

	for (unsigned int i = 0; i < levels && i < 32; i++) {
		size_t height = v->height ? (v->height >> i ? v->height >> i : 1) : 0;
		size_t depth = v->depth >> (layered ? 0 : i);

		level = array_bytes(v->width >> i || !i ? v->width >> i : 1, height,
				    v->depth && !depth ? 1 : depth, v->format, v->channels);
		sum = level > UINT64_MAX - sum ? UINT64_MAX : sum + level;
	}
	return sum;
}

#define PITCH_UNIT 512

static bool is_array(const struct memory_call *call)
{
	return call->fn.kind >= MEMORY_ARRAY && call->fn.kind <= MEMORY_MIPMAP;
}

/*
 * For most functions the second argument is a size. For functions of arrays this argument is a
 * descriptor.
 */
uint64_t memory_calls_bytes(const struct memory_call *call, const uint64_t *words)
{
	const struct plane *plane = (const void *)(uintptr_t)words[1];

	if (call->fn.kind == MEMORY_PITCH)
		return times(up_to(words[2], PITCH_UNIT), words[3]);
	if (!is_array(call))
		return words[1];
	if (!plane)
		return 0;
	if (call->fn.kind == MEMORY_ARRAY)
		return array_bytes(plane->width, plane->height, 0, plane->format, plane->channels);
	return volume_bytes((const void *)plane,
			    call->fn.kind == MEMORY_MIPMAP ? (unsigned int)words[2] : 1);
}

uint64_t memory_calls_pitched(const uint64_t *words)
{
	return times(*(const size_t *)(uintptr_t)words[1], words[3]);
}

void *memory_calls_stream(const struct memory_call *call, const uint64_t *words)
{
	void *stream = (void *)(uintptr_t)words[call->fn.kind == MEMORY_ASYNC ? 2 : 3];

	return !stream && call->device_at == MEMORY_OWN_STREAM ? CUDA_STREAM_PER_THREAD : stream;
}

bool memory_calls_on_gpu(const struct memory_call *call, const uint64_t *words)
{
	const struct volume *volume = (const void *)(uintptr_t)words[1];
	const struct physical *physical;

	if (call->fn.kind == MEMORY_PHYSICAL) {
		physical = (const void *)(uintptr_t)words[2];
		return physical && physical->location.type == CUDA_LOCATION_DEVICE;
	}
	if (call->fn.kind == MEMORY_ARRAY_3D || call->fn.kind == MEMORY_MIPMAP)
		return volume && !(volume->flags & (ARRAY_SPARSE | ARRAY_DEFERRED));
	return true;
}

int memory_calls_device(const struct memory_call *call, const uint64_t *words)
{
	const struct physical *physical;
	int device = -1;

	if (call->fn.kind == MEMORY_PHYSICAL) {
		physical = (const void *)(uintptr_t)words[2];
		return physical ? physical->location.id : -1;
	}
	if (call->device_at)
		memcpy(&device, (const char *)words + call->device_at, sizeof(device));
	return device;
}

/*
 * This size is larger than the memory of any GPU, and is a multiple of every granularity. On an
 * H200, cuMemAlloc_v2 returned "out of memory" when its size was changed to this value at the start
 * of the call.
 */
#define IMPOSSIBLE	(1ull << 62)
#define TOO_WIDE	(1ull << 40)	/* no array can be so large, so the driver reports an
					 * invalid value */

void memory_calls_refuse(const struct memory_call *call, const uint64_t *words,
			struct memory_change *change)
{
	uint64_t *word = (uint64_t *)(uintptr_t)words + 1, value = IMPOSSIBLE;

	if (is_array(call)) {
		/* The descriptor belongs to the program and must not be changed. */
		memcpy(change->descriptor, (const void *)(uintptr_t)*word,
		       call->fn.kind == MEMORY_ARRAY ? sizeof(struct plane)
						     : sizeof(struct volume));
		change->descriptor[0] = TOO_WIDE;
		value = (uintptr_t)change->descriptor;
	} else if (call->fn.kind == MEMORY_PITCH) {
		word++;		/* @word is now the index of the width */
		value = 0;
	} else if (call->fn.kind == MEMORY_GRAPH_RUNS) {
		word--;		/* @word is now the index of the graph */
		value = 0;
	}
	change->word = word;
	change->before = *word;
	*word = value;
}

void memory_calls_mend(struct memory_change *change)
{
	if (change->word)
		*change->word = change->before;
	change->word = NULL;
}
