// SPDX-License-Identifier: MIT
/*
 * Simulates stream-ordered memory pools. As measured on an H200, a pool grows in units of 32 MiB
 * and shrinks when a thread waits. A pool can reuse freed memory immediately. A pool trims freed
 * memory only after a wait.
 */
#include <stdlib.h>
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph.h"

#define POOL_UNIT (32ull << 20)

struct sim_pool {
	struct sim_pool *next;
	struct sim_gpu *gpu;
	uint64_t reserved, used, threshold;
	/* bytes freed since the last wait; the pool still keeps these bytes */
	uint64_t unseen;
	bool is_default;
};

struct piece {
	struct piece *next;
	struct sim_pool *pool;
	uint64_t address, bytes;
};

static struct sim_pool *pools;
static struct piece *pieces;

static struct sim_pool *pool_make(struct sim_gpu *gpu, bool is_default)
{
	struct sim_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->gpu = gpu;
	pool->is_default = is_default;
	pool->next = pools;
	pools = pool;
	return pool;
}

static bool pool_valid(const struct sim_pool *pool)
{
	const struct sim_pool *p;

	for (p = pools; p; p = p->next)
		if (p == pool)
			return true;
	return false;
}

static struct sim_pool *default_of(struct sim_gpu *gpu)
{
	if (!gpu->default_pool)
		gpu->default_pool = pool_make(gpu, true);
	if (!gpu->pool)
		gpu->pool = gpu->default_pool;
	return gpu->default_pool;
}

static uint64_t in_units(uint64_t bytes)
{
	return (bytes + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT;
}

static void pool_keep(struct sim_pool *pool, uint64_t keep)
{
	uint64_t held = pool->used + pool->unseen;
	uint64_t least = in_units(held > keep ? held : keep);

	if (least >= pool->reserved)
		return;
	room_discharge(pool->gpu, pool->reserved - least);
	pool->reserved = least;
}

void pool_waited(struct sim_gpu *gpu)
{
	struct sim_pool *pool;

	for (pool = pools; pool; pool = pool->next) {
		if (pool->gpu != gpu)
			continue;
		pool->unseen = 0;
		if (pool->threshold < pool->reserved)
			pool_keep(pool, pool->threshold);
	}
}

static CUresult take(struct sim_ctx *ctx, struct sim_pool *pool, uint64_t bytes, uint64_t *address)
{
	struct piece *piece;
	uint64_t grown;
	CUresult error;

	if (bytes > 1ull << 46)
		return CUDA_ERROR_OUT_OF_MEMORY;
	grown = in_units(pool->used + bytes);
	piece = calloc(1, sizeof(*piece));
	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (grown > pool->reserved) {
		if (!room_charge(pool->gpu, grown - pool->reserved)) {
			free(piece);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		pool->reserved = grown;
	}
	error = memory_create(ctx, ROOM_POOL, bytes, address);
	if (error) {
		free(piece);
		return error;
	}
	*piece = (struct piece){ pieces, pool, *address, bytes };
	pieces = piece;
	pool->used += bytes;
	/* The pool uses freed memory first. */
	pool->unseen -= bytes < pool->unseen ? bytes : pool->unseen;
	return CUDA_SUCCESS;
}

bool pool_free(uint64_t address)
{
	struct piece **link = &pieces, *piece;

	while (*link && (*link)->address != address)
		link = &(*link)->next;
	piece = *link;
	if (!piece)
		return false;
	*link = piece->next;
	piece->pool->used -= piece->bytes;
	piece->pool->unseen += piece->bytes;
	free(piece);
	return memory_destroy(address, ROOM_POOL);
}

/*
 * During a capture, adds a node to the graph and returns an address. No work writes to the
 * returned address.
 */
static CUresult capture(struct sim_stream *stream, uint64_t bytes, uint64_t *address)
{
	struct sim_work work = { .kind = SIM_OP_NOTHING, .args.bytes = bytes };
	static uint64_t next = GRAPH_MEMORY;

	*address = work.args.address = next;
	next += vram_round(bytes);
	return capture_add(stream, CU_NODE_ALLOC, &work);
}

static CUresult allocate(uint64_t *address, uint64_t bytes, struct sim_pool *pool, CUstream handle)
{
	struct sim_stream *stream;
	CUresult error;

	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_enter(handle, &error);
	/* Use the stream's GPU, which may differ from the GPU of the current context. */
	if (stream && !pool) {
		default_of(stream->ctx->gpu);
		pool = stream->ctx->gpu->pool;
	}
	if (!error && !pool_valid(pool))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error && stream->capture)
		error = capture(stream, bytes, address);
	else if (!error)
		error = take(stream->ctx, pool, bytes, address);
	return sim_leave_with(error);
}

struct async_args {
	CUdeviceptr *address;
	size_t bytes;
	CUstream stream;
};

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
	return API_CALL_CHANGED(cuMemAllocAsync, struct async_args, args,
				allocate(args.address, args.bytes, NULL, args.stream), address,
				bytes, stream);
}

static CUstream own_of(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
	return API_CALL_CHANGED(cuMemAllocAsync_ptsz, struct async_args, args,
				allocate(args.address, args.bytes, NULL, own_of(args.stream)),
				address, bytes, stream);
}

