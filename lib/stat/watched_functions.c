// SPDX-License-Identifier: MIT
/*
 * This file lists the driver functions that copy or wait. The layouts of their arguments come from
 * generated_cuda_meta.h.
 */
#include <string.h>
#include "lib/stat/shared_memory.h"

/*
 * These values say how to find the number of bytes. Any other value is an offset in the
 * arguments.
 */
enum { NO_SIZE = 0, SIZE_2D = 1, SIZE_3D, SIZE_BATCH };

enum {
	ELSE = GPUPART_STAT_OTHER, IN = GPUPART_STAT_TO_GPU, OUT = GPUPART_STAT_FROM_GPU,
	INSIDE = GPUPART_STAT_INSIDE, NONE = STAT_NO_COPY,
};

#define ROW(name, direction, waits, size) { { CBID_##name, 0, direction }, waits, size }
/*
 * Adds rows for two functions: @name, and @name followed by @end. In the second function, stream
 * 0 is the default stream of the calling thread.
 */
#define BOTH(name, end, direction, waits, size) \
	ROW(name, direction, waits, size), ROW(name##end, direction, waits, size)

/* Every driver has the first of these functions. */
const struct stat_call stat_calls[] = {
	BOTH(cuMemcpyHtoD_v2, _ptds, IN, true, 16),
	BOTH(cuMemcpyHtoDAsync_v2, _ptsz, IN, false, 16),
	BOTH(cuMemcpyDtoH_v2, _ptds, OUT, true, 16),
	BOTH(cuMemcpyDtoHAsync_v2, _ptsz, OUT, false, 16),
	BOTH(cuMemcpyDtoD_v2, _ptds, INSIDE, false, 16),
	BOTH(cuMemcpyDtoDAsync_v2, _ptsz, INSIDE, false, 16),
	BOTH(cuMemcpyHtoA_v2, _ptds, IN, true, 24),
	BOTH(cuMemcpyHtoAAsync_v2, _ptsz, IN, false, 24),
	BOTH(cuMemcpyAtoH_v2, _ptds, OUT, true, 24),
	BOTH(cuMemcpyAtoHAsync_v2, _ptsz, OUT, false, 24),
	BOTH(cuMemcpyDtoA_v2, _ptds, INSIDE, false, 24),
	BOTH(cuMemcpyAtoD_v2, _ptds, INSIDE, false, 24),
	BOTH(cuMemcpyAtoA_v2, _ptds, INSIDE, false, 32),
	BOTH(cuMemcpy, _ptds, ELSE, true, 16),
	BOTH(cuMemcpyAsync, _ptsz, ELSE, false, 16),
	BOTH(cuMemcpy2D_v2, _ptds, ELSE, true, SIZE_2D),
	BOTH(cuMemcpy2DUnaligned_v2, _ptds, ELSE, true, SIZE_2D),
	BOTH(cuMemcpy2DAsync_v2, _ptsz, ELSE, false, SIZE_2D),
	BOTH(cuMemcpy3D_v2, _ptds, ELSE, true, SIZE_3D),
	BOTH(cuMemcpy3DAsync_v2, _ptsz, ELSE, false, SIZE_3D),
	BOTH(cuMemcpyPeer, _ptds, ELSE, false, 32),
	BOTH(cuMemcpyPeerAsync, _ptsz, ELSE, false, 32),
	BOTH(cuMemcpy3DPeer, _ptds, ELSE, false, SIZE_3D),
	BOTH(cuMemcpy3DPeerAsync, _ptsz, ELSE, false, SIZE_3D),
	BOTH(cuMemcpyBatchAsync, _ptsz, ELSE, false, SIZE_BATCH),
	BOTH(cuMemcpyBatchAsync_v2, _ptsz, ELSE, false, SIZE_BATCH),
	BOTH(cuMemcpy3DBatchAsync, _ptsz, ELSE, false, NO_SIZE),
	BOTH(cuMemcpy3DBatchAsync_v2, _ptsz, ELSE, false, NO_SIZE),
	BOTH(cuStreamSynchronize, _ptsz, NONE, true, NO_SIZE),
	ROW(cuCtxSynchronize, NONE, true, NO_SIZE),
	ROW(cuCtxSynchronize_v2, NONE, true, NO_SIZE),
	ROW(cuEventSynchronize, NONE, true, NO_SIZE),
	{ { 0, 0, 0 }, false, 0 },
};

static uint64_t word_at(const void *arguments, unsigned int offset)
{
	uint64_t word;

	memcpy(&word, (const char *)arguments + offset, sizeof(word));
	return word;
}

static uint64_t bytes_of_batch(const void *arguments)
{
	const size_t *sizes = (const size_t *)(uintptr_t)word_at(arguments, 16);
	uint64_t count = word_at(arguments, 24), bytes = 0;

	for (uint64_t i = 0; sizes && i < count; i++)
		bytes += sizes[i];
	return bytes;
}

uint64_t stat_call_bytes(const struct stat_call *call, const void *arguments)
{
	const void *first = (const void *)(uintptr_t)word_at(arguments, 0);
	const struct cuda_memcpy_node *box = first;
	/* CUDA_MEMCPY2D_v2: width and height follow two descriptions of 7 words each. */
	const size_t *plane = first;

	switch (call->size) {
	case NO_SIZE:
		return 0;
	case SIZE_2D:
		return plane ? plane[14] * plane[15] : 0;
	case SIZE_3D:
		return box ? box->width * box->height * box->depth : 0;
	case SIZE_BATCH:
		return bytes_of_batch(arguments);
	}
	return word_at(arguments, call->size);
}
