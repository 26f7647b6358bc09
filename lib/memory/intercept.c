// SPDX-License-Identifier: MIT
/*
 * Enforces the memory quota inside a process. This code handles the driver calls that
 * watched_functions.h lists. When a call begins, the code charges the memory of the call. If the
 * charge would exceed the quota, the code changes the arguments so that the driver refuses the
 * call. When the call ends, the code records the result of the call or frees it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "lib/core/fork.h"
#include "lib/driver/callback.h"
#include "lib/memory/call_state.h"
#include "lib/memory/nvml_usage.h"
#include "lib/memory/tenant.h"

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(start_lock);

static void on_call(const struct driver_function *fn, const struct cuda_call_params *params);
static void on_other_call(const struct driver_function *fn, const struct cuda_call_params *params);

/*
 * Other observers also handle graphs. At the start of a call, this observer changes the arguments
 * after all other observers. At the end of a call, this observer restores the arguments before the
 * other observers are called. The library's own allocations are counted, too.
 */
static const struct driver_observer observer = {
	.name = "memory", .inner = true, .own = true, .stays = true,
	.rows = &memory_calls[0].fn, .row_size = sizeof(memory_calls[0]),
	.call = on_call, .other = on_other_call,
};

static atomic_bool on;

/* The driver call that this thread is making. */
static _Thread_local struct memory_now now_here;

/*
 * Returns true for a small allocation. A small allocation is charged as a part of its slab when its
 * address is known.
 */
static bool is_small(const struct memory_call *call, const uint64_t *words)
{
	return call->fn.kind == MEMORY_LINEAR && words[1] <= MEMORY_SMALL;
}

static void begin_allocation(struct memory_now *now)
{
	int device = memory_calls_device(now->call, now->words);
	struct memory_gpu *gpu = device < 0 ? memory_now_gpu() : memory_now_device(device);
	uint64_t bytes;

	if (!memory_calls_on_gpu(now->call, now->words))
		return;
	now->lost = !gpu;
	if (!gpu)
		return;
	bytes = memory_gpu_rounded(memory_calls_bytes(now->call, now->words));
	memory_gpu_measure_soon(gpu);
	/*
	 * The size is larger than the GPU's memory, so the driver itself returns the correct error.
	 */
	if (bytes > gpu->total && now->call->fn.kind != MEMORY_MANAGED)
		return;
	if (bytes && memory_gpu_charge(gpu, bytes)) {
		memory_now_refuse(now);
		return;
	}
	now->charged = bytes;
	memory_now_flight_begins(now, gpu);
}

static void end_small(struct memory_now *now)
{
	uint64_t address = memory_now_out(now);

	if (memory_gpu_slab_enter(address))
		return;
	now->gpu = memory_now_gpu();
	if (!now->gpu) {
		memory_uncounted(now->params->name);
		return;
	}
	memory_gpu_measure_soon(now->gpu);
	if (!memory_gpu_slab(now->gpu, address, now->params->ctx))
		return;
	memory_now_undo(now);
	memory_now_out_of_memory(now);
}

static void end_allocation(struct memory_now *now)
{
	struct memory_gpu *gpu = now->gpu;
	struct memory_item *item;

	if (*now->params->result) {
		if (gpu)
			memory_gpu_release(gpu, now->charged);
		return;
	}
	if (is_small(now->call, now->words)) {
		end_small(now);
		return;
	}
	if (!gpu)
		return;
	if (now->call->fn.kind == MEMORY_PITCH) {
		memory_gpu_release(gpu, now->charged);
		now->charged = memory_gpu_rounded(memory_calls_pitched(now->words));
		if (now->charged <= MEMORY_SMALL) {
			end_small(now);
			return;
		}
		memory_gpu_charge_always(gpu, now->charged);
	}
	item = memory_now_note(now, now->handler->by, memory_now_out(now), now->charged);
	gpu->held += now->charged;
	if (now->call->fn.kind == MEMORY_MANAGED)
		gpu->unseen += now->charged;
	if (!item)
		return;
	item->unseen = now->call->fn.kind == MEMORY_MANAGED;
	if (now->call->fn.kind != MEMORY_PHYSICAL)
		item->ctx = now->params->ctx;
}

