// SPDX-License-Identifier: MIT
/*
 * DATA: the driver's functions that give a GPU work or wait for it, with the layout of their
 * arguments (generated_cuda_meta.h).
 */
#include <string.h>
#include "lib/private.h"
#include "lib/stat/watched_functions.h"

/* Where a stream is, beside an offset. */
#define AT_CURRENT	(-1)	/* a default stream */
#define AT_CONFIG	(-2)	/* in a launch's configuration */
#define KERNEL_STREAM	40	/* after the function, the grid, the block and shared memory */

/* How the bytes are found. */
enum {
	NO_SIZE, AT_16, AT_24, AT_32,
	FILL_1, FILL_2, FILL_4,			/* elements of so many bytes */
	FILL_2D_1, FILL_2D_2, FILL_2D_4,
	SIZE_2D, SIZE_3D, SIZE_BATCH,
};

/* How the direction is found, where the function's name does not tell. */
enum {
	ELSE = GPUPART_STAT_OTHER, IN = GPUPART_STAT_TO_GPU, OUT = GPUPART_STAT_FROM_GPU,
	INSIDE = GPUPART_STAT_INSIDE,
	BY_ADDRESS = GPUPART_STAT_NR_DIRECTIONS, BY_2D, BY_3D,
};

#define WAITS	STAT_WAITS

