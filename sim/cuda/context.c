// SPDX-License-Identifier: MIT
/* Contexts, and the current context of each thread. */
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph.h"

#define MAX_DEPTH 64

/* contexts are never freed, so that a stale handle is recognized */
static struct sim_ctx *contexts;
static __thread struct sim_ctx *stack[MAX_DEPTH];
static __thread unsigned int depth;

static bool ready(void)
{
	return __atomic_load_n(&sim_ready, __ATOMIC_ACQUIRE);
}

bool ctx_valid(const struct sim_ctx *ctx)
{
	const struct sim_ctx *c;

	for (c = contexts; c; c = c->next)
		if (c == ctx)
			return c->live;
	return false;
}

struct sim_ctx *ctx_first(void)
{
	return contexts;
}

struct sim_ctx *ctx_current_green(const struct sim_ctx *ctx)
{
	struct sim_ctx *top = depth ? stack[depth - 1] : NULL;

	return top && top->base == ctx ? top : NULL;
}

struct sim_ctx *ctx_current(CUresult *error)
{
	struct sim_ctx *ctx = depth ? stack[depth - 1] : NULL;

	*error = CUDA_SUCCESS;
	if (!ready())
		*error = CUDA_ERROR_NOT_INITIALIZED;
	else if (!ctx)
		*error = CUDA_ERROR_INVALID_CONTEXT;
	else if (!__atomic_load_n(&ctx->live, __ATOMIC_ACQUIRE))
		*error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	else
		return ctx->base ? ctx->base : ctx;
	return NULL;
}

/* Like the heap of a real driver, reuses the memory of a destroyed context. */
static struct sim_ctx *reuse_destroyed(void)
{
	struct sim_ctx **link = &contexts, *ctx;

	while (*link && (*link)->live)
		link = &(*link)->next;
	ctx = *link;
	if (!ctx)
		return calloc(1, sizeof(*ctx));
	*link = ctx->next;
	memset(ctx, 0, sizeof(*ctx));
	return ctx;
}

static struct sim_ctx *ctx_make(CUdevice device, bool primary)
{
	struct sim_ctx *ctx = sim_faults()->reuse_contexts ? reuse_destroyed()
							    : calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->gpu = gpu_get(device);
	ctx->device = device;
	ctx->live = true;
	ctx->primary = primary;
	if (!room_charge(ctx->gpu, ROOM_CONTEXT))
		goto free_ctx;
	if (!module_make_builtin(ctx)) {
		room_discharge(ctx->gpu, ROOM_CONTEXT);
		goto free_ctx;
	}
	ctx->next = contexts;
	contexts = ctx;
	return ctx;

free_ctx:
	free(ctx);
	return NULL;
}

static void ctx_end(struct sim_ctx *ctx)
{
	for (struct sim_ctx *green = contexts; green; green = green->next)
		if (green->base == ctx)
			__atomic_store_n(&green->live, false, __ATOMIC_RELEASE);
	engine_finish_ctx(ctx);
	stream_destroy_all(ctx);
	module_unload_all(ctx);
	memory_ctx_ends(ctx);
	room_discharge(ctx->gpu, ROOM_CONTEXT);
	__atomic_store_n(&ctx->live, false, __ATOMIC_RELEASE);
}

/* As measured, the callbacks for the context's modules come after this callback. */
static void report_destroyed(struct sim_ctx *ctx)
{
	hook_resource(ctx, NULL, HOOK_CTX_DESTROYED);
	module_report_unloaded(ctx);
}

static struct sim_ctx *primary_of(CUdevice device)
{
	struct sim_ctx *ctx;

	for (ctx = contexts; ctx; ctx = ctx->next)
		if (ctx->primary && ctx->live && ctx->device == device)
			return ctx;
	return NULL;
}

