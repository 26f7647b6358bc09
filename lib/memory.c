// SPDX-License-Identifier: MIT
/*
 * See memory.h. At the begin of a call what it asks for is charged, or the call spoilt so
 * that the driver refuses it; at the end what it got is noted, or given back. Must not know
 * where the arguments are, nor how the driver takes memory.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "fork.h"
#include "hook.h"
#include "memory.h"
#include "memory_calls.h"
#include "memory_gpu.h"
#include "memory_real.h"
#include "memory_table.h"
#include "tenant.h"

#define MAX_EMPTY	4	/* slabs kept for what comes next */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(lock);
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(start_lock);
static const struct cuda_api *cuda;
static atomic_bool on;
static atomic_ulong nr_refused;
static _Atomic(const char *) uncounted_name;
static atomic_bool graphs_watched;

/* CUDA shows one device, and that one is known: no need to ask for the current one. */
static _Atomic(struct memory_gpu *) only_gpu;

/* The call that this thread is in. */
static _Thread_local struct {
	const struct memory_call *call;
	const void *arguments;
	struct memory_gpu *gpu;
	uint64_t charged, before;
	uint64_t grows;		/* asked of a pool, which may grow for it */
	struct memory_item *taken;
	struct memory_change change;
	bool refused, in_flight, blind;
} now;

/* Functions that we call are not the program's. */
static _Thread_local bool inside;

_Thread_local struct memory_quick memory_quick;

/*
 * Nobody has the lock while he waits for a GPU: what runs there may end only once another
 * thread has gone on.
 */
static void give_turn(void)
{
	pthread_mutex_unlock(&lock);
}

static void take_turn(void)
{
	pthread_mutex_lock(&lock);
}

void memory_uncounted(const char *name)
{
	/* In the tenant's file, where others see it. */
	ledger_note_uncounted(tenant_ledger());
	if (name)
		atomic_store(&uncounted_name, name);
}

/* ------------------------------------------------------------------ which GPU it is */

static struct memory_gpu *gpu_by_device(int device)
{
	struct memory_gpu *gpu = memory_gpu_of_device(device);
	int count;

	if (gpu && !device && !atomic_load_explicit(&only_gpu, memory_order_relaxed) &&
	    !cuda->device_count(&count) && count == 1)
		atomic_store_explicit(&only_gpu, gpu, memory_order_release);
	return gpu;
}

/* The current context's, under the lock. NULL: none is current, and the call fails. */
static struct memory_gpu *gpu_now(void)
{
	struct memory_gpu *gpu = atomic_load_explicit(&only_gpu, memory_order_acquire);
	int device;

	if (gpu)
		return gpu;
	return cuda->ctx_device(&device) ? NULL : gpu_by_device(device);
}

/* That, without the lock, where it is known already. */
static struct memory_gpu *gpu_known(void)
{
	struct memory_gpu *gpu = atomic_load_explicit(&only_gpu, memory_order_acquire);
	int device;

	if (gpu)
		return gpu;
	return cuda->ctx_device(&device) ? NULL : memory_gpu_known(device);
}

/* ----------------------------------------------------------------------- the begin */

static void fly(struct memory_gpu *gpu)
{
	now.gpu = gpu;
	now.in_flight = true;
	gpu->in_flight++;
}

static void land(void)
{
	if (now.in_flight)
		now.gpu->in_flight--;
	now.in_flight = false;
	if (now.grows)
		memory_gpu_pool_ends(now.gpu, now.grows);
	now.grows = 0;
}

static int grow_pool(struct memory_gpu *gpu, void *pool, const void *stream, uint64_t bytes)
{
	int err = memory_gpu_pool_before(gpu, pool, stream, bytes);

	now.grows = err ? 0 : bytes;
	return err;
}

static void refuse(const void *arguments)
{
	now.refused = true;
	memory_calls_spoil(now.call, arguments, &now.change);
}

static void begin_allocation(const void *arguments)
{
	int device = memory_calls_device(now.call, arguments);
	struct memory_gpu *gpu = device < 0 ? gpu_now() : gpu_by_device(device);
	uint64_t bytes;

	if (!gpu || !memory_calls_on_gpu(now.call, arguments))
		return;
	bytes = memory_gpu_rounded(memory_calls_bytes(now.call, arguments));
	memory_gpu_measure_soon(gpu);
	/* Small ones are charged by the slab, when it is seen where they are. */
	if (now.call->kind == MEMORY_LINEAR && bytes <= MEMORY_SMALL)
		bytes = 0;
	/* More than there is: the driver's own answer is the right one. */
	if (bytes > gpu->total && now.call->kind != MEMORY_MANAGED)
		return;
	if (bytes && memory_gpu_charge(gpu, bytes)) {
		refuse(arguments);
		return;
	}
	now.charged = bytes;
	fly(gpu);
}