static void begin_free(struct memory_now *now)
{
	now->taken = memory_table_take(now->handler->by, memory_now_first(now));
	if (now->taken)
		memory_now_flight_begins(now, now->taken->gpu);
}

static void end_free(struct memory_now *now)
{
	if (now->taken && *now->params->result)
		memory_table_put(now->taken);
	else if (now->taken)
		memory_gpu_item_destroy(now->taken);
	else if (!*now->params->result)
		memory_gpu_slab_leave(memory_now_first(now));
}

static void end_external(struct memory_now *now)
{
	/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
	const struct {
		int type, pad;
		void *handle[2];
		uint64_t bytes;
	} *descriptor = (const void *)(uintptr_t)now->words[1];
	struct memory_item *item;
	uint64_t bytes;

	now->gpu = memory_now_gpu();
	if (!now->gpu) {
		memory_uncounted(now->params->name);
		return;
	}
	bytes = memory_gpu_rounded(descriptor->bytes);
	if (memory_gpu_charge(now->gpu, bytes)) {
		memory_now_undo(now);
		memory_now_out_of_memory(now);
		return;
	}
	item = memory_now_note(now, now->handler->by, memory_now_out(now), bytes);
	/* This memory is in the driver's figure for the process that exported the memory. */
	now->gpu->held += bytes;
	now->gpu->unseen += bytes;
	if (item)
		item->unseen = true;
}

static void physical_put(struct memory_item *item)
{
	/* An item without handles is not in the table. */
	if (!item->handles && !item->mappings)
		memory_gpu_item_destroy(item);
}

static void end_release(struct memory_now *now)
{
	struct memory_item *item = memory_table_find(MEMORY_BY_HANDLE, now->words[0]);

	if (!item || --item->handles)
		return;
	memory_table_take(MEMORY_BY_HANDLE, now->words[0]);
	physical_put(item);
}

static void end_map(struct memory_now *now)
{
	struct memory_item *item = memory_table_find(MEMORY_BY_HANDLE, now->words[3]), *mapping;

	mapping = item ? memory_table_add(MEMORY_BY_MAPPING, now->words[0]) : NULL;
	if (!mapping)
		return;
	mapping->bytes = now->words[1];
	mapping->gpu = item->gpu;
	mapping->of = item;
	item->mappings++;
}

static void end_unmap(struct memory_now *now)
{
	uint64_t address = now->words[0], bytes = now->words[1], end = address + bytes;
	struct memory_item *mapping;

	while (address < end &&
	       (mapping = memory_table_take(MEMORY_BY_MAPPING, address))) {
		address += mapping->bytes ? mapping->bytes : bytes;
		mapping->of->mappings--;
		physical_put(mapping->of);
		free(mapping);
	}
}

static bool is_mapped_at(const struct memory_item *item, const void *address)
{
	return item->by == MEMORY_BY_MAPPING && (uintptr_t)address >= item->key &&
	       (uintptr_t)address - item->key < item->bytes;
}

/* The result is a handle of the mapped memory, which can be an existing handle or a new one. */
static void end_retain(struct memory_now *now)
{
	const void *address = (const void *)(uintptr_t)now->words[1];
	struct memory_item *mapping = memory_table_search(is_mapped_at, address);

	if (!mapping || mapping->of->handles++)
		return;
	mapping->of->key = memory_now_out(now);
	memory_table_put(mapping->of);
}

/* The memory belongs to the GPU of the stream, even if the current context is on another GPU. */
static struct memory_gpu *gpu_of_stream(void *stream, const void *ctx)
{
	struct memory_gpu *current = memory_now_gpu();
	int device, err;
	void *own;

	/* The values 1 and 2 are the default streams of the current context. */
	if (memory_now_only_gpu() || (uintptr_t)stream <= 2 || !memory_cuda->stream_ctx ||
	    memory_cuda->stream_ctx(stream, &own) || own == ctx || memory_cuda->ctx_push(own))
		return current;
	err = memory_cuda->ctx_device(&device);
	memory_cuda->ctx_pop(&own);
	return err ? current : memory_now_device(device);
}

