// SPDX-License-Identifier: MIT
/*
 * Confines launches. For each launch, this code gets the set from scope.c, writes the set into
 * the TMD with tmd.c, and counts the result. The code in the callback cannot fail. It allocates
 * no memory, takes no lock and has no unbounded loop.
 */
#include <errno.h>
#include <stddef.h>
#include "lib/confine/watched_functions.h"
#include "lib/confine/graph.h"
#include "lib/confine/launch.h"
#include "lib/confine/lend.h"
#include "lib/confine/module.h"
#include "lib/confine/recording.h"
#include "lib/confine/report.h"
#include "lib/confine/rules.h"
#include "lib/confine/scope.h"
#include "lib/confine/stream.h"
#include "lib/core/environment.h"
#include "lib/core/peek.h"
#include "lib/driver/callback.h"
#include "lib/driver/device.h"
#include "lib/state/state_page.h"

_Static_assert(sizeof(struct launch_params) == LAUNCH_MIN_PARAMS_SIZE,
	       "slot 4 is the last field that is read");

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

/*
 * If the parameters have another size, they may contain no TMD, so the library does not change
 * the launch.
 */
static _Atomic uint32_t launch_params_size = LAUNCH_PARAMS_SIZE;

/* ------------------------------------------------------------------- callback */

/*
 * Outcomes and counters have the same order. So the code converts an outcome to a counter without
 * a table.
 */
_Static_assert(STATE_CONFINED + TMD_CONFINED == STATE_CONFINED &&
	       STATE_CONFINED + TMD_WIDENED_EMPTY == STATE_WIDENED_EMPTY &&
	       STATE_CONFINED + TMD_WIDENED_DRIVER == STATE_WIDENED_DRIVER &&
	       STATE_CONFINED + TMD_WIDENED_CLUSTER == STATE_WIDENED_CLUSTER &&
	       STATE_CONFINED + TMD_WIDENED_COOPERATIVE == STATE_WIDENED_COOPERATIVE &&
	       STATE_CONFINED + TMD_UNCONFINABLE == STATE_UNCONFINABLE_VERSION,
	       "outcomes and counters have the same order");

_Static_assert(STATE_CONFINED + GPUPART_OUTSIDE_DRIVER == STATE_WIDENED_DRIVER &&
	       STATE_CONFINED + GPUPART_OUTSIDE_COOPERATIVE == STATE_WIDENED_COOPERATIVE &&
	       STATE_CONFINED + GPUPART_OUTSIDE_GPU == STATE_UNCONFINABLE_GPU,
	       "reasons and counters have the same order");

/*
 * Handles a launch that was not confined to its set. If the launch is also outside the limit, the
 * function reports this. The caller counts the launch in @counter. If @limit is NULL, the limit
 * is unknown, or there is no limit. If @gpu is NULL, the GPU of the launch is not attached.
 */
static __attribute__((noinline, cold)) void not_kept(enum state_counter counter,
					       const struct gpupart_gpu *gpu,
					       const struct launch_params *params,
					       const struct tmd_allow *limit)
{
	struct gpupart_report_kernel kernel = { .outside = counter - STATE_CONFINED };
	bool known = params->size == launch_params_known();

	if (gpu && (!limit || (kernel.outside < GPUPART_OUTSIDE_VERSION &&
			       !tmd_is_outside(&gpu->driver.map, params->tmd, limit,
					       &kernel.cluster, &kernel.nr_tpcs))))
		return;
	if (gpu && kernel.outside < GPUPART_OUTSIDE_VERSION)
		kernel.limit = tmd_map_tpcs(&gpu->driver.map, limit);
	report_outside(known ? params->function : NULL, known ? params->module : NULL, &kernel);
	api_left_limit();
}

/*
 * If the lender is idle, adds its TPCs to @limit. This function is for launches that have a limit
 * but no set.
 */