static void begin_free(enum memory_key by, uint64_t key)
{
	now.taken = memory_table_take(by, key);
	if (!now.taken)
		return;
	fly(now.taken->gpu);
	if (by == MEMORY_BY_ADDRESS)
		memory_slab_hide(key, false);
}

/* The thread has the credit for calls like this one. */
static void quick_start(uint64_t credit, uint64_t pool, const void *ctx)
{
	memory_quick = (struct memory_quick){
		.cbid = now.call->cbid,
		.epoch = atomic_load(&memory_gpu_epoch),
		.ctx = ctx,
		.pool = pool,
		.credit = credit,
	};
}

/* Memory is of the stream's GPU, whatever the current context's is. */
static atomic_bool streams_cross;

static struct memory_gpu *gpu_of_stream(void *stream, const void *ctx)
{
	struct memory_gpu *gpu, *current = gpu_now();
	int device, err;
	void *own;

	/* 1 and 2 are the current context's default streams. */
	if (atomic_load_explicit(&only_gpu, memory_order_acquire) || (uintptr_t)stream <= 2 ||
	    !cuda->stream_ctx || cuda->stream_ctx(stream, &own) || own == ctx ||
	    cuda->ctx_push(own))
		return current;
	err = cuda->ctx_device(&device);
	cuda->ctx_pop(&own);
	gpu = err ? current : gpu_by_device(device);
	/* A thread's credit is for one stream from now on. */
	if (gpu != current && !atomic_exchange(&streams_cross, true))
		atomic_fetch_add(&memory_gpu_epoch, 1);
	return gpu;
}

static void begin_async(const void *arguments, void *stream, void *pool, const void *ctx)
{
	struct memory_gpu *gpu = pool ? memory_gpu_of_pool(pool) : NULL;
	const struct {
		void *out;
		size_t bytes;
	} *a = arguments;
	uint64_t credit, named = (uintptr_t)pool;
	int capturing = 0;

	/* First of all: what is asked of the driver next may end a capture. */
	if (cuda->stream_capturing(stream, &capturing) || capturing)
		return;
	if (!gpu)
		gpu = gpu_of_stream(stream, ctx);
	if (!gpu)
		return;
	/* The same argument of the other function. */
	if (!pool && atomic_load_explicit(&streams_cross, memory_order_relaxed))
		named = (uintptr_t)stream;
	memory_gpu_measure_soon(gpu);
	pool = memory_gpu_pool(gpu, pool);
	if (!pool)
		return;
	if (memory_gpu_pool_ahead(gpu, a->bytes, &memory_quick, &credit)) {
		if (named || !atomic_load_explicit(&streams_cross, memory_order_relaxed))
			quick_start(credit, named, ctx);
		return;
	}
	now.gpu = gpu;
	if (!grow_pool(gpu, pool, stream, a->bytes))
		return;
	/* What was freed in this stream's order may not be free yet. */
	give_turn();
	cuda->stream_sync(stream);
	take_turn();
	if (grow_pool(gpu, pool, stream, a->bytes))
		refuse(arguments);
}

/* What the driver takes for itself is the difference, where it tells what we have. */
static void begin_own(struct memory_gpu *gpu)
{
	int err;

	if (!gpu)
		return;
	now.gpu = gpu;
	now.blind = !memory_gpu_measure(gpu, false, &err) &&
		    memory_real_all(gpu->pci, gpu->device, &now.before);
}

static void begin_foreign(void)
{
	struct memory_gpu *gpu = gpu_now();

	if (gpu && !memory_real_own(gpu->pci, gpu->device, &now.before))
		now.gpu = gpu;
}

static void begin_graph(const void *arguments)
{
	void *exec = *(void *const *)arguments;
	struct memory_item *item = memory_table_find(MEMORY_BY_EXEC, (uintptr_t)exec);

	if (!item)
		return;
	now.gpu = item->gpu;
	/* It has what it wants from its last run. */
	if (item->trims == item->gpu->trims + 1)
		return;
	if (memory_gpu_graph_before(item->gpu, item->bytes))
		refuse(arguments);
	else
		item->trims = item->gpu->trims + 1;
}

/* An item of the call's own comes first in what it was given; see memory_calls.h. */
static uint64_t first(const void *arguments)
{
	return *(const uint64_t *)arguments;
}

