// SPDX-License-Identifier: MIT
/*
 * Simulates green contexts. The driver splits a GPU's SMs in the pattern that was measured on an
 * H200 (Documentation/internals/hardware.md).
 */
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/callback_numbers.h"

#define SPLIT_SPREAD	1	/* CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING */
#define GREEN_STREAM	1	/* CU_GREEN_CTX_DEFAULT_STREAM, which must be set */
/* number of whole virtual GPCs; the bits of singletons come after their bits */
#define NR_VGPCS	8

/* The TPCs of a resource, by mask bit. A program cannot read this struct. */
struct opaque {
	uint64_t has[SIM_MASK_WORDS];
	int device;
	bool part;	/* the result of a split, which cannot be split again (measured) */
};

struct desc {
	struct opaque what;
};

static bool has_bit(const uint64_t *bits, unsigned int bit)
{
	return bits[bit / 64] >> bit % 64 & 1;
}

static void add_bit(uint64_t *bits, unsigned int bit)
{
	bits[bit / 64] |= 1ull << bit % 64;
}

static CUdevice device_of(const struct sim_gpu *gpu)
{
	for (unsigned int i = 0; i < sim_nr_gpus; i++)
		if (sim_gpus[i] == gpu)
			return i;
	return -1;
}

static unsigned int sms_per_tpc(const struct sim_gpu *gpu)
{
	return gpu->nr_sms / gpu->nr_tpcs;
}

static unsigned int sms_of(const struct sim_gpu *gpu, const struct opaque *what)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < SIM_MASK_WORDS; i++)
		nr += __builtin_popcountll(what->has[i]);
	return nr * sms_per_tpc(gpu);
}

static void resource_write(const struct sim_gpu *gpu, const struct opaque *what,
			   struct cu_resource *resource)
{
	memset(resource, 0, sizeof(*resource));
	resource->type = CU_RESOURCE_SM;
	memcpy(resource->pad, what, sizeof(*what));
	resource->sm.nr_sms = sms_of(gpu, what);
	resource->sm.smallest_part = resource->sm.alignment = SIM_PART_SMS;
}

CUresult gpu_resource(const struct sim_gpu *gpu, const uint64_t *off,
		      struct cu_resource *resource, int type)
{
	struct opaque what = { .device = device_of(gpu) };

	if (!resource || type != CU_RESOURCE_SM)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int tpc = 0; tpc < gpu->nr_tpcs; tpc++)
		if (!off || !has_bit(off, gpu->tpc_bit[tpc]))
			add_bit(what.has, gpu->tpc_bit[tpc]);
	resource_write(gpu, &what, resource);
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------ splitting */

/*
 * Stores the bits of @what in the order in which groups get them: first whole units of @unit
 * TPCs, then the other bits.
 */
static unsigned int order(const struct sim_gpu *gpu, const struct opaque *what, unsigned int unit,
			  uint8_t *bits)
{
	unsigned int width = gpu->info.max_tpcs_per_gpc ? gpu->info.max_tpcs_per_gpc : 9;
	uint64_t used[SIM_MASK_WORDS] = { 0 };
	unsigned int nr = 0, round, v, bit, found[16], n;

	for (round = 0; round < width; round++)
		for (v = 0; v < NR_VGPCS; v++) {
			n = 0;
			for (bit = v * width; bit < (v + 1) * width && n < unit; bit++)
				if (has_bit(what->has, bit) && !has_bit(used, bit))
					found[n++] = bit;
			for (bit = 0; n == unit && bit < n; bit++) {
				add_bit(used, found[bit]);
				bits[nr++] = found[bit];
			}
		}
	for (bit = 0; bit < SIM_TMD_BITS; bit++)
		if (has_bit(what->has, bit) && !has_bit(used, bit))
			bits[nr++] = bit;
	return nr;
}

/*
 * Each group first gets one unit, which consists of TPCs of one virtual GPC. When every group has
 * one unit, the groups get further TPCs. A split with the spread flag takes single TPCs of the
 * virtual GPCs in turn.
 */
