// SPDX-License-Identifier: MIT
/*
 * What the driver calls at every launch. Nothing in here that runs in the callback
 * can fail, allocate, lock or loop without bound. Must not know what a set means.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "api.h"
#include "control.h"
#include "fork.h"
#include "graph.h"
#include "hook.h"
#include "memory.h"
#include "memory_calls.h"
#include "module.h"
#include "probe.h"
#include "stat.h"
#include "stat_calls.h"

/* The export table and its use were measured: Documentation/hardware.md, "Callback". */
static const unsigned char table_uuid[16] = {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
};

#define SLOT_SUBSCRIBE		3
#define SLOT_ENABLE		6

/*
 * Of the table and of what comes with a built TMD, in bytes: another size is another
 * interface, whose fields may stand elsewhere. H200, drivers 580.159 and 580.159.04.
 */
#define TABLE_SIZE		96
#define LAUNCH_PARAMS_SIZE	88

#define DOMAIN_LAUNCH		0xb
#define CBID_TMD_BUILT		1
#define DOMAIN_RESOURCE		2
#define CBID_CTX_GOES		2
#define CBID_STREAM_MADE	4
#define CBID_STREAM_GOES	5
#define CBID_MODULE_LOADED	17
#define CBID_MODULE_GOES	18
#define CBID_GRAPH_GONE		36
#define CBID_GRAPH_EXEC_MADE	40
#define CBID_GRAPH_EXEC_GOES	41

typedef void (*callback_fn)(void *user, int domain, int cbid, const void *params);
typedef int (*subscribe_fn)(uint32_t *handle, callback_fn callback, void *user);
typedef int (*enable_fn)(uint32_t on, uint32_t handle, int domain, int cbid);

struct launch_params {
	uint32_t size, pad;
	void *ctx;
	void *module;
	void *function;
	void *tmd;
};

struct resource_params {
	uint32_t size, pad;
	void *ctx;		/* of graphs: the graph */
	uint64_t object;	/* what a stream's handle points to; a module; a source graph */
	void *exec;
};

struct module_params {
	uint32_t size, pad;
	void *ctx;
	void *module;
	uint64_t unknown;
	const void *image;
	uint64_t image_size;
	const char *name;
	uint32_t kind;
};

#define RESOURCE_SIZE(last) (offsetof(struct resource_params, last) + 8)

#define MAX_GPUS SCOPE_MAX_GPUS

static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(install_lock);
static atomic_bool installed;
static bool subscribed;
static enable_fn enable_callback;
static uint32_t subscription;
static atomic_bool launches_asked, memory_asked;
static _Atomic(const char *) graphs_why = "";
static const struct cuda_api *cuda;

/* Attached GPUs: written under the lock, a pointer at a time, never taken away. */
static _Atomic(struct gpupart_gpu *) gpus[MAX_GPUS];
static atomic_uint nr_gpus;

/*
 * CUDA's device numbers: nr_devices is 0 until a launch or an attach found out.
 * by_device says which attached GPU each is; a number whose GPU is not attached (yet)
 * has NULL.
 */
static atomic_uint nr_devices;
static _Atomic(struct gpupart_gpu *) by_device[MAX_GPUS];
static atomic_uint known_gpus;	/* nr_gpus when by_device was filled */
/* The usual case: CUDA shows one device, and it is attached. */
static _Atomic(struct gpupart_gpu *) only_gpu;

/*
 * Contexts whose device is known, for launches whose context is not current (graphs over
 * GPUs, a stream of another context): address * MAX_GPUS + device in one word, so that
 * nobody reads the one without the other. Each in one of a few places.
 */
#define NR_CONTEXTS 256
#define NR_CONTEXT_PLACES 8
static _Atomic uint64_t contexts[NR_CONTEXTS];

static _Atomic uint64_t last_stream_gone[4];
static atomic_uint nr_streams_gone;

/* ------------------------------------------------------------- GPU of a launch */

