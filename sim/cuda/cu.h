/* SPDX-License-Identifier: MIT */
/*
 * The part of CUDA's driver interface that the simulated driver provides. The declarations are
 * written from NVIDIA's documentation, so that a build needs no CUDA. Names follow CUDA, not this
 * project.
 */
#ifndef GPUPART_SIM_CUDA_CU_H
#define GPUPART_SIM_CUDA_CU_H

#include <stddef.h>
#include <stdint.h>

#define CU_VERSION 13000	/* the version that cuDriverGetVersion returns */

typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct sim_ctx *CUcontext;
typedef struct sim_module *CUmodule;
typedef struct sim_function *CUfunction;
typedef struct sim_event *CUevent;
typedef void **CUstream;	/* points to a word that points to the stream object */
typedef struct sim_graph *CUgraph;
typedef struct sim_node *CUgraphNode;
typedef struct sim_exec *CUgraphExec;
typedef struct sim_array *CUarray;
typedef struct sim_pool *CUmemoryPool;
typedef struct sim_external *CUexternalMemory;

struct cu_uuid {
	unsigned char bytes[16];
};

typedef enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_ALREADY_ACQUIRED = 210,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_ILLEGAL_STATE = 401,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
	CUDA_ERROR_LAUNCH_TIMEOUT = 702,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
	CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
	CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
	CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
	CUDA_ERROR_CAPTURED_EVENT = 907,
	CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
	CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
	CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
	CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
	CUDA_ERROR_UNKNOWN = 999,
} CUresult;

enum cu_device_attribute {
	CU_DEVICE_MAX_THREADS_PER_BLOCK = 1,
	CU_DEVICE_MAX_BLOCK_DIM_X = 2,
	CU_DEVICE_MAX_BLOCK_DIM_Y = 3,
	CU_DEVICE_MAX_BLOCK_DIM_Z = 4,
	CU_DEVICE_MAX_GRID_DIM_X = 5,
	CU_DEVICE_MAX_GRID_DIM_Y = 6,
	CU_DEVICE_MAX_GRID_DIM_Z = 7,
	CU_DEVICE_MAX_SHARED_PER_BLOCK = 8,
	CU_DEVICE_CONSTANT_MEMORY = 9,
	CU_DEVICE_WARP_SIZE = 10,
	CU_DEVICE_MAX_PITCH = 11,
	CU_DEVICE_MAX_REGISTERS_PER_BLOCK = 12,
	CU_DEVICE_CLOCK_KHZ = 13,
	CU_DEVICE_NR_SMS = 16,
	CU_DEVICE_CONCURRENT_KERNELS = 31,
	CU_DEVICE_PCI_BUS = 33,
	CU_DEVICE_PCI_DEVICE = 34,
	CU_DEVICE_MAX_THREADS_PER_SM = 39,
	CU_DEVICE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_PCI_DOMAIN = 50,
	CU_DEVICE_CC_MAJOR = 75,
	CU_DEVICE_CC_MINOR = 76,
	CU_DEVICE_STREAM_PRIORITIES = 78,
	CU_DEVICE_MAX_SHARED_PER_SM = 81,
	CU_DEVICE_MAX_REGISTERS_PER_SM = 82,
	CU_DEVICE_COOPERATIVE_LAUNCH = 95,
	CU_DEVICE_MAX_SHARED_PER_BLOCK_OPTIN = 97,
	CU_DEVICE_MAX_BLOCKS_PER_SM = 106,
	CU_DEVICE_RESERVED_SHARED_PER_BLOCK = 111,
	CU_DEVICE_CLUSTER_LAUNCH = 120,
	CU_DEVICE_MPS_ENABLED = 133,
};

