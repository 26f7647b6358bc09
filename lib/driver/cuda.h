/* SPDX-License-Identifier: MIT */
/*
 * The entry points of libcuda that gpupart uses. The library finds them at run time. So a build
 * does not need CUDA headers or libcuda. This file defines the types. The numbers are CUDA's
 * documented ABI.
 */
#ifndef GPUPART_LIB_DRIVER_CUDA_H
#define GPUPART_LIB_DRIVER_CUDA_H

#include "lib/core/ctx.h"

typedef int cuda_result;		/* CUresult; 0 means success */
typedef uint64_t cuda_ptr;		/* CUdeviceptr */

#define CUDA_ERROR_INVALID_VALUE 1
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_NOT_INITIALIZED 3
#define CUDA_ERROR_NO_DEVICE 100
#define CUDA_ERROR_INVALID_CONTEXT 201
#define CUDA_ERROR_ALREADY_ACQUIRED 210
#define CUDA_ERROR_INVALID_HANDLE 400
#define CUDA_ERROR_NOT_FOUND 500
#define CUDA_ERROR_CONTEXT_IS_DESTROYED 709
#define CUDA_ERROR_LAUNCH_RESOURCES 701
#define CUDA_ERROR_NOT_PERMITTED 800
#define CUDA_ERROR_NOT_SUPPORTED 801
#define CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED 900
#define CUDA_ERROR_STREAM_CAPTURE_IMPLICIT 906
#define CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD 908

/* CUdevice_attribute */
enum {
	CUDA_ATTR_MULTIPROCESSORS = 16,
	CUDA_ATTR_THREADS_PER_SM = 39,
	CUDA_ATTR_SHARED_PER_SM = 81,
	CUDA_ATTR_REGISTERS_PER_SM = 82,
	CUDA_ATTR_SHARED_OPTIN = 97,
	CUDA_ATTR_BLOCKS_PER_SM = 106,
	CUDA_ATTR_CLUSTER_LAUNCH = 120,
	CUDA_ATTR_MPS_ENABLED = 133,
};

#define CUDA_FUNC_ATTR_REGISTERS	4
#define CUDA_FUNC_ATTR_DYNAMIC_SHARED	8
#define CUDA_FUNC_ATTR_CLUSTER_WIDTH	11
#define CUDA_FUNC_ATTR_CLUSTER_HEIGHT	12
#define CUDA_FUNC_ATTR_CLUSTER_DEPTH	13
#define CUDA_FUNC_ATTR_NON_PORTABLE_CLUSTER 14
#define CUDA_STREAM_NON_BLOCKING	1
#define CUDA_STREAM_LEGACY		((void *)1)
#define CUDA_STREAM_PER_THREAD		((void *)2)
#define CUDA_CAPTURE_MODE_RELAXED	2
#define CUDA_EVENT_NO_TIMING		2

/* CUlaunchConfig and CUlaunchAttribute, for cuLaunchKernelEx. */
struct cuda_launch_attr {
	int id;
	int pad;
	union {
		uint32_t dim[3];
		int value;
		char bytes[64];
	};
};

#define CUDA_LAUNCH_ATTR_COOPERATIVE	2
#define CUDA_LAUNCH_ATTR_CLUSTER	4
#define CUDA_LAUNCH_ATTR_PRIORITY	8

/* CUlaunchAttributeValue */
union cuda_attr_value {
	int priority;
	char bytes[64];
};

struct cuda_launch_config {
	unsigned int grid[3], block[3], shared;
	void *stream;
	struct cuda_launch_attr *attrs;
	unsigned int nr_attrs;
};

#define CUDA_HOST_DEVICEMAP	2	/* flag of cuMemHostRegister */

#define CUDA_RESOURCE_SM	1
/* each part of a split GPU has a multiple of this number of SMs */
#define CUDA_SM_UNIT		8
#define CUDA_GREEN_DEFAULT_STREAM 1	/* required flag */

/* CUdevResource of the SM type. */
struct cuda_resource {
	int type;
	unsigned char pad[92];
	unsigned int nr_sms, room[11];
};

#define CUDA_AFFINITY_SM_COUNT	0

/* CUexecAffinityParam of the SM type. */
struct cuda_affinity {
	int type;
	unsigned int nr_sms;
};