static uint64_t out(const void *arguments)
{
	return *(const uint64_t *)(uintptr_t)first(arguments);
}

static void at_begin(const void *arguments, const void *ctx)
{
	const uint64_t *words = arguments;

	switch ((enum memory_kind)now.call->kind) {
	case MEMORY_LINEAR:
	case MEMORY_PITCH:
	case MEMORY_MANAGED:
	case MEMORY_ARRAY:
	case MEMORY_ARRAY_3D:
	case MEMORY_MIPMAP:
	case MEMORY_PHYSICAL:
		begin_allocation(arguments);
		break;
	case MEMORY_FREE:
		begin_free(MEMORY_BY_ADDRESS, first(arguments));
		break;
	case MEMORY_ARRAY_FREE:
		begin_free(MEMORY_BY_ARRAY, first(arguments));
		break;
	case MEMORY_IPC_CLOSE:
		begin_free(MEMORY_BY_IPC, first(arguments));
		break;
	case MEMORY_EXTERNAL_FREE:
		begin_free(MEMORY_BY_EXTERNAL, first(arguments));
		break;
	case MEMORY_ASYNC:
		begin_async(arguments, (void *)(uintptr_t)words[2], NULL, ctx);
		break;
	case MEMORY_ASYNC_POOL:
		begin_async(arguments, (void *)(uintptr_t)words[3], (void *)(uintptr_t)words[2],
			    ctx);
		break;
	case MEMORY_POOL_GOES:
		memory_gpu_pool_goes((void *)(uintptr_t)first(arguments));
		break;
	case MEMORY_CTX_MADE:
	case MEMORY_PRIMARY_MADE:
		begin_own(gpu_by_device(memory_calls_device(now.call, arguments)));
		break;
	case MEMORY_MODULE_MADE:
	case MEMORY_LIBRARY_MADE:
		begin_own(gpu_now());
		break;
	case MEMORY_IMPORT:
	case MEMORY_IPC_OPEN:
		begin_foreign();
		break;
	case MEMORY_GRAPH_RUNS:
		begin_graph(arguments);
		break;
	default:
		break;
	}
}

/* ------------------------------------------------------------------ the end: noting */

static struct memory_item *note(enum memory_key by, uint64_t key, uint64_t bytes)
{
	struct memory_item *item = memory_table_add(by, key);

	if (!item)
		memory_uncounted(now.call->name);
	if (!item)
		return NULL;
	item->bytes = bytes;
	item->gpu = now.gpu;
	return item;
}

/* It was given although it is more than fits: back with it, which may wait for the GPU. */
static void take_back(const void *arguments)
{
	uint64_t got = out(arguments);
	void *handle = (void *)(uintptr_t)got, *stream;
	const uint64_t *words = arguments;

	switch ((enum memory_kind)now.call->kind) {
	case MEMORY_LINEAR:
	case MEMORY_PITCH:
	case MEMORY_MANAGED:
		cuda->mem_free(got);
		break;
	case MEMORY_ARRAY:
	case MEMORY_ARRAY_3D:
		cuda->array_destroy(handle);
		break;
	case MEMORY_MIPMAP:
		cuda->mipmap_destroy(handle);
		break;
	case MEMORY_PHYSICAL:
		cuda->physical_release(got);
		break;
	case MEMORY_EXTERNAL:
		cuda->external_destroy(handle);
		break;
	case MEMORY_ASYNC:
	case MEMORY_ASYNC_POOL:
		stream = (void *)(uintptr_t)words[now.call->kind == MEMORY_ASYNC ? 2 : 3];
		/* The pool lets go of it when somebody waits. */
		if (!cuda->free_async(got, stream))
			cuda->stream_sync(stream);
		break;
	case MEMORY_CTX_MADE:
		cuda->ctx_destroy(handle);
		break;
	case MEMORY_PRIMARY_MADE:
		cuda->primary_release((int)words[1]);
		break;
	case MEMORY_MODULE_MADE:
		cuda->module_unload(handle);
		break;
	case MEMORY_LIBRARY_MADE:
		cuda->library_unload(handle);
		break;
	default:
		return;
	}
	*(uint64_t *)(uintptr_t)first(arguments) = 0;
}

static void undo(const void *arguments)
{
	give_turn();
	take_back(arguments);
	take_turn();
}

static void out_of_memory(const struct cuda_call_params *params)
{
	/* The program gets what stands there: measured. */
	*(int *)(uintptr_t)params->result = CUDA_ERROR_OUT_OF_MEMORY;
	atomic_fetch_add(&nr_refused, 1);
}