enum cu_function_attribute {
	CU_FUNCTION_MAX_THREADS = 0,
	CU_FUNCTION_STATIC_SHARED = 1,
	CU_FUNCTION_CONSTANT = 2,
	CU_FUNCTION_LOCAL = 3,
	CU_FUNCTION_REGISTERS = 4,
	CU_FUNCTION_PTX_VERSION = 5,
	CU_FUNCTION_BINARY_VERSION = 6,
	CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
	CU_FUNCTION_CARVEOUT = 9,
	CU_FUNCTION_CLUSTER_WIDTH = 11,
	CU_FUNCTION_CLUSTER_HEIGHT = 12,
	CU_FUNCTION_CLUSTER_DEPTH = 13,
	CU_FUNCTION_NON_PORTABLE_CLUSTER = 14,
	CU_FUNCTION_CLUSTER_POLICY = 15,
};

enum cu_launch_attribute_id {
	CU_LAUNCH_COOPERATIVE = 2,
	CU_LAUNCH_CLUSTER_DIMENSION = 4,
	CU_LAUNCH_CLUSTER_POLICY = 5,
	CU_LAUNCH_PRIORITY = 8,
};

enum cu_cluster_policy {
	CU_CLUSTER_POLICY_DEFAULT = 0,
	CU_CLUSTER_POLICY_SPREAD = 1,
	CU_CLUSTER_POLICY_LOAD_BALANCING = 2,
};

union cu_launch_value {
	char bytes[64];
	struct {
		unsigned int x, y, z;
	} cluster;
	int cooperative;
	int policy;
	int priority;
};

struct cu_launch_attribute {
	int id;
	char pad[4];
	union cu_launch_value value;
};

struct cu_launch_config {
	unsigned int grid_x, grid_y, grid_z;
	unsigned int block_x, block_y, block_z;
	unsigned int shared;
	CUstream stream;
	struct cu_launch_attribute *attributes;
	unsigned int nr_attributes;
};

/* cuLaunchKernel's @extra */
#define CU_LAUNCH_PARAM_END		((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER	((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE	((void *)2)

/* Stream handles that are not pointers. */
#define CU_STREAM_LEGACY	((CUstream)1)
#define CU_STREAM_PER_THREAD	((CUstream)2)
#define CU_STREAM_NON_BLOCKING	1

/* ---------------------------------------------------------------------- graphs */

enum cu_node_type {
	CU_NODE_KERNEL = 0,
	CU_NODE_COPY = 1,
	CU_NODE_SET = 2,
	CU_NODE_GRAPH = 4,
	CU_NODE_EMPTY = 5,
	CU_NODE_ALLOC = 10,
	CU_NODE_FREE = 11,
	CU_NODE_CONDITIONAL = 13,
};

enum cu_capture_status {
	CU_CAPTURE_NONE = 0,
	CU_CAPTURE_ACTIVE = 1,
	CU_CAPTURE_INVALIDATED = 2,
};

enum cu_capture_mode {
	CU_CAPTURE_GLOBAL = 0,
	CU_CAPTURE_THREAD_LOCAL = 1,
	CU_CAPTURE_RELAXED = 2,
};

enum cu_memory_type {
	CU_MEMORY_HOST = 1,
	CU_MEMORY_DEVICE = 2,
	CU_MEMORY_ARRAY = 3,
	CU_MEMORY_UNIFIED = 4,
};

enum cu_instantiate_flag {
	CU_INSTANTIATE_AUTO_FREE = 1,
	CU_INSTANTIATE_UPLOAD = 2,		/* only with cuGraphInstantiateWithParams */
	CU_INSTANTIATE_DEVICE_LAUNCH = 4,
	CU_INSTANTIATE_NODE_PRIORITY = 8,
};

enum cu_instantiate_result {
	CU_INSTANTIATE_SUCCESS = 0,
	CU_INSTANTIATE_ERROR = 1,
	CU_INSTANTIATE_INVALID_STRUCTURE = 2,
	CU_INSTANTIATE_NOT_SUPPORTED = 3,
	CU_INSTANTIATE_MULTIPLE_CONTEXTS = 4,
};

