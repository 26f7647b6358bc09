// SPDX-License-Identifier: MIT
/* See overhead.h. */
#include <errno.h>
#include "lib/memory/nvml_usage.h"
#include "lib/memory/overhead.h"

/* What one takes of an H200, measured: Documentation/internals/hardware.md, "Memory". */
#define CONTEXT_BYTES (518ull << 20)

/* The amount is the difference, where the driver tells what this process has. */
static void begins(struct memory_now *now, struct memory_gpu *gpu)
{
	int err;

	now->lost = !gpu;
	now->gpu = gpu;
	now->blind = gpu && !memory_gpu_measure(gpu, false, &err) &&
		     memory_real_all(gpu->pci, gpu->device, &now->before);
}

void memory_own_ctx_begins(struct memory_now *now)
{
	begins(now, memory_now_device(memory_calls_device(now->call, now->words)));
}

void memory_own_module_begins(struct memory_now *now)
{
	begins(now, memory_now_gpu());
}

static bool is_context(const struct memory_now *now)
{
	return now->call->kind == MEMORY_CTX_MADE || now->call->kind == MEMORY_PRIMARY_MADE;
}

/*
 * If the driver does not report this process's memory, use the growth of the GPU's total, but
 * only while no other process uses the GPU. Else a context takes what one is known to take,
 * and false of other calls: their amount is not known.
 */
static bool blind_bytes(const struct memory_now *now, uint64_t *bytes)
{
	const struct memory_gpu *gpu = now->gpu;
	int nr = memory_real_processes(gpu->pci, gpu->device);
	uint64_t all;

	if (nr >= 0 && nr <= 1 && now->blind && memory_real_all(gpu->pci, gpu->device, &all)) {
		*bytes = all > now->before ? all - now->before : 0;
		return true;
	}
	*bytes = CONTEXT_BYTES;
	return is_context(now);
}

static int charge_blind(const struct memory_now *now)
{
	struct memory_item *item;
	uint64_t bytes;

	/* A primary context that was there before. */
	if (memory_table_find(MEMORY_BY_OWNER, memory_now_out(now)))
		return 0;
	if (!blind_bytes(now, &bytes)) {
		memory_uncounted(now->call->name);
		return 0;
	}
	if (!bytes)
		return 0;
	if (memory_gpu_charge(now->gpu, bytes))
		return -ENOMEM;
	now->gpu->overhead += bytes;
	item = memory_now_note(now, MEMORY_BY_OWNER, memory_now_out(now), bytes);
	if (item)
		item->ctx = now->params->ctx;
	return 0;
}

void memory_own_ends(struct memory_now *now)
{
	int err = 0;

	if (!now->gpu)
		return;
	if (now->call->kind == MEMORY_PRIMARY_MADE)
		now->gpu->primary = (void *)(uintptr_t)memory_now_out(now);
	if (!memory_gpu_measure(now->gpu, true, &err))
		err = charge_blind(now);
	if (!err)
		return;
	memory_now_undo(now);
	memory_gpu_measure(now->gpu, false, &err);
	memory_now_out_of_memory(now);
}

static bool is_of_ctx(const struct memory_item *item, const void *ctx)
{
	return item->ctx == ctx;
}

static void owner_destroyed(uint64_t handle)
{
	struct memory_item *item = memory_table_take(MEMORY_BY_OWNER, handle);

	if (item)
		memory_gpu_item_goes(item);
}

static void ctx_destroyed(void *ctx)
{
	struct memory_item *item, *next;
	struct memory_gpu *gpu;
	int err;

	if (!ctx)
		return;
	for (item = memory_table_take_all(is_of_ctx, ctx); item; item = next) {
		next = item->next;
		memory_gpu_item_goes(item);
	}
	owner_destroyed((uintptr_t)ctx);
	for (int device = 0; device < MEMORY_MAX_DEVICES; device++) {
		gpu = memory_device_known(device);
		if (gpu)
			memory_gpu_measure(gpu, false, &err);
	}
}

void memory_own_ctx_destroyed(struct memory_now *now)
{
	ctx_destroyed((void *)(uintptr_t)memory_now_first(now));
}

void memory_own_primary_reset(struct memory_now *now)
{
	struct memory_gpu *gpu = memory_device_known((int)memory_now_first(now));

	if (!gpu)
		return;
	ctx_destroyed(gpu->primary);
	gpu->primary = NULL;
}

void memory_own_primary_released(struct memory_now *now)
{
	unsigned int flags;
	int active = 0;

	if (!memory_cuda->primary_state ||
	    (!memory_cuda->primary_state((int)memory_now_first(now), &flags, &active) && !active))
		memory_own_primary_reset(now);
}

void memory_own_module_unloaded(struct memory_now *now)
{
	struct memory_gpu *gpu;
	int err;

	owner_destroyed(memory_now_first(now));
	gpu = memory_now_gpu();
	if (gpu)
		memory_gpu_measure(gpu, false, &err);
}

void memory_own_limit_set(struct memory_now *now)
{
	struct memory_gpu *gpu = memory_now_gpu();

	(void)now;
	/* The driver takes the memory later, when it needs it. */
	if (gpu)
		gpu->due = true;
}

void memory_own_foreign_begins(struct memory_now *now)
{
	struct memory_gpu *gpu = memory_now_gpu();

	if (gpu && !memory_real_own(gpu->pci, gpu->device, &now->before))
		now->gpu = gpu;
}

void memory_own_foreign_ends(struct memory_now *now)
{
	struct memory_item *item;
	uint64_t own;

	if (!now->gpu || memory_real_own(now->gpu->pci, now->gpu->device, &own))
		return;
	own = own > now->before ? own - now->before : 0;
	item = memory_now_note(now, now->handler->by, memory_now_out(now), own);
	if (!item)
		return;
	item->foreign = true;
	now->gpu->foreign += own;
}