static void limits_learn(struct gpupart_gpu *gpu, int device)
{
	static const int attr[4] = {
		CUDA_ATTR_THREADS_PER_SM, CUDA_ATTR_REGISTERS_PER_SM,
		CUDA_ATTR_SHARED_PER_SM, CUDA_ATTR_BLOCKS_PER_SM,
	};
	int value[4];

	if (atomic_load_explicit(&gpu->sm_limits_known, memory_order_acquire))
		return;
	for (int i = 0; i < 4; i++)
		if (cuda->device_attr(&value[i], attr[i], device) || value[i] < 0)
			return;
	/* Two threads that come here at once write the same. */
	gpu->map.sm = (struct tmd_sm_limits){
		.threads = value[0], .registers = value[1],
		.shared = value[2], .blocks = value[3],
	};
	atomic_store_explicit(&gpu->sm_limits_known, true, memory_order_release);
}

/*
 * Finds CUDA's numbers of the attached GPUs. Called in the first launch at the latest:
 * these driver functions were seen to be safe there. No harm if two threads do it.
 */
static void devices_learn(void)
{
	unsigned int known = atomic_load_explicit(&nr_gpus, memory_order_acquire);
	int count;

	if (cuda->device_count(&count) || count < 1)
		return;
	if (count > MAX_GPUS)
		count = MAX_GPUS;
	for (int device = 0; device < count; device++) {
		char pci[20] = "";
		struct gpupart_gpu *gpu = NULL;

		if (!cuda->device_pci(pci, sizeof(pci), device)) {
			for (char *c = pci; *c; c++)
				if (*c >= 'A' && *c <= 'F')
					*c += 'a' - 'A';
			gpu = hook_find_gpu(pci);
		}
		if (gpu)
			limits_learn(gpu, device);
		atomic_store_explicit(&by_device[device], gpu, memory_order_release);
	}
	if (count == 1)
		atomic_store_explicit(&only_gpu,
				      atomic_load_explicit(&by_device[0], memory_order_relaxed),
				      memory_order_release);
	atomic_store_explicit(&known_gpus, known, memory_order_release);
	atomic_store_explicit(&nr_devices, count, memory_order_release);
}

/* The @n'th place where @ctx may stand. */
static _Atomic uint64_t *context_place(const void *ctx, unsigned int n)
{
	return &contexts[(((uint32_t)((uintptr_t)ctx >> 6) * 0x9e3779b1u >> 24) + n) % NR_CONTEXTS];
}

static bool word_is_of(uint64_t word, const void *ctx)
{
	return word / MAX_GPUS == (uintptr_t)ctx;
}

void hook_context_on(const void *ctx, int device)
{
	uint64_t word = (uintptr_t)ctx * (uint64_t)MAX_GPUS + device, found;
	unsigned int n;

	if (device < 0 || device >= MAX_GPUS)
		return;
	if (atomic_load_explicit(context_place(ctx, 0), memory_order_relaxed) == word)
		return;
	for (n = 0; n < NR_CONTEXT_PLACES; n++) {
		found = atomic_load_explicit(context_place(ctx, n), memory_order_relaxed);
		if (word_is_of(found, ctx)) {
			/* Another device: nobody told that the one before it went. */
			if (found != word)
				atomic_store_explicit(context_place(ctx, n), word,
						      memory_order_relaxed);
			return;
		}
	}
	/* Two threads that do this at once may leave it in two places: both say the same. */
	for (n = 0; n < NR_CONTEXT_PLACES; n++) {
		found = 0;
		if (atomic_compare_exchange_strong(context_place(ctx, n), &found, word))
			return;
	}
	atomic_store_explicit(context_place(ctx, 0), word, memory_order_relaxed);
}

/* Only this context's words: one that another has put there meanwhile stays. */
static void context_forget(const void *ctx)
{
	for (unsigned int n = 0; n < NR_CONTEXT_PLACES; n++) {
		uint64_t word = atomic_load_explicit(context_place(ctx, n), memory_order_relaxed);

		if (word_is_of(word, ctx))
			atomic_compare_exchange_strong(context_place(ctx, n), &word, 0);
	}
}