static void refused(const struct cuda_call_params *params)
{
	/* A driver that did not look at what was changed gave it all the same. */
	if (!*params->result)
		undo(params->arguments);
	out_of_memory(params);
}

/* It is in a slab, like what small_allocation() sees. */
static void end_small(const struct cuda_call_params *params)
{
	uint64_t address = out(params->arguments);

	memory_gpu_release(now.gpu, now.charged);
	if (memory_slab_enter(address) || !memory_gpu_slab(now.gpu, address, params->ctx))
		return;
	undo(params->arguments);
	out_of_memory(params);
}

static void end_allocation(const struct cuda_call_params *params)
{
	const void *arguments = params->arguments;
	const struct {
		void *out;
		const size_t *pitch;
		size_t width, height;
	} *pitched = arguments;
	enum memory_kind kind = now.call->kind;
	uint64_t bytes = now.charged;
	struct memory_item *item;

	if (!now.gpu)
		return;
	if (*params->result) {
		memory_gpu_release(now.gpu, now.charged);
		return;
	}
	if (kind == MEMORY_PITCH) {
		bytes = memory_gpu_rounded(*pitched->pitch * pitched->height);
		if (bytes <= MEMORY_SMALL) {
			end_small(params);
			return;
		}
		if (bytes > now.charged)
			memory_gpu_charge_always(now.gpu, bytes - now.charged);
		else
			memory_gpu_release(now.gpu, now.charged - bytes);
	}
	item = note(kind == MEMORY_PHYSICAL ? MEMORY_BY_HANDLE :
		    kind <= MEMORY_MANAGED ? MEMORY_BY_ADDRESS : MEMORY_BY_ARRAY, out(arguments),
		    bytes);
	now.gpu->held += bytes;
	if (kind == MEMORY_MANAGED)
		now.gpu->unseen += bytes;
	if (!item)
		return;
	item->unseen = kind == MEMORY_MANAGED;
	if (item->by == MEMORY_BY_ADDRESS)
		memory_slab_hide(item->key, true);
	if (kind != MEMORY_PHYSICAL)
		item->ctx = params->ctx;
}

/* Gives back what an item is charged for, and the item. */
static void item_goes(struct memory_item *item)
{
	struct memory_gpu *gpu = item->gpu;

	if (item->by == MEMORY_BY_SLAB)
		memory_slab_drop(item->key * MEMORY_SLAB, false);
	else if (item->by == MEMORY_BY_ADDRESS)
		memory_slab_hide(item->key, false);
	if (item->foreign) {
		gpu->foreign -= item->bytes < gpu->foreign ? item->bytes : gpu->foreign;
	} else if (item->by == MEMORY_BY_OWNER) {
		gpu->overhead -= item->bytes < gpu->overhead ? item->bytes : gpu->overhead;
		memory_gpu_release(gpu, item->bytes);
	} else if (item->by != MEMORY_BY_EXEC && item->by != MEMORY_BY_MAPPING) {
		gpu->held -= item->bytes;
		if (item->unseen)
			gpu->unseen -= item->bytes;
		memory_gpu_release(gpu, item->bytes);
	}
	free(item);
}

static void put_back(struct memory_item *item)
{
	memory_table_put(item);
	if (item->by == MEMORY_BY_ADDRESS)
		memory_slab_hide(item->key, true);
}

static void end_free(int result)
{
	if (!now.taken)
		return;
	if (!result)
		item_goes(now.taken);
	else
		put_back(now.taken);
	now.taken = NULL;
}

/* ------------------------------------------------- small allocations, without a lock */

static __attribute__((noinline)) void new_slab(const struct cuda_call_params *params,
					       uint64_t address)
{
	struct memory_gpu *gpu;
	int err = 0;

	inside = true;
	pthread_mutex_lock(&lock);
	gpu = gpu_now();
	/* Another thread may have made it meanwhile. */
	if (gpu && !memory_slab_enter(address)) {
		memory_gpu_measure_soon(gpu);
		err = memory_gpu_slab(gpu, address, params->ctx);
	}
	pthread_mutex_unlock(&lock);
	if (err) {
		cuda->mem_free(address);
		*(uint64_t *)(uintptr_t)first(params->arguments) = 0;
		out_of_memory(params);
	}
	inside = false;
}

static __attribute__((noinline)) void slab_emptied(void)
{
	struct memory_gpu *gpu;

	inside = true;
	gpu = gpu_known();
	if (gpu && atomic_fetch_add(&gpu->nr_empty, 1) >= MAX_EMPTY) {
		pthread_mutex_lock(&lock);
		memory_gpu_drop_empty(gpu);
		pthread_mutex_unlock(&lock);
	}
	inside = false;
}

