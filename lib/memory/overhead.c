// SPDX-License-Identifier: MIT
/* Handles calls that allocate an amount of memory that must be measured. */
#include <errno.h>
#include <stdlib.h>
#include "lib/memory/call_state.h"
#include "lib/memory/nvml_usage.h"

/*
 * The memory of a context on an H200. The section "Memory" of Documentation/internals/hardware.md
 * has the measurement.
 */
#define CONTEXT_BYTES (518ull << 20)

/*
 * Handles the start of a call. If the driver reports this process's memory usage, the growth of
 * this usage shows how much memory the call allocates.
 */
static void begins(struct memory_now *now, struct memory_gpu *gpu)
{
	now->lost = !gpu;
	now->gpu = gpu;
	now->blind = gpu && !memory_gpu_measure(gpu, NULL) &&
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
	return now->call->fn.kind == MEMORY_CTX_MADE || now->call->fn.kind == MEMORY_PRIMARY_MADE;
}

/*
 * Computes how much memory a call allocated, if the driver does not report this process's usage. If
 * no other process uses the GPU, the result is the growth of the GPU's total usage. If other
 * processes use the GPU, the result for a context is CONTEXT_BYTES. For other calls, the function
 * then returns false, because the amount is unknown.
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

	/* The primary context existed before this call. */
	if (memory_table_find(MEMORY_BY_OWNER, memory_now_out(now)))
		return 0;
	if (!blind_bytes(now, &bytes)) {
		memory_uncounted(now->params->name);
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
	if (now->call->fn.kind == MEMORY_PRIMARY_MADE)
		now->gpu->primary = (void *)(uintptr_t)memory_now_out(now);
	if (!memory_gpu_measure(now->gpu, &err))
		err = charge_blind(now);
	if (!err)
		return;
	memory_now_undo(now);
	memory_gpu_measure(now->gpu, NULL);
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
		memory_gpu_item_destroy(item);
}

static void ctx_destroyed(void *ctx)
{
	struct memory_gpu *gpu;

	if (!ctx)
		return;
	memory_gpu_items_destroy(is_of_ctx, ctx);
	owner_destroyed((uintptr_t)ctx);
	for (int device = 0; device < MEMORY_MAX_DEVICES; device++) {
		gpu = memory_device_known(device);
		if (gpu)
			memory_gpu_measure(gpu, NULL);
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

	owner_destroyed(memory_now_first(now));
	gpu = memory_now_gpu();
	if (gpu)
		memory_gpu_measure(gpu, NULL);
}

void memory_own_limit_set(struct memory_now *now)
{
	struct memory_gpu *gpu = memory_now_gpu();

	(void)now;
	/* The driver does not allocate the memory until it needs the memory. */
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

/* The memory that the nodes of a graph allocate, and the GPU of this memory. */
struct graph_memory {
	uint64_t bytes;
	int device;
};

static int add_node(const struct cuda_api *cuda, void *node, int type, void *arg)
{
	struct graph_memory *memory = arg;
	struct cuda_alloc_node params;

	if (type == CUDA_NODE_ALLOC && !cuda->alloc_node_get(node, &params) &&
	    params.pool.location.type == CUDA_LOCATION_DEVICE) {
		memory->bytes += memory_gpu_rounded(params.bytes);
		memory->device = params.pool.location.id;
	}
	return 0;
}

void memory_own_graph_made(struct memory_now *now)
{
	struct memory_gpu *gpu = memory_now_gpu();
	struct graph_memory memory = { 0, -1 };

	/*
	 * The memory that the driver allocates for the graph's nodes is measured before the
	 * next allocation.
	 */
	if (gpu)
		gpu->due = true;
	if (memory_cuda->alloc_node_get &&
	    cuda_graph_walk(memory_cuda, (void *)(uintptr_t)now->words[1], add_node, &memory))
		memory_uncounted(now->params->name);
	now->gpu = memory.bytes ? memory_now_device(memory.device) : NULL;
	if (memory.bytes && !now->gpu)
		memory_uncounted(now->params->name);
	if (!now->gpu)
		return;
	now->gpu->has_graphs = true;
	memory_now_note(now, MEMORY_BY_EXEC, memory_now_out(now),
			(memory.bytes + MEMORY_SLAB - 1) / MEMORY_SLAB * MEMORY_SLAB);
}

void memory_own_graph_begins(struct memory_now *now)
{
	struct memory_item *item = memory_table_find(MEMORY_BY_EXEC, memory_now_first(now));

	now->ignored = !item;
	if (!item)
		return;
	now->gpu = item->gpu;
	/* The graph still holds the memory that its last run allocated. */
	if (item->trims == item->gpu->trims + 1)
		return;
	if (memory_gpu_graph_before(item->gpu, item->bytes))
		memory_now_refuse(now);
	else
		item->trims = item->gpu->trims + 1;
}

void memory_own_graph_ends(struct memory_now *now)
{
	memory_gpu_graph_after(now->gpu);
}

void memory_own_graph_destroyed(struct memory_now *now)
{
	struct memory_item *item = memory_table_take(MEMORY_BY_EXEC, memory_now_first(now));

	if (!item)
		return;
	memory_gpu_graph_after(item->gpu);
	free(item);
}

void memory_own_graph_trimmed(struct memory_now *now)
{
	struct memory_gpu *gpu = memory_device_known((int)memory_now_first(now));

	if (!gpu)
		return;
	gpu->trims++;
	memory_gpu_graph_after(gpu);
}