/* If @ctx is current the driver says which device it is on: true. Else nobody knows. */
static bool context_ask(const void *ctx, int *device)
{
	void *current = NULL;

	if (!ctx || cuda->ctx_current(&current) || current != ctx || cuda->ctx_device(device) ||
	    *device < 0 || *device >= MAX_GPUS)
		return false;
	hook_context_on(ctx, *device);
	return true;
}

static struct gpupart_gpu *gpu_by_context(void *ctx)
{
	int device;

	if (context_ask(ctx, &device))
		return atomic_load_explicit(&by_device[device], memory_order_acquire);
	for (unsigned int n = 0; n < NR_CONTEXT_PLACES; n++) {
		uint64_t word = atomic_load_explicit(context_place(ctx, n), memory_order_relaxed);

		if (word_is_of(word, ctx))
			return atomic_load_explicit(&by_device[word % MAX_GPUS],
						    memory_order_acquire);
	}
	return NULL;
}

static void devices_know(void)
{
	if (!atomic_load_explicit(&nr_devices, memory_order_acquire) ||
	    atomic_load_explicit(&known_gpus, memory_order_relaxed) !=
	    atomic_load_explicit(&nr_gpus, memory_order_relaxed))
		devices_learn();
}

static __attribute__((noinline)) struct gpupart_gpu *gpu_of_launch(void *ctx)
{
	devices_know();
	if (atomic_load_explicit(&nr_devices, memory_order_acquire) == 1)
		return atomic_load_explicit(&by_device[0], memory_order_acquire);
	return gpu_by_context(ctx);
}

/* ------------------------------------------------------------------- callback */

/* The outcomes and their counters have the same order: no table to look up in. */
_Static_assert(CONTROL_CONFINED + TMD_CONFINED == CONTROL_CONFINED &&
	       CONTROL_CONFINED + TMD_WIDENED_EMPTY == CONTROL_WIDENED_EMPTY &&
	       CONTROL_CONFINED + TMD_WIDENED_DRIVER == CONTROL_WIDENED_DRIVER &&
	       CONTROL_CONFINED + TMD_WIDENED_CLUSTER == CONTROL_WIDENED_CLUSTER &&
	       CONTROL_CONFINED + TMD_WIDENED_COOPERATIVE == CONTROL_WIDENED_COOPERATIVE &&
	       CONTROL_CONFINED + TMD_UNCONFINABLE == CONTROL_UNCONFINABLE_VERSION,
	       "outcomes and counters in another order");

static inline __attribute__((always_inline))
void apply_words(struct gpupart_gpu *gpu, const struct launch_params *params, bool rare,
		 unsigned int nr_words)
{
	struct scope_now now;

	if (!scope_resolve(gpu, params->tmd, params->function, rare, nr_words, &now))
		control_count(CONTROL_FREE);
	else if (__builtin_expect(!atomic_load_explicit(&gpu->trusted, memory_order_acquire), 0))
		control_count(CONTROL_UNCONFINABLE_MAP);
	else
		control_count(CONTROL_CONFINED +
			      tmd_confine(&gpu->map, params->tmd, now.limit, now.set));
}

/* Out of line, so that masks of the usual two words save no register for it. */
static __attribute__((noinline)) void apply_wide(struct gpupart_gpu *gpu,
						 const struct launch_params *params, bool rare)
{
	if (rare)
		apply_words(gpu, params, true, GPUPART_MAX_TMD_BITS / 64);
	else
		apply_words(gpu, params, false, GPUPART_MAX_TMD_BITS / 64);
}

/* @rare: the thread has a set of its own, a next-launch set, or launches a graph. */
static inline __attribute__((always_inline))
void apply_scopes(struct gpupart_gpu *gpu, const struct launch_params *params, bool rare)
{
	if (__builtin_expect(gpu->map.nr_words == 2, 1))
		apply_words(gpu, params, rare, 2);
	else
		apply_wide(gpu, params, rare);
}

