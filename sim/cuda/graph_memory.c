// SPDX-License-Identifier: MIT
/*
 * Handles the memory that nodes of graphs allocate. The first launch of a graph allocates the
 * memory, and the GPU keeps the memory until a program trims it.
 */
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph_exec.h"

static uint64_t exec_memory(const struct sim_exec *exec)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < exec->nr_nodes; i++)
		if (exec->nodes[i].type == CU_NODE_ALLOC)
			bytes += vram_round(exec->nodes[i].work.args.bytes);
	return bytes;
}

bool exec_takes_memory(struct sim_exec *exec, struct sim_gpu *gpu)
{
	uint64_t bytes = exec->memory_trims == gpu->graph_trims + 1 ? 0 : exec_memory(exec);

	if (!exec->charged && !room_charge(gpu, sim_faults()->graph_memory))
		return false;
	exec->charged = gpu;
	if (!room_charge(gpu, bytes))
		return false;
	gpu->graph_memory += bytes;
	exec->memory_trims = gpu->graph_trims + 1;
	return true;
}

/*
 * Returns true if @address is memory of a graph. Freeing such memory has no effect, because the
 * GPU keeps the memory until a program trims it.
 */
bool graph_memory_contains(uint64_t address)
{
	return address >= GRAPH_MEMORY && address < GRAPH_MEMORY_END;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
	struct sim_gpu *gpu = gpu_get(device);

	if (!gpu || !value || attribute != CU_GRAPH_MEMORY_RESERVED)
		return gpu ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	sim_enter();
	*(uint64_t *)value = gpu->graph_memory;
	sim_leave();
	return CUDA_SUCCESS;
}

static CUresult trim(CUdevice device)
{
	struct sim_gpu *gpu = gpu_get(device);

	if (!gpu)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_enter();
	room_discharge(gpu, gpu->graph_memory);
	gpu->graph_memory = 0;
	gpu->graph_trims++;
	sim_leave();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	return API_CALL(cuDeviceGraphMemTrim, trim(device), API_NARROW(device));
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, struct cu_alloc_node_params *params)
{
	CUresult error = graph_enter_node(node, params);

	if (!error && node->type != CU_NODE_ALLOC)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*params = (struct cu_alloc_node_params){
			.pool.location = { CU_LOCATION_DEVICE, 0 },
			.bytes = node->work.args.bytes,
			.address = node->work.args.address,
		};
	return sim_leave_with(error);
}
