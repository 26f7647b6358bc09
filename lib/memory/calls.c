// SPDX-License-Identifier: MIT
/*
 * DATA: see calls.h. CUPTI's public numbers (cupti_driver_cbid.h) and layouts of arguments
 * (generated_cuda_meta.h); structures as cuda.h has them.
 */
#include <stdatomic.h>
#include <string.h>
#include "lib/memory/calls.h"

#define LATER true

static const struct memory_call calls[] = {
	{ 243, MEMORY_LINEAR, false, "cuMemAlloc_v2", 0 },
	{ 244, MEMORY_PITCH, false, "cuMemAllocPitch_v2", 0 },
	{ 371, MEMORY_MANAGED, false, "cuMemAllocManaged", 0 },
	{ 245, MEMORY_FREE, false, "cuMemFree_v2", 0 },
	{ 272, MEMORY_ARRAY, false, "cuArrayCreate_v2", 0 },
	{ 274, MEMORY_ARRAY_3D, false, "cuArray3DCreate_v2", 0 },
	{ 347, MEMORY_MIPMAP, false, "cuMipmappedArrayCreate", 0 },
	{ 89, MEMORY_ARRAY_FREE, false, "cuArrayDestroy", 0 },
	{ 349, MEMORY_ARRAY_FREE, false, "cuMipmappedArrayDestroy", 0 },
	{ 549, MEMORY_PHYSICAL, false, "cuMemCreate", 0 },
	{ 550, MEMORY_RELEASE, false, "cuMemRelease", 0 },
	{ 551, MEMORY_MAP, false, "cuMemMap", 0 },
	{ 552, MEMORY_UNMAP, false, "cuMemUnmap", 0 },
	{ 565, MEMORY_RETAIN, false, "cuMemRetainAllocationHandle", 0 },
	{ 555, MEMORY_IMPORT, false, "cuMemImportFromShareableHandle", 0 },
	{ 329, MEMORY_IPC_OPEN, false, "cuIpcOpenMemHandle", 0 },
	{ 567, MEMORY_IPC_OPEN, false, "cuIpcOpenMemHandle_v2", 0 },
	{ 330, MEMORY_IPC_CLOSE, false, "cuIpcCloseMemHandle", 0 },
	{ 485, MEMORY_EXTERNAL, false, "cuImportExternalMemory", 0 },
	{ 488, MEMORY_EXTERNAL_FREE, false, "cuDestroyExternalMemory", 0 },
	{ 598, MEMORY_ASYNC, false, "cuMemAllocAsync", 0 },
	{ 599, MEMORY_ASYNC, false, "cuMemAllocAsync_ptsz", MEMORY_OWN_STREAM },
	{ 611, MEMORY_ASYNC_POOL, false, "cuMemAllocFromPoolAsync", 0 },
	{ 612, MEMORY_ASYNC_POOL, false, "cuMemAllocFromPoolAsync_ptsz", MEMORY_OWN_STREAM },
	{ 607, MEMORY_POOL_MADE, false, "cuMemPoolCreate", 0 },
	{ 608, MEMORY_POOL_GOES, false, "cuMemPoolDestroy", 0 },
	{ 602, MEMORY_POOL_CHANGED, false, "cuMemPoolTrimTo", 0 },
	{ 603, MEMORY_POOL_CHANGED, false, "cuMemPoolSetAttribute", 0 },
	{ 609, MEMORY_POOL_CHANGED, false, "cuDeviceSetMemPool", 0 },
	{ 803, MEMORY_POOL_CHANGED, false, "cuMemSetMemPool", 0 },
	{ 10, MEMORY_CTX_MADE, false, "cuCtxCreate", 12 },
	{ 235, MEMORY_CTX_MADE, false, "cuCtxCreate_v2", 12 },
	{ 645, MEMORY_CTX_MADE, false, "cuCtxCreate_v3", 24 },
	{ 757, MEMORY_CTX_MADE, false, "cuCtxCreate_v4", 20 },
	{ 174, MEMORY_CTX_MADE, false, "cuGLCtxCreate", 12 },
	{ 239, MEMORY_CTX_MADE, false, "cuGLCtxCreate_v2", 12 },
	{ 187, MEMORY_CTX_MADE, false, "cuVDPAUCtxCreate", 12 },
	{ 240, MEMORY_CTX_MADE, false, "cuVDPAUCtxCreate_v2", 12 },
	{ 386, MEMORY_PRIMARY_MADE, false, "cuDevicePrimaryCtxRetain", 8 },
	{ 11, MEMORY_CTX_GOES, false, "cuCtxDestroy", 0 },
	{ 322, MEMORY_CTX_GOES, false, "cuCtxDestroy_v2", 0 },
	{ 13, MEMORY_CTX_GOES, false, "cuCtxDetach", 0 },
	{ 387, MEMORY_PRIMARY_RELEASED, false, "cuDevicePrimaryCtxRelease", 0 },
	{ 544, MEMORY_PRIMARY_RELEASED, false, "cuDevicePrimaryCtxRelease_v2", 0 },
	{ 389, MEMORY_PRIMARY_RESET, false, "cuDevicePrimaryCtxReset", 0 },
	{ 545, MEMORY_PRIMARY_RESET, false, "cuDevicePrimaryCtxReset_v2", 0 },
	{ 18, MEMORY_MODULE_MADE, false, "cuModuleLoad", 0 },
	{ 19, MEMORY_MODULE_MADE, false, "cuModuleLoadData", 0 },
	{ 20, MEMORY_MODULE_MADE, false, "cuModuleLoadDataEx", 0 },
	{ 21, MEMORY_MODULE_MADE, false, "cuModuleLoadFatBinary", 0 },
	{ 22, MEMORY_MODULE_GOES, false, "cuModuleUnload", 0 },
	{ 678, MEMORY_LIBRARY_MADE, false, "cuLibraryLoadData", 0 },
	{ 679, MEMORY_LIBRARY_MADE, false, "cuLibraryLoadFromFile", 0 },
	{ 680, MEMORY_LIBRARY_GOES, false, "cuLibraryUnload", 0 },
	{ 136, MEMORY_LIMIT_SET, false, "cuCtxSetLimit", 0 },
	{ 495, MEMORY_CAPTURE_BEGINS, false, "cuStreamBeginCapture", 0 },
	{ 496, MEMORY_CAPTURE_BEGINS, false, "cuStreamBeginCapture_ptsz", 0 },
	{ 539, MEMORY_CAPTURE_BEGINS, false, "cuStreamBeginCapture_v2", 0 },
	{ 540, MEMORY_CAPTURE_BEGINS, false, "cuStreamBeginCapture_v2_ptsz", 0 },
	{ 720, MEMORY_CAPTURE_BEGINS, false, "cuStreamBeginCaptureToGraph", 0 },
	{ 721, MEMORY_CAPTURE_BEGINS, false, "cuStreamBeginCaptureToGraph_ptsz", 0 },
	{ 497, MEMORY_CAPTURE_ENDS, false, "cuStreamEndCapture", 0 },
	{ 498, MEMORY_CAPTURE_ENDS, false, "cuStreamEndCapture_ptsz", 0 },
	{ 513, MEMORY_GRAPH_MADE, false, "cuGraphInstantiate", 0 },
	{ 578, MEMORY_GRAPH_MADE, false, "cuGraphInstantiate_v2", 0 },
	{ 643, MEMORY_GRAPH_MADE, false, "cuGraphInstantiateWithFlags", 0 },
	{ 656, MEMORY_GRAPH_MADE, false, "cuGraphInstantiateWithParams", 0 },
	{ 657, MEMORY_GRAPH_MADE, false, "cuGraphInstantiateWithParams_ptsz", 0 },
	{ 514, MEMORY_GRAPH_RUNS, LATER, "cuGraphLaunch", 0 },
	{ 515, MEMORY_GRAPH_RUNS, LATER, "cuGraphLaunch_ptsz", 0 },
	{ 580, MEMORY_GRAPH_RUNS, LATER, "cuGraphUpload", 0 },
	{ 581, MEMORY_GRAPH_RUNS, LATER, "cuGraphUpload_ptsz", 0 },
	{ 516, MEMORY_GRAPH_GOES, LATER, "cuGraphExecDestroy", 0 },
	{ 640, MEMORY_GRAPH_TRIMMED, LATER, "cuDeviceGraphMemTrim", 0 },
	{ 242, MEMORY_ASK_FREE, false, "cuMemGetInfo_v2", 0 },
	{ 259, MEMORY_ASK_TOTAL, false, "cuDeviceTotalMem_v2", 0 },
	/* Of the time of 32 bits: programs of today have no way to ask for them. */
	{ 29, MEMORY_UNCOUNTED, false, "cuMemAlloc", 0 },
	{ 30, MEMORY_UNCOUNTED, false, "cu64MemAlloc", 0 },
	{ 31, MEMORY_UNCOUNTED, false, "cuMemAllocPitch", 0 },
	{ 32, MEMORY_UNCOUNTED, false, "cu64MemAllocPitch", 0 },
	{ 87, MEMORY_UNCOUNTED, false, "cuArrayCreate", 0 },
	{ 90, MEMORY_UNCOUNTED, false, "cuArray3DCreate", 0 },
	{ 228, MEMORY_UNCOUNTED, false, "cu64ArrayCreate", 0 },
	{ 230, MEMORY_UNCOUNTED, false, "cu64Array3DCreate", 0 },
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

/* CUDA_ARRAY_DESCRIPTOR and CUDA_ARRAY3D_DESCRIPTOR, in this order. */
struct plane {
	size_t width, height;
	unsigned int format, channels;
};

struct volume {
	size_t width, height, depth;
	unsigned int format, channels, flags;
};

/* CUmemAllocationProp's begin. */
struct physical {
	int type, handles;
	struct {
		int type, id;
	} location;
};

#define LOCATION_DEVICE	1

/* CUDA_ARRAY3D_*: many layers or faces are no smaller than they are deep. */
#define ARRAY_SPARSE	0x40
#define ARRAY_DEFERRED	0x80

/* As the arguments stand; all but the pitched ones have the size here. */
struct linear {
	void *out;
	size_t bytes;
};

struct pitched {
	void *out;
	size_t *pitch;
	size_t width, height;
	unsigned int element;
};

struct array {
	void *out;
	const void *descriptor;
	unsigned int levels;
};

struct create {
	void *out;
	size_t bytes;
	const struct physical *what;
};

_Static_assert(sizeof(struct plane) <= sizeof(((struct memory_change *)0)->descriptor) &&
	       sizeof(struct volume) <= sizeof(((struct memory_change *)0)->descriptor),
	       "no room for a copy");

const struct memory_call *memory_calls_get(unsigned int n)
{
	return n < NR_CALLS ? &calls[n] : NULL;
}

#define NO_ROW	UINT8_MAX

/* By number: 0 until it is first asked for, then the row's index and 1, or NO_ROW. */
static atomic_uchar rows[MEMORY_MAX_CBID];

_Static_assert(NR_CALLS < NO_ROW, "an index takes more than a byte");

/* The driver's name of each, once it was found right: the driver's strings do not move. */
static _Atomic(const char *) names[NR_CALLS];

const struct memory_call *memory_calls_find(int cbid, const char *name, bool *other)
{
	unsigned int row;

	if (cbid < 0 || cbid >= MEMORY_MAX_CBID)
		return NULL;
	row = atomic_load_explicit(&rows[cbid], memory_order_relaxed);
	if (!row) {
		while (row < NR_CALLS && calls[row].cbid != cbid)
			row++;
		row = row < NR_CALLS ? row + 1 : NO_ROW;
		atomic_store_explicit(&rows[cbid], row, memory_order_relaxed);
	}
	if (row == NO_ROW)
		return NULL;
	row--;
	if (name && atomic_load_explicit(&names[row], memory_order_relaxed) == name)
		return &calls[row];
	*other = !name || strcmp(name, calls[row].name);
	if (*other)
		return NULL;
	atomic_store_explicit(&names[row], name, memory_order_relaxed);
	return &calls[row];
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t up_to(uint64_t n, uint64_t unit)
{
	return n > UINT64_MAX - unit ? UINT64_MAX : (n + unit - 1) / unit * unit;
}

/* CUarray_format: bits an element of a channel, as far as they are whole planes. */
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
	return 32;					/* pictures of several planes: no more */
}

/* Rows and their numbers are rounded up to what a block of the layout in memory has. */
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

static uint64_t mipmap_bytes(const struct volume *v, unsigned int levels)
{
	/* Layers and faces do not shrink: with them all levels are as deep. */
	bool layered = v->flags & (0x01 | 0x04);
	uint64_t sum = 0, level;

	for (unsigned int i = 0; i < levels && i < 32; i++) {
		size_t height = v->height ? (v->height >> i ? v->height >> i : 1) : 0;
		size_t depth = v->depth >> (layered ? 0 : i);

		level = array_bytes(v->width >> i ? v->width >> i : 1, height,
				    v->depth && !depth ? 1 : depth, v->format, v->channels);
		sum = level > UINT64_MAX - sum ? UINT64_MAX : sum + level;
	}
	return sum;
}

#define PITCH_UNIT 512

uint64_t memory_calls_bytes(const struct memory_call *call, const void *arguments)
{
	const struct linear *linear = arguments;
	const struct pitched *pitched = arguments;
	const struct array *array = arguments;
	const struct plane *plane = array->descriptor;
	const struct volume *volume = array->descriptor;

	switch ((enum memory_kind)call->kind) {
	case MEMORY_PITCH:
		return times(up_to(pitched->width, PITCH_UNIT), pitched->height);
	case MEMORY_ARRAY:
		return plane ? array_bytes(plane->width, plane->height, 0, plane->format,
					   plane->channels) : 0;
	case MEMORY_ARRAY_3D:
		return volume ? array_bytes(volume->width, volume->height, volume->depth,
					    volume->format, volume->channels) : 0;
	case MEMORY_MIPMAP:
		return volume ? mipmap_bytes(volume, array->levels) : 0;
	default:
		return linear->bytes;
	}
}

uint64_t memory_calls_pitched(const void *arguments)
{
	const struct pitched *pitched = arguments;

	return times(*pitched->pitch, pitched->height);
}

void *memory_calls_stream(const struct memory_call *call, const void *arguments)
{
	void *const *words = arguments, *stream = words[call->kind == MEMORY_ASYNC ? 2 : 3];

	return !stream && call->device_at == MEMORY_OWN_STREAM ? CUDA_STREAM_PER_THREAD : stream;
}

bool memory_calls_on_gpu(const struct memory_call *call, const void *arguments)
{
	const struct create *create = arguments;
	const struct array *array = arguments;
	const struct volume *volume = array->descriptor;

	if (call->kind == MEMORY_PHYSICAL)
		return create->what && create->what->location.type == LOCATION_DEVICE;
	if (call->kind == MEMORY_ARRAY_3D || call->kind == MEMORY_MIPMAP)
		return volume && !(volume->flags & (ARRAY_SPARSE | ARRAY_DEFERRED));
	return true;
}

int memory_calls_device(const struct memory_call *call, const void *arguments)
{
	const struct create *create = arguments;

	int device = -1;

	if (call->kind == MEMORY_PHYSICAL && create->what)
		device = create->what->location.id;
	else if (call->device_at)
		memcpy(&device, (const char *)arguments + call->device_at, sizeof(device));
	return device;
}

/*
 * Of no GPU, and a multiple of every granularity. Measured on an H200: cuMemAlloc_v2 with
 * its size made this at the begin of the call is out of memory.
 */
#define IMPOSSIBLE	(1ull << 62)
#define TOO_WIDE	(1ull << 40)	/* for any array: an invalid value */

static void change_word(struct memory_change *change, const void *word, uint64_t value)
{
	change->word = (uint64_t *)(uintptr_t)word;
	change->before = *change->word;
	*change->word = value;
}

void memory_calls_spoil(const struct memory_call *call, const void *arguments,
			struct memory_change *change)
{
	const struct pitched *pitched = arguments;
	const struct linear *linear = arguments;
	const struct array *array = arguments;

	switch ((enum memory_kind)call->kind) {
	case MEMORY_PITCH:
		change_word(change, &pitched->width, 0);
		break;
	case MEMORY_ARRAY:
	case MEMORY_ARRAY_3D:
	case MEMORY_MIPMAP:
		/* The program's own descriptor is not ours to write. */
		memcpy(change->descriptor, array->descriptor,
		       call->kind == MEMORY_ARRAY ? sizeof(struct plane) : sizeof(struct volume));
		change->descriptor[0] = TOO_WIDE;
		change_word(change, &array->descriptor, (uintptr_t)change->descriptor);
		break;
	case MEMORY_GRAPH_RUNS:
		change_word(change, &linear->out, 0);
		break;
	default:
		change_word(change, &linear->bytes, IMPOSSIBLE);
		break;
	}
}

void memory_calls_mend(struct memory_change *change)
{
	if (change->word)
		*change->word = change->before;
	change->word = NULL;
}
