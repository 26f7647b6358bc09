/* SPDX-License-Identifier: MIT */
/*
 * The entry points whose calls the driver tells subscribers of, at their begin and at
 * their end: numbers as CUPTI's cupti_driver_cbid.h has them. Must not know what the
 * calls do.
 */
#ifndef GPUPART_SIM_API_H
#define GPUPART_SIM_API_H

#include "sim.h"

enum api_cbid {
	API_cuDeviceGetAttribute = 9,
	API_cuCtxSynchronize = 17,
	API_cuEventQuery = 120,
	API_cuEventSynchronize = 121,
	API_cuStreamQuery = 125,
	API_cuStreamSynchronize = 126,
	API_cuMemsetD8Async = 216,
	API_cuMemsetD32Async = 220,
	API_cuMemsetD8_v2 = 249,
	API_cuMemcpyHtoD_v2 = 276,
	API_cuMemcpyDtoH_v2 = 278,
	API_cuMemcpyDtoDAsync_v2 = 281,
	API_cuStreamWaitEvent = 295,
	API_cuLaunchKernel = 307,
	API_cuCtxDestroy_v2 = 322,
	API_cuOccupancyMaxPotentialBlockSize = 384,
	API_cuOccupancyMaxPotentialBlockSizeWithFlags = 452,
	API_cuLaunchCooperativeKernel = 477,
	API_cuStreamEndCapture = 497,
	API_cuGraphInstantiate = 513,
	API_cuGraphLaunch = 514,
	API_cuGraphLaunch_ptsz = 515,
	API_cuGraphExecDestroy = 516,
	API_cuGraphExecKernelNodeSetParams = 538,
	API_cuDevicePrimaryCtxRelease_v2 = 544,
	API_cuGraphExecUpdate = 561,
	API_cuGraphExecMemcpyNodeSetParams = 562,
	API_cuGraphExecMemsetNodeSetParams = 563,
	API_cuGraphInstantiate_v2 = 578,
	API_cuGraphUpload = 580,
	API_cuGraphUpload_ptsz = 581,
	API_cuGraphInstantiateWithFlags = 643,
	API_cuCtxGetExecAffinity = 646,
	API_cuGraphNodeSetEnabled = 650,
	API_cuLaunchKernelEx = 652,
	API_cuGraphInstantiateWithParams = 656,
	API_cuOccupancyMaxPotentialClusterSize = 675,
	API_cuOccupancyMaxActiveClusters = 676,
	API_cuGraphExecKernelNodeSetParams_v2 = 692,
	API_cuGraphExecUpdate_v2 = 696,
	API_cuDeviceGetDevResource = 745,
	API_cuCtxGetDevResource = 746,
};

struct api_call {
	enum api_cbid cbid;
	const char *name;
	const void *args;	/* a structure as CUPTI's generated_cuda_meta.h has it */
	CUresult result;
};

extern unsigned int hook_nr_api;	/* cbids that somebody has enabled */
/* Without sim_lock held: a subscriber may call the driver, and does. */
void hook_api(struct api_call *api, bool ended);

/*
 * The value of @body, an entry point's whole work, between its two callbacks. No call of
 * the driver's own may come this way: a program made one call. @...: its arguments. The
 * result is what a subscriber leaves there.
 */
#define API_CALL(entry, args_type, body, ...) ({ \
	const args_type args_ = { __VA_ARGS__ }; \
	struct api_call api_ = { API_##entry, #entry, &args_, CUDA_ERROR_UNKNOWN }; \
	bool told_ = __atomic_load_n(&hook_nr_api, __ATOMIC_RELAXED); \
	if (told_) \
		hook_api(&api_, false); \
	api_.result = (body); \
	if (told_) \
		hook_api(&api_, true); \
	api_.result; \
})

/* An argument before a wider one, or the last: what is above it there is no zero. */
#define API_NARROW(value) (0x5a5a5a5aull << 32 | (uint32_t)(value))

#endif