static int grow_pool(struct memory_now *now, void *pool, const void *stream, uint64_t bytes)
{
	int err = memory_gpu_pool_before(now->gpu, pool, stream, bytes);

	now->grows = err ? 0 : bytes;
	return err;
}

static void begin_async(struct memory_now *now)
{
	void *stream = memory_calls_stream(now->call, now->words), *pool = NULL;
	uint64_t bytes = now->words[1];
	struct memory_gpu *gpu;
	int capturing = 0;

	now->ignored = true;
	/*
	 * First check whether a stream is being captured, because the driver calls below could
	 * end the capture.
	 */
	if (memory_cuda->stream_capturing(stream, &capturing) || capturing)
		return;
	if (now->call->fn.kind == MEMORY_ASYNC_POOL)
		pool = (void *)(uintptr_t)now->words[2];
	if (memory_table_find(MEMORY_BY_HOST_POOL, (uintptr_t)pool))
		return;
	gpu = pool ? memory_device_of_pool(pool) : NULL;
	if (!gpu)
		gpu = gpu_of_stream(stream, now->params->ctx);
	now->lost = !gpu;
	now->ignored = gpu;
	if (!gpu || memory_gpu_pool_credit(gpu, bytes))
		return;
	memory_gpu_measure_soon(gpu);
	pool = memory_device_pool(gpu, pool);
	if (!pool || memory_gpu_pool_ahead(gpu, bytes))
		return;
	now->ignored = false;
	now->gpu = gpu;
	if (!grow_pool(now, pool, stream, bytes))
		return;
	/* Memory that was freed in the order of this stream may still be unreleased. */
	memory_device_unlock();
	memory_cuda->stream_sync(stream);
	memory_device_lock();
	if (grow_pool(now, pool, stream, bytes))
		memory_now_refuse(now);
}

static void end_async(struct memory_now *now)
{
	if (!memory_gpu_pool_after(now->gpu))
		return;
	if (!*now->params->result) {
		memory_now_undo(now);
		memory_now_out_of_memory(now);
	}
	memory_gpu_pool_undone(now->gpu);
}

/*
 * Returns true if the pool from the call is not on a GPU. Then records the pool, unless its memory
 * can move to a GPU. Since CUDA 13 the host has pools that no call creates.
 */
static bool is_host_pool(struct memory_now *now, const struct cuda_location *location, int type)
{
	uint64_t pool = memory_now_out(now);

	if (location->type == CUDA_LOCATION_DEVICE)
		return false;
	if (type == CUDA_ALLOCATION_PINNED && !memory_table_find(MEMORY_BY_HOST_POOL, pool))
		memory_table_add(MEMORY_BY_HOST_POOL, pool);
	return true;
}

static void end_pool_found(struct memory_now *now)
{
	const struct cuda_location *location = (const void *)(uintptr_t)now->words[1];

	if (location)
		is_host_pool(now, location, now->words[2]);
}

static void end_pool_made(struct memory_now *now)
{
	const struct cuda_pool_props *props = (const void *)(uintptr_t)now->words[1];
	struct memory_gpu *gpu;

	if (!props || is_host_pool(now, &props->location, props->type))
		return;
	gpu = memory_now_device(props->location.id);
	if (gpu)
		memory_device_pool(gpu, (void *)(uintptr_t)memory_now_out(now));
}

static void begin_pool_destroyed(struct memory_now *now)
{
	memory_device_pool_destroyed((void *)(uintptr_t)memory_now_first(now));
	free(memory_table_take(MEMORY_BY_HOST_POOL, memory_now_first(now)));
}

static void end_pools_changed(struct memory_now *now)
{
	struct memory_gpu *gpu = memory_now_gpu();

	(void)now;
	if (gpu)
		memory_gpu_pools_changed(gpu);
}

/* Launches of graphs are frequent. So they are not observed until some graph allocates memory. */
static void end_graph_made(struct memory_now *now)
{
	static bool watched;

	memory_own_graph_made(now);
	if (now->gpu && !watched)
		driver_watch(&observer, MEMORY_LATER, true);
	watched |= !!now->gpu;
}

static void end_capture_begins(struct memory_now *now)
{
	(void)now;
	memory_gpu_captures(1);
}

