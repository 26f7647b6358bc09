// SPDX-License-Identifier: MIT
/* Allocates, fills and copies device memory. In the simulation, device memory is host memory. */
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph.h"

#define ALIGN		512
/* for fills and copies of at least this many bytes, the driver uses a kernel */
#define KERNEL_BYTES	65536
#define KERNEL_THREADS	512

struct allocation {
	struct allocation *next;
	uint64_t address, bytes;
	struct sim_ctx *ctx;
	enum vram_kind kind;
	struct room room;		/* the part of the GPU's memory that this allocation uses */
};

static struct allocation *allocations;

/* Returns the allocation that contains the range, or NULL. */
static const struct allocation *find(uint64_t address, uint64_t bytes)
{
	const struct allocation *a = allocations;

	while (a && !memory_inside(a->address, a->bytes, address, bytes))
		a = a->next;
	return a;
}

bool memory_valid(uint64_t address, uint64_t bytes)
{
	return find(address, bytes) || registered_valid(NULL, address, bytes);
}

/*
 * Device memory belongs to one context, and only this context may use the memory. All contexts
 * may use pinned memory, pools and mappings.
 */
bool memory_of_ctx(const struct sim_ctx *ctx, uint64_t address, uint64_t bytes)
{
	const struct allocation *a = find(address, bytes);

	return a ? a->ctx == ctx || (a->kind != ROOM_LINEAR && a->kind != ROOM_MANAGED) :
		   registered_valid(ctx, address, bytes);
}

