// SPDX-License-Identifier: MIT
/*
 * Launches a kernel: checks the arguments, builds the TMD, calls the subscribers, reads the TMD
 * back, and queues the launch on its stream.
 */
#include <string.h>
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph.h"

static int nr_hung;

int gpupart_sim_hung(void)
{
	return __atomic_load_n(&nr_hung, __ATOMIC_ACQUIRE);
}

uint64_t launch_number(void)
{
	static uint64_t nr_launches;

	return __atomic_add_fetch(&nr_launches, 1, __ATOMIC_RELAXED);
}

/* Later waits return this error, like waits after a watchdog has ended a kernel. */
void launch_failed(struct sim_ctx *ctx, CUresult error)
{
	if (!ctx->error)
		ctx->error = error;
}

bool launch_accepts_edit(const struct sim_work *work, const uint8_t *built, const uint8_t *tmd,
		     uint64_t number)
{
	struct sim_ctx *ctx = work->function->module->ctx;
	int byte = tmd_foreign_edit(built, tmd);

	if (byte < 0)
		return true;
	sim_print("device %d: launch %llu of %s: a callback changed byte %d of its TMD",
		ctx->device, (unsigned long long)number, work->function->name, byte);
	launch_failed(ctx, CUDA_ERROR_LAUNCH_FAILED);
	return false;
}

