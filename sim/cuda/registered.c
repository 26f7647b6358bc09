// SPDX-License-Identifier: MIT
/* Host memory that a program registers with a context, so that kernels can use it. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "sim/cuda/callback_numbers.h"

#define CU_HOST_REGISTER_PORTABLE	1	/* for all contexts */
#define CU_HOST_REGISTER_DEVICEMAP	2

struct registered {
	struct registered *next;
	struct sim_ctx *ctx;
	uint64_t address, bytes;
	bool portable;
};

static struct registered *all;

bool registered_valid(const struct sim_ctx *ctx, uint64_t address, uint64_t bytes)
{
	const struct registered *r;

	for (r = all; r; r = r->next)
		if (memory_inside(r->address, r->bytes, address, bytes))
			return !ctx || r->portable || r->ctx == ctx;
	return false;
}

void registered_ctx_ends(const struct sim_ctx *ctx)
{
	struct registered **link = &all, *r;

	while ((r = *link))
		if (r->ctx == ctx) {
			*link = r->next;
			free(r);
		} else {
			link = &r->next;
		}
}

/* Returns true if all pages of the range are mapped. */
static bool is_mapped(uint64_t address, uint64_t bytes)
{
	uint64_t page = sysconf(_SC_PAGESIZE), start = address / page * page;
	uint64_t length = address + bytes - start;
	unsigned char *seen = malloc(length / page + 1);
	bool mapped = seen && !mincore((void *)(uintptr_t)start, length, seen);

	free(seen);
	return mapped;
}

static CUresult add(struct sim_ctx *ctx, uint64_t address, uint64_t bytes, unsigned int flags)
{
	struct registered *r;

	for (r = all; r; r = r->next)
		if (address < r->address + r->bytes && r->address < address + bytes)
			return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!is_mapped(address, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	r = malloc(sizeof(*r));
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*r = (struct registered){ all, ctx, address, bytes, flags & CU_HOST_REGISTER_PORTABLE };
	all = r;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
	struct sim_ctx *ctx;
	CUresult error;

	if (!address || !bytes || (uintptr_t)address > UINTPTR_MAX - bytes ||
	    flags & ~(unsigned int)(CU_HOST_REGISTER_PORTABLE | CU_HOST_REGISTER_DEVICEMAP))
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	ctx = ctx_current(&error);
	if (ctx)
		error = ctx->error;
	if (!error)
		error = add(ctx, (uintptr_t)address, bytes, flags);
	return sim_leave_with(error);
}

/* Waits for all queued work, because queued work may use the memory. */
CUresult cuMemHostUnregister(void *address)
{
	struct registered **link, *r;
	struct sim_ctx *ctx;
	CUresult error;

	sim_enter();
	ctx = ctx_current(&error);
	while (ctx && engine_step(ctx->gpu))
		;
	for (link = &all; ctx && (r = *link); link = &r->next)
		if (r->address == (uintptr_t)address && (r->portable || r->ctx == ctx))
			break;
	if (ctx && !r)
		error = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	if (ctx && r) {
		*link = r->next;
		free(r);
	}
	return sim_leave_with(error);
}

/* Host and device use the same addresses, as with unified addressing. */
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *address, unsigned int flags)
{
	struct sim_ctx *ctx;
	CUresult error;

	if (!device || !address || flags)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	ctx = ctx_current(&error);
	if (ctx && !memory_of_ctx(ctx, (uintptr_t)address, 1))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*device = (uintptr_t)address;
	return sim_leave_with(error);
}
