// SPDX-License-Identifier: MIT
/*
 * Handles the start and end of driver functions. See watched_functions.h.
 * Documentation/internals/hardware.md, "Functions", describes how the driver reports its
 * functions. If the driver reports a function with an unexpected name, this code ignores the
 * function.
 */
#include <errno.h>
#include <stdatomic.h>
#include "lib/confine/watched_functions.h"
#include "lib/confine/graph.h"
#include "lib/confine/graph_builds.h"
#include "lib/confine/lend.h"
#include "lib/confine/module.h"
#include "lib/confine/recording.h"
#include "lib/confine/report.h"
#include "lib/confine/rules.h"
#include "lib/confine/stream.h"
#include "lib/core/environment.h"
#include "lib/driver/callback.h"
#include "lib/state/state_page.h"

/* The arguments of the functions in this file. All functions have the same order of arguments. */
struct arguments {
	void *first, *second;
	const void *third;
};

enum what {
	WHAT_LAUNCH, WHAT_INSTANTIATE, WHAT_GRAPH_LAUNCH, WHAT_UPLOAD, WHAT_UPDATE, WHAT_DESTROY,
	WHAT_CHANGE, WHAT_END_CAPTURE, WHAT_WAIT, WHAT_CONTEXT, WHAT_INIT,
	WHAT_GREEN_DESTROY, WHAT_NONE,
};

/* Where the arguments of a launch contain the stream. */
enum { STREAM_CURRENT, STREAM_OF_LIST, STREAM_OF_KERNEL, STREAM_OF_CONFIG, STREAM_OF_GRID };

/* Where the arguments of an instantiation contain the flags. */
enum { FLAGS_NONE, FLAGS_THIRD, FLAGS_POINTED_TO };

/* Groups of functions. The library observes all functions of a group together. */
enum { GRAPHS = 1, LAUNCHES, WAITS, BEGINS, GREENS };