/* Our own launches: noted, and masked as the check wants it. True: nothing more to do. */
static __attribute__((noinline)) bool launch_own(struct scope_own *own, struct gpupart_gpu *gpu,
						 void *tmd)
{
	if (own->gpu != gpu)
		return false;
	own->seen = true;
	own->tmd = tmd;
	/* No layout is smaller, and which of them is longer is not known here. */
	memcpy(own->bytes, tmd, sizeof(own->bytes));
	if (own->mode == OWN_LEAVE_OUT)
		own->outcome = tmd_leave_out(&gpu->map, tmd, own->left_out);
	control_count(CONTROL_FREE);
	return true;
}

/* A node of a graph: its TMD may hold what an earlier set put there. */
static __attribute__((noinline)) void apply_to_node(struct gpupart_gpu *gpu,
						    const struct launch_params *params)
{
	struct graph_node *node =
		graph_node_begin(scope_thread.graph, &gpu->map, params->tmd);

	apply_scopes(gpu, params, true);
	if (node)
		graph_node_end(node, &gpu->map, params->tmd);
}

static __attribute__((noinline)) void on_rare_launch(struct gpupart_gpu *gpu,
						     const struct launch_params *params)
{
	if (scope_thread.own && launch_own(scope_thread.own, gpu, params->tmd))
		return;
	if (module_any() && module_find(params->module))
		control_count(CONTROL_DEVICE_LAUNCHES);
	if (scope_thread.graph && atomic_load_explicit(&gpu->trusted, memory_order_acquire))
		apply_to_node(gpu, params);
	else if (scope_in_use(gpu))
		apply_scopes(gpu, params, true);
	else
		control_count(CONTROL_FREE);
}

static inline __attribute__((always_inline))
void on_launch_on(struct gpupart_gpu *gpu, const struct launch_params *params)
{
	unsigned char in_use = scope_in_use(gpu);

	if (__builtin_expect(scope_thread.special || in_use > SCOPE_USED, 0))
		on_rare_launch(gpu, params);
	else if (in_use)
		apply_scopes(gpu, params, false);
	else
		control_count(CONTROL_FREE);
}

/* Out of line, so that the usual launch saves no register for it. */
static __attribute__((noinline)) void on_launch_of_many(const struct launch_params *params)
{
	struct gpupart_gpu *gpu = gpu_of_launch(params->ctx);

	if (gpu)
		on_launch_on(gpu, params);
	else
		control_count(CONTROL_UNCONFINABLE_GPU);
}

static inline __attribute__((always_inline)) void on_launch(const struct launch_params *params)
{
	struct gpupart_gpu *gpu = atomic_load_explicit(&only_gpu, memory_order_acquire);

	if (__builtin_expect(params->size != LAUNCH_PARAMS_SIZE || !params->tmd, 0))
		control_count(CONTROL_UNCONFINABLE_VERSION);
	else if (__builtin_expect(!gpu, 0))
		on_launch_of_many(params);
	else
		on_launch_on(gpu, params);
}

static void stream_goes(uint64_t object)
{
	struct gpupart_gpu *gpu;

	atomic_store_explicit(&last_stream_gone[atomic_fetch_add(&nr_streams_gone, 1) % 4], object,
			      memory_order_release);
	graph_origin_gone(object, NULL, NULL);
	for (unsigned int n = 0; (gpu = hook_gpu(n)); n++)
		scope_gone(gpu, &gpu->streams, object, NULL, NULL);
}

static void ctx_goes(void *ctx)
{
	struct gpupart_gpu *gpu;

	probe_ctx_gone(ctx);
	graph_origin_gone(0, ctx, NULL);
	for (unsigned int n = 0; (gpu = hook_gpu(n)); n++)
		scope_gone(gpu, &gpu->streams, 0, ctx, NULL);
	context_forget(ctx);
}

/*
 * Something was made in @ctx, which is current then: a later launch in it may find another
 * one current. Not asked for where CUDA shows one device.
 */
static void context_used(void *ctx)
{
	int device;

	if (!atomic_load_explicit(&only_gpu, memory_order_acquire))
		context_ask(ctx, &device);
}

static void module_goes(uint64_t module)
{
	struct gpupart_gpu *gpu;

	module_gone((const void *)(uintptr_t)module);
	for (unsigned int n = 0; (gpu = hook_gpu(n)); n++)
		scope_gone(gpu, &gpu->functions, module, NULL, NULL);
}