/*
 * The end of a capture that became invalid is counted, too. If a thread is not allowed to end a
 * capture, its call is not counted.
 */
static void end_capture_ends(struct memory_now *now)
{
	int result = *now->params->result;

	if (!result || (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
			result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD))
		memory_gpu_captures(-1);
}

static void answer_free(struct memory_now *now)
{
	size_t *free_bytes = (size_t *)(uintptr_t)now->words[0];
	size_t *total = (size_t *)(uintptr_t)now->words[1];
	uint64_t reported_free = free_bytes ? *free_bytes : 0, reported_total = total ? *total : 0;
	struct memory_gpu *gpu = memory_now_gpu();

	if (!gpu)
		return;
	memory_gpu_answer(gpu, &reported_free, &reported_total);
	if (free_bytes)
		*free_bytes = reported_free;
	if (total)
		*total = reported_total;
}

static void answer_total(struct memory_now *now)
{
	struct memory_gpu *gpu = memory_now_device((int)now->words[1]);
	size_t *total = (size_t *)(uintptr_t)now->words[0];
	uint64_t quota = gpu ? ledger_quota(tenant_ledger(), gpu->index) : 0;

	if (quota && total && *total > quota)
		*total = quota;
}

static void end_uncounted(struct memory_now *now)
{
	memory_uncounted(now->params->name);
}

/* Defines a function that frees the result of one kind of call. */
#define UNDO(name, call)                                                                  \
	static void undo_##name(const struct memory_now *now, uint64_t got)               \
	{                                                                                 \
		(void)now;                                                                \
		(void)got;                                                                \
		call;                                                                     \
	}
#define HANDLE ((void *)(uintptr_t)got)

UNDO(linear, memory_cuda->mem_free(got))
UNDO(array, memory_cuda->array_destroy(HANDLE))
UNDO(mipmap, memory_cuda->mipmap_destroy(HANDLE))
UNDO(physical, memory_cuda->physical_release(got))
UNDO(external, memory_cuda->external_destroy(HANDLE))
UNDO(ctx, memory_cuda->ctx_destroy(HANDLE))
UNDO(primary, memory_cuda->primary_release((int)now->words[1]))
UNDO(module, memory_cuda->module_unload(HANDLE))
UNDO(library, memory_cuda->library_unload(HANDLE))

static void undo_async(const struct memory_now *now, uint64_t got)
{
	void *stream = memory_calls_stream(now->call, now->words);

	/* The pool frees the memory when a wait for the stream has ended. */
	if (!memory_cuda->free_async(got, stream))
		memory_cuda->stream_sync(stream);
}

#define ALLOCATION(undo, by)	{ begin_allocation, end_allocation, undo, by, true }
#define FREE(by)		{ begin_free, end_free, NULL, by, true }
#define ASYNC			{ begin_async, end_async, undo_async, 0, true }
#define OWN(begins, undo)	{ begins, memory_own_ends, undo, 0, false }
#define FOREIGN(by) \
	{ memory_own_foreign_begins, memory_own_foreign_ends, NULL, by, false }
#define END(ends)		{ NULL, ends, NULL, 0, false }