/* Deeper in the stack than a call that has not ended: one that the driver makes itself. */
static bool nested(const void *arguments)
{
	return now.call && (uintptr_t)arguments < (uintptr_t)now.arguments;
}

/* True: it was a small one, and all is done. */
static bool small_allocation(const struct cuda_call_params *params)
{
	const uint64_t *words = params->arguments;
	uint64_t address;

	if (words[1] > MEMORY_SMALL)
		return false;
	if (params->site == CUDA_SITE_BEGIN || *params->result || nested(words))
		return true;
	address = out(words);
	if (!memory_slab_enter(address))
		new_slab(params, address);
	return true;
}

static bool small_free(const struct cuda_call_params *params)
{
	uint64_t address = first(params->arguments);
	bool empty;

	if (params->site == CUDA_SITE_BEGIN)
		return memory_slab_there(address);
	/* What was none at the begin is none: by now something else may be there. */
	if (now.call && now.arguments == params->arguments)
		return false;
	if (!*params->result && !nested(params->arguments) && memory_slab_leave(address, &empty) &&
	    empty)
		slab_emptied();
	return true;
}

/* -------------------------------------------------------- the end: physical memory */

static void physical_put(struct memory_item *item)
{
	if (item->handles || item->mappings)
		return;
	/* Without handles it is in no table. */
	item_goes(item);
}

static void end_release(uint64_t handle)
{
	struct memory_item *item = memory_table_find(MEMORY_BY_HANDLE, handle);

	if (!item || --item->handles)
		return;
	memory_table_take(MEMORY_BY_HANDLE, handle);
	physical_put(item);
}

static void end_map(const uint64_t *words)
{
	struct memory_item *item = memory_table_find(MEMORY_BY_HANDLE, words[3]), *mapping;

	if (!item)
		return;
	mapping = memory_table_add(MEMORY_BY_MAPPING, words[0]);
	if (!mapping)
		return;
	mapping->bytes = words[1];
	mapping->gpu = item->gpu;
	mapping->of = item;
	item->mappings++;
}

