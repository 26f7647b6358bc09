/* SPDX-License-Identifier: MIT */
/*
 * The memory quota inside a process: the begin and the end of those driver functions that
 * get, give back or tell of a GPU's memory. Knows no sets.
 */
#ifndef GPUPART_LIB_MEMORY_H
#define GPUPART_LIB_MEMORY_H

#include "memory_calls.h"

/*
 * What this thread may have out of a pool without being looked at: 0.2 us is what the driver
 * takes for such a call, so that it is done here, in the hook's own function.
 */
struct memory_quick {
	int cbid;		/* of the function that it is for; 0: none */
	unsigned int epoch;
	bool busy;		/* in a call that was looked at, and whose end will be */
	const void *ctx;
	uint64_t pool;		/* or stream, what the third argument is; 0: any */
	uint64_t credit;	/* bytes */
};

extern _Thread_local struct memory_quick memory_quick;
extern atomic_uint memory_gpu_epoch;

#define MEMORY_QUICK_EACH 512	/* of the credit, for the smallest */

/* True: nothing more is to be done at this begin, or end. */
static inline bool memory_quickly(int cbid, const struct cuda_call_params *params)
{
	struct memory_quick *quick = &memory_quick;
	const uint64_t *words = params->arguments;
	uint64_t bytes;

	if (cbid != quick->cbid)
		return false;
	if (params->site != CUDA_SITE_BEGIN)
		return !quick->busy;
	/* What no GPU has may wrap around: the driver refuses it. */
	bytes = words[1] + MEMORY_QUICK_EACH;
	if (params->ctx != quick->ctx || bytes > quick->credit ||
	    (quick->pool && quick->pool != words[2]) ||
	    atomic_load_explicit(&memory_gpu_epoch, memory_order_relaxed) != quick->epoch)
		return false;
	quick->credit -= bytes;
	return true;
}

/* What the driver calls at the begin and at the end of such a function. */
void memory_callback(const struct memory_call *call, const struct cuda_call_params *params);

/* A call was seen that may get memory, and that nobody knows the arguments of. */
void memory_uncounted(const char *name);

#endif
