// SPDX-License-Identifier: MIT
/*
 * DATA: the driver's functions that give a GPU work or wait for it, with CUPTI's public
 * numbers (cupti_driver_cbid.h) and the layout of their arguments (generated_cuda_meta.h).
 * Must not know what is measured.
 */
#include <string.h>
#include <gpupart_manage.h>
#include "lib/stat/calls.h"

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

#define OWN	STAT_PER_THREAD
#define WAITS	STAT_WAITS

static const struct stat_call calls[] = {
	{ 307, STAT_KERNEL, 0, KERNEL_STREAM, NO_SIZE, ELSE, "cuLaunchKernel" },
	{ 442, STAT_KERNEL, OWN, KERNEL_STREAM, NO_SIZE, ELSE, "cuLaunchKernel_ptsz" },
	{ 477, STAT_KERNEL, 0, KERNEL_STREAM, NO_SIZE, ELSE, "cuLaunchCooperativeKernel" },
	{ 478, STAT_KERNEL, OWN, KERNEL_STREAM, NO_SIZE, ELSE, "cuLaunchCooperativeKernel_ptsz" },
	{ 652, STAT_KERNEL, 0, AT_CONFIG, NO_SIZE, ELSE, "cuLaunchKernelEx" },
	{ 653, STAT_KERNEL, OWN, AT_CONFIG, NO_SIZE, ELSE, "cuLaunchKernelEx_ptsz" },
	{ 480, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE, "cuLaunchCooperativeKernelMultiDevice" },
	{ 115, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE, "cuLaunch" },
	{ 116, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE, "cuLaunchGrid" },
	{ 117, STAT_KERNEL, 0, 16, NO_SIZE, ELSE, "cuLaunchGridAsync" },
	{ 514, STAT_GRAPH, 0, 8, NO_SIZE, ELSE, "cuGraphLaunch" },
	{ 515, STAT_GRAPH, OWN, 8, NO_SIZE, ELSE, "cuGraphLaunch_ptsz" },
	{ 249, STAT_FILL, 0, AT_CURRENT, FILL_1, ELSE, "cuMemsetD8_v2" },
	{ 411, STAT_FILL, OWN, AT_CURRENT, FILL_1, ELSE, "cuMemsetD8_v2_ptds" },
	{ 216, STAT_FILL, 0, 24, FILL_1, ELSE, "cuMemsetD8Async" },
	{ 428, STAT_FILL, OWN, 24, FILL_1, ELSE, "cuMemsetD8Async_ptsz" },
	{ 252, STAT_FILL, 0, AT_CURRENT, FILL_2D_1, ELSE, "cuMemsetD2D8_v2" },
	{ 414, STAT_FILL, OWN, AT_CURRENT, FILL_2D_1, ELSE, "cuMemsetD2D8_v2_ptds" },
	{ 222, STAT_FILL, 0, 40, FILL_2D_1, ELSE, "cuMemsetD2D8Async" },
	{ 431, STAT_FILL, OWN, 40, FILL_2D_1, ELSE, "cuMemsetD2D8Async_ptsz" },
	{ 250, STAT_FILL, 0, AT_CURRENT, FILL_2, ELSE, "cuMemsetD16_v2" },
	{ 412, STAT_FILL, OWN, AT_CURRENT, FILL_2, ELSE, "cuMemsetD16_v2_ptds" },
	{ 218, STAT_FILL, 0, 24, FILL_2, ELSE, "cuMemsetD16Async" },
	{ 429, STAT_FILL, OWN, 24, FILL_2, ELSE, "cuMemsetD16Async_ptsz" },
	{ 253, STAT_FILL, 0, AT_CURRENT, FILL_2D_2, ELSE, "cuMemsetD2D16_v2" },
	{ 415, STAT_FILL, OWN, AT_CURRENT, FILL_2D_2, ELSE, "cuMemsetD2D16_v2_ptds" },
	{ 224, STAT_FILL, 0, 40, FILL_2D_2, ELSE, "cuMemsetD2D16Async" },
	{ 432, STAT_FILL, OWN, 40, FILL_2D_2, ELSE, "cuMemsetD2D16Async_ptsz" },
	{ 251, STAT_FILL, 0, AT_CURRENT, FILL_4, ELSE, "cuMemsetD32_v2" },
	{ 413, STAT_FILL, OWN, AT_CURRENT, FILL_4, ELSE, "cuMemsetD32_v2_ptds" },
	{ 220, STAT_FILL, 0, 24, FILL_4, ELSE, "cuMemsetD32Async" },
	{ 430, STAT_FILL, OWN, 24, FILL_4, ELSE, "cuMemsetD32Async_ptsz" },
	{ 254, STAT_FILL, 0, AT_CURRENT, FILL_2D_4, ELSE, "cuMemsetD2D32_v2" },
	{ 416, STAT_FILL, OWN, AT_CURRENT, FILL_2D_4, ELSE, "cuMemsetD2D32_v2_ptds" },
	{ 226, STAT_FILL, 0, 40, FILL_2D_4, ELSE, "cuMemsetD2D32Async" },
	{ 433, STAT_FILL, OWN, 40, FILL_2D_4, ELSE, "cuMemsetD2D32Async_ptsz" },
	{ 276, STAT_COPY, WAITS, AT_CURRENT, AT_16, IN, "cuMemcpyHtoD_v2" },
	{ 397, STAT_COPY, OWN | WAITS, AT_CURRENT, AT_16, IN, "cuMemcpyHtoD_v2_ptds" },
	{ 277, STAT_COPY, 0, 24, AT_16, IN, "cuMemcpyHtoDAsync_v2" },
	{ 421, STAT_COPY, OWN, 24, AT_16, IN, "cuMemcpyHtoDAsync_v2_ptsz" },
	{ 278, STAT_COPY, WAITS, AT_CURRENT, AT_16, OUT, "cuMemcpyDtoH_v2" },
	{ 398, STAT_COPY, OWN | WAITS, AT_CURRENT, AT_16, OUT, "cuMemcpyDtoH_v2_ptds" },
	{ 279, STAT_COPY, 0, 24, AT_16, OUT, "cuMemcpyDtoHAsync_v2" },
	{ 422, STAT_COPY, OWN, 24, AT_16, OUT, "cuMemcpyDtoHAsync_v2_ptsz" },
	{ 280, STAT_COPY, 0, AT_CURRENT, AT_16, INSIDE, "cuMemcpyDtoD_v2" },
	{ 399, STAT_COPY, OWN, AT_CURRENT, AT_16, INSIDE, "cuMemcpyDtoD_v2_ptds" },
	{ 281, STAT_COPY, 0, 24, AT_16, INSIDE, "cuMemcpyDtoDAsync_v2" },
	{ 423, STAT_COPY, OWN, 24, AT_16, INSIDE, "cuMemcpyDtoDAsync_v2_ptsz" },
	{ 292, STAT_COPY, WAITS, AT_CURRENT, AT_24, IN, "cuMemcpyHtoA_v2" },
	{ 402, STAT_COPY, OWN | WAITS, AT_CURRENT, AT_24, IN, "cuMemcpyHtoA_v2_ptds" },
	{ 293, STAT_COPY, 0, 32, AT_24, IN, "cuMemcpyHtoAAsync_v2" },
	{ 419, STAT_COPY, OWN, 32, AT_24, IN, "cuMemcpyHtoAAsync_v2_ptsz" },
	{ 282, STAT_COPY, WAITS, AT_CURRENT, AT_24, OUT, "cuMemcpyAtoH_v2" },
	{ 403, STAT_COPY, OWN | WAITS, AT_CURRENT, AT_24, OUT, "cuMemcpyAtoH_v2_ptds" },
	{ 283, STAT_COPY, 0, 32, AT_24, OUT, "cuMemcpyAtoHAsync_v2" },
	{ 420, STAT_COPY, OWN, 32, AT_24, OUT, "cuMemcpyAtoHAsync_v2_ptsz" },
	{ 285, STAT_COPY, 0, AT_CURRENT, AT_24, INSIDE, "cuMemcpyDtoA_v2" },
	{ 400, STAT_COPY, OWN, AT_CURRENT, AT_24, INSIDE, "cuMemcpyDtoA_v2_ptds" },
	{ 284, STAT_COPY, 0, AT_CURRENT, AT_24, INSIDE, "cuMemcpyAtoD_v2" },
	{ 401, STAT_COPY, OWN, AT_CURRENT, AT_24, INSIDE, "cuMemcpyAtoD_v2_ptds" },
	{ 286, STAT_COPY, 0, AT_CURRENT, AT_32, INSIDE, "cuMemcpyAtoA_v2" },
	{ 404, STAT_COPY, OWN, AT_CURRENT, AT_32, INSIDE, "cuMemcpyAtoA_v2_ptds" },
	{ 305, STAT_COPY, WAITS, AT_CURRENT, AT_16, BY_ADDRESS, "cuMemcpy" },
	{ 408, STAT_COPY, OWN | WAITS, AT_CURRENT, AT_16, BY_ADDRESS, "cuMemcpy_ptds" },
	{ 306, STAT_COPY, 0, 24, AT_16, BY_ADDRESS, "cuMemcpyAsync" },
	{ 418, STAT_COPY, OWN, 24, AT_16, BY_ADDRESS, "cuMemcpyAsync_ptsz" },
	{ 287, STAT_COPY, WAITS, AT_CURRENT, SIZE_2D, BY_2D, "cuMemcpy2D_v2" },
	{ 405, STAT_COPY, OWN | WAITS, AT_CURRENT, SIZE_2D, BY_2D, "cuMemcpy2D_v2_ptds" },
	{ 288, STAT_COPY, WAITS, AT_CURRENT, SIZE_2D, BY_2D, "cuMemcpy2DUnaligned_v2" },
	{ 406, STAT_COPY, OWN | WAITS, AT_CURRENT, SIZE_2D, BY_2D, "cuMemcpy2DUnaligned_v2_ptds" },
	{ 289, STAT_COPY, 0, 8, SIZE_2D, BY_2D, "cuMemcpy2DAsync_v2" },
	{ 424, STAT_COPY, OWN, 8, SIZE_2D, BY_2D, "cuMemcpy2DAsync_v2_ptsz" },
	{ 290, STAT_COPY, WAITS, AT_CURRENT, SIZE_3D, BY_3D, "cuMemcpy3D_v2" },
	{ 407, STAT_COPY, OWN | WAITS, AT_CURRENT, SIZE_3D, BY_3D, "cuMemcpy3D_v2_ptds" },
	{ 291, STAT_COPY, 0, 8, SIZE_3D, BY_3D, "cuMemcpy3DAsync_v2" },
	{ 425, STAT_COPY, OWN, 8, SIZE_3D, BY_3D, "cuMemcpy3DAsync_v2_ptsz" },
	{ 318, STAT_COPY, 0, AT_CURRENT, AT_32, ELSE, "cuMemcpyPeer" },
	{ 409, STAT_COPY, OWN, AT_CURRENT, AT_32, ELSE, "cuMemcpyPeer_ptds" },
	{ 319, STAT_COPY, 0, 40, AT_32, ELSE, "cuMemcpyPeerAsync" },
	{ 426, STAT_COPY, OWN, 40, AT_32, ELSE, "cuMemcpyPeerAsync_ptsz" },
	{ 320, STAT_COPY, 0, AT_CURRENT, SIZE_3D, ELSE, "cuMemcpy3DPeer" },
	{ 410, STAT_COPY, OWN, AT_CURRENT, SIZE_3D, ELSE, "cuMemcpy3DPeer_ptds" },
	{ 321, STAT_COPY, 0, 8, SIZE_3D, ELSE, "cuMemcpy3DPeerAsync" },
	{ 427, STAT_COPY, OWN, 8, SIZE_3D, ELSE, "cuMemcpy3DPeerAsync_ptsz" },
	{ 776, STAT_COPY, 0, 64, SIZE_BATCH, ELSE, "cuMemcpyBatchAsync" },
	{ 777, STAT_COPY, OWN, 64, SIZE_BATCH, ELSE, "cuMemcpyBatchAsync_ptsz" },
	{ 796, STAT_COPY, 0, 56, SIZE_BATCH, ELSE, "cuMemcpyBatchAsync_v2" },
	{ 797, STAT_COPY, OWN, 56, SIZE_BATCH, ELSE, "cuMemcpyBatchAsync_v2_ptsz" },
	{ 778, STAT_COPY, 0, 32, NO_SIZE, ELSE, "cuMemcpy3DBatchAsync" },
	{ 779, STAT_COPY, OWN, 32, NO_SIZE, ELSE, "cuMemcpy3DBatchAsync_ptsz" },
	{ 798, STAT_COPY, 0, 24, NO_SIZE, ELSE, "cuMemcpy3DBatchAsync_v2" },
	{ 799, STAT_COPY, OWN, 24, NO_SIZE, ELSE, "cuMemcpy3DBatchAsync_v2_ptsz" },
	{ 126, STAT_SYNC, 0, 0, NO_SIZE, ELSE, "cuStreamSynchronize" },
	{ 440, STAT_SYNC, OWN, 0, NO_SIZE, ELSE, "cuStreamSynchronize_ptsz" },
	{ 17, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE, "cuCtxSynchronize" },
	{ 800, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE, "cuCtxSynchronize_v2" },
	{ 121, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE, "cuEventSynchronize" },
	{ 125, STAT_QUERY, 0, 0, NO_SIZE, ELSE, "cuStreamQuery" },
	{ 439, STAT_QUERY, OWN, 0, NO_SIZE, ELSE, "cuStreamQuery_ptsz" },
	{ 120, STAT_QUERY, 0, AT_CURRENT, NO_SIZE, ELSE, "cuEventQuery" },
	{ 295, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitEvent" },
	{ 436, STAT_DEPEND, OWN, 0, NO_SIZE, ELSE, "cuStreamWaitEvent_ptsz" },
	{ 458, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitValue32" },
	{ 459, STAT_DEPEND, OWN, 0, NO_SIZE, ELSE, "cuStreamWaitValue32_ptsz" },
	{ 659, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitValue32_v2" },
	{ 660, STAT_DEPEND, OWN, 0, NO_SIZE, ELSE, "cuStreamWaitValue32_v2_ptsz" },
	{ 473, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitValue64" },
	{ 474, STAT_DEPEND, OWN, 0, NO_SIZE, ELSE, "cuStreamWaitValue64_ptsz" },
	{ 661, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitValue64_v2" },
	{ 662, STAT_DEPEND, OWN, 0, NO_SIZE, ELSE, "cuStreamWaitValue64_v2_ptsz" },
	{ 527, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuLaunchHostFunc" },
	{ 528, STAT_DEPEND, OWN, 0, NO_SIZE, ELSE, "cuLaunchHostFunc_ptsz" },
	{ 387, STAT_CTX_RELEASE, 0, AT_CURRENT, NO_SIZE, ELSE, "cuDevicePrimaryCtxRelease" },
	{ 544, STAT_CTX_RELEASE, 0, AT_CURRENT, NO_SIZE, ELSE, "cuDevicePrimaryCtxRelease_v2" },
	{ 11, STAT_CTX_END, 0, AT_CURRENT, NO_SIZE, ELSE, "cuCtxDestroy" },
	{ 322, STAT_CTX_END, 0, AT_CURRENT, NO_SIZE, ELSE, "cuCtxDestroy_v2" },
	{ 389, STAT_CTX_RELEASE, 0, AT_CURRENT, NO_SIZE, ELSE, "cuDevicePrimaryCtxReset" },
	{ 545, STAT_CTX_RELEASE, 0, AT_CURRENT, NO_SIZE, ELSE, "cuDevicePrimaryCtxReset_v2" },
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

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

int stat_calls_cbid(unsigned int n)
{
	return n < NR_CALLS ? calls[n].cbid : -1;
}

const struct stat_call *stat_calls_find(int cbid, const char *name)
{
	/* By number, filled at the first call; two threads write the same. */
	static const struct stat_call *_Atomic by_cbid[1024];
	const struct stat_call *call;

	if (cbid < 0 || cbid >= (int)(sizeof(by_cbid) / sizeof(by_cbid[0])) || !name)
		return NULL;
	call = by_cbid[cbid];
	for (unsigned int i = 0; !call && i < NR_CALLS; i++)
		if (calls[i].cbid == cbid)
			by_cbid[cbid] = call = &calls[i];
	return call && !strcmp(call->name, name) ? call : NULL;
}

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

uint64_t stat_calls_blocks(const struct stat_call *call, const void *arguments)
{
	const struct {
		void *function;
		unsigned int grid[3];
	} *kernel = arguments;
	const struct cuda_launch_config *config;

	if (call->stream_at == AT_CONFIG) {
		config = *(const struct cuda_launch_config *const *)arguments;
		return config ? (uint64_t)config->grid[0] * config->grid[1] * config->grid[2] : 0;
	}
	/* The others are of another time. */
	if (call->stream_at != KERNEL_STREAM)
		return 0;
	return (uint64_t)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
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