struct sim_kernel *launch_kernel(const struct sim_work *work, const uint8_t *tmd,
				 uint64_t number, CUresult *error)
{
	struct sim_ctx *ctx = work->function->module->ctx;
	const char *name = work->function->name;
	unsigned long long nr = number;
	struct sim_kernel *kernel;
	struct sim_grid grid;
	char why[160];

	*error = CUDA_SUCCESS;
	if (!tmd_decode(tmd, ctx->gpu, &grid)) {
		sim_print("device %d: launch %llu of %s: its TMD is invalid", ctx->device, nr,
			name);
		launch_failed(ctx, CUDA_ERROR_LAUNCH_FAILED);
		return NULL;
	}
	if (!memory_work_valid(work) ||
	    ((work->code->record || work->code->slot) &&
	     !memory_valid(work->args.address,
			   grid.nr_blocks * work->code->record + work->code->slot))) {
		sim_print("device %d: launch %llu of %s writes outside any allocation",
			ctx->device, nr, name);
		launch_failed(ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
		return NULL;
	}
	kernel = dispatch_prepare(ctx->gpu, work->code, &work->args, &grid, why);
	if (kernel) {
		kernel->ctx = ctx;
		kernel->number = number;
		return kernel;
	}
	if (!why[0]) {
		*error = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	sim_print("device %d: launch %llu of %s never finishes: %s", ctx->device, nr, name, why);
	__atomic_add_fetch(&nr_hung, 1, __ATOMIC_RELEASE);
	launch_failed(ctx, CUDA_ERROR_LAUNCH_TIMEOUT);
	return NULL;
}

unsigned int launch_priority(int priority)
{
	return priority >= 0 ? 0 : priority <= 1 - SIM_PRIORITIES ? SIM_PRIORITIES - 1 : -priority;
}

/* Queues the launch that the TMD describes now. Subscribers may have changed the TMD. */
static CUresult launch_queue(struct sim_stream *stream, const struct sim_work *work,
			     const uint8_t *built, uint64_t number)
{
	struct sim_op op = { .kind = SIM_OP_KERNEL };
	CUresult error;

	if (!launch_accepts_edit(work, built, stream->tmd, number))
		return CUDA_SUCCESS;
	op.kernel = launch_kernel(work, stream->tmd, number, &error);
	if (!op.kernel)
		return error;
	if (stream->ctx->error) {		/* after a failure, the context runs no more
						 * work */
		dispatch_free(op.kernel);
		return CUDA_SUCCESS;
	}
	op.kernel->ask.priority = launch_priority(work->launch.prioritized ?
						  work->launch.priority : stream->priority);
	if (engine_queue(stream, &op))
		return CUDA_SUCCESS;
	dispatch_free(op.kernel);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * The code of a function is loaded at the first launch, and stays loaded until the module is
 * unloaded.
 */
static CUresult load_code(struct sim_function *function)
{
	uint64_t bytes = sim_faults()->lazy_code;
	CUresult error = CUDA_SUCCESS;

	if (!bytes)
		return CUDA_SUCCESS;
	sim_enter();
	if (!function->launched && !room_charge(function->module->ctx->gpu, bytes)) {
		error = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!function->launched) {
		function->launched = true;
		function->module->bytes += bytes;
	}
	return sim_leave_with(error);
}

CUresult launch_submit(struct sim_stream *stream, const struct sim_work *work)
{
	struct sim_launch launch = work->launch;
	uint8_t built[SIM_TMD_BYTES];
	CUresult error;
	uint64_t number;

	error = load_code(work->function);
	if (error)
		return error;
	pthread_mutex_lock(&stream->launch);
	number = launch_number();
	if (sim_faults()->move_tmd) {
		sim_enter();
		stream_move_tmd(stream);
		sim_leave();
	}
	memcpy(launch.off, (stream->green ? stream->green : stream->ctx)->off, sizeof(launch.off));
	tmd_build(stream->tmd, stream->ctx->gpu, &launch);
	memcpy(built, stream->tmd, sizeof(built));
	hook_launch(stream->ctx, work->function, stream->tmd, number, HOOK_TMD_BUILT);
	sim_enter();
	error = launch_queue(stream, work, built, number);
	sim_leave();
	if (!error)		/* the device reads the same memory */
		hook_launch(stream->ctx, work->function, stream->tmd, (uintptr_t)stream->tmd,
			    HOOK_TMD_UPLOADED);
	pthread_mutex_unlock(&stream->launch);
	return error;
}

/* ---------------------------------------------------------------------- checks */

static bool within(const unsigned int size[3], unsigned int x, unsigned int y, unsigned int z)
{
	return size[0] && size[1] && size[2] && size[0] <= x && size[1] <= y && size[2] <= z;
}

static CUresult check_cluster(const struct sim_gpu *gpu, const struct sim_function *function,
			      const struct sim_launch *launch)
{
	unsigned int i, blocks = 1;
	unsigned int most = function->non_portable_cluster ? sim_chip()->cluster :
							     SIM_CLUSTER_PORTABLE;

	if (!launch->cluster[0] && !launch->cluster[1] && !launch->cluster[2])
		return CUDA_SUCCESS;
	if (!gpu->clusters)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (i = 0; i < 3; i++) {
		if (!launch->cluster[i] || launch->cluster[i] > most ||
		    launch->grid[i] % launch->cluster[i])
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		blocks *= launch->cluster[i];
	}
	return blocks > most ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

CUresult launch_check(struct sim_function *function, struct sim_work *work)
{
	const struct sim_gpu *gpu = function->module->ctx->gpu;
	struct sim_launch *launch = &work->launch;
	unsigned int threads, occupancy, most = sim_chip()->block_threads;
	uint64_t blocks;

	work->kind = SIM_OP_KERNEL;
	work->function = function;
	work->code = function->code;
	launch->registers = function->registers;
	launch->shared = function->shared_static + work->dynamic;

	if (!within(launch->grid, SIM_MAX_GRID_X, SIM_MAX_GRID_YZ, SIM_MAX_GRID_YZ) ||
	    !within(launch->block, most, most, SIM_MAX_BLOCK_Z))
		return CUDA_ERROR_INVALID_VALUE;
	threads = launch->block[0] * launch->block[1] * launch->block[2];
	if (threads > most || work->dynamic > function->shared_dynamic)
		return CUDA_ERROR_INVALID_VALUE;
	occupancy = dispatch_occupancy(threads, launch->registers,
				       tmd_shared_of_block(launch->shared, launch->bare));
	if (!occupancy)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
	if (launch->cooperative && blocks > (uint64_t)occupancy * gpu->nr_sms)
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return check_cluster(gpu, function, launch);
}

CUresult launch_set_attribute(struct sim_launch *launch, int id,
			      const union cu_launch_value *value)
{
	switch ((enum cu_launch_attribute_id)id) {
	case CU_LAUNCH_COOPERATIVE:
		launch->cooperative = value->cooperative;
		return CUDA_SUCCESS;
	case CU_LAUNCH_CLUSTER_DIMENSION:
		launch->cluster[0] = value->cluster.x;
		launch->cluster[1] = value->cluster.y;
		launch->cluster[2] = value->cluster.z;
		return CUDA_SUCCESS;
	case CU_LAUNCH_CLUSTER_POLICY:
		if (value->policy < CU_CLUSTER_POLICY_DEFAULT ||
		    value->policy > CU_CLUSTER_POLICY_LOAD_BALANCING)
			return CUDA_ERROR_INVALID_VALUE;
		launch->policy = value->policy;
		return CUDA_SUCCESS;
	case CU_LAUNCH_PRIORITY:
		launch->priority = value->priority;
		launch->prioritized = true;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* ------------------------------------------------------------------- arguments */

/* In CUDA's packed form, each argument is at the next multiple of its size. */
static const void *find_buffer(void **extra)
{
	const void *buffer = NULL;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2)
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
	return buffer;
}

CUresult launch_read_args(const struct sim_code *code, void **params, void **extra,
			  struct sim_args *args)
{
	const char *buffer;

	memset(args, 0, sizeof(*args));
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (!code->nr_params)
		return CUDA_SUCCESS;
	if (params) {
		memcpy(&args->address, params[0], sizeof(args->address));
		memcpy(&args->value, params[1], sizeof(args->value));
		if (code->nr_params > 3)
			memcpy(&args->count, params[3], sizeof(args->count));
		return CUDA_SUCCESS;
	}
	buffer = extra ? find_buffer(extra) : NULL;
	if (!buffer)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&args->address, buffer, sizeof(args->address));
	memcpy(&args->value, buffer + 8, sizeof(args->value));
	if (code->nr_params > 3)
		memcpy(&args->count, buffer + 24, sizeof(args->count));
	return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- entry points */

static CUresult launch_any(CUfunction function, struct sim_work *work, CUstream handle,
			   void **params, void **extra)
{
	struct sim_stream *stream;
	CUresult error;
	bool captured;

	function = function_of(function);
	stream = stream_enter(handle, &error);
	captured = stream && stream->capture;
	if (stream && (!function_valid(function) || function->module->ctx != stream->ctx))
		error = CUDA_ERROR_INVALID_HANDLE;
	if (!error && stream->legacy)
		error = capture_forbids_legacy(stream->ctx);
	error = error ?: launch_check(function, work) ?:
		launch_read_args(function->code, params, extra, &work->args);
	if (!error && captured)
		error = capture_add(stream, CU_NODE_KERNEL, work);
	sim_leave();
	return error || captured ? error : launch_submit(stream, work);
}

/* A subscriber may have changed the grid size in the arguments, so use the arguments. */
static CUresult launch_changed(CUfunction function, const unsigned int grid[3],
			       struct sim_work *work, CUstream handle, void **params, void **extra)
{
	memcpy(work->launch.grid, grid, sizeof(work->launch.grid));
	return launch_any(function, work, handle, params, extra);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared, CUstream stream,
			void **params, void **extra)
{
	struct sim_work work = { .launch = { .grid = { grid_x, grid_y, grid_z },
					     .block = { block_x, block_y, block_z } },
				 .dynamic = shared };
	struct args {
		CUfunction function;
		unsigned int grid[3], block[3], shared;
		CUstream stream;
		void **params, **extra;
	};

	return API_CALL_CHANGED(cuLaunchKernel, struct args, args,
			launch_changed(args.function, args.grid, &work, stream, params, extra),
			function, { grid_x, grid_y, grid_z }, { block_x, block_y, block_z },
			shared, stream, params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				   unsigned int grid_z, unsigned int block_x,
				   unsigned int block_y, unsigned int block_z,
				   unsigned int shared, CUstream stream, void **params)
{
	struct sim_work work = { .launch = { .grid = { grid_x, grid_y, grid_z },
					     .block = { block_x, block_y, block_z },
					     .cooperative = true },
				 .dynamic = shared };
	struct args {
		CUfunction function;
		unsigned int grid[3], block[3], shared;
		CUstream stream;
		void **params;
	};

	return API_CALL_CHANGED(cuLaunchCooperativeKernel, struct args, args,
			launch_changed(args.function, args.grid, &work, stream, params, NULL),
			function, { grid_x, grid_y, grid_z }, { block_x, block_y, block_z },
			shared, stream, params);
}

static CUresult launch_config(const struct cu_launch_config *config, CUfunction function,
			      void **params, void **extra)
{
	const struct cu_launch_attribute *attribute;
	struct sim_work work;
	CUresult error;

	if (!config || (config->nr_attributes && !config->attributes))
		return CUDA_ERROR_INVALID_VALUE;
	work = (struct sim_work){
		.launch = {
			.grid = { config->grid_x, config->grid_y, config->grid_z },
			.block = { config->block_x, config->block_y, config->block_z },
		},
		.dynamic = config->shared,
	};
	/* Ignore the attributes that are not simulated, because they do not affect placement. */
	for (unsigned int i = 0; i < config->nr_attributes; i++) {
		attribute = &config->attributes[i];
		if (attribute->id != CU_LAUNCH_COOPERATIVE &&
		    attribute->id != CU_LAUNCH_CLUSTER_DIMENSION &&
		    attribute->id != CU_LAUNCH_CLUSTER_POLICY &&
		    attribute->id != CU_LAUNCH_PRIORITY)
			continue;
		error = launch_set_attribute(&work.launch, attribute->id, &attribute->value);
		if (error)
			return error;
	}
	return launch_any(function, &work, config->stream, params, extra);
}

CUresult cuLaunchKernelEx(const struct cu_launch_config *config, CUfunction function,
			  void **params, void **extra)
{
	struct args {
		const struct cu_launch_config *config;
		CUfunction function;
		void **params, **extra;
	};

	return API_CALL_CHANGED(cuLaunchKernelEx, struct args, args,
			launch_config(args.config, args.function, params, extra),
			config, function, params, extra);
}
