// SPDX-License-Identifier: MIT
/*
 * DATA: the driver's functions that give a GPU work or wait for it, with CUPTI's public numbers
 * (cupti_driver_cbid.h) and the layout of their arguments (generated_cuda_meta.h).
 */
#include <string.h>
#include "lib/private.h"
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

#define WAITS	STAT_WAITS

/* A function, and the one of another number for which stream 0 is the thread's own. */
#define BOTH(cbid, cbid_own, kind, flags, stream_at, size, direction, name, end) \
	{ cbid, kind, flags, stream_at, size, direction, name }, \
	{ cbid_own, kind, (flags) | STAT_PER_THREAD, stream_at, size, direction, name end }

static const struct stat_call calls[] = {
	BOTH(307, 442, STAT_KERNEL, 0, KERNEL_STREAM, NO_SIZE, ELSE, "cuLaunchKernel", "_ptsz"),
	BOTH(477, 478, STAT_KERNEL, 0, KERNEL_STREAM, NO_SIZE, ELSE, "cuLaunchCooperativeKernel",
	     "_ptsz"),
	BOTH(652, 653, STAT_KERNEL, 0, AT_CONFIG, NO_SIZE, ELSE, "cuLaunchKernelEx", "_ptsz"),
	{ 480, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE, "cuLaunchCooperativeKernelMultiDevice" },
	{ 115, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE, "cuLaunch" },
	{ 116, STAT_KERNEL, 0, AT_CURRENT, NO_SIZE, ELSE, "cuLaunchGrid" },
	{ 117, STAT_KERNEL, 0, 16, NO_SIZE, ELSE, "cuLaunchGridAsync" },
	BOTH(514, 515, STAT_GRAPH, 0, 8, NO_SIZE, ELSE, "cuGraphLaunch", "_ptsz"),
	BOTH(249, 411, STAT_FILL, 0, AT_CURRENT, FILL_1, ELSE, "cuMemsetD8_v2", "_ptds"),
	BOTH(216, 428, STAT_FILL, 0, 24, FILL_1, ELSE, "cuMemsetD8Async", "_ptsz"),
	BOTH(252, 414, STAT_FILL, 0, AT_CURRENT, FILL_2D_1, ELSE, "cuMemsetD2D8_v2", "_ptds"),
	BOTH(222, 431, STAT_FILL, 0, 40, FILL_2D_1, ELSE, "cuMemsetD2D8Async", "_ptsz"),
	BOTH(250, 412, STAT_FILL, 0, AT_CURRENT, FILL_2, ELSE, "cuMemsetD16_v2", "_ptds"),
	BOTH(218, 429, STAT_FILL, 0, 24, FILL_2, ELSE, "cuMemsetD16Async", "_ptsz"),
	BOTH(253, 415, STAT_FILL, 0, AT_CURRENT, FILL_2D_2, ELSE, "cuMemsetD2D16_v2", "_ptds"),
	BOTH(224, 432, STAT_FILL, 0, 40, FILL_2D_2, ELSE, "cuMemsetD2D16Async", "_ptsz"),
	BOTH(251, 413, STAT_FILL, 0, AT_CURRENT, FILL_4, ELSE, "cuMemsetD32_v2", "_ptds"),
	BOTH(220, 430, STAT_FILL, 0, 24, FILL_4, ELSE, "cuMemsetD32Async", "_ptsz"),
	BOTH(254, 416, STAT_FILL, 0, AT_CURRENT, FILL_2D_4, ELSE, "cuMemsetD2D32_v2", "_ptds"),
	BOTH(226, 433, STAT_FILL, 0, 40, FILL_2D_4, ELSE, "cuMemsetD2D32Async", "_ptsz"),
	BOTH(276, 397, STAT_COPY, WAITS, AT_CURRENT, AT_16, IN, "cuMemcpyHtoD_v2", "_ptds"),
	BOTH(277, 421, STAT_COPY, 0, 24, AT_16, IN, "cuMemcpyHtoDAsync_v2", "_ptsz"),
	BOTH(278, 398, STAT_COPY, WAITS, AT_CURRENT, AT_16, OUT, "cuMemcpyDtoH_v2", "_ptds"),
	BOTH(279, 422, STAT_COPY, 0, 24, AT_16, OUT, "cuMemcpyDtoHAsync_v2", "_ptsz"),
	BOTH(280, 399, STAT_COPY, 0, AT_CURRENT, AT_16, INSIDE, "cuMemcpyDtoD_v2", "_ptds"),
	BOTH(281, 423, STAT_COPY, 0, 24, AT_16, INSIDE, "cuMemcpyDtoDAsync_v2", "_ptsz"),
	BOTH(292, 402, STAT_COPY, WAITS, AT_CURRENT, AT_24, IN, "cuMemcpyHtoA_v2", "_ptds"),
	BOTH(293, 419, STAT_COPY, 0, 32, AT_24, IN, "cuMemcpyHtoAAsync_v2", "_ptsz"),
	BOTH(282, 403, STAT_COPY, WAITS, AT_CURRENT, AT_24, OUT, "cuMemcpyAtoH_v2", "_ptds"),
	BOTH(283, 420, STAT_COPY, 0, 32, AT_24, OUT, "cuMemcpyAtoHAsync_v2", "_ptsz"),
	BOTH(285, 400, STAT_COPY, 0, AT_CURRENT, AT_24, INSIDE, "cuMemcpyDtoA_v2", "_ptds"),
	BOTH(284, 401, STAT_COPY, 0, AT_CURRENT, AT_24, INSIDE, "cuMemcpyAtoD_v2", "_ptds"),
	BOTH(286, 404, STAT_COPY, 0, AT_CURRENT, AT_32, INSIDE, "cuMemcpyAtoA_v2", "_ptds"),
	BOTH(305, 408, STAT_COPY, WAITS, AT_CURRENT, AT_16, BY_ADDRESS, "cuMemcpy", "_ptds"),
	BOTH(306, 418, STAT_COPY, 0, 24, AT_16, BY_ADDRESS, "cuMemcpyAsync", "_ptsz"),
	BOTH(287, 405, STAT_COPY, WAITS, AT_CURRENT, SIZE_2D, BY_2D, "cuMemcpy2D_v2", "_ptds"),
	BOTH(288, 406, STAT_COPY, WAITS, AT_CURRENT, SIZE_2D, BY_2D, "cuMemcpy2DUnaligned_v2",
	     "_ptds"),
	BOTH(289, 424, STAT_COPY, 0, 8, SIZE_2D, BY_2D, "cuMemcpy2DAsync_v2", "_ptsz"),
	BOTH(290, 407, STAT_COPY, WAITS, AT_CURRENT, SIZE_3D, BY_3D, "cuMemcpy3D_v2", "_ptds"),
	BOTH(291, 425, STAT_COPY, 0, 8, SIZE_3D, BY_3D, "cuMemcpy3DAsync_v2", "_ptsz"),
	BOTH(318, 409, STAT_COPY, 0, AT_CURRENT, AT_32, ELSE, "cuMemcpyPeer", "_ptds"),
	BOTH(319, 426, STAT_COPY, 0, 40, AT_32, ELSE, "cuMemcpyPeerAsync", "_ptsz"),
	BOTH(320, 410, STAT_COPY, 0, AT_CURRENT, SIZE_3D, ELSE, "cuMemcpy3DPeer", "_ptds"),
	BOTH(321, 427, STAT_COPY, 0, 8, SIZE_3D, ELSE, "cuMemcpy3DPeerAsync", "_ptsz"),
	BOTH(776, 777, STAT_COPY, 0, 64, SIZE_BATCH, ELSE, "cuMemcpyBatchAsync", "_ptsz"),
	BOTH(796, 797, STAT_COPY, 0, 56, SIZE_BATCH, ELSE, "cuMemcpyBatchAsync_v2", "_ptsz"),
	BOTH(778, 779, STAT_COPY, 0, 32, NO_SIZE, ELSE, "cuMemcpy3DBatchAsync", "_ptsz"),
	BOTH(798, 799, STAT_COPY, 0, 24, NO_SIZE, ELSE, "cuMemcpy3DBatchAsync_v2", "_ptsz"),
	BOTH(126, 440, STAT_SYNC, 0, 0, NO_SIZE, ELSE, "cuStreamSynchronize", "_ptsz"),
	{ 17, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE, "cuCtxSynchronize" },
	{ 800, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE, "cuCtxSynchronize_v2" },
	{ 121, STAT_SYNC, 0, AT_CURRENT, NO_SIZE, ELSE, "cuEventSynchronize" },
	BOTH(125, 439, STAT_QUERY, 0, 0, NO_SIZE, ELSE, "cuStreamQuery", "_ptsz"),
	{ 120, STAT_QUERY, 0, AT_CURRENT, NO_SIZE, ELSE, "cuEventQuery" },
	BOTH(295, 436, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitEvent", "_ptsz"),
	BOTH(458, 459, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitValue32", "_ptsz"),
	BOTH(659, 660, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitValue32_v2", "_ptsz"),
	BOTH(473, 474, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitValue64", "_ptsz"),
	BOTH(661, 662, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuStreamWaitValue64_v2", "_ptsz"),
	BOTH(527, 528, STAT_DEPEND, 0, 0, NO_SIZE, ELSE, "cuLaunchHostFunc", "_ptsz"),
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