static __attribute__((noinline)) void widen(const struct gpupart_gpu *gpu, struct tmd_allow *limit)
{
	const struct lend_from *from = atomic_load_explicit(&lend_from, memory_order_acquire);
	struct scope_lend *lend = scope_thread.lend;

	if (lend->gpu != gpu || lend->refused || !lend_is_idle(from))
		return;
	for (unsigned int i = 0; i < gpu->driver.map.nr_words; i++)
		limit->tmd_bits[i] |= from->tpcs.tmd_bits[i];
	lend->got = true;
}

/*
 * Handles launches that the fast path cannot confine. For example, the map of the GPU may not be
 * trusted.
 */
static __attribute__((noinline)) void confine_unusual(const struct gpupart_gpu *gpu,
						      const struct launch_params *params,
						      const struct tmd_allow *limit,
						      const struct tmd_allow *set)
{
	enum state_counter counter = STATE_UNCONFINABLE_MAP;

	if (atomic_load_explicit(&gpu->trusted, memory_order_acquire))
		counter = STATE_CONFINED + tmd_confine(&gpu->driver.map, params->tmd, limit, set);
	if (counter != STATE_CONFINED)
		not_kept(counter, gpu, params, limit);
	state_count(counter);
}

static inline __attribute__((always_inline))
void apply_words(struct gpupart_gpu *gpu, const struct launch_params *params,
		 struct state_lane *lane, bool rare, unsigned int nr_words)
{
	struct scope_copies copies;
	struct scope_now now;

	if (!scope_resolve(gpu, params->tmd, params->function, rare, nr_words, &copies, &now)) {
		state_count_on(&lane->counters[STATE_FREE]);
		return;
	}
	if (rare && scope_thread.lend && !now.set)
		widen(gpu, &copies.limit);
	if (nr_words == 2 &&
	    __builtin_expect(atomic_load_explicit(&gpu->trusted, memory_order_acquire), 1) &&
	    tmd_confine_usual(&gpu->driver.map, params->tmd, now.limit, now.set, 2))
		state_count_on(&lane->counters[STATE_CONFINED]);
	else
		confine_unusual(gpu, params, now.limit, now.set);
}

/*
 * Handles masks with more than the usual two words. The function checks all scopes. Separate
 * functions for usual and for rare launches would be too large.
 */
static __attribute__((noinline, cold)) void apply_wide(struct gpupart_gpu *gpu,
						 const struct launch_params *params,
						 struct state_lane *lane)
{
	apply_words(gpu, params, lane, true, GPUPART_MAX_TMD_BITS / 64);
}

/* Called if the thread has a set or a next-launch set, or if it launches a graph. */
static __attribute__((noinline, hot)) void apply_rare(struct gpupart_gpu *gpu,
						 const struct launch_params *params,
						 struct state_lane *lane)
{
	if (__builtin_expect(gpu->driver.map.nr_words == 2, 1))
		apply_words(gpu, params, lane, true, 2);
	else
		apply_wide(gpu, params, lane);
}

/*
 * Records the parameters and the TMD of a probe launch. If the address of the TMD is bad, the
 * function records this fact and causes no fault.
 */
static void own_note(struct scope_own *own, uint32_t size, void *tmd)
{
	own->params_size = size;
	own->tmd = tmd;
	own->nr_bytes = peek(tmd, own->bytes, sizeof(own->bytes));
}

/*
 * Handles a probe launch. Records the launch, and masks the launch if the check requires this.
 * Returns true if the launch needs no more handling.
 */
static __attribute__((noinline, cold)) bool
launch_own(struct scope_own *own, struct gpupart_gpu *gpu, const struct launch_params *params)
{
	if (own->gpu != gpu)
		return false;
	own->seen = true;
	own_note(own, params->size, params->tmd);
	if (own->mode == OWN_LEAVE_OUT)
		own->outcome = tmd_leave_out(&gpu->driver.map, params->tmd, own->left_out);
	else if (own->mode == OWN_RECORD)
		records_trial_launch(own->trial, params->tmd);
	state_count(STATE_FREE);
	return true;
}