CUresult cuDevSmResourceSplitByCount(struct cu_resource *groups, unsigned int *nr,
				     const struct cu_resource *from, struct cu_resource *rest,
				     unsigned int flags, unsigned int least)
{
	unsigned int unit, size, own, most, total, per_tpc, i, n, next;
	struct opaque what, part;
	uint8_t bits[SIM_TMD_BITS];
	struct sim_gpu *gpu;

	if (!nr || !from || from->type != CU_RESOURCE_SM || flags & ~SPLIT_SPREAD)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&what, from->pad, sizeof(what));
	gpu = gpu_get(what.device);
	if (!gpu)
		return CUDA_ERROR_INVALID_VALUE;
	if (what.part || from->sm.nr_sms != sms_of(gpu, &what))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	per_tpc = sms_per_tpc(gpu);
	unit = flags & SPLIT_SPREAD ? 1 : SIM_PART_SMS / per_tpc;
	size = (least + per_tpc * unit - 1) / (per_tpc * unit) * unit;
	size = size ? size : unit;
	total = order(gpu, &what, unit, bits);
	/* A group with as many TPCs as a unit must be a whole unit. */
	for (most = total / size; size == unit && most && unit > 1; most--)
		if (bits[most * unit - 1] - bits[most * unit - unit] == (int)unit - 1)
			break;
	if (!most)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (!groups) {
		*nr = most;
		return CUDA_SUCCESS;
	}
	*nr = *nr < most ? *nr : most;
	own = flags & SPLIT_SPREAD ? size : unit;
	for (i = 0, next = *nr * own; i < *nr; i++) {
		part = (struct opaque){ .device = what.device, .part = true };
		for (n = 0; n < size; n++)
			add_bit(part.has, n < own ? bits[i * own + n] : bits[next++]);
		resource_write(gpu, &part, &groups[i]);
	}
	part = (struct opaque){ .device = what.device, .part = true };
	for (; next < total; next++)
		add_bit(part.has, bits[next]);
	if (rest)
		resource_write(gpu, &part, rest);
	return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(void **desc, struct cu_resource *resources, unsigned int nr)
{
	const struct sim_gpu *gpu;
	struct opaque what;
	struct desc *made;

	if (!desc || !resources || nr != 1 || resources->type != CU_RESOURCE_SM)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&what, resources->pad, sizeof(what));
	gpu = gpu_get(what.device);
	if (!gpu || resources->sm.nr_sms != sms_of(gpu, &what))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	made = malloc(sizeof(*made));	/* no entry point frees a descriptor */
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->what = what;
	*desc = made;
	return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------------- contexts */

/*
 * Like NVIDIA's driver, refuses green contexts after a subscriber without the feature has
 * attached.
 */
static CUresult create(CUcontext *green, const struct desc *desc, CUdevice device,
		       unsigned int flags)
{
	const struct sim_gpu *gpu = gpu_get(device);
	uint64_t off[SIM_MASK_WORDS];

	if (!gpu)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!green || !desc || flags != GREEN_STREAM || desc->what.device != device)
		return CUDA_ERROR_INVALID_VALUE;
	if (hook_no_green())
		return CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned int i = 0; i < SIM_MASK_WORDS; i++)
		off[i] = ~desc->what.has[i];
	return ctx_make_green(green, device, off);
}

CUresult cuGreenCtxCreate(CUcontext *green, void *desc, CUdevice device, unsigned int flags)
{
	return create(green, desc, device, flags);
}

CUresult cuGreenCtxDestroy(CUcontext green)
{
	return API_CALL(cuGreenCtxDestroy, ctx_end_green(green), (uintptr_t)green);
}

static bool is_green(CUcontext green)
{
	bool valid;

	sim_enter();
	valid = ctx_valid(green) && green->base;
	sim_leave();
	return valid;
}

CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUcontext green)
{
	if (!ctx || !is_green(green))
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = green;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUcontext green, struct cu_resource *resource, int type)
{
	if (!is_green(green))
		return CUDA_ERROR_INVALID_CONTEXT;
	return gpu_resource(green->gpu, green->off, resource, type);
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUcontext green, unsigned int flags, int priority)
{
	struct sim_stream *stream;
	void *object = NULL;

	if (!out || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_green(green))
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_enter();
	stream = stream_new(green->base, green, flags, priority);
	if (stream) {
		*out = stream->handle;
		object = stream->object;
	}
	sim_leave();
	if (stream)
		hook_resource(green, object, HOOK_STREAM_CREATED);
	return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