#define ROW(name, group, what, which, per_thread) \
	{ { CBID_##name, group, what }, which, per_thread }
#define ONE(name, group, what, which)	ROW(name, group, what, which, false)
/*
 * Makes two rows. The first row is for the function @name. The name of the second function also
 * has the ending @end. For the second function, stream 0 is the per-thread default stream.
 */
#define BOTH(name, end, group, what, which) \
	ONE(name, group, what, which), ROW(name##end, group, what, which, true)

static const struct row {
	struct driver_function fn;	/* the member fn.kind is an enum what */
	/*
	 * For launches, this is the place of the stream. For instantiations, this is the place of
	 * the flags. For changes, this is the kind of change.
	 */
	uint8_t which;
	bool per_thread;	/* stream 0 is the per-thread default stream */
} rows[] = {
	BOTH(cuLaunchKernel, _ptsz, LAUNCHES, WHAT_LAUNCH, STREAM_OF_KERNEL),
	BOTH(cuLaunchCooperativeKernel, _ptsz, LAUNCHES, WHAT_LAUNCH, STREAM_OF_KERNEL),
	ONE(cuLaunchCooperativeKernelMultiDevice, LAUNCHES, WHAT_LAUNCH, STREAM_OF_LIST),
	BOTH(cuLaunchKernelEx, _ptsz, LAUNCHES, WHAT_LAUNCH, STREAM_OF_CONFIG),
	ONE(cuLaunch, LAUNCHES, WHAT_LAUNCH, STREAM_CURRENT),
	ONE(cuLaunchGrid, LAUNCHES, WHAT_LAUNCH, STREAM_CURRENT),
	ONE(cuLaunchGridAsync, LAUNCHES, WHAT_LAUNCH, STREAM_OF_GRID),
	/*
	 * This must be the first function of its group. If a driver lacks cuGraphLaunch, programs
	 * launch no graphs.
	 */
	BOTH(cuGraphLaunch, _ptsz, GRAPHS, WHAT_GRAPH_LAUNCH, 0),
	ONE(cuGraphInstantiate, GRAPHS, WHAT_INSTANTIATE, 0),
	ONE(cuGraphInstantiate_v2, GRAPHS, WHAT_INSTANTIATE, 0),
	ONE(cuGraphInstantiateWithFlags, GRAPHS, WHAT_INSTANTIATE, FLAGS_THIRD),
	BOTH(cuGraphInstantiateWithParams, _ptsz, GRAPHS, WHAT_INSTANTIATE, FLAGS_POINTED_TO),
	BOTH(cuGraphUpload, _ptsz, GRAPHS, WHAT_UPLOAD, 0),
	ONE(cuGraphExecUpdate, GRAPHS, WHAT_UPDATE, 0),
	ONE(cuGraphExecUpdate_v2, GRAPHS, WHAT_UPDATE, 0),
	ONE(cuGraphExecDestroy, GRAPHS, WHAT_DESTROY, 0),
	ONE(cuGraphExecKernelNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_KERNEL_OLD),
	ONE(cuGraphExecKernelNodeSetParams_v2, GRAPHS, WHAT_CHANGE, GRAPH_KERNEL),
	ONE(cuGraphExecMemcpyNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_MEMCPY),
	ONE(cuGraphExecMemsetNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_MEMSET),
	ONE(cuGraphExecHostNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_OTHER),
	ONE(cuGraphExecChildGraphNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_OTHER),
	ONE(cuGraphExecEventRecordNodeSetEvent, GRAPHS, WHAT_CHANGE, GRAPH_OTHER),
	ONE(cuGraphExecEventWaitNodeSetEvent, GRAPHS, WHAT_CHANGE, GRAPH_OTHER),
	ONE(cuGraphExecExternalSemaphoresSignalNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_OTHER),
	ONE(cuGraphExecExternalSemaphoresWaitNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_OTHER),
	ONE(cuGraphExecBatchMemOpNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_OTHER),
	ONE(cuGraphExecNodeSetParams, GRAPHS, WHAT_CHANGE, GRAPH_OTHER),
	ONE(cuGraphNodeSetEnabled, GRAPHS, WHAT_CHANGE, GRAPH_ENABLED),
	BOTH(cuStreamEndCapture, _ptsz, GRAPHS, WHAT_END_CAPTURE, 0),
	ONE(cuCtxSynchronize, WAITS, WHAT_WAIT, 0),
	ONE(cuCtxSynchronize_v2, WAITS, WHAT_WAIT, 0),
	BOTH(cuStreamSynchronize, _ptsz, WAITS, WHAT_WAIT, 0),
	ONE(cuEventSynchronize, WAITS, WHAT_WAIT, 0),
	BOTH(cuMemcpyDtoH_v2, _ptds, WAITS, WHAT_WAIT, 0),
	BOTH(cuStreamQuery, _ptsz, WAITS, WHAT_WAIT, 0),
	ONE(cuEventQuery, WAITS, WHAT_WAIT, 0),
	ONE(cuCtxCreate, BEGINS, WHAT_CONTEXT, 0),
	ONE(cuCtxCreate_v2, BEGINS, WHAT_CONTEXT, 0),
	ONE(cuCtxCreate_v3, BEGINS, WHAT_CONTEXT, 0),
	ONE(cuCtxCreate_v4, BEGINS, WHAT_CONTEXT, 0),
	ONE(cuDevicePrimaryCtxRetain, BEGINS, WHAT_CONTEXT, 0),
	ONE(cuInit, BEGINS, WHAT_INIT, 0),
	ONE(cuGreenCtxDestroy, GREENS, WHAT_GREEN_DESTROY, 0),
	{ { 0, 0, WHAT_NONE }, 0, false },
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]) - 1)

static const struct cuda_api *cuda;
static atomic_bool launches_asked;

/* Number of a launch function that the driver reports with an unexpected name, or 0. */
static atomic_int other_launch;

const char *api_other_launch(int *cbid)
{
	*cbid = atomic_load_explicit(&other_launch, memory_order_relaxed);
	return driver_function_name(*cbid);
}

bool api_launch_reported(void)
{
	/* If the driver did not report the launch's end, SCOPE_IN_LAUNCH is still set. */
	return driver_function_seen(CBID_cuLaunchKernel) &&
	       !(scope_thread.special & SCOPE_IN_LAUNCH);
}

/*
 * Returns the attached GPU of a launch into @stream, or NULL. A stream that the program created
 * belongs to its own context, even if another context is current.
 */
static struct gpupart_gpu *gpu_of_stream(void *stream, void *ctx)
{
	struct gpupart_gpu *gpu = scope_gpu_of_context(NULL);
	void *its = ctx;

	/* If CUDA shows one GPU, this is the GPU. */
	if (gpu)
		return gpu;
	if (stream && stream != CUDA_STREAM_LEGACY && stream != CUDA_STREAM_PER_THREAD &&
	    (!cuda->stream_ctx || cuda->stream_ctx(stream, &its)))
		its = ctx;
	if (its == ctx)
		return scope_gpu_of_context(ctx);
	if (cuda->ctx_push(its))
		return NULL;
	gpu = scope_gpu_of_context(its);
	cuda->ctx_pop(&its);
	return gpu;
}

static struct graph_place place_of(const struct row *row, void *stream, void *ctx)
{
	struct graph_place place = { .gpu = gpu_of_stream(stream, ctx) };

	stream_identify_in_call(stream, row->per_thread, ctx, &place.id);
	return place;
}

static void *stream_of_launch(const struct row *row, const void *arguments)
{
	const struct {
		void *function;
		unsigned int grid[3], block[3], shared;
		void *stream;
	} *kernel = arguments;
	const struct {
		void *function;
		int width, height;
		void *stream;
	} *grid = arguments;
	const struct cuda_launch_config *config;

	switch (row->which) {
	case STREAM_OF_KERNEL:
		return kernel->stream;
	case STREAM_OF_GRID:
		return grid->stream;
	case STREAM_OF_CONFIG:
		config = *(const struct cuda_launch_config *const *)arguments;
		return config ? config->stream : NULL;
	}
	return NULL;
}

/* Returns true if the launch failed because its stream, function or context does not exist. */
static bool names_nothing(int result)
{
	return result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_INVALID_HANDLE ||
	       result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* Removes the next-launch set after the launch, even if the launch failed. */
static __attribute__((noinline)) void launch_ends(void *stream,
						  const struct cuda_call_params *params)
{
	struct gpupart_gpu *gpu;
	struct tmd_allow unused;
	bool waited;

	/* The launch failed and its GPU is unknown, so remove all next-launch sets. */
	if (*params->result && (!params->ctx || names_nothing(*params->result))) {
		waited = scope_next_drop();
	} else {
		gpu = gpu_of_stream(stream, params->ctx);
		waited = gpu && scope_next_take(gpu, &unused);
	}
	if (waited)
		state_count(STATE_NEXT_DROPPED);
}

static uint64_t flags_of(const struct row *row, const struct arguments *a)
{
	return row->which == FLAGS_THIRD ? (uintptr_t)a->third :
	       row->which == FLAGS_POINTED_TO && a->third ? *(const uint64_t *)a->third : 0;
}

static void at_begin(const struct row *row, const struct cuda_call_params *params,
		     struct arguments *a)
{
	struct graph_place place;

	switch (row->fn.kind) {
	case WHAT_INSTANTIATE:
		graph_instantiate_begin(cuda, a->second, flags_of(row, a));
		break;
	case WHAT_GRAPH_LAUNCH:
	case WHAT_UPLOAD:
		place = place_of(row, a->second, params->ctx);
		a->first = graph_launch_begin(cuda, a->first, &place,
					      row->fn.kind == WHAT_GRAPH_LAUNCH);
		/* Count the launch now, because the driver may build no node. */
		report_busy();
		break;
	}
}

static void at_end(const struct row *row, const struct cuda_call_params *params,
		   struct arguments *a)
{
	int result = *params->result;
	struct gpupart_gpu *gpu;
	struct scope_id stream;

	switch (row->fn.kind) {
	case WHAT_INSTANTIATE:
		graph_instantiate_end(cuda, a->second, result);
		break;
	case WHAT_DESTROY:
		graph_collect(cuda);
		break;
	case WHAT_GRAPH_LAUNCH:
	case WHAT_UPLOAD:
		a->first = graph_launch_end(cuda, result);
		if (row->fn.kind == WHAT_GRAPH_LAUNCH && scope_thread.next_gpus)
			launch_ends(a->second, params);
		break;
	case WHAT_UPDATE:
		if (!result)
			graph_updated(cuda, a->first, a->second);
		break;
	case WHAT_CHANGE:
		if (!result)
			graph_changed(cuda, a->first, a->second, row->which, a->third);
		break;
	case WHAT_END_CAPTURE:
		if (result || !*(void **)a->second)
			break;
		stream_identify_in_call(a->first, row->per_thread, params->ctx, &stream);
		graph_captured(&stream, *(void **)a->second);
		break;
	case WHAT_CONTEXT:
		if (!result && a->first)
			recording_context(cuda, *(void **)a->first);
		break;
	case WHAT_WAIT:
		if (!result)
			records_settle();
		break;
	case WHAT_GREEN_DESTROY:
		for (unsigned int n = 0; !result && (gpu = scope_gpu(n)); n++)
			tmd_parts_context_destroyed(&gpu->parts);
		break;
	}
}

/* ------------------------------------------------------------------- refusing */

/* Levels of refusal. A higher level also refuses all calls that a lower level refuses. */
enum { REFUSE_NOTHING, REFUSE_PARENTS, REFUSE_LAUNCHES, REFUSE_ALL };

static atomic_bool strict, parents_refused;
static atomic_int refusing;
static _Thread_local bool refused;	/* true if this thread's current call was refused */

static void refuse_from(int level)
{
	int less = atomic_load(&refusing);

	while (less < level && !atomic_compare_exchange_weak(&refusing, &less, level))
		;
}

void api_left_limit(void)
{
	if (atomic_load(&strict))
		refuse_from(REFUSE_LAUNCHES);
}

void api_module_launches(const char *name)
{
	if (!atomic_load(&parents_refused))
		return;
	refused = true;
	report_module_refused(name);
}

static inline __attribute__((always_inline)) bool refuses(void)
{
	return atomic_load_explicit(&refusing, memory_order_relaxed) != REFUSE_NOTHING;
}

/* Returns the function that the arguments of a launch contain. */
static inline void *function_of(const struct row *row, const struct arguments *a)
{
	return row->which == STREAM_OF_CONFIG ? a->second : a->first;
}

/*
 * Returns true if this call launches a kernel that can launch other kernels. Such a kernel may be
 * in a library that loads its code at the first use, or in a graph. It may also be in a module
 * that was loaded while the driver did not report the ends of calls.
 */
static bool launches_parent(const struct row *row, const struct arguments *a)
{
	void *function = function_of(row, a), *module;
	int result;

	if (row->fn.kind != WHAT_LAUNCH || row->which == STREAM_OF_LIST)
		return module_any();
	driver_own(true);
	result = stream_module(cuda, &function, &module);
	driver_own(false);
	return result == CUDA_ERROR_INVALID_CONTEXT ||
	       (!result && module_any() && module_find(module));
}

/* Unloads the module or library of a refused call. The program does not have the handle yet. */
static void unload(const struct cuda_call_params *params)
{
	static const char module[] = "cuModuleLoad", library[] = "cuLibraryLoad";
	void **loaded = *(void ***)(uintptr_t)params->arguments;
	cuda_result (*take_out)(void *) =
		!params->name ? NULL :
		!strncmp(params->name, module, sizeof(module) - 1) ? cuda->module_unload :
		!strncmp(params->name, library, sizeof(library) - 1) ? cuda->library_unload : NULL;

	if (*params->result || !take_out)
		return;
	driver_own(true);
	take_out(*loaded);
	driver_own(false);
	*loaded = NULL;
}

/*
 * At the start of a call, replaces arguments so that the call fails in the driver. At the end of
 * the call, sets the result of the call. Documentation/internals/hardware.md, "Memory", shows by
 * measurement that the driver uses the replaced arguments. If the function has no row, @row is
 * the last row.
 */
static __attribute__((noinline)) void refuse(const struct row *row,
					     const struct cuda_call_params *params)
{
	bool launch = row->fn.kind == WHAT_LAUNCH || row->fn.kind == WHAT_GRAPH_LAUNCH ||
		      row->fn.kind == WHAT_UPLOAD;
	bool first = row->fn.kind == WHAT_CONTEXT || row->fn.kind == WHAT_INIT;
	struct arguments *a = (struct arguments *)(uintptr_t)params->arguments;
	int level = atomic_load(&refusing);

	if (params->site == CUDA_SITE_END) {
		if (refused) {
			unload(params);
			*(int *)(uintptr_t)params->result = CUDA_ERROR_NOT_PERMITTED;
		}
		refused = false;
		return;
	}
	refused = launch ? level >= REFUSE_LAUNCHES || launches_parent(row, a) :
		  first && level == REFUSE_ALL;
	if (!refused)
		return;
	if (row->fn.kind == WHAT_INIT)
		*(uint32_t *)a = ~0u;	/* the flags, which must be 0 in a valid call */
	else if (row->fn.kind == WHAT_LAUNCH && row->which != STREAM_CURRENT)
		a->second = NULL;	/* the grid's width, a function or a count */
	else
		a->first = NULL;
}

static inline void match_launch(const struct row *row, const struct cuda_call_params *params)
{
	void *function = function_of(row, params->arguments);

	if (rules_known(function, params->ctx) || row->which == STREAM_OF_LIST)
		return;
	driver_own(true);
	rules_match(cuda, function, params->ctx);
	driver_own(false);
}

/*
 * The driver builds the TMDs of nodes at the instantiation or at the launch. The arguments of
 * these calls do not contain the functions. So match the functions of all nodes first.
 */
static void match_nodes(const struct row *row, const struct cuda_call_params *params,
			const struct arguments *a)
{
	void *function;

	if (row->fn.kind == WHAT_INSTANTIATE || row->fn.kind == WHAT_UPDATE) {
		rules_match_graph(cuda, a->second);
	} else if (row->fn.kind == WHAT_CHANGE && a->third &&
		   (row->which == GRAPH_KERNEL || row->which == GRAPH_KERNEL_OLD)) {
		const struct cuda_kernel_node *kernel = a->third;

		function = kernel->function || row->which == GRAPH_KERNEL_OLD ? kernel->function :
									kernel->kernel;
		if (!rules_known(function, params->ctx))
			rules_match(cuda, function, params->ctx);
	}
}

/*
 * Attributes that a plain launch may have. A plain launch begins after the end of the previous
 * launch. In a plain launch, a block must not depend on blocks of other clusters. The attributes
 * are 1 (access policy window), 4 (cluster), 5 (cluster scheduling), 8 (priority), 9 and 10
 * (memory domains) and 14 (carveout). All other attributes must be 0.
 */
#define PLAIN_ATTRS (1u << 1 | 1u << 4 | 1u << 5 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 14)

static bool is_plain(const struct cuda_launch_config *config)
{
	for (unsigned int n = 0; n < config->nr_attrs; n++)
		if (config->attrs[n].id < 0 || config->attrs[n].id > 31 ||
		    (!(PLAIN_ATTRS >> config->attrs[n].id & 1) && config->attrs[n].value))
			return false;
	return true;
}

/* Called when a call that launches a kernel begins or ends. */
static __attribute__((noinline)) void lend_launch(const struct row *row,
						  const struct cuda_call_params *params)
{
	const struct {
		void *function;
		unsigned int grid[3];
	} *kernel = params->arguments;
	const unsigned int *grid = row->which == STREAM_OF_KERNEL ? kernel->grid : NULL;
	bool plain = row->fn.cbid == CBID_cuLaunchKernel ||
		     row->fn.cbid == CBID_cuLaunchKernel_ptsz;
	const struct cuda_launch_config *config;

	if (params->site == CUDA_SITE_END) {
		if (scope_thread.lend)
			lend_ends(*params->result);
		return;
	}
	if (row->which == STREAM_OF_CONFIG) {
		config = *(const struct cuda_launch_config *const *)params->arguments;
		grid = config ? config->grid : NULL;
		plain = config && is_plain(config);
	}
	if (grid)
		lend_begins(function_of(row, params->arguments), params->ctx, grid, plain);
}

static void call_handle(const struct row *row, const struct cuda_call_params *params)
{
	/*
	 * The driver reads this argument after the callback. So a new graph in this argument is
	 * launched.
	 */
	struct arguments *a = (struct arguments *)(uintptr_t)params->arguments;

	driver_own(true);
	if (row->fn.group == GRAPHS)
		scope_graph_call(params->site == CUDA_SITE_BEGIN);
	if (row->fn.kind == WHAT_LAUNCH)
		launch_ends(stream_of_launch(row, params->arguments), params);
	else if (params->site == CUDA_SITE_BEGIN) {
		if (atomic_load(&rules_used))
			match_nodes(row, params, a);
		at_begin(row, params, a);
	} else
		at_end(row, params, a);
	driver_own(false);
}

/* Handles the end of a call, after the code for the function of the call. */
static void call_ends(bool launch, const struct cuda_call_params *params)
{
	if (*params->result) {
		if (launch && !scope_thread.own)
			records_launch_ends(*params->result);
		recording_failed(*params->result, params->ctx);
	}
	if (atomic_load_explicit(&report_unnamed, memory_order_relaxed)) {
		driver_own(true);
		report_names(cuda);
		driver_own(false);
	}
	if (!launch && atomic_load_explicit(&records_unnamed, memory_order_relaxed))
		recording_names(cuda);
}

/* Handles a call of a function that is no launch function, and the rare cases of a launch. */
static __attribute__((noinline)) void call_rare(const struct row *row,
						const struct cuda_call_params *params)
{
	bool launch = row->fn.kind == WHAT_LAUNCH, begins = params->site == CUDA_SITE_BEGIN;
	/* A probe launch has no rule, is not lent to, and never uses a next-launch set. */
	bool program = launch && !scope_thread.own;

	if (!params->arguments)
		return;
	if (program && begins && atomic_load_explicit(&rules_used, memory_order_acquire))
		match_launch(row, params);
	if (program && atomic_load_explicit(&lend_used, memory_order_relaxed))
		lend_launch(row, params);
	if (!launch || (program && !begins && scope_thread.next_gpus))
		call_handle(row, params);
	if (!begins)
		call_ends(launch, params);
	if (refuses())
		refuse(row, params);
}

static void on_call(const struct driver_function *fn, const struct cuda_call_params *params)
{
	const struct row *row = (const void *)fn;
	bool rare;

	if (__builtin_expect(row->fn.kind == WHAT_LAUNCH, 1)) {
		if (params->site == CUDA_SITE_BEGIN) {
			scope_thread.special |= SCOPE_IN_LAUNCH;
			records_launch_begins();
			rare = atomic_load_explicit(&rules_used, memory_order_relaxed);
		} else {
			scope_thread.special &= ~SCOPE_IN_LAUNCH;
			rare = scope_thread.next_gpus || *params->result ||
			       atomic_load_explicit(&report_unnamed, memory_order_relaxed);
		}
		/* A usual launch makes no driver call and saves no registers on the stack. */
		if (__builtin_expect(!rare && !refuses() &&
				     !atomic_load_explicit(&lend_used, memory_order_relaxed), 1))
			return;
	}
	call_rare(row, params);
}

/*
 * In this driver, the number of @fn belongs to a different function. This code ignores calls of
 * that function.
 */
static void on_other_call(const struct driver_function *fn, const struct cuda_call_params *params)
{
	if (!params->arguments || !params->name)
		return;
	switch (fn->kind) {
	case WHAT_LAUNCH:
		atomic_store_explicit(&other_launch, fn->cbid, memory_order_relaxed);
		break;
	case WHAT_UPDATE:
	case WHAT_CHANGE:
		graph_changes_unseen();
		__attribute__((fallthrough));
	case WHAT_INSTANTIATE:
	case WHAT_GRAPH_LAUNCH:
	case WHAT_UPLOAD:
	case WHAT_END_CAPTURE:
		graph_error_set("function %d of this driver is not %s",
				fn->cbid, driver_function_name(fn->cbid));
		recording_stop(graph_error());
		break;
	}
	/*
	 * The program may have meant its next-launch set for this call. The set must not apply to
	 * a later launch.
	 */
	if ((fn->kind == WHAT_LAUNCH || fn->kind == WHAT_GRAPH_LAUNCH) && !scope_thread.own &&
	    scope_next_drop())
		state_count(STATE_NEXT_DROPPED);
	if (refuses())
		refuse(&rows[NR_ROWS], params);
}

/* ------------------------------------------------------------------- watching */

static const struct driver_observer observer = {
	.name = "calls", .rows = &rows[0].fn, .row_size = sizeof(rows[0]), .call = on_call,
	.other = on_other_call,
};

int api_watch(struct gpupart *gp, const struct cuda_api *api, int *launched)
{
	struct driver_table table;
	int err;

	cuda = api;
	err = driver_observe(gp, api, &observer);
	if (err)
		return err;
	*launched = driver_watch(&observer, GRAPHS, true);
	/* In these functions, contexts get their records. */
	driver_watch(&observer, BEGINS, true);
	/* After these functions, ended launches are counted, and the names of kernels are read. */
	driver_watch(&observer, WAITS, true);
	/* If the driver has no green contexts, no green context is destroyed. */
	if (driver_table_get(&table) && table.green)
		driver_watch(&observer, GREENS, true);
	return 0;
}

/* Some drivers lack some of these functions. Returns the result for cuLaunchKernel. */
static bool watch_launches(void)
{
	bool all = !driver_watch(&observer, LAUNCHES, true);

	atomic_store_explicit(&scope_launches_watched, all, memory_order_relaxed);
	atomic_store_explicit(&launches_asked, true, memory_order_release);
	return all;
}

void api_watch_launches(void)
{
	if (__builtin_expect(!atomic_load_explicit(&launches_asked, memory_order_acquire), 0))
		watch_launches();
}

__attribute__((cold))
int api_watch_names(struct gpupart *gp)
{
	if (!cuda->func_name || !cuda->func_module || !cuda->graph_nodes || !cuda->node_type ||
	    !cuda->graph_child || !cuda->kernel_get)
		return ctx_fail(gp, -EOPNOTSUPP,
				"rules by kernel name are not available: this driver does not report kernel names (CUDA 12.3 is needed)");
	if (!watch_launches())
		return ctx_fail(gp, -EOPNOTSUPP,
				"rules by kernel name are not available: this driver does not report launches");
	return 0;
}

int api_strict(struct gpupart *gp, const struct cuda_api *api, bool refuse)
{
	int err;

	cuda = api;
	err = driver_observe(gp, api, &observer);
	if (err)
		return err;
	if (!watch_launches())
		return ctx_fail(gp, -EOPNOTSUPP,
			       "launches cannot be refused: this driver does not report calls of its launch functions");
	if (refuse) {
		driver_watch(&observer, BEGINS, true);
		/* If a GPU was attached, these functions are already observed. */
		driver_watch(&observer, GRAPHS, true);
	}
	atomic_store(&strict, true);
	if (refuse)
		refuse_from(REFUSE_ALL);
	return 0;
}

int api_refuse_parents(struct gpupart *gp)
{
	if (driver_watch_resource(DRIVER_MODULE_LOADED) || !cuda->func_module || !watch_launches())
		return ctx_fail(gp, -EOPNOTSUPP,
				ENVIRONMENT_NO_DEVICE_LAUNCH
				"=1: this driver does not report modules and launches");
	/* Watch all functions, because any function may load a module. */
	driver_watch(&observer, DRIVER_ALL, true);
	/* If a thread refuses a module, the end of its call must see the level. */
	refuse_from(REFUSE_PARENTS);
	atomic_store(&parents_refused, true);
	return 0;
}