#define ROW(name, kind, flags, stream_at, size, direction) \
	{ { CBID_##name, 0, kind }, flags, stream_at, size, direction }
/* And the function of the same name with @end, for which stream 0 is the thread's own. */
#define BOTH(name, end, kind, flags, stream_at, size, direction) \
	ROW(name, kind, flags, stream_at, size, direction), \
	ROW(name##end, kind, (flags) | STAT_PER_THREAD, stream_at, size, direction)

/* The first is in every driver. */
const struct stat_call stat_calls[] = {
	BOTH(cuLaunchKernel, _ptsz, STAT_KERNEL, 0, KERNEL_STREAM, NO_SIZE, ELSE),
	BOTH(cuLaunchCooperativeKernel, _ptsz, STAT_KERNEL, 0, KERNEL_STREAM, NO_SIZE, ELSE),
	BOTH(cuLaunchKernelEx, _ptsz, STAT_KERNEL, 0, AT_CONFIG, NO_SIZE, ELSE),
	ROW(cuLaunchCooperativeKernelMultiDevice, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuLaunch, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuLaunchGrid, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuLaunchGridAsync, STAT_KERNEL, 0, 16, NO_SIZE, ELSE),
	BOTH(cuGraphLaunch, _ptsz, STAT_GRAPH, 0, 8, NO_SIZE, ELSE),
	BOTH(cuMemsetD8_v2, _ptds, STAT_FILL, 0, AT_CURRENT, FILL_1, ELSE),
	BOTH(cuMemsetD8Async, _ptsz, STAT_FILL, 0, 24, FILL_1, ELSE),
	BOTH(cuMemsetD2D8_v2, _ptds, STAT_FILL, 0, AT_CURRENT, FILL_2D_1, ELSE),
	BOTH(cuMemsetD2D8Async, _ptsz, STAT_FILL, 0, 40, FILL_2D_1, ELSE),
	BOTH(cuMemsetD16_v2, _ptds, STAT_FILL, 0, AT_CURRENT, FILL_2, ELSE),
	BOTH(cuMemsetD16Async, _ptsz, STAT_FILL, 0, 24, FILL_2, ELSE),
	BOTH(cuMemsetD2D16_v2, _ptds, STAT_FILL, 0, AT_CURRENT, FILL_2D_2, ELSE),
	BOTH(cuMemsetD2D16Async, _ptsz, STAT_FILL, 0, 40, FILL_2D_2, ELSE),
	BOTH(cuMemsetD32_v2, _ptds, STAT_FILL, 0, AT_CURRENT, FILL_4, ELSE),
	BOTH(cuMemsetD32Async, _ptsz, STAT_FILL, 0, 24, FILL_4, ELSE),
	BOTH(cuMemsetD2D32_v2, _ptds, STAT_FILL, 0, AT_CURRENT, FILL_2D_4, ELSE),
	BOTH(cuMemsetD2D32Async, _ptsz, STAT_FILL, 0, 40, FILL_2D_4, ELSE),
	BOTH(cuMemcpyHtoD_v2, _ptds, STAT_COPY, WAITS, AT_CURRENT, AT_16, IN),
	BOTH(cuMemcpyHtoDAsync_v2, _ptsz, STAT_COPY, 0, 24, AT_16, IN),
	BOTH(cuMemcpyDtoH_v2, _ptds, STAT_COPY, WAITS, AT_CURRENT, AT_16, OUT),
	BOTH(cuMemcpyDtoHAsync_v2, _ptsz, STAT_COPY, 0, 24, AT_16, OUT),
	BOTH(cuMemcpyDtoD_v2, _ptds, STAT_COPY, 0, AT_CURRENT, AT_16, INSIDE),
	BOTH(cuMemcpyDtoDAsync_v2, _ptsz, STAT_COPY, 0, 24, AT_16, INSIDE),
	BOTH(cuMemcpyHtoA_v2, _ptds, STAT_COPY, WAITS, AT_CURRENT, AT_24, IN),
	BOTH(cuMemcpyHtoAAsync_v2, _ptsz, STAT_COPY, 0, 32, AT_24, IN),
	BOTH(cuMemcpyAtoH_v2, _ptds, STAT_COPY, WAITS, AT_CURRENT, AT_24, OUT),
	BOTH(cuMemcpyAtoHAsync_v2, _ptsz, STAT_COPY, 0, 32, AT_24, OUT),
	BOTH(cuMemcpyDtoA_v2, _ptds, STAT_COPY, 0, AT_CURRENT, AT_24, INSIDE),
	BOTH(cuMemcpyAtoD_v2, _ptds, STAT_COPY, 0, AT_CURRENT, AT_24, INSIDE),
	BOTH(cuMemcpyAtoA_v2, _ptds, STAT_COPY, 0, AT_CURRENT, AT_32, INSIDE),
	BOTH(cuMemcpy, _ptds, STAT_COPY, WAITS, AT_CURRENT, AT_16, BY_ADDRESS),
	BOTH(cuMemcpyAsync, _ptsz, STAT_COPY, 0, 24, AT_16, BY_ADDRESS),
	BOTH(cuMemcpy2D_v2, _ptds, STAT_COPY, WAITS, AT_CURRENT, SIZE_2D, BY_2D),
	BOTH(cuMemcpy2DUnaligned_v2, _ptds, STAT_COPY, WAITS, AT_CURRENT, SIZE_2D, BY_2D),
	BOTH(cuMemcpy2DAsync_v2, _ptsz, STAT_COPY, 0, 8, SIZE_2D, BY_2D),
	BOTH(cuMemcpy3D_v2, _ptds, STAT_COPY, WAITS, AT_CURRENT, SIZE_3D, BY_3D),
	BOTH(cuMemcpy3DAsync_v2, _ptsz, STAT_COPY, 0, 8, SIZE_3D, BY_3D),
	BOTH(cuMemcpyPeer, _ptds, STAT_COPY, 0, AT_CURRENT, AT_32, ELSE),
	BOTH(cuMemcpyPeerAsync, _ptsz, STAT_COPY, 0, 40, AT_32, ELSE),
	BOTH(cuMemcpy3DPeer, _ptds, STAT_COPY, 0, AT_CURRENT, SIZE_3D, ELSE),
	BOTH(cuMemcpy3DPeerAsync, _ptsz, STAT_COPY, 0, 8, SIZE_3D, ELSE),
	BOTH(cuMemcpyBatchAsync, _ptsz, STAT_COPY, 0, 64, SIZE_BATCH, ELSE),
	BOTH(cuMemcpyBatchAsync_v2, _ptsz, STAT_COPY, 0, 56, SIZE_BATCH, ELSE),
	BOTH(cuMemcpy3DBatchAsync, _ptsz, STAT_COPY, 0, 32, NO_SIZE, ELSE),
	BOTH(cuMemcpy3DBatchAsync_v2, _ptsz, STAT_COPY, 0, 24, NO_SIZE, ELSE),
	BOTH(cuStreamSynchronize, _ptsz, STAT_SYNC, 0, 0, NO_SIZE, ELSE),
	ROW(cuCtxSynchronize, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuCtxSynchronize_v2, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuEventSynchronize, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE),
	BOTH(cuStreamQuery, _ptsz, STAT_QUERY, 0, 0, NO_SIZE, ELSE),
	ROW(cuEventQuery, STAT_QUERY, 0, AT_CURRENT, NO_SIZE, ELSE),
	BOTH(cuStreamWaitEvent, _ptsz, STAT_DEPEND, 0, 0, NO_SIZE, ELSE),
	BOTH(cuStreamWaitValue32, _ptsz, STAT_DEPEND, 0, 0, NO_SIZE, ELSE),
	BOTH(cuStreamWaitValue32_v2, _ptsz, STAT_DEPEND, 0, 0, NO_SIZE, ELSE),
	BOTH(cuStreamWaitValue64, _ptsz, STAT_DEPEND, 0, 0, NO_SIZE, ELSE),
	BOTH(cuStreamWaitValue64_v2, _ptsz, STAT_DEPEND, 0, 0, NO_SIZE, ELSE),
	BOTH(cuLaunchHostFunc, _ptsz, STAT_DEPEND, 0, 0, NO_SIZE, ELSE),
	ROW(cuDevicePrimaryCtxRelease, STAT_CTX_RELEASE, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuDevicePrimaryCtxRelease_v2, STAT_CTX_RELEASE, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuCtxDestroy, STAT_CTX_END, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuCtxDestroy_v2, STAT_CTX_END, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuDevicePrimaryCtxReset, STAT_CTX_RELEASE, 0, AT_CURRENT, NO_SIZE, ELSE),
	ROW(cuDevicePrimaryCtxReset_v2, STAT_CTX_RELEASE, 0, AT_CURRENT, NO_SIZE, ELSE),
	{ { 0, 0, 0 }, 0, 0, 0, 0 },
};

/* CUDA_MEMCPY2D_v2 */
struct copy_2d {
	struct {
		size_t x, y;
		int type, pad;
		const void *host;
		cuda_ptr device;
		void *array;
		size_t pitch;
	} src, dst;
	size_t width, height;
};

#define MEMORY_HOST	1
#define MEMORY_DEVICE	2
#define MEMORY_ARRAY	3

static uint64_t word_at(const void *arguments, int offset)
{
	uint64_t word;

	memcpy(&word, (const char *)arguments + offset, sizeof(word));
	return word;
}

void *stat_calls_stream(const struct stat_call *call, const void *arguments)
{
	const struct cuda_launch_config *config;

	if (call->stream_at >= 0)
		return (void *)(uintptr_t)word_at(arguments, call->stream_at);
	if (call->stream_at != AT_CONFIG)
		return NULL;
	config = *(const struct cuda_launch_config *const *)arguments;
	return config ? config->stream : NULL;
}

static uint64_t bytes_of_batch(const void *arguments)
{
	const size_t *sizes = (const size_t *)(uintptr_t)word_at(arguments, 16);
	uint64_t count = word_at(arguments, 24), bytes = 0;

	for (uint64_t i = 0; sizes && i < count; i++)
		bytes += sizes[i];
	return bytes;
}

uint64_t stat_calls_bytes(const struct stat_call *call, const void *arguments)
{
	const void *first = (const void *)(uintptr_t)word_at(arguments, 0);
	const struct cuda_memcpy_node *box = first;
	const struct copy_2d *plane = first;

	switch (call->size) {
	case AT_16:
		return word_at(arguments, 16);
	case AT_24:
		return word_at(arguments, 24);
	case AT_32:
		return word_at(arguments, 32);
	case FILL_1:
	case FILL_2:
	case FILL_4:
		return word_at(arguments, 16) << (call->size - FILL_1);
	case FILL_2D_1:
	case FILL_2D_2:
	case FILL_2D_4:
		return word_at(arguments, 24) * word_at(arguments, 32)
		       << (call->size - FILL_2D_1);
	case SIZE_2D:
		return plane ? plane->width * plane->height : 0;
	case SIZE_3D:
		return box ? box->width * box->height * box->depth : 0;
	case SIZE_BATCH:
		return bytes_of_batch(arguments);
	}
	return 0;
}

static unsigned int between(int to, int from)
{
	bool to_gpu = to == MEMORY_DEVICE || to == MEMORY_ARRAY;
	bool from_gpu = from == MEMORY_DEVICE || from == MEMORY_ARRAY;

	if (to_gpu && from_gpu)
		return INSIDE;
	if (to_gpu && from == MEMORY_HOST)
		return IN;
	return from_gpu && to == MEMORY_HOST ? OUT : ELSE;
}

#define CU_POINTER_MEMORY_TYPE 2

/* What the driver does not know is the program's own memory. */
static int type_of(const struct cuda_api *cuda, cuda_ptr address)
{
	int type = 0;

	if (!cuda->pointer_attr)
		return 0;
	return cuda->pointer_attr(&type, CU_POINTER_MEMORY_TYPE, address) ? MEMORY_HOST : type;
}

unsigned int stat_calls_direction(const struct cuda_api *cuda, const struct stat_call *call,
				  const void *arguments)
{
	const void *first = (const void *)(uintptr_t)word_at(arguments, 0);
	const struct cuda_memcpy_node *box = first;
	const struct copy_2d *plane = first;

	switch (call->direction) {
	case BY_ADDRESS:
		return between(type_of(cuda, word_at(arguments, 0)),
			       type_of(cuda, word_at(arguments, 8)));
	case BY_2D:
		return plane ? between(plane->dst.type, plane->src.type) : ELSE;
	case BY_3D:
		return box ? between(box->dst.type, box->src.type) : ELSE;
	}
	return call->direction;
}