static const struct memory_handler handlers[MEMORY_NR_KINDS] = {
	[MEMORY_LINEAR] = ALLOCATION(undo_linear, MEMORY_BY_ADDRESS),
	[MEMORY_PITCH] = ALLOCATION(undo_linear, MEMORY_BY_ADDRESS),
	[MEMORY_MANAGED] = ALLOCATION(undo_linear, MEMORY_BY_ADDRESS),
	[MEMORY_ARRAY] = ALLOCATION(undo_array, MEMORY_BY_ARRAY),
	[MEMORY_ARRAY_3D] = ALLOCATION(undo_array, MEMORY_BY_ARRAY),
	[MEMORY_MIPMAP] = ALLOCATION(undo_mipmap, MEMORY_BY_ARRAY),
	[MEMORY_PHYSICAL] = ALLOCATION(undo_physical, MEMORY_BY_HANDLE),
	[MEMORY_FREE] = FREE(MEMORY_BY_ADDRESS),
	[MEMORY_ARRAY_FREE] = FREE(MEMORY_BY_ARRAY),
	[MEMORY_RELEASE] = END(end_release),
	[MEMORY_MAP] = END(end_map),
	[MEMORY_UNMAP] = END(end_unmap),
	[MEMORY_RETAIN] = END(end_retain),
	[MEMORY_IMPORT] = FOREIGN(MEMORY_BY_HANDLE),
	[MEMORY_IPC_OPEN] = FOREIGN(MEMORY_BY_IPC),
	[MEMORY_IPC_CLOSE] = FREE(MEMORY_BY_IPC),
	[MEMORY_EXTERNAL] = { NULL, end_external, undo_external, MEMORY_BY_EXTERNAL, false },
	[MEMORY_EXTERNAL_FREE] = FREE(MEMORY_BY_EXTERNAL),
	[MEMORY_ASYNC] = ASYNC,
	[MEMORY_ASYNC_POOL] = ASYNC,
	[MEMORY_POOL_MADE] = END(end_pool_made),
	[MEMORY_POOL_FOUND] = END(end_pool_found),
	[MEMORY_POOL_GOES] = { begin_pool_destroyed, end_pools_changed, NULL, 0, false },
	[MEMORY_POOL_CHANGED] = END(end_pools_changed),
	[MEMORY_CTX_MADE] = OWN(memory_own_ctx_begins, undo_ctx),
	[MEMORY_PRIMARY_MADE] = OWN(memory_own_ctx_begins, undo_primary),
	[MEMORY_CTX_GOES] = END(memory_own_ctx_destroyed),
	[MEMORY_PRIMARY_RELEASED] = END(memory_own_primary_released),
	[MEMORY_PRIMARY_RESET] = END(memory_own_primary_reset),
	[MEMORY_MODULE_MADE] = OWN(memory_own_module_begins, undo_module),
	[MEMORY_MODULE_GOES] = END(memory_own_module_unloaded),
	[MEMORY_LIBRARY_MADE] = OWN(memory_own_module_begins, undo_library),
	[MEMORY_LIBRARY_GOES] = END(memory_own_module_unloaded),
	[MEMORY_LIMIT_SET] = END(memory_own_limit_set),
	[MEMORY_GRAPH_MADE] = END(end_graph_made),
	[MEMORY_GRAPH_RUNS] = { memory_own_graph_begins, memory_own_graph_ends, NULL, 0, true },
	[MEMORY_CAPTURE_ENDS] = { NULL, end_capture_ends, NULL, 0, true },
	[MEMORY_GRAPH_GOES] = END(memory_own_graph_destroyed),
	[MEMORY_GRAPH_TRIMMED] = END(memory_own_graph_trimmed),
	[MEMORY_CAPTURE_BEGINS] = END(end_capture_begins),
	[MEMORY_ASK_FREE] = END(answer_free),
	[MEMORY_ASK_TOTAL] = END(answer_total),
	[MEMORY_UNCOUNTED] = END(end_uncounted),
};

/* Cleans up after a call whose end was not reported. */
static void abandon(struct memory_now *now)
{
	if (now->charged)
		memory_gpu_release(now->gpu, now->charged);
	if (now->taken)
		memory_table_put(now->taken);
	memory_now_flight_ends(now);
	now->call = NULL;
}

static void begin(struct memory_now *now, const struct memory_call *call,
		  const struct cuda_call_params *params)
{
	*now = (struct memory_now){
		.call = call,
		.handler = &handlers[call->fn.kind],
		.words = params->arguments,
		.params = params,
	};
	if (now->handler->begin && !is_small(call, now->words))
		now->handler->begin(now);
	if (now->ignored)
		now->call = NULL;
}

static void end(struct memory_now *now, const struct cuda_call_params *params)
{
	int failed = *params->result;

	now->params = params;
	memory_now_flight_ends(now);
	memory_calls_mend(&now->change);
	if (now->refused) {
		/*
		 * The driver ignored the changed argument and allocated the memory, so free the
		 * memory.
		 */
		if (!failed)
			memory_now_undo(now);
		memory_now_out_of_memory(now);
	} else if (now->lost && !failed) {
		memory_uncounted(now->params->name);
	} else if (!now->lost && (!failed || now->handler->failed_too)) {
		now->handler->end(now);
	}
	now->call = NULL;
}