CUresult memory_create(struct sim_ctx *ctx, enum vram_kind kind, uint64_t bytes, uint64_t *address)
{
	struct allocation *a = calloc(1, sizeof(*a));

	if (!a || !vram_take(ctx, kind, bytes, &a->room)) {
		free(a);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->next = allocations;
	a->address = a->room.address;
	a->bytes = bytes;
	a->ctx = ctx;
	a->kind = kind;
	allocations = a;
	*address = a->address;
	return CUDA_SUCCESS;
}

static void destroy(struct allocation **link)
{
	struct allocation *a = *link;

	*link = a->next;
	room_give(&a->room);
	free(a);
}

bool memory_destroy(uint64_t address, enum vram_kind kind)
{
	struct allocation **link;

	for (link = &allocations; *link; link = &(*link)->next)
		if ((*link)->address == address && (*link)->kind == kind) {
			destroy(link);
			return true;
		}
	return false;
}

void memory_ctx_ends(struct sim_ctx *ctx)
{
	struct allocation **link = &allocations;

	release_discard_ctx(ctx);
	registered_ctx_ends(ctx);
	/* Host memory stays readable, because the program may still use host memory. */
	while (*link)
		if ((*link)->ctx == ctx &&
		    ((*link)->kind == ROOM_LINEAR || (*link)->kind == ROOM_MANAGED))
			destroy(link);
		else
			link = &(*link)->next;
}

/* Waits for all queued work, because queued work may use the memory. */
static CUresult release(struct sim_ctx *ctx, uint64_t address, bool host)
{
	while (engine_step(ctx->gpu))
		;
	if (host ? memory_destroy(address, ROOM_HOST) :
		   memory_destroy(address, ROOM_LINEAR) || memory_destroy(address, ROOM_MANAGED) ||
		   pool_free(address))
		return ctx->error;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult memory_allocate(uint64_t *address, uint64_t bytes, enum vram_kind kind)
{
	struct sim_ctx *ctx;
	CUresult error;

	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	ctx = ctx_current(&error);
	if (ctx)
		error = memory_create(ctx, kind, bytes, address);
	return sim_leave_with(error);
}

static CUresult enter_release(uint64_t address, bool host)
{
	struct sim_ctx *ctx;
	CUresult error;

	sim_enter();
	ctx = ctx_current(&error);
	if (ctx && address)
		error = release(ctx, address, host);
	return sim_leave_with(error);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	struct args {
		CUdeviceptr *address;
		size_t bytes;
	};

	return API_CALL_CHANGED(cuMemAlloc_v2, struct args, args,
				memory_allocate(args.address, args.bytes, ROOM_LINEAR), address,
				bytes);
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
	struct args {
		CUdeviceptr *address;
		size_t bytes;
		uint64_t flags;
	};

	return API_CALL_CHANGED(cuMemAllocManaged, struct args, args,
				memory_allocate(args.address, args.bytes, ROOM_MANAGED), address,
				bytes, API_NARROW(flags));
}

#define PITCH 512

static CUresult allocate_pitch(uint64_t *address, size_t *pitch, size_t width, size_t height)
{
	if (!pitch || !width || !height || width > INT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = (width + PITCH - 1) / PITCH * PITCH;
	return memory_allocate(address, *pitch * height, ROOM_LINEAR);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	struct args {
		CUdeviceptr *address;
		size_t *pitch, width, height;
		uint64_t element;
	};

	return API_CALL_CHANGED(cuMemAllocPitch_v2, struct args, args,
				allocate_pitch(args.address, args.pitch, args.width, args.height),
				address, pitch, width, height, API_NARROW(element));
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
	return API_CALL(cuMemFree_v2, enter_release(address, false), address);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	return API_CALL(cuMemGetInfo_v2, room_info(free_bytes, total),
			(uintptr_t)free_bytes, (uintptr_t)total);
}

CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
	uint64_t address = 0;
	CUresult error;

	if (!out || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	error = memory_allocate(&address, bytes, ROOM_HOST);
	if (!error)
		*out = (void *)(uintptr_t)address;
	return error;
}

CUresult cuMemFreeHost(void *address)
{
	return enter_release((uintptr_t)address, true);
}

/* --------------------------------------------------------------- copy and fill */

/* Runs the operation on the legacy default stream, and waits for its end. */
static CUresult copy_waited(struct sim_ctx *ctx, const struct sim_op *op)
{
	struct sim_stream *stream;
	CUresult error;

	if (ctx->error)
		return ctx->error;
	stream = stream_get(ctx, NULL, &error);
	if (error || !op->args.bytes)
		return error;
	if (!engine_queue(stream, op))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return engine_finish_stream(stream);
}

static CUresult copy_now(uint64_t device, void *to, const void *from, size_t bytes,
			 enum pipe_way way)
{
	const struct sim_op op = {
		.kind = SIM_OP_COPY, .way = way,
		.args = { .address = (uintptr_t)to, .from = (uintptr_t)from, .bytes = bytes },
	};
	struct sim_ctx *ctx;
	CUresult error;

	sim_enter();
	ctx = ctx_current(&error);
	if (ctx && !memory_valid(device, bytes))
		error = CUDA_ERROR_INVALID_VALUE;
	else if (ctx)
		error = capture_forbids_legacy(ctx);
	if (!error)
		error = copy_waited(ctx, &op);
	return sim_leave_with(error);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return API_CALL(cuMemcpyHtoD_v2,
			from || !bytes ? copy_now(to, (void *)(uintptr_t)to, from, bytes,
						  PIPE_TO_GPU) : CUDA_ERROR_INVALID_VALUE,
			to, (uintptr_t)from, bytes, (uintptr_t)CU_STREAM_LEGACY);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	return API_CALL(cuMemcpyDtoH_v2,
			to || !bytes ? copy_now(from, to, (void *)(uintptr_t)from, bytes,
						PIPE_FROM_GPU) : CUDA_ERROR_INVALID_VALUE,
			(uintptr_t)to, from, bytes, (uintptr_t)CU_STREAM_LEGACY);
}

bool memory_work_valid(const struct sim_work *work)
{
	const struct sim_args *args = &work->args;

	if (work->kind == SIM_OP_KERNEL && !work->launch.bare)
		return true;
	return memory_valid(args->address, args->bytes) &&
	       (!args->from || memory_valid(args->from, args->bytes));
}

CUresult memory_work(struct sim_ctx *ctx, struct sim_work *work)
{
	work->code = work->kind == SIM_OP_COPY ? &kernels_copy :
		     work->kind == SIM_OP_SET8 ? &kernels_set8 : &kernels_set32;
	work->function = work->kind == SIM_OP_COPY ? ctx->builtin_copy : ctx->builtin_set;
	work->launch = (struct sim_launch){
		.grid = { kernels_chunks(work->args.bytes), 1, 1 },
		.block = { KERNEL_THREADS, 1, 1 },
		.registers = work->code->registers,
		.bare = true,
	};
	if (!memory_work_valid(work))
		return CUDA_ERROR_INVALID_VALUE;
	if (work->args.bytes >= KERNEL_BYTES)
		work->kind = SIM_OP_KERNEL;
	return CUDA_SUCCESS;
}

static CUresult fill_or_copy(struct sim_work *work, CUstream handle)
{
	enum cu_node_type type = work->kind == SIM_OP_COPY ? CU_NODE_COPY : CU_NODE_SET;
	struct sim_op op = { .kind = work->kind, .args = work->args };
	bool submit = false;
	CUresult error;
	struct sim_stream *stream = stream_enter(handle, &error);

	if (stream && stream->legacy)
		error = capture_forbids_legacy(stream->ctx);
	if (!error)
		error = memory_work(stream->ctx, work);
	if (error)
		goto leave;
	if (stream->capture)
		error = capture_add(stream, type, work);
	else if (work->kind == SIM_OP_KERNEL)
		submit = true;
	else if (op.args.bytes && !stream->ctx->error && !engine_queue(stream, &op))
		error = CUDA_ERROR_OUT_OF_MEMORY;
leave:
	sim_leave();
	return submit ? launch_submit(stream, work) : error;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	struct sim_work work = { .kind = SIM_OP_COPY,
				 .args = { .address = to, .from = from, .bytes = bytes } };

	return API_CALL(cuMemcpyDtoDAsync_v2,
			from || !bytes ? fill_or_copy(&work, stream) : CUDA_ERROR_INVALID_VALUE,
			to, from, bytes, (uintptr_t)stream);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	struct sim_work work = { .kind = SIM_OP_SET8,
				 .args = { .address = to, .bytes = count, .value = value } };

	return API_CALL(cuMemsetD8Async, fill_or_copy(&work, stream), to,
			API_NARROW(value), count, (uintptr_t)stream);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	struct sim_work work = { .kind = SIM_OP_SET8,
				 .args = { .address = to, .bytes = count, .value = value } };

	return API_CALL(cuMemsetD8_v2, fill_or_copy(&work, CU_STREAM_LEGACY), to,
			API_NARROW(value), count, (uintptr_t)CU_STREAM_LEGACY);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
	struct sim_work work = { .kind = SIM_OP_SET32,
				 .args = { .address = to, .bytes = count * 4, .value = value } };

	return API_CALL(cuMemsetD32Async,
			to % 4 || count > SIZE_MAX / 4 ? CUDA_ERROR_INVALID_VALUE
						       : fill_or_copy(&work, stream),
			to, API_NARROW(value), count, (uintptr_t)stream);
}
