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
	int cbid;		/* of the function; 0: none, or in a call whose end is looked at */
	unsigned int epoch;
	uint64_t credit;	/* bytes */
	const void *ctx;
	uint64_t pool;		/* NULL: the function has no such argument */
};

extern _Thread_local struct memory_quick memory_quick __attribute__((visibility("hidden")));
extern atomic_uint memory_gpu_epoch __attribute__((visibility("hidden")));

#define MEMORY_QUICK_EACH 512	/* of the credit, for the smallest */

/* True: nothing more is to be done at this begin, or end. */
static inline bool memory_quickly(int cbid, const struct cuda_call_params *params)
{
	struct memory_quick *quick = &memory_quick;
	const uint64_t *words;
	uint64_t left;

	/* Of a function that was looked at before: its calls come with all of this. */
	if (cbid != quick->cbid)
		return false;
	if (params->site != CUDA_SITE_BEGIN)
		return true;
	words = params->arguments;
	/* What no GPU has may wrap around: the driver refuses it. */
	if (__builtin_sub_overflow(quick->credit, words[1] + MEMORY_QUICK_EACH, &left) ||
	    params->ctx != quick->ctx || (quick->pool && quick->pool != words[2]) ||
	    atomic_load_explicit(&memory_gpu_epoch, memory_order_relaxed) != quick->epoch)
		return false;
	quick->credit = left;
	return true;
}

/* What the driver calls at the begin and at the end of such a function. */
void memory_callback(const struct memory_call *call, const struct cuda_call_params *params);

/* A call was seen that may get memory, and that nobody knows the arguments of. */
void memory_uncounted(const char *name);

#endif
