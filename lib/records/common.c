// SPDX-License-Identifier: MIT
/* What records of streams and of graphs have in common. Any thread. */
#include "lib/driver/cuda.h"
#include "lib/records/records.h"

unsigned int records_context_of(struct records *records, const void *ctx)
{
	unsigned int n = 0;

	while (n < RECORDS_MAX_CONTEXTS && (!ctx || atomic_load(&records->contexts[n].ctx) != ctx))
		n++;
	return n;
}

bool records_not_made(int result)
{
	return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_OUT_OF_MEMORY ||
	       result == CUDA_ERROR_LAUNCH_RESOURCES || result == CUDA_ERROR_NOT_SUPPORTED ||
	       result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_PERMITTED;
}