/* CUgraphNodeType */
enum {
	CUDA_NODE_KERNEL = 0,
	CUDA_NODE_MEMCPY = 1,
	CUDA_NODE_MEMSET = 2,
	CUDA_NODE_GRAPH = 4,
	CUDA_NODE_ALLOC = 10,
	CUDA_NODE_CONDITIONAL = 13,
};

/* CUgraphInstantiate_flags */
#define CUDA_GRAPH_UPLOAD	2
#define CUDA_DEVICE_LAUNCH	4

/* CUDA_KERNEL_NODE_PARAMS_v2 */
struct cuda_kernel_node {
	void *function;
	unsigned int grid[3], block[3], shared;
	void **params, **extra;
	void *kernel, *ctx;
};

/* CUDA_MEMSET_NODE_PARAMS_v1 */
struct cuda_memset_node {
	cuda_ptr dst;
	size_t pitch;
	unsigned int value, element_size;
	size_t width, height;
};

#define CUDA_MEMORY_DEVICE	2
#define CUDA_MEMORY_UNIFIED	4

/* CUDA_MEMCPY3D_v2 */
struct cuda_memcpy_node {
	struct {
		size_t x, y, z, lod;
		int type, pad;
		const void *host;
		cuda_ptr device;
		void *array, *reserved;
		size_t pitch, height;
	} src, dst;
	size_t width, height, depth;
};

/* CUmemLocation */
struct cuda_location {
	int type, id;
};

/* CUmemPoolProps */
struct cuda_pool_props {
	int type, handles;
	struct cuda_location location;
	void *security;
	size_t most;
	unsigned char reserved[56];
};

#define CUDA_LOCATION_DEVICE	1
#define CUDA_ALLOCATION_PINNED	1
#define CUDA_POOL_RESERVED	5	/* CUmemPool_attribute */
#define CUDA_POOL_USED		7
#define CUDA_GRAPH_RESERVED	2	/* CUgraphMem_attribute */

/* CUDA_MEM_ALLOC_NODE_PARAMS */
struct cuda_alloc_node {
	struct cuda_pool_props pool;
	const void *access;
	size_t nr_access, bytes;
	cuda_ptr address;
};

/* CUgraphExecUpdateResultInfo */
struct cuda_graph_update {
	int result, pad;
	void *node, *from;
};

/*
 * Each row has a member of cuda_api, the symbol in libcuda, and the arguments. A driver may lack
 * functions of the second list.
 */