static void module_comes(const struct module_params *params)
{
	struct gpupart_gpu *gpu;

	module_loaded(params->module, params->image, params->image_size, params->kind);
	context_used(params->ctx);
	for (unsigned int n = 0; module_any() && (gpu = hook_gpu(n)); n++)
		scope_used(gpu, SCOPE_USED_MODULES);
}

static __attribute__((noinline)) void on_resource(int cbid, const struct resource_params *params)
{
	if (cbid == CBID_STREAM_GOES && params->size >= RESOURCE_SIZE(object))
		stream_goes(params->object);
	else if (cbid == CBID_STREAM_MADE && params->size >= RESOURCE_SIZE(ctx))
		context_used(params->ctx);
	else if (cbid == CBID_CTX_GOES && params->size >= RESOURCE_SIZE(ctx))
		ctx_goes(params->ctx);
	else if (cbid == CBID_MODULE_LOADED &&
		 params->size >= offsetof(struct module_params, kind) + 4)
		module_comes((const struct module_params *)params);
	else if (cbid == CBID_MODULE_GOES && params->size >= RESOURCE_SIZE(object))
		module_goes(params->object);
	else if (cbid == CBID_GRAPH_GONE && params->size >= RESOURCE_SIZE(ctx))
		graph_source_gone(params->ctx);
	else if (cbid == CBID_GRAPH_EXEC_MADE && params->size >= RESOURCE_SIZE(exec))
		graph_made(params->exec, (void *)(uintptr_t)params->object);
	else if (cbid == CBID_GRAPH_EXEC_GOES && params->size >= RESOURCE_SIZE(ctx))
		graph_unmade(params->ctx);
}

/* Functions that others asked to be told of are none of the sets'. */
static bool sets_want(int cbid)
{
	return atomic_load_explicit(&installed, memory_order_acquire) &&
	       api_wanted(cbid, atomic_load_explicit(&launches_asked, memory_order_acquire));
}

/*
 * In a process with a memory quota. Of graphs both want to know: what memory.c changes in
 * the arguments at the begin is changed last, and is as it was when the others see the end.
 */
static __attribute__((noinline)) void on_memory_rare(int cbid,
						     const struct cuda_call_params *params)
{
	bool other = false, begins = params->site == CUDA_SITE_BEGIN;
	const struct memory_call *call = memory_calls_find(cbid, params->name, &other);

	if (other && begins)
		memory_uncounted(params->name);
	if (call && !begins)
		memory_callback(call, params);
	if (sets_want(cbid))
		api_callback(cuda, cbid, params);
	if (call && begins)
		memory_callback(call, params);
}

/* What gets and gives back memory does so often: then little is to be done. */
static void on_memory(int cbid, const struct cuda_call_params *params)
{
	const struct memory_call *call;

	if (params->size < sizeof(*params) || params->cbid != (uint32_t)cbid)
		return;
	call = memory_calls_known(cbid, params->name);
	if (__builtin_expect(call && call->cbid == cbid && !memory_calls_shared(call), 1))
		memory_callback(call, params);
	else
		on_memory_rare(cbid, params);
}

static void on_callback(void *user, int domain, int cbid, const void *params)
{
	(void)user;
	if (!params)
		return;
	if (__builtin_expect(domain == DOMAIN_LAUNCH && cbid == CBID_TMD_BUILT, 1))
		on_launch(params);
	else if (domain == API_DOMAIN &&
		 atomic_load_explicit(&memory_asked, memory_order_relaxed)) {
		if (!memory_quickly(cbid, params))
			on_memory(cbid, params);
	}
	else if (domain == API_DOMAIN)
		api_callback(cuda, cbid, params);
	else if (domain == DOMAIN_RESOURCE)
		on_resource(cbid, params);
}

static __attribute__((noinline)) void on_limited_rare(void *user, int domain, int cbid,
						       const void *params)
{
	if (domain == API_DOMAIN && atomic_load_explicit(&memory_asked, memory_order_relaxed))
		on_memory(cbid, params);
	else
		on_callback(user, domain, cbid, params);
}