/* Masks a node of a graph. The TMD of the node may contain an earlier set. */
static __attribute__((noinline)) void apply_to_node(struct gpupart_gpu *gpu,
						    const struct launch_params *params,
						    struct state_lane *lane)
{
	struct graph_node *node =
		graph_node_begin(scope_thread.graph, &gpu->driver.map, params->tmd);

	apply_rare(gpu, params, lane);
	graph_node_end(node, &gpu->driver.map, params,
		       atomic_load_explicit(&gpu->records, memory_order_acquire));
}

/* Requests a record for the launch. Call this function after masking. */
static inline void record(struct gpupart_gpu *gpu, const struct launch_params *params,
			  struct state_lane *lane)
{
	struct records *records = atomic_load_explicit(&gpu->records, memory_order_acquire);

	if (records)
		records_launch(params, lane, records);
	else
		state_launch_end(lane);
}

/*
 * This function is not inline. Otherwise a launch without any set would have to save registers
 * on the stack.
 */
static __attribute__((noinline)) void on_usual_launch(struct gpupart_gpu *gpu,
						      const struct launch_params *params,
						      struct state_lane *lane)
{
	if (__builtin_expect(gpu->driver.map.nr_words == 2, 1))
		apply_words(gpu, params, lane, false, 2);
	else
		apply_wide(gpu, params, lane);
	record(gpu, params, lane);
}

static __attribute__((noinline, cold)) void on_rare_launch(struct gpupart_gpu *gpu,
						     const struct launch_params *params,
						     struct state_lane *lane)
{
	struct records *records = atomic_load_explicit(&gpu->records, memory_order_acquire);
	struct scope_graph *graph = scope_thread.graph;

	if (scope_thread.own && launch_own(scope_thread.own, gpu, params)) {
		state_launch_end(lane);
		return;
	}
	if (module_any() && module_find(params->module)) {
		state_count(STATE_DEVICE_LAUNCHES);
		/* The GPU may write the record before the graph ends. */
		if (graph)
			records_mark_unknown(graph->mark);
		if (scope_thread.lend)
			scope_thread.lend->refused = true;
	}
	/* Without a ring there is no record, and nothing would limit the time on lent TPCs. */
	if (scope_thread.lend && (!records || !records_ring_of(records, (uintptr_t)params->tmd)))
		scope_thread.lend->refused = true;
	if (graph && atomic_load_explicit(&gpu->trusted, memory_order_acquire))
		apply_to_node(gpu, params, lane);
	else if (scope_in_use(gpu))
		apply_rare(gpu, params, lane);
	else
		state_count(STATE_FREE);
	if (records && !graph && !(scope_thread.special & SCOPE_IN_GRAPHS))
		records_launch_in_call(params, lane, records);
	if (scope_thread.lend)
		lend_recorded(scope_thread.lend, gpu);
	/*
	 * The record is already visible. So if a reader sees this new count, it also sees the
	 * record.
	 */
	if (scope_in_use(gpu) & SCOPE_USED_LENDS)
		report_busy();
	state_launch_end(lane);
}

/* All calls are tail calls, so a usual launch saves no registers on the stack. */
static inline __attribute__((always_inline))
void on_launch_on(struct gpupart_gpu *gpu, const struct launch_params *params,
		  struct state_lane *lane)
{
	unsigned char in_use;

	state_launch_begin(lane);
	in_use = scope_in_use(gpu);
	if (__builtin_expect(scope_thread.special || in_use > SCOPE_USED, 0)) {
		on_rare_launch(gpu, params, lane);
		return;
	}
	if (in_use) {
		on_usual_launch(gpu, params, lane);
		return;
	}
	state_count_on(&lane->counters[STATE_FREE]);
	record(gpu, params, lane);
}

/* Handles a launch of a thread that has no lane. */
static __attribute__((noinline, cold)) void on_first_launch(struct gpupart_gpu *gpu,
							    const struct launch_params *params)
{
	struct state_lane spare = { .counters = { 0 } }, *lane = state_lane_first(&spare);

	state_launch_begin(lane);
	on_rare_launch(gpu, params, lane);
	if (lane == &spare)
		state_lane_add(&spare);
}