#define CUDA_NEEDED(F) \
	F(init, "cuInit", (unsigned int)) \
	F(device_count, "cuDeviceGetCount", (int *)) \
	F(device_pci, "cuDeviceGetPCIBusId", (char *, int, int)) \
	F(device_attr, "cuDeviceGetAttribute", (int *, int, int)) \
	F(primary_retain, "cuDevicePrimaryCtxRetain", (void **, int)) \
	F(ctx_current, "cuCtxGetCurrent", (void **)) \
	F(ctx_push, "cuCtxPushCurrent_v2", (void *)) \
	F(ctx_pop, "cuCtxPopCurrent_v2", (void **)) \
	F(ctx_device, "cuCtxGetDevice", (int *)) \
	F(stream_create, "cuStreamCreate", (void **, unsigned int)) \
	F(stream_create_priority, "cuStreamCreateWithPriority", (void **, unsigned int, int)) \
	F(stream_destroy, "cuStreamDestroy_v2", (void *)) \
	F(stream_sync, "cuStreamSynchronize", (void *)) \
	F(stream_capturing, "cuStreamIsCapturing", (void *, int *)) \
	F(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *)) \
	F(module_load, "cuModuleLoadData", (void **, const void *)) \
	F(module_unload, "cuModuleUnload", (void *)) \
	F(module_function, "cuModuleGetFunction", (void **, void *, const char *)) \
	F(func_set_attr, "cuFuncSetAttribute", (void *, int, int)) \
	F(launch, "cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int, \
		unsigned int, unsigned int, unsigned int, unsigned int, void *, void **, void **)) \
	F(mem_alloc, "cuMemAlloc_v2", (cuda_ptr *, size_t)) \
	F(mem_free, "cuMemFree_v2", (cuda_ptr)) \
	F(copy_to_host, "cuMemcpyDtoH_v2", (void *, cuda_ptr, size_t)) \
	F(export_table, "cuGetExportTable", (const void **, const void *))

#define CUDA_OPTIONAL(F)                                                                 \
	F(error_name, "cuGetErrorName", (cuda_result, const char **))                    \
	F(event_create, "cuEventCreate", (void **, unsigned int))                        \
	F(event_record, "cuEventRecord", (void *, void *))                               \
	F(event_destroy, "cuEventDestroy_v2", (void *))                                  \
	F(event_wait, "cuStreamWaitEvent", (void *, void *, unsigned int))               \
	F(launch_ex, "cuLaunchKernelEx",                                                 \
	  (const struct cuda_launch_config *, void *, void **, void **))                 \
	F(max_active_clusters, "cuOccupancyMaxActiveClusters",                           \
	  (int *, void *, const struct cuda_launch_config *))                            \
	F(blocks_per_sm, "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",         \
	  (int *, void *, int, size_t, unsigned int))                                    \
	F(func_attr, "cuFuncGetAttribute", (int *, int, void *))                         \
	F(green_ctx, "cuCtxFromGreenCtx", (void **, void *))                             \
	F(resource_desc, "cuDevResourceGenerateDesc",                                    \
	  (void **, struct cuda_resource *, unsigned int))                               \
	F(green_create, "cuGreenCtxCreate", (void **, void *, int, unsigned int))        \
	F(green_resource, "cuGreenCtxGetDevResource",                                    \
	  (void *, struct cuda_resource *, int))                                         \
	F(sm_split, "cuDevSmResourceSplitByCount",                                       \
	  (struct cuda_resource *, unsigned int *, const struct cuda_resource *,         \
	   struct cuda_resource *, unsigned int, unsigned int))                          \
	F(stream_ctx, "cuStreamGetCtx", (void *, void **))                               \
	F(func_module, "cuFuncGetModule", (void **, void *))                             \
	F(func_name, "cuFuncGetName", (const char **, void *))                           \
	F(kernel_function, "cuKernelGetFunction", (void **, void *))                     \
	F(graph_clone, "cuGraphClone", (void **, void *))                                \
	F(graph_instantiate, "cuGraphInstantiateWithFlags", (void **, void *, uint64_t)) \
	F(graph_upload, "cuGraphUpload", (void *, void *))                               \
	F(exec_destroy, "cuGraphExecDestroy", (void *))                                  \
	F(graph_destroy, "cuGraphDestroy", (void *))                                     \
	F(graph_nodes, "cuGraphGetNodes", (void *, void **, size_t *))                   \
	F(graph_edges, "cuGraphGetEdges", (void *, void **, void **, size_t *))          \
	F(graph_find, "cuGraphNodeFindInClone", (void **, void *, void *))               \
	F(graph_child, "cuGraphChildGraphNodeGetGraph", (void *, void **))               \
	F(graph_update, "cuGraphExecUpdate_v2", (void *, void *, struct cuda_graph_update *)) \
	F(node_type, "cuGraphNodeGetType", (void *, int *))                              \
	F(kernel_get, "cuGraphKernelNodeGetParams_v2", (void *, struct cuda_kernel_node *)) \
	F(kernel_set, "cuGraphKernelNodeSetParams_v2", (void *, const struct cuda_kernel_node *)) \
	F(kernel_set_old, "cuGraphKernelNodeSetParams", (void *, const void *))          \
	F(kernel_attr_get, "cuGraphKernelNodeGetAttribute",                              \
	  (void *, int, union cuda_attr_value *))                                        \
	F(kernel_attr_set, "cuGraphKernelNodeSetAttribute",                              \
	  (void *, int, const union cuda_attr_value *))                                  \
	F(memset_get, "cuGraphMemsetNodeGetParams", (void *, struct cuda_memset_node *)) \
	F(memset_set, "cuGraphMemsetNodeSetParams", (void *, const struct cuda_memset_node *)) \
	F(memcpy_get, "cuGraphMemcpyNodeGetParams", (void *, struct cuda_memcpy_node *)) \
	F(memcpy_set, "cuGraphMemcpyNodeSetParams", (void *, const struct cuda_memcpy_node *)) \
	F(device_total, "cuDeviceTotalMem_v2", (size_t *, int))                          \
	F(primary_state, "cuDevicePrimaryCtxGetState", (int, unsigned int *, int *))     \
	F(primary_release, "cuDevicePrimaryCtxRelease_v2", (int))                        \
	F(ctx_destroy, "cuCtxDestroy_v2", (void *))                                      \
	F(library_unload, "cuLibraryUnload", (void *))                                   \
	F(array_destroy, "cuArrayDestroy", (void *))                                     \
	F(mipmap_destroy, "cuMipmappedArrayDestroy", (void *))                           \
	F(physical_release, "cuMemRelease", (uint64_t))                                  \
	F(external_destroy, "cuDestroyExternalMemory", (void *))                         \
	F(free_async, "cuMemFreeAsync", (cuda_ptr, void *))                              \
	F(ctx_sync, "cuCtxSynchronize", (void))                                          \
	F(device_pool, "cuDeviceGetMemPool", (void **, int))                             \
	F(default_pool, "cuDeviceGetDefaultMemPool", (void **, int))                     \
	F(pool_attr, "cuMemPoolGetAttribute", (void *, int, uint64_t *))                 \
	F(pool_trim, "cuMemPoolTrimTo", (void *, size_t))                                \
	F(graph_mem_attr, "cuDeviceGetGraphMemAttribute", (int, int, uint64_t *))        \
	F(graph_mem_trim, "cuDeviceGraphMemTrim", (int))                                 \
	F(host_register, "cuMemHostRegister_v2", (void *, size_t, unsigned int))         \
	F(host_unregister, "cuMemHostUnregister", (void *))                              \
	F(host_pointer, "cuMemHostGetDevicePointer_v2", (cuda_ptr *, void *, unsigned int)) \
	F(alloc_node_get, "cuGraphMemAllocNodeGetParams", (void *, struct cuda_alloc_node *))

/*
 * The parameters of a callback at the start or the end of a driver function. Measured in
 * Documentation/internals/hardware.md, "Functions".
 */
struct cuda_call_params {
	uint32_t size, pad;
	uint64_t unused[4];
	const int *result;
	const char *name;
	const void *arguments;
	void *ctx;
	uint64_t unused2;
	uint32_t cbid, site;
};

enum { CUDA_SITE_BEGIN, CUDA_SITE_END };

/* All members are function pointers. The code in cuda.c writes the pointers in this order. */
struct cuda_api {
#define CUDA_MEMBER(member, symbol, args) cuda_result (*member) args;
	CUDA_NEEDED(CUDA_MEMBER)
	CUDA_OPTIONAL(CUDA_MEMBER)
#undef CUDA_MEMBER
	/*
	 * Only the simulated driver has this function. The driver simulates each CUDA device from
	 * a capture. Returns the capture of @device.
	 */
	const char *(*sim_capture)(int device);
	int (*sim_topology)(int device, struct gpupart_topology *topo, size_t size);
	/*
	 * Stores in *own how many bytes of the device's memory this process uses. Stores in *all
	 * how many bytes all processes use.
	 */
	int (*sim_memory)(int device, uint64_t *own, uint64_t *all);
	int (*sim_processes)(int device);
};

/*
 * The first call in a process opens libcuda.so.1 and keeps it open. The function does not call
 * cuInit. If libcuda cannot be opened, the function returns -ENOENT, and the error message has
 * the loader's message. If an entry point is missing, the function returns -EOPNOTSUPP, and the
 * error message names the entry point.
 */
int cuda_open(struct gpupart *gp, const struct cuda_api **api);

/*
 * If the process has already loaded libcuda.so.1, returns its entry points. Otherwise returns
 * NULL.
 */
GPUPART_PRIVATE
const struct cuda_api *cuda_loaded(void);

/*
 * Returns the name of a result, for example "CUDA_ERROR_INVALID_VALUE (1)". Each thread has its
 * own buffer for the name.
 */
GPUPART_PRIVATE
const char *cuda_strerror(const struct cuda_api *api, cuda_result result);

/*
 * Calls @see for each node in @graph and in its child graphs. Does not call @see for a node that
 * is a child graph. If a call of @see or of the driver fails, the walk ends and returns the
 * result of this call. Otherwise returns 0. If @graph is not a graph, returns 0.
 */
int cuda_graph_walk(const struct cuda_api *api, void *graph,
		    int (*see)(const struct cuda_api *api, void *node, int type, void *arg),
		    void *arg);

#endif