enum cu_update_result {
	CU_UPDATE_SUCCESS = 0,
	CU_UPDATE_ERROR = 1,
	CU_UPDATE_TOPOLOGY_CHANGED = 2,
	CU_UPDATE_TYPE_CHANGED = 3,
	CU_UPDATE_PARAMETERS_CHANGED = 5,
	CU_UPDATE_NOT_SUPPORTED = 6,
	CU_UPDATE_ATTRIBUTES_CHANGED = 8,
};

/* The struct of CUDA 10.0. The struct of later versions begins with the same members. */
struct cu_kernel_node_params_v1 {
	CUfunction function;
	unsigned int grid_x, grid_y, grid_z;
	unsigned int block_x, block_y, block_z;
	unsigned int shared;
	void **params, **extra;
};

struct cu_kernel_node_params {
	struct cu_kernel_node_params_v1 v1;
	void *kernel;		/* a CUkernel, if the function is NULL */
	CUcontext ctx;
};

struct cu_set_node_params {
	CUdeviceptr to;
	size_t pitch;
	unsigned int value;
	unsigned int element;	/* bytes */
	size_t width, height;	/* elements, rows */
};

/* One side of a copy. */
struct cu_copy_side {
	size_t x, y, z, level;	/* x in bytes */
	int type;		/* enum cu_memory_type */
	void *host;
	CUdeviceptr device;
	void *array, *reserved;
	size_t pitch, height;
};

struct cu_copy_3d {
	struct cu_copy_side from, to;
	size_t width, height, depth;	/* width in bytes */
};

struct cu_edge_data {
	unsigned char from_port, to_port, type, reserved[5];
};

struct cu_instantiate_params {
	uint64_t flags;
	CUstream upload_stream;
	CUgraphNode error_node;
	int result;		/* enum cu_instantiate_result */
};

struct cu_update_info {
	int result;		/* enum cu_update_result */
	CUgraphNode error_node, error_from_node;
};

/* ------------------------------------------------------------ parts of a device */

#define CU_RESOURCE_SM		1
#define CU_AFFINITY_SM_COUNT	0

struct cu_resource {
	int type;
	unsigned char pad[92];
	union {
		struct {
			unsigned int nr_sms, smallest_part, alignment;
		} sm;
		unsigned char room[48];
	};
};

struct cu_affinity {
	int type;
	unsigned int nr_sms;
};

/* ---------------------------------------------------------------------- memory */

struct cu_array_descriptor {
	size_t width, height;
	unsigned int format, channels;
};

struct cu_array_3d_descriptor {
	size_t width, height, depth;
	unsigned int format, channels, flags;
};

#define CU_LOCATION_DEVICE	1

struct cu_location {
	int type, id;
};

struct cu_memory_properties {
	int type, handle_types;
	struct cu_location location;
	void *metadata;
	unsigned char flags[8];
};

#define CU_MEMORY_PINNED 1	/* CUmemAllocationType: the only type for pools */

struct cu_pool_properties {
	int type, handle_types;
	struct cu_location location;
	void *security;
	size_t most;
	unsigned char reserved[56];
};

enum cu_pool_attribute {
	CU_POOL_RELEASE_THRESHOLD = 4,
	CU_POOL_RESERVED = 5,
	CU_POOL_USED = 7,
};

#define CU_GRAPH_MEMORY_RESERVED 2

struct cu_alloc_node_params {
	struct cu_pool_properties pool;
	const void *access;
	size_t nr_access, bytes;
	CUdeviceptr address;
};

struct cu_ipc_handle {
	char bytes[64];
};

struct cu_external_descriptor {
	int type;
	void *handle[2];
	unsigned long long bytes;
	unsigned int flags, reserved[16];
};

#pragma GCC visibility push(default)

CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult error, const char **text);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetExportTable(const void **table, const struct cu_uuid *id);
CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
			     int *status);

CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int len, CUdevice device);
CUresult cuDeviceGetUuid(struct cu_uuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(struct cu_uuid *uuid, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *text, int len, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceGetDevResource(CUdevice device, struct cu_resource *resource, int type);

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxGetCurrent(CUcontext *ctx);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxPushCurrent_v2(CUcontext ctx);
CUresult cuCtxPopCurrent_v2(CUcontext *ctx);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSetLimit(int limit, size_t value);
CUresult cuCtxGetDevResource(CUcontext ctx, struct cu_resource *resource, int type);
CUresult cuCtxGetExecAffinity(struct cu_affinity *affinity, int type);
CUresult cuDevSmResourceSplitByCount(struct cu_resource *groups, unsigned int *nr,
				     const struct cu_resource *from, struct cu_resource *rest,
				     unsigned int flags, unsigned int least);
CUresult cuDevResourceGenerateDesc(void **desc, struct cu_resource *resources, unsigned int nr);
CUresult cuGreenCtxCreate(CUcontext *green, void *desc, CUdevice device, unsigned int flags);
CUresult cuGreenCtxDestroy(CUcontext green);
CUresult cuGreenCtxStreamCreate(CUstream *stream, CUcontext green, unsigned int flags,
				int priority);
CUresult cuGreenCtxGetDevResource(CUcontext green, struct cu_resource *resource, int type);
CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUcontext green);

CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx);
CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);
CUresult cuStreamBeginCapture(CUstream stream);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
				   const CUgraphNode **before, size_t *nr_before);
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
				   const CUgraphNode **before,
				   const struct cu_edge_data **edges, size_t *nr_before);

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphClone(CUgraph *clone, CUgraph graph);
CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			      size_t nr_before, const struct cu_kernel_node_params_v1 *params);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
				 size_t nr_before, const struct cu_kernel_node_params *params);
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			      size_t nr_before, const struct cu_set_node_params *params,
			      CUcontext ctx);
CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			      size_t nr_before, const struct cu_copy_3d *params, CUcontext ctx);
CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			     size_t nr_before);
CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
				  size_t nr_before, CUgraph child);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph);
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				size_t nr);
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const struct cu_edge_data *edges, size_t nr);
CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *nr);
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *nr);
CUresult cuGraphNodeGetType(CUgraphNode node, int *type);
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, struct cu_kernel_node_params_v1 *params);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, struct cu_kernel_node_params *params);
CUresult cuGraphKernelNodeSetParams(CUgraphNode node,
				    const struct cu_kernel_node_params_v1 *params);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
				       const struct cu_kernel_node_params *params);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, struct cu_set_node_params *params);
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const struct cu_set_node_params *params);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, struct cu_copy_3d *params);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const struct cu_copy_3d *params);
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int id, union cu_launch_value *value);
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int id,
				       const union cu_launch_value *value);
CUresult cuGraphConditionalHandleCreate(uint64_t *handle, CUgraph graph, CUcontext ctx,
					unsigned int value, unsigned int flags);
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			size_t nr_before, void *params);
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			   const struct cu_edge_data *edges, size_t nr_before, void *params);

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
			    char *log, size_t bytes);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
			       char *log, size_t bytes);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags);
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
				      struct cu_instantiate_params *params);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags);
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const struct cu_kernel_node_params_v1 *params);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const struct cu_kernel_node_params *params);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const struct cu_set_node_params *params, CUcontext ctx);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const struct cu_copy_3d *params, CUcontext ctx);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
			   int *result);
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, struct cu_update_info *info);
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled);
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled);

CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuLibraryLoadData(CUmodule *library, const void *code, int *options, void **values,
			   unsigned int nr_options, int *library_options, void **library_values,
			   unsigned int nr_library_options);