/*
 * Handles a launch that cannot be read, or whose GPU is not attached. Such a launch has no record.
 * If the launch may run on an attached GPU, that GPU counts as busy from then on.
 */
static __attribute__((noinline, cold)) void on_lost_launch(enum state_counter counter,
							   const struct launch_params *params)
{
	struct gpupart_gpu *gpu;

	not_kept(counter, NULL, params, NULL);
	state_count(counter);
	if (scope_thread.lend)
		atomic_fetch_add(&report_lend->unbounded, 1);
	if (counter == STATE_UNCONFINABLE_GPU && driver_context_known(params->ctx))
		return;
	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++)
		records_lost(atomic_load_explicit(&gpu->recorder, memory_order_acquire));
	report_busy();
}

/* Handles a launch if CUDA shows several GPUs or if the thread has no lane. */
static __attribute__((noinline)) void on_slow_launch(const struct launch_params *params)
{
	struct gpupart_gpu *gpu = scope_gpu_of(driver_gpu_of_launch(params->ctx));

	if (!gpu)
		on_lost_launch(STATE_UNCONFINABLE_GPU, params);
	else if (!state_lane)
		on_first_launch(gpu, params);
	else
		on_launch_on(gpu, params, state_lane);
}

/*
 * Handles a launch whose parameters have an unexpected size or contain no TMD. The function reads
 * no field beyond the size of the parameters.
 */
static __attribute__((noinline, cold)) void on_unknown_launch(const struct launch_params *params)
{
	struct scope_own *own = scope_thread.own;

	if (own) {
		own_note(own, params->size,
			 params->size < sizeof(*params) ? NULL : params->tmd);
		state_count(STATE_FREE);
	} else {
		on_lost_launch(STATE_UNCONFINABLE_VERSION, params);
	}
}

static void on_launch(const struct launch_params *params)
{
	struct gpupart_gpu *gpu =
		scope_gpu_of(atomic_load_explicit(&driver_only_gpu, memory_order_acquire));
	uint32_t known = atomic_load_explicit(&launch_params_size, memory_order_relaxed);

	if (__builtin_expect(params->size != known || !params->tmd, 0))
		on_unknown_launch(params);
	else if (__builtin_expect(!gpu || !state_lane, 0))
		on_slow_launch(params);
	else
		on_launch_on(gpu, params, state_lane);
}

uint32_t launch_params_known(void)
{
	return atomic_load_explicit(&launch_params_size, memory_order_relaxed);
}

bool launch_params_possible(uint32_t size)
{
	return size >= LAUNCH_MIN_PARAMS_SIZE && size <= LAUNCH_MAX_PARAMS_SIZE && size % 8 == 0;
}

void launch_params_accept(uint32_t size)
{
	atomic_store_explicit(&launch_params_size, size, memory_order_relaxed);
}

/*
 * Called when streams are being destroyed. These are the stream at @object, the streams of @ctx,
 * or the default stream of @thread. An argument that is 0 or NULL matches no stream.
 */
static __attribute__((noinline, cold))
void streams_go(uint64_t object, const void *ctx, const void *thread)
{
	struct gpupart_gpu *gpu;

	/* No graph was launched into a stream of a probe or captured on such a stream. */
	if (!object || !driver_is_own())
		graph_stream_destroyed(object, ctx, thread);
	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++)
		scope_destroyed(gpu, &gpu->streams, object, ctx, thread);
}

static void thread_goes(const void *thread)
{
	streams_go(0, NULL, thread);
}

static __attribute__((cold)) void module_goes(uint64_t module)
{
	struct gpupart_gpu *gpu;

	module_unloaded((const void *)(uintptr_t)module);
	rules_forget();
	lend_forget();
	recording_module_gone();
	report_module_gone((const void *)(uintptr_t)module);
	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++)
		scope_destroyed(gpu, &gpu->functions, module, NULL, NULL);
}