static void end_unmap(uint64_t address, uint64_t bytes)
{
	const uint64_t end = address + bytes;
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

/* A handle of what is mapped there: the one that it has, or another. */
static void end_retain(uint64_t handle, const void *address)
{
	struct memory_item *mapping = memory_table_search(is_mapped_at, address), *item;

	if (!mapping)
		return;
	item = mapping->of;
	if (item->handles++)
		return;
	item->key = handle;
	memory_table_put(item);
}

static void end_foreign(enum memory_key by, uint64_t key)
{
	struct memory_item *item;
	uint64_t own;

	if (!now.gpu || memory_real_own(now.gpu->pci, now.gpu->device, &own))
		return;
	own = own > now.before ? own - now.before : 0;
	item = note(by, key, own);
	if (!item)
		return;
	item->foreign = true;
	now.gpu->foreign += own;
}

static void end_external(const struct cuda_call_params *params)
{
	/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
	const struct {
		int type, pad;
		void *handle[2];
		uint64_t bytes;
	} *const *descriptor = (const void *)((const uint64_t *)params->arguments + 1);
	struct memory_item *item;
	uint64_t bytes;

	now.gpu = gpu_now();
	if (!now.gpu)
		return;
	bytes = memory_gpu_rounded((*descriptor)->bytes);
	if (memory_gpu_charge(now.gpu, bytes)) {
		undo(params->arguments);
		out_of_memory(params);
		return;
	}
	item = note(MEMORY_BY_EXTERNAL, out(params->arguments), bytes);
	/* The driver's figure has it where it came from. */
	now.gpu->held += bytes;
	now.gpu->unseen += bytes;
	if (item)
		item->unseen = true;
}

/* --------------------------------------------------- the end: the driver's own take */

/* Where nobody tells what is ours: what the GPU has more than before. */
static int charge_blind(const struct cuda_call_params *params)
{
	struct memory_item *item;
	uint64_t all, bytes;

	if (!now.blind || !memory_real_all(now.gpu->pci, now.gpu->device, &all)) {
		memory_uncounted(now.call->name);
		return 0;
	}
	bytes = all > now.before ? all - now.before : 0;
	if (!bytes)
		return 0;
	if (memory_gpu_charge(now.gpu, bytes))
		return -ENOMEM;
	now.gpu->overhead += bytes;
	item = note(MEMORY_BY_OWNER, out(params->arguments), bytes);
	if (item)
		item->ctx = params->ctx;
	return 0;
}

static void end_own(const struct cuda_call_params *params)
{
	int err = 0;

	if (!now.gpu)
		return;
	if (now.call->kind == MEMORY_PRIMARY_MADE)
		now.gpu->primary = (void *)(uintptr_t)out(params->arguments);
	if (!memory_gpu_measure(now.gpu, true, &err))
		err = charge_blind(params);
	if (!err)
		return;
	undo(params->arguments);
	memory_gpu_measure(now.gpu, false, &err);
	out_of_memory(params);
}

static bool is_of_ctx(const struct memory_item *item, const void *ctx)
{
	return item->ctx == ctx;
}

static void measure_all(void)
{
	struct memory_gpu *gpu;
	int err;

	for (int device = 0; device < MEMORY_MAX_DEVICES; device++) {
		gpu = memory_gpu_known(device);
		if (gpu)
			memory_gpu_measure(gpu, false, &err);
	}
}

static void ctx_gone(void *ctx)
{
	struct memory_item *item;
	unsigned int at = 0;

	if (!ctx)
		return;
	atomic_fetch_add(&memory_gpu_epoch, 1);
	while ((item = memory_table_take_if(is_of_ctx, ctx, &at)))
		item_goes(item);
	item = memory_table_take(MEMORY_BY_OWNER, (uintptr_t)ctx);
	if (item)
		item_goes(item);
	measure_all();
}

static void primary_goes(int device, bool reset)
{
	struct memory_gpu *gpu = memory_gpu_known(device);
	unsigned int flags;
	int active = 0;

	if (!gpu || (!reset && cuda->primary_state &&
		     (cuda->primary_state(device, &flags, &active) || active)))
		return;
	ctx_gone(gpu->primary);
	gpu->primary = NULL;
}

static void owner_goes(uint64_t handle)
{
	struct memory_item *item = memory_table_take(MEMORY_BY_OWNER, handle);
	struct memory_gpu *gpu;
	int err;

	if (item)
		item_goes(item);
	gpu = gpu_now();
	if (gpu)
		memory_gpu_measure(gpu, false, &err);
}

static void measure_later(void)
{
	struct memory_gpu *gpu = gpu_now();

	if (gpu)
		gpu->due = true;
}

/* ------------------------------------------------------------ the end: pools, graphs */

static void end_async(const struct cuda_call_params *params)
{
	if (!now.gpu || !memory_gpu_pool_after(now.gpu))
		return;
	if (*params->result) {
		memory_gpu_pool_undone(now.gpu);
		return;
	}
	undo(params->arguments);
	out_of_memory(params);
	memory_gpu_pool_undone(now.gpu);
}

static void end_pool_made(const uint64_t *words)
{
	const struct cuda_pool_props *props = (const void *)(uintptr_t)words[1];
	struct memory_gpu *gpu;

	if (!props || props->location.type != CUDA_LOCATION_DEVICE)
		return;
	gpu = gpu_by_device(props->location.id);
	if (gpu)
		memory_gpu_pool(gpu, (void *)(uintptr_t)out(words));
}

static void pools_changed(void)
{
	struct memory_gpu *gpu = gpu_now();

	if (!gpu)
		return;
	atomic_fetch_add(&memory_gpu_epoch, 1);
	gpu->pool = NULL;
	if (memory_gpu_pool_after(gpu))
		memory_gpu_pool_undone(gpu);
}

/* What the nodes of a graph get, one after the other, and @device: whose memory it is. */
static uint64_t graph_bytes(void *graph, int *device, unsigned int depth)
{
	struct cuda_alloc_node params;
	void *child, **nodes;
	uint64_t bytes = 0;
	size_t nr = 0;
	int type;

	if (depth > 8 || cuda->graph_nodes(graph, NULL, &nr) || !nr)
		return 0;
	nodes = calloc(nr, sizeof(*nodes));
	if (!nodes || cuda->graph_nodes(graph, nodes, &nr))
		nr = 0;
	for (size_t i = 0; i < nr; i++) {
		if (cuda->node_type(nodes[i], &type))
			continue;
		if (type == CUDA_NODE_ALLOC && !cuda->alloc_node_get(nodes[i], &params) &&
		    params.pool.location.type == CUDA_LOCATION_DEVICE) {
			bytes += memory_gpu_rounded(params.bytes);
			*device = params.pool.location.id;
		} else if (type == CUDA_NODE_GRAPH && !cuda->graph_child(nodes[i], &child)) {
			bytes += graph_bytes(child, device, depth + 1);
		}
	}
	free(nodes);
	return bytes;
}

static void end_graph_made(const uint64_t *words)
{
	uint64_t bytes;
	int device = -1;

	if (!cuda->graph_nodes || !cuda->node_type || !cuda->alloc_node_get || !cuda->graph_child)
		return;
	bytes = graph_bytes((void *)(uintptr_t)words[1], &device, 0);
	now.gpu = bytes ? gpu_by_device(device) : NULL;
	if (!now.gpu)
		return;
	now.gpu->has_graphs = true;
	note(MEMORY_BY_EXEC, out(words), (bytes + MEMORY_SLAB - 1) / MEMORY_SLAB * MEMORY_SLAB);
	/* From now on launches of graphs are looked at, and not before. */
	if (!atomic_exchange(&graphs_watched, true))
		hook_watch_memory_later();
}

static void end_graph_goes(uint64_t exec)
{
	struct memory_item *item = memory_table_take(MEMORY_BY_EXEC, exec);

	if (!item)
		return;
	memory_gpu_graph_after(item->gpu);
	free(item);
}

static void graph_trimmed(int device)
{
	struct memory_gpu *gpu = memory_gpu_known(device);

	if (!gpu)
		return;
	gpu->trims++;
	memory_gpu_graph_after(gpu);
}

/* -------------------------------------------------------------------- the end: answers */

static void answer_free(const uint64_t *words)
{
	size_t *free_bytes = (size_t *)(uintptr_t)words[0];
	size_t *total = (size_t *)(uintptr_t)words[1];
	uint64_t told_free = free_bytes ? *free_bytes : 0, told_total = total ? *total : 0;
	struct memory_gpu *gpu = gpu_now();

	if (!gpu)
		return;
	memory_gpu_answer(gpu, &told_free, &told_total);
	if (free_bytes)
		*free_bytes = told_free;
	if (total)
		*total = told_total;
}

static void answer_total(const uint64_t *words)
{
	struct memory_gpu *gpu = gpu_by_device((int)words[1]);
	size_t *total = (size_t *)(uintptr_t)words[0];
	uint64_t quota = gpu ? ledger_quota(tenant_ledger(), gpu->index) : 0;

	if (quota && total && *total > quota)
		*total = quota;
}

/* -------------------------------------------------------------------------- the end */

static void at_good_end(const struct cuda_call_params *params)
{
	const uint64_t *words = params->arguments;

	switch ((enum memory_kind)now.call->kind) {
	case MEMORY_RELEASE:
		end_release(words[0]);
		break;
	case MEMORY_MAP:
		end_map(words);
		break;
	case MEMORY_UNMAP:
		end_unmap(words[0], words[1]);
		break;
	case MEMORY_RETAIN:
		end_retain(out(words), (const void *)(uintptr_t)words[1]);
		break;
	case MEMORY_IMPORT:
		end_foreign(MEMORY_BY_HANDLE, out(words));
		break;
	case MEMORY_IPC_OPEN:
		end_foreign(MEMORY_BY_IPC, out(words));
		break;
	case MEMORY_EXTERNAL:
		end_external(params);
		break;
	case MEMORY_POOL_MADE:
		end_pool_made(words);
		break;
	case MEMORY_POOL_GOES:
	case MEMORY_POOL_CHANGED:
		pools_changed();
		break;
	case MEMORY_CTX_MADE:
	case MEMORY_PRIMARY_MADE:
	case MEMORY_MODULE_MADE:
	case MEMORY_LIBRARY_MADE:
		end_own(params);
		break;
	case MEMORY_CTX_GOES:
		ctx_gone((void *)(uintptr_t)words[0]);
		break;
	case MEMORY_PRIMARY_RELEASED:
		primary_goes((int)words[0], false);
		break;
	case MEMORY_PRIMARY_RESET:
		primary_goes((int)words[0], true);
		break;
	case MEMORY_MODULE_GOES:
	case MEMORY_LIBRARY_GOES:
		owner_goes(words[0]);
		break;
	case MEMORY_LIMIT_SET:
		/* It is taken later, when the driver needs it. */
		measure_later();
		break;
	case MEMORY_CAPTURE_BEGINS:
		memory_gpu_captures(1);
		break;
	case MEMORY_GRAPH_MADE:
		end_graph_made(words);
		break;
	case MEMORY_GRAPH_GOES:
		end_graph_goes(words[0]);
		break;
	case MEMORY_GRAPH_TRIMMED:
		graph_trimmed((int)words[0]);
		break;
	case MEMORY_ASK_FREE:
		answer_free(words);
		break;
	case MEMORY_ASK_TOTAL:
		answer_total(words);
		break;
	case MEMORY_UNCOUNTED:
		memory_uncounted(now.call->name);
		break;
	default:
		break;
	}
}

/* Also one that became invalid meanwhile; not by a thread that may not. */
static bool capture_ended(int result)
{
	return !result || (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
			   result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

static void at_end(const struct cuda_call_params *params)
{
	memory_calls_mend(&now.change);
	if (now.refused) {
		refused(params);
		return;
	}
	switch ((enum memory_kind)now.call->kind) {
	case MEMORY_LINEAR:
	case MEMORY_PITCH:
	case MEMORY_MANAGED:
	case MEMORY_ARRAY:
	case MEMORY_ARRAY_3D:
	case MEMORY_MIPMAP:
	case MEMORY_PHYSICAL:
		end_allocation(params);
		break;
	case MEMORY_FREE:
	case MEMORY_ARRAY_FREE:
	case MEMORY_IPC_CLOSE:
	case MEMORY_EXTERNAL_FREE:
		end_free(*params->result);
		break;
	case MEMORY_ASYNC:
	case MEMORY_ASYNC_POOL:
		end_async(params);
		break;
	case MEMORY_GRAPH_RUNS:
		if (now.gpu)
			memory_gpu_graph_after(now.gpu);
		break;
	case MEMORY_CAPTURE_ENDS:
		if (capture_ended(*params->result))
			memory_gpu_captures(-1);
		break;
	default:
		if (!*params->result)
			at_good_end(params);
		break;
	}
}

/* ------------------------------------------------------------------------- callback */

static bool is_async(const struct memory_call *call)
{
	return call->kind == MEMORY_ASYNC || call->kind == MEMORY_ASYNC_POOL;
}

/* Of a call that nobody told the end of. */
static void abandon(void)
{
	if (now.charged)
		memory_gpu_release(now.gpu, now.charged);
	if (now.taken)
		put_back(now.taken);
	land();
}

static void begin(const struct memory_call *call, const void *arguments, const void *ctx)
{
	if (nested(arguments))
		return;
	if (now.call)
		abandon();
	memset(&now, 0, sizeof(now));
	now.call = call;
	now.arguments = arguments;
	at_begin(arguments, ctx);
	if (!is_async(call))
		return;
	if (now.gpu)
		memory_quick.cbid = 0;
	else
		now.call = NULL;
}

static void end(const struct memory_call *call, const struct cuda_call_params *params)
{
	if (now.call != call || now.arguments != params->arguments)
		return;
	land();
	at_end(params);
	now.call = NULL;
}

/* Out of line, so that the small and frequent save no register for it. */
static __attribute__((noinline)) void in_turn(const struct memory_call *call,
					      const struct cuda_call_params *params)
{
	inside = true;
	pthread_mutex_lock(&lock);
	if (params->site == CUDA_SITE_BEGIN)
		begin(call, params->arguments, params->ctx);
	else
		end(call, params);
	pthread_mutex_unlock(&lock);
	inside = false;
}

void memory_callback(const struct memory_call *call, const struct cuda_call_params *params)
{
	if (inside || !atomic_load_explicit(&on, memory_order_acquire) || !params->arguments ||
	    !params->result)
		return;
	if (!(call->kind == MEMORY_LINEAR && small_allocation(params)) &&
	    !(call->kind == MEMORY_FREE && small_free(params)))
		in_turn(call, params);
}

/* ---------------------------------------------------------------------------- start */

/*
 * Where the parent had used a GPU, CUDA does not work in the child. Else the child has the
 * driver's calls told as its parent would, and joins with its first GPU.
 */
static void after_fork(void)
{
	if (memory_gpu_any())
		atomic_store(&on, false);
}

/* Once; without a driver there is nothing to count. */
static int watch(struct gpupart *gp)
{
	int err;

	if (atomic_load(&on) || !tenant_ledger())
		return 0;
	err = cuda_open(gp, &cuda);
	if (err)
		return err == -ENOENT ? 0 : err;
	memory_real_open(cuda);
	memory_gpu_start(cuda, &lock);
	err = hook_watch_memory(gp, cuda);
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
	pthread_mutex_lock(&start_lock);
	err = watch(gp);
	pthread_mutex_unlock(&start_lock);
	return err;
}

void gpupart_memory_counters_get(struct gpupart_memory_counters *counters)
{
	counters->refused = atomic_load(&nr_refused);
	counters->uncounted = tenant_ledger() ? ledger_uncounted(tenant_ledger()) : 0;
	counters->uncounted_call = atomic_load(&uncounted_name);
}