CUresult cuLibraryUnload(CUmodule library);
CUresult cuLibraryGetKernel(void **kernel, CUmodule library, const char *name);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuKernelGetFunction(CUfunction *function, void *kernel);
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
						     int block_size, size_t shared);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
							      int block_size, size_t shared,
							      unsigned int flags);
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
					  size_t (*shared_of)(int block), size_t shared,
					  int most);
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
						   size_t (*shared_of)(int block),
						   size_t shared, int most,
						   unsigned int flags);
CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
					    const struct cu_launch_config *config);
CUresult cuOccupancyMaxActiveClusters(int *nr, CUfunction function,
				      const struct cu_launch_config *config);

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared, CUstream stream,
			void **params, void **extra);
CUresult cuLaunchKernelEx(const struct cu_launch_config *config, CUfunction function,
			  void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				   unsigned int grid_z, unsigned int block_x,
				   unsigned int block_y, unsigned int block_z,
				   unsigned int shared, CUstream stream, void **params);

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags);
CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
			    unsigned int element);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
CUresult cuArrayCreate_v2(CUarray *array, const struct cu_array_descriptor *descriptor);
CUresult cuArray3DCreate_v2(CUarray *array, const struct cu_array_3d_descriptor *descriptor);
CUresult cuArrayDestroy(CUarray array);
CUresult cuMipmappedArrayCreate(CUarray *array, const struct cu_array_3d_descriptor *descriptor,
				unsigned int levels);
CUresult cuMipmappedArrayDestroy(CUarray array);
CUresult cuMemCreate(uint64_t *handle, size_t bytes, const struct cu_memory_properties *what,
		     uint64_t flags);
CUresult cuMemRelease(uint64_t handle);
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
			     CUdeviceptr wanted, uint64_t flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle,
		  uint64_t flags);
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const void *access, size_t nr);
CUresult cuMemRetainAllocationHandle(uint64_t *handle, void *address);
CUresult cuMemExportToShareableHandle(void *shared, uint64_t handle, int type, uint64_t flags);
CUresult cuMemImportFromShareableHandle(uint64_t *handle, void *shared, int type);
CUresult cuIpcGetMemHandle(struct cu_ipc_handle *handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, struct cu_ipc_handle handle,
			       unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr address);
CUresult cuImportExternalMemory(CUexternalMemory *memory,
				const struct cu_external_descriptor *descriptor);
CUresult cuDestroyExternalMemory(CUexternalMemory memory);
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
				 CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
				      CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const struct cu_pool_properties *properties);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
				size_t nr_before, struct cu_alloc_node_params *params);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, struct cu_alloc_node_params *params);
CUresult cuMemAllocHost_v2(void **address, size_t bytes);
CUresult cuMemFreeHost(void *address);
CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *address);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *address, unsigned int flags);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream);

CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventQuery(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to);
CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to);
CUresult cuEventDestroy_v2(CUevent event);

/*
 * Only the simulated driver has the following functions. This function returns the path of the
 * capture that the driver simulates. NULL: no such device.
 */
const char *gpupart_sim_capture(int device);
/* Stores the PCI address and UUID of CUDA device @device. Returns 0 or a CUresult. */
int gpupart_sim_gpu_info(int device, char pci[20], char uuid[48]);
/*
 * Stores the topology of the device's capture. The topology has the device's address and UUID,
 * but no registers. Only a library of the same build may call this function. The library's struct
 * has @size bytes. Returns 0 or a CUresult.
 */
struct gpupart_topology;
int gpupart_sim_topology(int device, struct gpupart_topology *topo, size_t size);
/*
 * Stores the size of the GPU's memory, and the number of bytes that this process uses. If a fault
 * is set, the number of bytes is UINT64_MAX.
 */
int gpupart_sim_memory(int device, uint64_t *own, uint64_t *all);
/* Returns the number of processes that use the GPU, or -1 if the GPU does not exist. */
int gpupart_sim_processes(int device);
/* Returns the number of this process's launches that can never finish. */
int gpupart_sim_hung(void);

#pragma GCC visibility pop

#endif
