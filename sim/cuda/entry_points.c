// SPDX-License-Identifier: MIT
/* Finds entry points by name. */
#include <stdio.h>
#include <string.h>
#include "sim/cuda/sim.h"

#define CU_PROC_PER_THREAD 2	/* the program uses per-thread default streams */

#define FOUND		0
#define NOT_FOUND	1
#define TOO_OLD		2	/* the requested CUDA version does not have the function yet */

/*
 * Each row has the exported name of a function, the name that a program requests, and a CUDA
 * version. From this version on, the requested name means this function.
 */
#define PLAIN(name)		{ #name, #name, 2000, (void *)name }
#define V2(name, since)		{ #name "_v2", #name, since, (void *)name##_v2 }
#define V3(name, since)		{ #name "_v3", #name, since, (void *)name##_v3 }
/*
 * A function that once had a separate name. Now the function is the newest version of a different
 * function.
 */
#define TAKES(old, name, since)	{ #name, #old, since, (void *)name }

static const struct {
	const char *exported, *name;
	int since;
	void *function;
} entries[] = {
	PLAIN(cuInit), PLAIN(cuDriverGetVersion), PLAIN(cuGetErrorName), PLAIN(cuGetErrorString),
	PLAIN(cuGetExportTable), PLAIN(cuGetProcAddress), V2(cuGetProcAddress, 12000),
	PLAIN(cuDeviceGet), PLAIN(cuDeviceGetCount), PLAIN(cuDeviceGetName),
	PLAIN(cuDeviceGetUuid), V2(cuDeviceGetUuid, 11040), PLAIN(cuDeviceGetPCIBusId),
	PLAIN(cuDeviceGetByPCIBusId), PLAIN(cuDeviceGetAttribute), V2(cuDeviceTotalMem, 3020),
	PLAIN(cuDevicePrimaryCtxRetain), V2(cuDevicePrimaryCtxRelease, 7000),
	PLAIN(cuDevicePrimaryCtxGetState), V2(cuCtxCreate, 3020), V2(cuCtxDestroy, 4000),
	PLAIN(cuCtxGetCurrent), PLAIN(cuCtxSetCurrent), V2(cuCtxPushCurrent, 4000),
	V2(cuCtxPopCurrent, 4000), PLAIN(cuCtxGetDevice), PLAIN(cuCtxSynchronize),
	PLAIN(cuGreenCtxCreate), PLAIN(cuGreenCtxDestroy), PLAIN(cuGreenCtxStreamCreate),
	PLAIN(cuGreenCtxGetDevResource), PLAIN(cuCtxFromGreenCtx),
	PLAIN(cuDevSmResourceSplitByCount), PLAIN(cuDevResourceGenerateDesc),
	PLAIN(cuStreamCreate), PLAIN(cuStreamCreateWithPriority), V2(cuStreamDestroy, 4000),
	PLAIN(cuStreamSynchronize), PLAIN(cuStreamQuery), PLAIN(cuStreamGetCtx),
	PLAIN(cuStreamGetPriority), PLAIN(cuCtxGetStreamPriorityRange),
	PLAIN(cuStreamIsCapturing), PLAIN(cuThreadExchangeStreamCaptureMode),
	PLAIN(cuStreamWaitEvent), PLAIN(cuStreamBeginCapture), V2(cuStreamBeginCapture, 10010),
	PLAIN(cuStreamEndCapture), V2(cuStreamGetCaptureInfo, 11030),
	V3(cuStreamGetCaptureInfo, 12030),
	PLAIN(cuModuleLoadData), PLAIN(cuModuleUnload), PLAIN(cuModuleGetFunction),
	PLAIN(cuFuncGetAttribute), PLAIN(cuFuncSetAttribute),
	PLAIN(cuOccupancyMaxActiveBlocksPerMultiprocessor),
	PLAIN(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
	PLAIN(cuOccupancyMaxPotentialBlockSize), PLAIN(cuOccupancyMaxPotentialBlockSizeWithFlags),
	PLAIN(cuOccupancyMaxActiveClusters), PLAIN(cuOccupancyMaxPotentialClusterSize),
	PLAIN(cuDeviceGetDevResource), PLAIN(cuCtxGetDevResource), PLAIN(cuCtxGetExecAffinity),
	PLAIN(cuLaunchKernel), PLAIN(cuLaunchKernelEx), PLAIN(cuLaunchCooperativeKernel),
	V2(cuMemAlloc, 3020), V2(cuMemFree, 3020), V2(cuMemAllocHost, 3020),
	PLAIN(cuMemFreeHost), V2(cuMemHostRegister, 6050), PLAIN(cuMemHostUnregister),
	V2(cuMemHostGetDevicePointer, 3020),
	V2(cuMemcpyHtoD, 3020), V2(cuMemcpyDtoH, 3020),
	V2(cuMemcpyDtoDAsync, 3020), V2(cuMemsetD8, 3020), PLAIN(cuMemsetD8Async),
	PLAIN(cuMemsetD32Async), PLAIN(cuEventCreate), PLAIN(cuEventRecord),
	PLAIN(cuEventSynchronize), PLAIN(cuEventQuery), PLAIN(cuEventElapsedTime),
	V2(cuEventElapsedTime, 12080),
	V2(cuEventDestroy, 4000),
	PLAIN(cuGraphCreate), PLAIN(cuGraphDestroy), PLAIN(cuGraphClone),
	PLAIN(cuGraphAddKernelNode), V2(cuGraphAddKernelNode, 12000),
	PLAIN(cuGraphAddMemsetNode), PLAIN(cuGraphAddMemcpyNode), PLAIN(cuGraphAddEmptyNode),
	PLAIN(cuGraphAddChildGraphNode), PLAIN(cuGraphChildGraphNodeGetGraph),
	PLAIN(cuGraphAddDependencies), V2(cuGraphAddDependencies, 12030),
	PLAIN(cuGraphGetNodes), PLAIN(cuGraphGetEdges), PLAIN(cuGraphNodeGetType),
	PLAIN(cuGraphKernelNodeGetParams),
	V2(cuGraphKernelNodeGetParams, 12000), PLAIN(cuGraphKernelNodeSetParams),
	V2(cuGraphKernelNodeSetParams, 12000), PLAIN(cuGraphKernelNodeGetAttribute),
	PLAIN(cuGraphKernelNodeSetAttribute), PLAIN(cuGraphConditionalHandleCreate),
	PLAIN(cuGraphAddNode), V2(cuGraphAddNode, 12030),
	PLAIN(cuGraphInstantiate), V2(cuGraphInstantiate, 11000),
	TAKES(cuGraphInstantiate, cuGraphInstantiateWithFlags, 12000),
	PLAIN(cuGraphInstantiateWithParams), PLAIN(cuGraphExecDestroy),
	PLAIN(cuGraphExecGetFlags), PLAIN(cuGraphUpload), PLAIN(cuGraphUpload_ptsz),
	PLAIN(cuGraphLaunch), PLAIN(cuGraphLaunch_ptsz), PLAIN(cuGraphExecKernelNodeSetParams),
	V2(cuGraphExecKernelNodeSetParams, 12000), PLAIN(cuGraphExecUpdate),
	V2(cuGraphExecUpdate, 12000), PLAIN(cuGraphNodeSetEnabled),
	PLAIN(cuGraphNodeGetEnabled), PLAIN(cuGraphNodeFindInClone),
	PLAIN(cuGraphMemsetNodeGetParams), PLAIN(cuGraphMemsetNodeSetParams),
	PLAIN(cuGraphMemcpyNodeGetParams), PLAIN(cuGraphMemcpyNodeSetParams),
	PLAIN(cuGraphExecMemsetNodeSetParams), PLAIN(cuGraphExecMemcpyNodeSetParams),
	PLAIN(cuFuncGetModule), PLAIN(cuFuncGetName), PLAIN(cuKernelGetFunction),
	PLAIN(cuMemAllocManaged), V2(cuMemAllocPitch, 3020), V2(cuMemGetInfo, 3020),
	V2(cuArrayCreate, 3020), V2(cuArray3DCreate, 3020), PLAIN(cuArrayDestroy),
	PLAIN(cuMipmappedArrayCreate), PLAIN(cuMipmappedArrayDestroy), PLAIN(cuMemCreate),
	PLAIN(cuMemRelease), PLAIN(cuMemAddressReserve), PLAIN(cuMemAddressFree), PLAIN(cuMemMap),
	PLAIN(cuMemUnmap), PLAIN(cuMemSetAccess), PLAIN(cuMemRetainAllocationHandle),
	PLAIN(cuMemExportToShareableHandle), PLAIN(cuMemImportFromShareableHandle),
	PLAIN(cuIpcGetMemHandle), V2(cuIpcOpenMemHandle, 11000), PLAIN(cuIpcCloseMemHandle),
	PLAIN(cuImportExternalMemory), PLAIN(cuDestroyExternalMemory), PLAIN(cuMemAllocAsync),
	PLAIN(cuMemAllocAsync_ptsz), PLAIN(cuMemAllocFromPoolAsync_ptsz),
	PLAIN(cuMemAllocFromPoolAsync), PLAIN(cuMemFreeAsync), PLAIN(cuMemPoolCreate),
	PLAIN(cuMemPoolDestroy), PLAIN(cuMemPoolTrimTo), PLAIN(cuMemPoolSetAttribute),
	PLAIN(cuMemPoolGetAttribute), PLAIN(cuDeviceGetDefaultMemPool), PLAIN(cuDeviceGetMemPool),
	PLAIN(cuDeviceSetMemPool), PLAIN(cuDeviceGetGraphMemAttribute), PLAIN(cuDeviceGraphMemTrim),
	PLAIN(cuGraphAddMemAllocNode), PLAIN(cuGraphMemAllocNodeGetParams),
	PLAIN(cuLibraryLoadData), PLAIN(cuLibraryUnload), PLAIN(cuLibraryGetKernel),
	V2(cuDevicePrimaryCtxReset, 11000), PLAIN(cuCtxSetLimit),
};

static void *find(const char *symbol, int version, int *status)
{
	void *function = NULL;

	*status = NOT_FOUND;
	for (unsigned int i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (!strcmp(entries[i].exported, symbol) && strcmp(entries[i].name, symbol)) {
			*status = FOUND;
			return entries[i].function;
		}
		if (strcmp(entries[i].name, symbol))
			continue;
		/* If several rows have the same name, a later row has a newer function. */
		if (entries[i].since <= version)
			function = entries[i].function;
		else if (*status == NOT_FOUND)
			*status = TOO_OLD;
	}
	if (function)
		*status = FOUND;
	return function;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
			     int *status)
{
	char own[128];
	int what;

	if (!symbol || !function)
		return CUDA_ERROR_INVALID_VALUE;
	*function = NULL;
	/* Many functions have a per-thread form. The simulation has only some of these forms. */
	snprintf(own, sizeof(own), "%s_ptsz", symbol);
	if (flags & CU_PROC_PER_THREAD)
		*function = find(own, version, &what);
	if (!*function)
		*function = find(symbol, version, &what);
	if (status)
		*status = what;
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