struct pool_args {
	CUdeviceptr *address;
	size_t bytes;
	CUmemoryPool pool;
	CUstream stream;
};

static CUresult allocate_from(const struct pool_args *args, CUstream stream)
{
	return args->pool ? allocate(args->address, args->bytes, args->pool, stream) :
			    CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
				 CUstream stream)
{
	return API_CALL_CHANGED(cuMemAllocFromPoolAsync, struct pool_args, args,
				allocate_from(&args, args.stream), address, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
				      CUstream stream)
{
	return API_CALL_CHANGED(cuMemAllocFromPoolAsync_ptsz, struct pool_args, args,
				allocate_from(&args, own_of(args.stream)), address, bytes, pool,
				stream);
}

static CUresult free_async(uint64_t address, CUstream handle)
{
	CUresult error;
	struct sim_stream *stream = stream_enter(handle, &error);

	if (stream && !stream->capture) {
		/* Earlier queued work may still use the memory. */
		while (engine_step(stream->ctx->gpu))
			;
		if (!graph_memory_contains(address) && !pool_free(address) &&
		    !memory_destroy(address, ROOM_LINEAR))
			error = CUDA_ERROR_INVALID_VALUE;
	}
	return sim_leave_with(error);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	return API_CALL(cuMemFreeAsync, free_async(address, stream), address,
			(uintptr_t)stream);
}

/* ------------------------------------------------------------------------- pools */

static CUresult pool_create(CUmemoryPool *pool, const struct cu_pool_properties *properties)
{
	struct sim_gpu *gpu;

	if (!pool || !properties || properties->type != CU_MEMORY_PINNED ||
	    properties->location.type != CU_LOCATION_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	gpu = gpu_get(properties->location.id);
	if (!gpu)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_enter();
	*pool = pool_make(gpu, false);
	sim_leave();
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const struct cu_pool_properties *properties)
{
	return API_CALL(cuMemPoolCreate, pool_create(pool, properties), (uintptr_t)pool,
			(uintptr_t)properties);
}

/* Takes sim_lock, even on an error. */
static CUresult enter_pool(const struct sim_pool *pool)
{
	sim_enter();
	return pool_valid(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult pool_destroy(struct sim_pool *pool)
{
	CUresult error = enter_pool(pool);
	struct sim_pool **link = &pools;
	struct piece *piece;

	if (!error && pool->is_default)
		error = CUDA_ERROR_INVALID_VALUE;
	while (!error && *link != pool)
		link = &(*link)->next;
	if (!error) {
		for (piece = pieces; piece; piece = piece->next)
			if (piece->pool == pool) {
				pool_free(piece->address);
				piece = pieces;
				if (!piece)
					break;
			}
		*link = pool->next;
		room_discharge(pool->gpu, pool->reserved);
		if (pool->gpu->pool == pool)
			pool->gpu->pool = pool->gpu->default_pool;
		free(pool);
	}
	return sim_leave_with(error);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	return API_CALL(cuMemPoolDestroy, pool_destroy(pool), (uintptr_t)pool);
}

static CUresult pool_trim(struct sim_pool *pool, size_t keep)
{
	CUresult error = enter_pool(pool);

	if (!error)
		pool_keep(pool, keep);
	return sim_leave_with(error);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	return API_CALL(cuMemPoolTrimTo, pool_trim(pool, keep), (uintptr_t)pool, keep);
}

static CUresult set_attribute(struct sim_pool *pool, int attribute, const uint64_t *value)
{
	CUresult error = enter_pool(pool);

	if (!error && (attribute != CU_POOL_RELEASE_THRESHOLD || !value))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		pool->threshold = *value;
	return sim_leave_with(error);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	return API_CALL(cuMemPoolSetAttribute, set_attribute(pool, attribute, value),
			(uintptr_t)pool, API_NARROW(attribute), (uintptr_t)value);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	CUresult error = enter_pool(pool);

	if (!error && !value)
		error = CUDA_ERROR_INVALID_VALUE;
	if (error)
		;
	else if (attribute == CU_POOL_RESERVED)
		*(uint64_t *)value = pool->reserved;
	else if (attribute == CU_POOL_USED)
		*(uint64_t *)value = pool->used;
	else if (attribute == CU_POOL_RELEASE_THRESHOLD)
		*(uint64_t *)value = pool->threshold;
	else
		error = CUDA_ERROR_INVALID_VALUE;
	return sim_leave_with(error);
}

static CUresult pool_of(CUmemoryPool *pool, CUdevice device, bool only_default)
{
	struct sim_gpu *gpu = gpu_get(device);
	struct sim_pool *found;

	if (!gpu || !pool)
		return gpu ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	sim_enter();
	found = default_of(gpu);
	if (!only_default)
		found = gpu->pool;
	sim_leave();
	*pool = found;
	return found ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	return pool_of(pool, device, true);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	return pool_of(pool, device, false);
}

static CUresult set_pool(CUdevice device, struct sim_pool *pool)
{
	CUresult error = enter_pool(pool);

	if (!error && gpu_get(device) != pool->gpu)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		pool->gpu->pool = pool;
	return sim_leave_with(error);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	return API_CALL(cuDeviceSetMemPool, set_pool(device, pool), API_NARROW(device),
			(uintptr_t)pool);
}
