/* SPDX-License-Identifier: MIT */
/*
 * The driver reports the start and the end of each call of these entry points to subscribers.
 * CUPTI's cupti_driver_cbid.h has the same numbers.
 */
#ifndef GPUPART_SIM_CUDA_CALLBACK_NUMBERS_H
#define GPUPART_SIM_CUDA_CALLBACK_NUMBERS_H

#include "sim/cuda/sim.h"

enum api_cbid {
	API_cuInit = 1,
	API_cuDeviceGetAttribute = 9,
	API_cuCtxSynchronize = 17,
	API_cuModuleLoadData = 19,
	API_cuModuleUnload = 22,
	API_cuArrayDestroy = 89,
	API_cuEventQuery = 120,
	API_cuEventSynchronize = 121,
	API_cuStreamQuery = 125,
	API_cuStreamSynchronize = 126,
	API_cuCtxSetLimit = 136,
	API_cuMemsetD8Async = 216,
	API_cuMemsetD32Async = 220,
	API_cuCtxCreate_v2 = 235,
	API_cuMemGetInfo_v2 = 242,
	API_cuMemAlloc_v2 = 243,
	API_cuMemAllocPitch_v2 = 244,
	API_cuMemFree_v2 = 245,
	API_cuMemsetD8_v2 = 249,
	API_cuDeviceTotalMem_v2 = 259,
	API_cuArrayCreate_v2 = 272,
	API_cuArray3DCreate_v2 = 274,
	API_cuMemcpyHtoD_v2 = 276,
	API_cuMemcpyDtoH_v2 = 278,
	API_cuMemcpyDtoDAsync_v2 = 281,
	API_cuStreamWaitEvent = 295,
	API_cuLaunchKernel = 307,
	API_cuCtxDestroy_v2 = 322,
	API_cuIpcCloseMemHandle = 330,
	API_cuMipmappedArrayCreate = 347,
	API_cuMipmappedArrayDestroy = 349,
	API_cuMemAllocManaged = 371,
	API_cuOccupancyMaxPotentialBlockSize = 384,
	API_cuDevicePrimaryCtxRetain = 386,
	API_cuOccupancyMaxPotentialBlockSizeWithFlags = 452,
	API_cuLaunchCooperativeKernel = 477,
	API_cuImportExternalMemory = 485,
	API_cuDestroyExternalMemory = 488,
	API_cuStreamEndCapture = 497,
	API_cuGraphInstantiate = 513,
	API_cuGraphLaunch = 514,
	API_cuGraphLaunch_ptsz = 515,
	API_cuGraphExecDestroy = 516,
	API_cuGraphExecKernelNodeSetParams = 538,
	API_cuStreamBeginCapture_v2 = 539,
	API_cuDevicePrimaryCtxRelease_v2 = 544,
	API_cuDevicePrimaryCtxReset_v2 = 545,
	API_cuMemCreate = 549,
	API_cuMemRelease = 550,
	API_cuMemMap = 551,
	API_cuMemUnmap = 552,
	API_cuMemImportFromShareableHandle = 555,
	API_cuGraphExecUpdate = 561,
	API_cuGraphExecMemcpyNodeSetParams = 562,
	API_cuGraphExecMemsetNodeSetParams = 563,
	API_cuMemRetainAllocationHandle = 565,
	API_cuIpcOpenMemHandle_v2 = 567,
	API_cuGraphInstantiate_v2 = 578,
	API_cuGraphUpload = 580,
	API_cuGraphUpload_ptsz = 581,
	API_cuMemAllocAsync = 598,
	API_cuMemAllocAsync_ptsz = 599,
	API_cuMemFreeAsync = 600,
	API_cuMemPoolTrimTo = 602,
	API_cuMemPoolSetAttribute = 603,
	API_cuMemPoolCreate = 607,
	API_cuMemPoolDestroy = 608,
	API_cuDeviceSetMemPool = 609,
	API_cuMemAllocFromPoolAsync = 611,
	API_cuMemAllocFromPoolAsync_ptsz = 612,
	API_cuDeviceGraphMemTrim = 640,
	API_cuGraphInstantiateWithFlags = 643,
	API_cuCtxGetExecAffinity = 646,
	API_cuGraphNodeSetEnabled = 650,
	API_cuLaunchKernelEx = 652,
	API_cuGraphInstantiateWithParams = 656,
	API_cuOccupancyMaxPotentialClusterSize = 675,
	API_cuOccupancyMaxActiveClusters = 676,
	API_cuLibraryLoadData = 678,
	API_cuLibraryUnload = 680,
	API_cuLibraryGetKernel = 681,
	API_cuKernelGetFunction = 683,
	API_cuGraphExecKernelNodeSetParams_v2 = 692,
	API_cuGraphExecUpdate_v2 = 696,
	API_cuGreenCtxDestroy = 744,
	API_cuDeviceGetDevResource = 745,
	API_cuCtxGetDevResource = 746,
};

struct api_call {
	enum api_cbid cbid;
	const char *name;
	const void *args;	/* a structure of CUPTI's generated_cuda_meta.h */
	CUresult result;
};

extern unsigned int hook_nr_api;	/* number of cbids that a subscriber has enabled */
/* Call this without sim_lock, because a subscriber may call the driver. */
void hook_api(struct api_call *api, bool ended);

/*
 * @body does the work of an entry point. The macro evaluates @body between the two callbacks of
 * the entry point. Use this macro only for calls that a program makes. @params points to the
 * arguments of the call. The subscribers may change the result of the call.
 */
#define API_CALL_PARAMS(entry, body, params) ({ \
	struct api_call api_ = { API_##entry, #entry, params, CUDA_ERROR_UNKNOWN }; \
	bool reported_ = __atomic_load_n(&hook_nr_api, __ATOMIC_RELAXED); \
	if (reported_) \
		hook_api(&api_, false); \
	api_.result = (body); \
	if (reported_) \
		hook_api(&api_, true); \
	api_.result; \
})

/* Like the macro above. The parameters @... are the arguments, each as a word of 64 bits. */
#define API_CALL(entry, body, ...) \
	API_CALL_PARAMS(entry, body, ((const uint64_t[]){ __VA_ARGS__ }))

/*
 * Like the macros above, but a subscriber may change the arguments of the call in the begin
 * callback. @body reads the arguments from @name. As measured, the driver of an H200 uses the
 * changed arguments. A fault makes the simulated driver ignore the changes.
 */
#define API_CALL_CHANGED(entry, args_type, name, body, ...) ({ \
	args_type name = { __VA_ARGS__ }; \
	const args_type given_ = name; \
	API_CALL_PARAMS(entry, ({ \
		if (sim_faults()->fixed_arguments) \
			name = given_; \
		(body); \
	}), &name); \
})

/*
 * Passes a narrow argument before a wider argument, or a narrow last argument. The bytes above
 * the narrow value are not zero.
 */
#define API_NARROW(value) (0x5a5a5a5aull << 32 | (uint32_t)(value))

#endif