/*
 * The same where the quota was there before any set: what a pool has at hand takes the driver
 * 0.2 us, and each instruction is seen.
 */
static void on_limited(void *user, int domain, int cbid, const void *params)
{
	if (__builtin_expect(domain == DOMAIN_LAUNCH && cbid == CBID_TMD_BUILT && params, 1))
		on_launch(params);
	else if (!(domain == API_DOMAIN && memory_quickly(cbid, params)) && params)
		on_limited_rare(user, domain, cbid, params);
}

/* In a process that is measured, and in no other: what is not asked for is not in the path. */
static void on_observed(void *user, int domain, int cbid, const void *params)
{
	if (!params)
		return;
	if (domain == API_DOMAIN)
		stat_callback(cuda, cbid, params);
	else if (domain == DOMAIN_RESOURCE && cbid == CBID_CTX_GOES)
		stat_ctx_goes(((const struct resource_params *)params)->ctx);
	if (domain == API_DOMAIN && atomic_load_explicit(&memory_asked, memory_order_relaxed))
		on_memory(cbid, params);
	else if (domain == API_DOMAIN ? sets_want(cbid) :
					atomic_load_explicit(&installed, memory_order_acquire))
		on_callback(user, domain, cbid, params);
}

/* -------------------------------------------------------------------- install */

struct gpupart_gpu *hook_gpu(unsigned int n)
{
	return n < atomic_load_explicit(&nr_gpus, memory_order_acquire) ?
		       atomic_load_explicit(&gpus[n], memory_order_acquire) :
		       NULL;
}

struct gpupart_gpu *hook_gpu_of_context(void *ctx)
{
	struct gpupart_gpu *gpu = atomic_load_explicit(&only_gpu, memory_order_acquire);

	return gpu || !ctx ? gpu : gpu_of_launch(ctx);
}

struct gpupart_gpu *hook_gpu_of_device(int device)
{
	devices_know();
	return device >= 0 && device < MAX_GPUS ?
		       atomic_load_explicit(&by_device[device], memory_order_acquire) : NULL;
}

void hook_thread_goes(const void *thread)
{
	struct gpupart_gpu *gpu;

	graph_origin_gone(0, NULL, thread);
	for (unsigned int n = 0; (gpu = hook_gpu(n)); n++)
		scope_gone(gpu, &gpu->streams, 0, NULL, thread);
}

bool hook_saw_stream_go(uint64_t object)
{
	for (int i = 0; i < 4; i++) {
		uint64_t expected = object;

		if (atomic_compare_exchange_strong(&last_stream_gone[i], &expected, 0))
			return true;
	}
	return false;
}

struct gpupart_gpu *hook_find_gpu(const char *pci)
{
	struct gpupart_gpu *gpu;

	for (unsigned int n = 0; (gpu = hook_gpu(n)); n++)
		if (!strcmp(gpu->topo->info.pci, pci))
			return gpu;
	return NULL;
}

int hook_add_gpu(struct gpupart *gp, struct gpupart_gpu *gpu)
{
	unsigned int nr;
	int err = 0;

	pthread_mutex_lock(&install_lock);
	nr = atomic_load_explicit(&nr_gpus, memory_order_relaxed);
	if (nr == MAX_GPUS) {
		err = ctx_fail(gp, -ENOSPC, "more than %u GPUs", MAX_GPUS);
	} else {
		gpu->number = nr;
		atomic_store_explicit(&gpus[nr], gpu, memory_order_release);
		atomic_store_explicit(&nr_gpus, nr + 1, memory_order_release);
		/* After it is in the list: what is loaded meanwhile finds it there. */
		if (module_any())
			scope_used(gpu, SCOPE_USED_MODULES);
	}
	pthread_mutex_unlock(&install_lock);
	return err;
}

void hook_graphs_amiss(const char *fmt, ...)
{
	static atomic_flag taken = ATOMIC_FLAG_INIT;
	static char text[160];
	va_list ap;

	/* Who asks holds a pointer to it: it is written once. */
	if (atomic_flag_test_and_set(&taken))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	atomic_store_explicit(&graphs_why, text, memory_order_release);
}

