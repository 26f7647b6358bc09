/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's driver, for `gpupart bench` and `gpupart trace`. Entry points are found by name at run
 * time. The constants are from CUDA's documented ABI.
 */
#ifndef GPUPART_CLI_TARGET_DRIVER_H
#define GPUPART_CLI_TARGET_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t cuda_ptr;	/* CUdeviceptr */

#define DRIVER_ATTR_NR_SMS	16
#define DRIVER_ATTR_L2_BYTES	38
#define DRIVER_ATTR_SHARED_OPTIN 97
#define DRIVER_FUNC_DYNAMIC_SHARED 8	/* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define DRIVER_STREAM_NON_BLOCKING 1
#define DRIVER_EVENT_TIMED	0
#define DRIVER_EVENT_WAITED	3 /* the waiting thread sleeps; no time stamps */
#define DRIVER_GREEN_STREAM	1	/* CU_GREEN_CTX_DEFAULT_STREAM */
#define DRIVER_RESOURCE_SM	1	/* CU_DEV_RESOURCE_TYPE_SM */
#define DRIVER_RESOURCE_BYTES	256	/* space for a CUdevResource, which has 144 bytes */

#define DRIVER_NEEDED(F) \
	F(cuInit, (unsigned int)) \
	F(cuDeviceGetCount, (int *)) \
	F(cuDeviceGet, (int *, int)) \
	F(cuDeviceGetPCIBusId, (char *, int, int)) \
	F(cuDeviceGetAttribute, (int *, int, int)) \
	F(cuDevicePrimaryCtxRetain, (void **, int)) \
	F(cuCtxSetCurrent, (void *)) \
	F(cuCtxSynchronize, (void)) \
	F(cuStreamCreateWithPriority, (void **, unsigned int, int)) \
	F(cuStreamDestroy_v2, (void *)) \
	F(cuStreamSynchronize, (void *)) \
	F(cuEventCreate, (void **, unsigned int)) \
	F(cuEventRecord, (void *, void *)) \
	F(cuEventSynchronize, (void *)) \
	F(cuEventElapsedTime, (float *, void *, void *)) \
	F(cuModuleLoadData, (void **, const void *)) \
	F(cuModuleGetFunction, (void **, void *, const char *)) \
	F(cuFuncSetAttribute, (void *, int, int)) \
	F(cuMemAlloc_v2, (cuda_ptr *, size_t)) \
	F(cuMemcpyHtoD_v2, (cuda_ptr, const void *, size_t)) \
	F(cuMemsetD8_v2, (cuda_ptr, unsigned char, size_t)) \
	F(cuMemcpyDtoH_v2, (void *, cuda_ptr, size_t)) \
	F(cuLaunchKernel, (void *, unsigned int, unsigned int, unsigned int, unsigned int, \
		unsigned int, unsigned int, unsigned int, void *, void **, void **))

#define DRIVER_OPTIONAL(F) \
	F(cuGetErrorName, (int, const char **)) \
	F(cuCtxGetStreamPriorityRange, (int *, int *)) \
	F(cuDeviceGetDevResource, (int, void *, int)) \
	F(cuDevSmResourceSplitByCount, (void *, unsigned int *, const void *, void *, \
		unsigned int, unsigned int)) \
	F(cuDevResourceGenerateDesc, (void **, void *, unsigned int)) \
	F(cuGreenCtxCreate, (void **, void *, int, unsigned int)) \
	F(cuGreenCtxDestroy, (void *))

struct driver {
#define DRIVER_MEMBER(name, args) int (*name) args;
	DRIVER_NEEDED(DRIVER_MEMBER)
	DRIVER_OPTIONAL(DRIVER_MEMBER)
#undef DRIVER_MEMBER
	int device;		/* valid after driver_start() */
	void *ctx;
};

/* Opens libcuda.so.1. Returns 0, or returns -errno and writes a reason to @why. */
int driver_open(struct driver *driver, char *why, size_t len);

/*
 * Calls cuInit. Makes the primary context of the GPU at @pci the current context. If @pci is "",
 * uses the first GPU.
 */
int driver_start(struct driver *driver, const char *pci, char *why, size_t len);

/*
 * Creates a green context. Call this after driver_start(). Returns 0, or -errno with a reason in
 * @why.
 */
int driver_green(const struct driver *driver, void **green, char *why, size_t len);

/*
 * If @result is 0, returns 0. Otherwise writes "CALL: CUDA_ERROR_.. (N)" to @why, and returns -EIO.
 */
int driver_check(const struct driver *driver, const char *call, int result, char *why, size_t len);

#endif