static CUresult device_there(CUdevice device)
{
	if (!ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	return gpu_get(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult check_device(CUdevice device, const void *out)
{
	CUresult error = device_there(device);

	return error || out ? error : CUDA_ERROR_INVALID_VALUE;
}

static CUresult primary_retain(CUcontext *out, CUdevice device)
{
	CUresult error = check_device(device, out);
	struct sim_ctx *ctx;
	bool made = false;

	if (error)
		return error;
	sim_enter();
	ctx = primary_of(device);
	if (!ctx) {
		ctx = ctx_make(device, true);
		made = ctx;
	}
	if (ctx)
		ctx->gpu->primary_users++;
	sim_leave();
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (made) {
		hook_resource(ctx, NULL, HOOK_CTX_CREATED);
		module_report_builtin(ctx);
	}
	*out = ctx;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	struct args {
		CUcontext *out;
		uint64_t device;
	};

	return API_CALL_CHANGED(cuDevicePrimaryCtxRetain, struct args, args,
				primary_retain(args.out, device), out, API_NARROW(device));
}

static CUresult primary_release(CUdevice device)
{
	CUresult error = device_there(device);
	struct sim_ctx *ctx;
	struct sim_gpu *gpu;
	bool last, there;

	if (error)
		return error;
	gpu = gpu_get(device);
	sim_enter();
	ctx = primary_of(device);
	there = gpu->primary_users;
	last = there && !--gpu->primary_users && ctx;
	if (last)
		ctx_end(ctx);
	sim_leave();
	if (last)
		report_destroyed(ctx);
	return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return API_CALL(cuDevicePrimaryCtxRelease_v2, primary_release(device),
			API_NARROW(device));
}

/*
 * As measured, a program that has retained the primary context keeps its handle of the destroyed
 * context. The program must still release the handle.
 */
static CUresult primary_reset(CUdevice device)
{
	CUresult error = device_there(device);
	struct sim_ctx *ctx;

	if (error)
		return error;
	sim_enter();
	ctx = primary_of(device);
	if (ctx)
		ctx_end(ctx);
	sim_leave();
	if (ctx)
		report_destroyed(ctx);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return API_CALL(cuDevicePrimaryCtxReset_v2, primary_reset(device),
			API_NARROW(device));
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	CUresult error = check_device(device, flags && active ? flags : NULL);

	if (error)
		return error;
	sim_enter();
	*flags = 0;
	*active = primary_of(device) != NULL;
	sim_leave();
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *out, CUdevice device)
{
	CUresult error = check_device(device, out);
	struct sim_ctx *ctx;

	if (error)
		return error;
	if (depth == MAX_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_enter();
	ctx = ctx_make(device, false);
	sim_leave();
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = ctx;
	hook_resource(ctx, NULL, HOOK_CTX_CREATED);
	module_report_builtin(ctx);
	*out = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
	struct args {
		CUcontext *out;
		/* how the host waits; the simulation ignores the flags */
		unsigned int flags;
		CUdevice device;
	};

	return API_CALL_CHANGED(cuCtxCreate_v2, struct args, args, create(args.out, device), out,
				flags, device);
}

static CUresult destroy(CUcontext ctx)
{
	CUresult error = CUDA_SUCCESS;

	if (!ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	sim_enter();
	if (!ctx_valid(ctx) || ctx->primary || ctx->base)
		error = CUDA_ERROR_INVALID_CONTEXT;
	else
		ctx_end(ctx);
	sim_leave();
	if (error)
		return error;
	if (depth && stack[depth - 1] == ctx)
		depth--;
	report_destroyed(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	return API_CALL(cuCtxDestroy_v2, destroy(ctx), (uintptr_t)ctx);
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	if (!ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = depth ? stack[depth - 1] : NULL;
	return CUDA_SUCCESS;
}

static CUresult check_ctx(CUcontext ctx)
{
	bool valid;

	if (!ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	sim_enter();
	valid = ctx_valid(ctx);
	sim_leave();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult error = ctx ? check_ctx(ctx) : ready() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;

	if (error)
		return error;
	if (!depth)
		depth = 1;
	stack[depth - 1] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	CUresult error = check_ctx(ctx);

	if (error)
		return error;
	if (depth == MAX_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	if (!ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (ctx)
		*ctx = stack[depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	CUresult error;
	struct sim_ctx *ctx;

	/*
	 * Takes no lock, because the launch callback may call this function. The data does not
	 * change.
	 */
	ctx = ctx_current(&error);
	if (!ctx)
		return error;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = ctx->device;
	return CUDA_SUCCESS;
}

static bool has_work(const struct sim_ctx *ctx)
{
	const struct sim_stream *stream;

	for (stream = ctx->streams; stream; stream = stream->next)
		if (stream->head)
			return true;
	return false;
}

/*
 * During a sleep, another thread may destroy the context. So find the context again after each
 * sleep.
 */
static CUresult synchronize(void)
{
	struct sim_ctx *ctx;
	uint64_t idle_ns;
	CUresult error;

	do {
		sim_enter();
		ctx = ctx_current(&error);
		if (ctx)
			error = capture_forbids_ctx(ctx);
		idle_ns = error || ctx->error ? 0 : engine_idle_ns(ctx->gpu);
		if (!error && !has_work(ctx))
			idle_ns = 0;
		if (!error && !idle_ns)
			error = engine_finish_ctx(ctx);
		if (!idle_ns && ctx)
			pool_waited(ctx->gpu);
		sim_leave();
		if (idle_ns)
			engine_sleep(idle_ns);
	} while (idle_ns);
	return error;
}

CUresult cuCtxSynchronize(void)
{
	return API_CALL(cuCtxSynchronize, synchronize(), 0);
}

/* In the simulation, stacks and heaps use no memory. */
static CUresult set_limit(int limit)
{
	CUresult error;

	if (ctx_current(&error) && (limit < 0 || limit > 6))
		error = CUDA_ERROR_INVALID_VALUE;
	return error;
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
	return API_CALL(cuCtxSetLimit, set_limit(limit), API_NARROW(limit), value);
}

static CUresult resource_of(CUcontext ctx, struct cu_resource *resource, int type)
{
	CUresult error = check_ctx(ctx);

	return error ? error : gpu_resource(ctx->gpu, ctx->off, resource, type);
}

CUresult cuCtxGetDevResource(CUcontext ctx, struct cu_resource *resource, int type)
{
	return API_CALL(cuCtxGetDevResource, resource_of(ctx, resource, type),
			(uintptr_t)ctx, (uintptr_t)resource, API_NARROW(type));
}

static CUresult affinity_of(struct cu_affinity *affinity, int type)
{
	CUresult error;
	struct sim_ctx *ctx = ctx_current(&error);

	if (!ctx)
		return error;
	if (!affinity || type != CU_AFFINITY_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	affinity->type = type;
	affinity->nr_sms = ctx->gpu->nr_sms;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetExecAffinity(struct cu_affinity *affinity, int type)
{
	return API_CALL(cuCtxGetExecAffinity, affinity_of(affinity, type),
			(uintptr_t)affinity, API_NARROW(type));
}

/* ---------------------------------------------------------------- green contexts */

CUresult ctx_make_green(struct sim_ctx **green, CUdevice device, const uint64_t *off)
{
	struct sim_ctx *made = calloc(1, sizeof(*made)), *base;
	CUresult error = made ? primary_retain(&base, device) : CUDA_ERROR_OUT_OF_MEMORY;

	if (error) {
		free(made);
		return error;
	}
	made->gpu = base->gpu;
	made->device = device;
	made->base = base;
	made->live = true;
	memcpy(made->off, off, sizeof(made->off));
	sim_enter();
	made->next = contexts;
	contexts = made;
	sim_leave();
	*green = made;
	return CUDA_SUCCESS;
}

CUresult ctx_end_green(struct sim_ctx *green)
{
	bool live;

	sim_enter();
	live = ctx_valid(green) && green->base;
	if (live) {
		stream_destroy_all(green);
		__atomic_store_n(&green->live, false, __ATOMIC_RELEASE);
	}
	sim_leave();
	return live ? primary_release(green->device) : CUDA_ERROR_INVALID_CONTEXT;
}