/*
 * Without these a graph keeps the sets that its nodes were built with. Some drivers lack
 * some functions: cuGraphLaunch is the one that tells.
 */
static void watch_graphs(const struct cuda_api *api, enable_fn enable, uint32_t handle)
{
	int made, launched = 0;

	enable(1, handle, DOMAIN_RESOURCE, CBID_GRAPH_GONE);
	made = enable(1, handle, DOMAIN_RESOURCE, CBID_GRAPH_EXEC_MADE);
	enable(1, handle, DOMAIN_RESOURCE, CBID_GRAPH_EXEC_GOES);
	for (unsigned int n = 0; api_cbid_graphs(n) >= 0; n++) {
		int refused = enable(1, handle, API_DOMAIN, api_cbid_graphs(n));

		if (api_cbid_graphs(n) == API_CBID_GRAPH_LAUNCH)
			launched = refused;
	}
	if (made || launched)
		hook_graphs_amiss("this driver does not tell when a graph is %s: %s",
				  launched ? "launched" : "made",
				  cuda_words(api, launched ? launched : made));
}

/* The driver has one place for a subscriber. */
static int subscribe(struct gpupart *gp, const struct cuda_api *api, callback_fn callback)
{
	const void *found = NULL;
	const void *const *table;
	subscribe_fn subscribe_to;
	int result;

	result = api->export_table(&found, table_uuid);
	if (result || !found)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver offers no launch callback: cuGetExportTable: %s",
				cuda_words(api, result));
	table = found;
	if ((uintptr_t)table[0] != TABLE_SIZE)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver's callback table is not the one we know: its size is %zu, and %d is known",
				(size_t)(uintptr_t)table[0], TABLE_SIZE);
	memcpy(&subscribe_to, &table[SLOT_SUBSCRIBE], sizeof(subscribe_to));
	memcpy(&enable_callback, &table[SLOT_ENABLE], sizeof(enable_callback));
	if (!subscribe_to || !enable_callback)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver's callback table has no entry %d or %d",
				SLOT_SUBSCRIBE, SLOT_ENABLE);
	result = subscribe_to(&subscription, callback, NULL);
	if (result == CUDA_ERROR_ALREADY_ACQUIRED)
		return ctx_fail(gp, -EBUSY,
				"another tool has the driver's one place for such: a profiler (CUPTI, ncu), or a second copy of gpupart");
	if (result)
		return ctx_fail(gp, -EOPNOTSUPP, "this driver refused a launch callback: %s",
				cuda_words(api, result));
	cuda = api;
	subscribed = true;
	return 0;
}

static int watch(struct gpupart *gp, const struct cuda_api *api)
{
	enable_fn enable = enable_callback;
	uint32_t handle = subscription;
	int result;

	result = enable(1, handle, DOMAIN_LAUNCH, CBID_TMD_BUILT);
	if (result)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver refused the callback for built TMDs: %s",
				cuda_words(api, result));
	/* Whether these come is found out by check.c: without them streams have no sets. */
	enable(1, handle, DOMAIN_RESOURCE, CBID_STREAM_GOES);
	enable(1, handle, DOMAIN_RESOURCE, CBID_CTX_GOES);
	enable(1, handle, DOMAIN_RESOURCE, CBID_MODULE_GOES);
	/* Without it a context is known by its modules, or when it is current in a launch. */
	enable(1, handle, DOMAIN_RESOURCE, CBID_STREAM_MADE);
	/* Without this one no module is known to launch from the GPU. */
	enable(1, handle, DOMAIN_RESOURCE, CBID_MODULE_LOADED);
	watch_graphs(api, enable, handle);
	return 0;
}

static int enable_none(uint32_t on, uint32_t handle, int domain, int cbid)
{
	(void)on;
	(void)handle;
	(void)domain;
	(void)cbid;
	return CUDA_ERROR_NOT_INITIALIZED;
}

void hook_in_child(void)
{
	enable_callback = enable_none;
}

const char *hook_graphs(void)
{
	return atomic_load_explicit(&graphs_why, memory_order_acquire);
}

