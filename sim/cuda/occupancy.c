// SPDX-License-Identifier: MIT
/* Answers queries about the number of blocks and clusters of a kernel that fit on the GPU. */
#include "sim/cuda/callback_numbers.h"

/* ---------------------------------------------------------------------- blocks */

static unsigned int blocks_of(const struct sim_function *function, unsigned int threads,
			      size_t shared)
{
	if (threads > sim_chip()->block_threads || shared > sim_chip()->shared)
		return 0;
	return dispatch_occupancy(threads, function->registers,
				  tmd_shared_of_block(function->shared_static + shared, false));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle,
						     int block_size, size_t shared)
{
	struct sim_function *function;
	CUresult error;

	if (!blocks || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	function = function_enter(handle, &error);
	if (function)
		*blocks = blocks_of(function, block_size, shared);
	return sim_leave_with(error);
}

/* The flags affect only caching, which is not simulated. */
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle,
							      int block_size, size_t shared,
							      unsigned int flags)
{
	(void)flags;
	return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle, block_size, shared);
}

/*
 * Returns the block size that uses an SM best. If several block sizes are equally good, returns
 * the largest. Also returns the number of blocks of this size that fill the GPU.
 */
static CUresult best_block(int *grid, int *block, CUfunction handle,
			   size_t (*shared_of)(int block), size_t shared, int most)
{
	unsigned int threads, best = 0, limit = sim_chip()->block_threads;
	struct sim_function *function;
	CUresult error;

	if (!grid || !block)
		return CUDA_ERROR_INVALID_VALUE;
	if (most > 0 && (unsigned int)most < limit)
		limit = most;
	function = function_enter(handle, &error);
	sim_leave();
	for (threads = limit; function && threads;
	     threads -= threads % 32 ? threads % 32 : threads > 32 ? 32 : threads) {
		unsigned int held = blocks_of(function, threads,
					      shared_of ? shared_of(threads) : shared);

		if (held * threads <= best)
			continue;
		best = held * threads;
		*block = threads;
		*grid = held * function->module->ctx->gpu->nr_sms;
	}
	return error || best ? error : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
					  size_t (*shared_of)(int block), size_t shared,
					  int most)
{
	return API_CALL(cuOccupancyMaxPotentialBlockSize,
			best_block(grid, block, function, shared_of, shared, most),
			(uintptr_t)grid, (uintptr_t)block, (uintptr_t)function,
			(uintptr_t)shared_of, shared, API_NARROW(most));
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
						   size_t (*shared_of)(int block),
						   size_t shared, int most,
						   unsigned int flags)
{
	return API_CALL(cuOccupancyMaxPotentialBlockSizeWithFlags,
			best_block(grid, block, function, shared_of, shared, most),
			(uintptr_t)grid, (uintptr_t)block, (uintptr_t)function,
			(uintptr_t)shared_of, shared, API_NARROW(most),
			API_NARROW(flags));
}

/* -------------------------------------------------------------------- clusters */

/*
 * Returns the number of blocks in a cluster of @config. If such a cluster is impossible, returns
 * 0.
 */
static unsigned int cluster_of(const struct cu_launch_config *config)
{
	unsigned int i, size = 1;

	for (i = 0; i < config->nr_attributes; i++)
		if (config->attributes[i].id == CU_LAUNCH_CLUSTER_DIMENSION)
			size = config->attributes[i].value.cluster.x *
			       config->attributes[i].value.cluster.y *
			       config->attributes[i].value.cluster.z;
	return size;
}

/*
 * Checks a query about clusters. Finds the GPU of the query, and the number of the kernel's
 * blocks that fit on an SM.
 */
static CUresult cluster_question(const int *answer, CUfunction handle,
				 const struct cu_launch_config *config,
				 const struct sim_gpu **gpu, unsigned int *held)
{
	struct sim_function *function;
	CUresult error;

	if (!answer || !config || (config->nr_attributes && !config->attributes) ||
	    !cluster_of(config))
		return CUDA_ERROR_INVALID_VALUE;
	function = function_enter(handle, &error);
	if (function) {
		*gpu = function->module->ctx->gpu;
		*held = blocks_of(function, config->block_x * config->block_y * config->block_z,
				  config->shared);
		if (!(*gpu)->clusters)
			error = CUDA_ERROR_NOT_SUPPORTED;
	}
	return sim_leave_with(error);
}

static void sms_of_vgpcs(const struct sim_gpu *gpu, unsigned int sms[SIM_MAX_VGPCS])
{
	for (unsigned int i = 0; i < SIM_MAX_VGPCS; i++)
		sms[i] = 0;
	for (unsigned int i = 0; i < gpu->nr_sms; i++)
		sms[gpu->hw.map.sms[i].vgpc]++;
}

/*
 * Returns the number of clusters that fit into the GPU's virtual GPCs at the same time. Each
 * block of a cluster needs a separate SM.
 */
static CUresult active_clusters(int *nr, CUfunction handle, const struct cu_launch_config *config)
{
	unsigned int i, size, held, sms[SIM_MAX_VGPCS];
	const struct sim_gpu *gpu;
	CUresult error = cluster_question(nr, handle, config, &gpu, &held);

	if (error)
		return error;
	size = cluster_of(config);
	sms_of_vgpcs(gpu, sms);
	*nr = 0;
	/* The driver does not place clusters of four or more blocks on singletons. */
	for (i = 0; i < SIM_MAX_VGPCS; i++)
		if (sms[i] >= size && (size < 4 || i < gpu->info.max_gpcs))
			*nr += sms[i] * held / size;
	if (sim_faults()->nr_clusters)
		*nr = sim_faults()->nr_clusters;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *nr, CUfunction function,
				      const struct cu_launch_config *config)
{
	return API_CALL(cuOccupancyMaxActiveClusters, active_clusters(nr, function, config),
			(uintptr_t)nr, (uintptr_t)function, (uintptr_t)config);
}

/* Returns the largest cluster size of the function. Ignores the cluster size in @config. */
static CUresult largest_cluster(int *size, CUfunction handle, const struct cu_launch_config *config)
{
	unsigned int i, held, largest = 0, sms[SIM_MAX_VGPCS];
	const struct sim_gpu *gpu;
	CUresult error = cluster_question(size, handle, config, &gpu, &held);

	if (error)
		return error;
	if (!held)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	sms_of_vgpcs(gpu, sms);
	for (i = 0; i < SIM_MAX_VGPCS; i++)
		if (sms[i] > largest)
			largest = sms[i];
	*size = handle->non_portable_cluster ? sim_chip()->cluster : SIM_CLUSTER_PORTABLE;
	while ((unsigned int)*size > largest)
		*size /= 2;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
					    const struct cu_launch_config *config)
{
	return API_CALL(cuOccupancyMaxPotentialClusterSize,
			largest_cluster(size, function, config), (uintptr_t)size,
			(uintptr_t)function, (uintptr_t)config);
}