/*
 * Returns true if this call is made inside an earlier call of this thread. Such a call is made by
 * the driver itself.
 */
static bool is_nested(const struct memory_now *now, const void *arguments)
{
	return now->call && (uintptr_t)arguments < (uintptr_t)now->words;
}

/* Returns true if this is an allocation from a pool and was charged in advance. Takes no lock. */
static inline bool has_credit(const struct memory_call *call, const uint64_t *words)
{
	struct memory_gpu *gpu = memory_now_only_gpu();

	return (call->fn.kind == MEMORY_ASYNC || call->fn.kind == MEMORY_ASYNC_POOL) && gpu &&
	       memory_gpu_pool_credit(gpu, words[1]);
}

/* Returns true if this call frees memory that was not charged, for example memory of a pool. */
static bool frees_uncharged(const struct memory_call *call, const uint64_t *words)
{
	const struct memory_handler *handler = &handlers[call->fn.kind];

	return handler->begin == begin_free && !memory_table_find(handler->by, words[0]) &&
	       (handler->by != MEMORY_BY_ADDRESS ||
		!memory_table_find(MEMORY_BY_SLAB, words[0] / MEMORY_SLAB));
}

static __attribute__((noinline)) void call_locked(const struct memory_call *call,
						  const struct cuda_call_params *params)
{
	struct memory_now *now = &now_here;
	unsigned char was = driver_inside;

	driver_inside = DRIVER_UNSEEN;
	memory_device_lock();
	if (params->site != CUDA_SITE_BEGIN) {
		end(now, params);
	} else {
		if (now->call)
			abandon(now);
		if (!frees_uncharged(call, params->arguments))
			begin(now, call, params);
	}
	memory_device_unlock();
	driver_inside = was;
}

/* The driver's callback has already checked that the call has a result. */
static void on_call(const struct driver_function *fn, const struct cuda_call_params *params)
{
	const struct memory_call *call = (const void *)fn;
	const struct memory_now *now = &now_here;

	if (!atomic_load_explicit(&on, memory_order_acquire) || !params->arguments)
		return;
	if (params->site != CUDA_SITE_BEGIN) {
		if (now->call == call && now->words == params->arguments)
			call_locked(call, params);
	} else if (!now->call && is_small(call, params->arguments)) {
		/* Nothing is charged when this call begins. */
		begin(&now_here, call, params);
	} else if (!is_nested(now, params->arguments) &&
		   (now->call || !has_credit(call, params->arguments))) {
		call_locked(call, params);
	}
}

static void on_other_call(const struct driver_function *fn, const struct cuda_call_params *params)
{
	(void)fn;
	if (params->site == CUDA_SITE_BEGIN)
		memory_uncounted(params->name);
}

/*
 * If the parent had used a GPU, CUDA does not work in the child of a fork. Otherwise the child's
 * driver calls are reported like the parent's calls. The child joins the tenant when it uses its
 * first GPU.
 */
static void after_fork(void)
{
	if (memory_device_forked())
		atomic_store(&on, false);
	memory_now_forked();
}

/* This function is called once. Without a driver there is nothing to count. */
static int watch(struct gpupart *gp)
{
	const struct cuda_api *cuda;
	int err;

	if (atomic_load(&on) || !tenant_ledger())
		return 0;
	err = cuda_open(gp, &cuda);
	if (err)
		return err == -ENOENT ? 0 : err;
	memory_real_open(cuda);
	memory_cuda = cuda;
	err = driver_observe(gp, cuda, &observer);
	if (err)
		return err;
	pthread_atfork(NULL, NULL, after_fork);
	atomic_store(&on, true);
	return 0;
}

int gpupart_memory_start(struct gpupart *gp, const char *name, uint64_t bytes)
{
	int err = tenant_start(gp, name, bytes);

	if (err)
		return err;
	FORK_HOLD(&start_lock);
	return watch(gp);
}

int gpupart_memory_limit(struct gpupart *gp, const char *pci, uint64_t bytes)
{
	int err = gpupart_memory_start(gp, NULL, 0);

	return err ? err : tenant_limit(gp, pci, bytes);
}