void hook_watch_launches(void)
{
	bool all = true;

	if (__builtin_expect(atomic_load_explicit(&launches_asked, memory_order_acquire), 1))
		return;
	pthread_mutex_lock(&install_lock);
	if (!atomic_load_explicit(&launches_asked, memory_order_relaxed)) {
		/* Some drivers lack some: cuLaunchKernel is the one that tells. */
		all = !enable_callback(1, subscription, API_DOMAIN, api_cbid_launches(0));
		for (unsigned int n = 1; all && api_cbid_launches(n) >= 0; n++)
			enable_callback(1, subscription, API_DOMAIN, api_cbid_launches(n));
		atomic_store_explicit(&scope_launches_watched, all, memory_order_relaxed);
		atomic_store_explicit(&launches_asked, true, memory_order_release);
	}
	pthread_mutex_unlock(&install_lock);
}

int hook_watch_questions(struct gpupart *gp, bool on)
{
	int result = 0;

	pthread_mutex_lock(&install_lock);
	for (unsigned int n = 0; api_cbid_questions(n) >= 0; n++) {
		int refused = enable_callback(on, subscription, API_DOMAIN, api_cbid_questions(n));

		/* Some drivers lack some: the first is the one that tells. */
		if (!n)
			result = refused;
	}
	pthread_mutex_unlock(&install_lock);
	if (result)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver does not tell of its functions: the program learns the true number of SMs: %s",
				cuda_words(cuda, result));
	return 0;
}

/* All that are to be watched now, or those for later: how the first of them was refused. */
static int watch_calls(bool later)
{
	const struct memory_call *call;
	int first = 0, refused;

	for (unsigned int n = 0; (call = memory_calls_get(n)); n++) {
		if (call->later != later)
			continue;
		refused = enable_callback(1, subscription, API_DOMAIN, call->cbid);
		/* Some drivers lack some: cuMemAlloc_v2, the first, is the one that tells. */
		if (!n)
			first = refused;
	}
	return first;
}

int hook_watch_memory(struct gpupart *gp, const struct cuda_api *api)
{
	int err = 0, refused = 0;

	pthread_mutex_lock(&install_lock);
	if (!subscribed)
		err = subscribe(gp, api, on_limited);
	if (!err)
		refused = watch_calls(false);
	if (refused)
		err = ctx_fail(gp, -EOPNOTSUPP, "this driver does not tell of its functions: %s",
			       cuda_words(api, refused));
	atomic_store(&memory_asked, !err);
	pthread_mutex_unlock(&install_lock);
	return err;
}

void hook_watch_memory_later(void)
{
	pthread_mutex_lock(&install_lock);
	watch_calls(true);
	pthread_mutex_unlock(&install_lock);
}

int hook_install(struct gpupart *gp, const struct cuda_api *api)
{
	int err = 0;

	pthread_mutex_lock(&install_lock);
	if (!installed) {
		if (!subscribed)
			err = subscribe(gp, api, on_callback);
		if (!err)
			err = watch(gp, api);
		installed = !err;
	}
	pthread_mutex_unlock(&install_lock);
	return err;
}

int hook_observe(struct gpupart *gp, const struct cuda_api *api)
{
	int err, refused = 0;

	pthread_mutex_lock(&install_lock);
	err = subscribed ? ctx_fail(gp, -EBUSY, "this process is attached already") :
			   subscribe(gp, api, on_observed);
	/* Some drivers lack some: cuLaunchKernel, the first, is the one that tells. */
	for (unsigned int n = 0; !err && stat_calls_cbid(n) >= 0; n++) {
		int result = enable_callback(1, subscription, API_DOMAIN, stat_calls_cbid(n));

		if (!n)
			refused = result;
	}
	if (!err)
		enable_callback(1, subscription, DOMAIN_RESOURCE, CBID_CTX_GOES);
	if (!err && refused)
		err = ctx_fail(gp, -EOPNOTSUPP, "this driver does not tell of its functions: %s",
			       cuda_words(api, refused));
	pthread_mutex_unlock(&install_lock);
	return err;
}