__attribute__((cold))
static void on_module_load(const struct module_params *params)
{
	char kernel[MODULE_KERNEL_LEN];
	struct gpupart_gpu *gpu;

	if (module_loaded(params->module, params->image, params->image_size, params->kind, kernel))
		api_module_launches(kernel);
	for (unsigned int n = 0; module_any() && (gpu = scope_gpu(n)); n++)
		scope_used(gpu, SCOPE_USED_MODULES);
}

static void on_stream_destroy(uint64_t object)
{
	recording_destroyed(object, NULL);
	streams_go(object, NULL, NULL);
}

static void context_goes(const void *ctx)
{
	recording_destroyed(0, ctx);
	rules_forget();
	streams_go(0, ctx, NULL);
}

static void on_resource(int cbid, const struct resource_params *params)
{
	if (cbid == DRIVER_STREAM_DESTROYED && RESOURCE_HAS(params, object))
		on_stream_destroy(params->object);
	else if (cbid == DRIVER_CTX_DESTROYED)
		context_goes(params->ctx);
	else if (cbid == DRIVER_MODULE_LOADED &&
		 params->size >= offsetof(struct module_params, kind) + 4)
		on_module_load((const struct module_params *)params);
	else if (cbid == DRIVER_MODULE_GOES && RESOURCE_HAS(params, object))
		module_goes(params->object);
	else if (cbid == DRIVER_GRAPH_GONE)
		graph_destroyed(params->ctx);
	else if (cbid == DRIVER_GRAPH_EXEC_MADE && RESOURCE_HAS(params, exec))
		graph_exec_created(params->exec, (void *)(uintptr_t)params->object);
	else if (cbid == DRIVER_GRAPH_EXEC_GOES)
		graph_exec_destroyed(params->ctx);
}

/* -------------------------------------------------------------------- install */

/* Starts watching functions of graphs. Without these functions, graphs keep old sets. */
__attribute__((cold))
static int watch_functions(struct gpupart *gp, const struct cuda_api *api)
{
	int made, launched, err = api_watch(gp, api, &launched);

	if (!err && lend_start())
		api_watch_launches();

	if (!err && environment_read().no_device_launch)
		err = api_refuse_parents(gp);
	if (err)
		return err;
	driver_watch_resource(DRIVER_GRAPH_GONE);
	made = driver_watch_resource(DRIVER_GRAPH_EXEC_MADE);
	driver_watch_resource(DRIVER_GRAPH_EXEC_GOES);
	if (made || launched)
		graph_error_set("this driver does not report when a graph is %s: %s",
				launched ? "launched" : "made",
				cuda_strerror(api, launched ? launched : made));
	return 0;
}

__attribute__((cold))
int launch_watch(struct gpupart *gp, const struct cuda_api *api)
{
	static const struct driver_observer observer = {
		.name = "launch", .launch = on_launch, .resource = on_resource,
	};
	int err;

	stream_on_thread_end(thread_goes);
	err = driver_observe(gp, api, &observer);
	if (err)
		return err;
	/*
	 * The code in self_check.c checks whether the driver reports these events. Without these
	 * events, streams cannot have sets.
	 */
	driver_watch_resource(DRIVER_STREAM_DESTROYED);
	driver_watch_resource(DRIVER_CTX_DESTROYED);
	driver_watch_resource(DRIVER_MODULE_GOES);
	/* Without this event, the library cannot find modules that launch kernels from the GPU. */
	driver_watch_resource(DRIVER_MODULE_LOADED);
	return watch_functions(gp, api);
}

__attribute__((cold))
int gpupart_driver_get(struct gpupart *gp, struct gpupart_driver *found)
{
	struct driver_table table;

	if (!driver_table_get(&table))
		return ctx_fail(gp, -EAGAIN,
				"this process has no launch callback: attach a GPU first");
	*found = (struct gpupart_driver){ table.bytes, table.nr_features, launch_params_known() };
	return 0;
}
