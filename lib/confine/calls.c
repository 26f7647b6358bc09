// SPDX-License-Identifier: MIT
/*
 * See calls.h. The numbers of the driver's functions are CUPTI's public ones; how they are
 * told of was measured: Documentation/internals/hardware.md, "Functions". A function whose name is
 * not the expected one is left alone.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "lib/confine/calls.h"
#include "lib/confine/graph.h"
#include "lib/confine/module.h"
#include "lib/confine/report.h"
#include "lib/confine/stream.h"
#include "lib/core/environment.h"
#include "lib/driver/callback.h"
#include "lib/state/process_block.h"

/* Arguments in their order, as every function here has them. */
struct arguments {
	void *first, *second;
	const void *third;
};

enum what {
	WHAT_LAUNCH, WHAT_INSTANTIATE, WHAT_GRAPH_LAUNCH, WHAT_UPLOAD, WHAT_UPDATE, WHAT_DESTROY,
	WHAT_CHANGE, WHAT_END_CAPTURE, WHAT_WAIT, WHAT_CONTEXT, WHAT_INIT,
	WHAT_GREEN_DESTROY,
};

/* Where the arguments of a launch say which stream it goes into. */
enum { STREAM_CURRENT, STREAM_OF_LIST, STREAM_OF_KERNEL, STREAM_OF_CONFIG, STREAM_OF_GRID };

static const struct row {
	uint16_t cbid;
	uint8_t what;
	/* Of launches: where the stream is; of changes: what is changed. */
	uint8_t which;
	bool per_thread;	/* stream 0 is the thread's own default stream */
	const char *name;
} rows[] = {
	{ 307, WHAT_LAUNCH, STREAM_OF_KERNEL, false, "cuLaunchKernel" },
	{ 442, WHAT_LAUNCH, STREAM_OF_KERNEL, true, "cuLaunchKernel_ptsz" },
	{ 477, WHAT_LAUNCH, STREAM_OF_KERNEL, false, "cuLaunchCooperativeKernel" },
	{ 478, WHAT_LAUNCH, STREAM_OF_KERNEL, true, "cuLaunchCooperativeKernel_ptsz" },
	{ 480, WHAT_LAUNCH, STREAM_OF_LIST, false,
	  "cuLaunchCooperativeKernelMultiDevice" },
	{ 652, WHAT_LAUNCH, STREAM_OF_CONFIG, false, "cuLaunchKernelEx" },
	{ 653, WHAT_LAUNCH, STREAM_OF_CONFIG, true, "cuLaunchKernelEx_ptsz" },
	{ 115, WHAT_LAUNCH, STREAM_CURRENT, false, "cuLaunch" },
	{ 116, WHAT_LAUNCH, STREAM_CURRENT, false, "cuLaunchGrid" },
	{ 117, WHAT_LAUNCH, STREAM_OF_GRID, false, "cuLaunchGridAsync" },
	/* The first of what has to do with graphs: where a driver lacks it, none is launched. */
	{ 514, WHAT_GRAPH_LAUNCH, 0, false, "cuGraphLaunch" },
	{ 513, WHAT_INSTANTIATE, 0, false, "cuGraphInstantiate" },
	{ 578, WHAT_INSTANTIATE, 0, false, "cuGraphInstantiate_v2" },
	{ 643, WHAT_INSTANTIATE, 0, false, "cuGraphInstantiateWithFlags" },
	{ 656, WHAT_INSTANTIATE, 0, false, "cuGraphInstantiateWithParams" },
	{ 657, WHAT_INSTANTIATE, 0, true, "cuGraphInstantiateWithParams_ptsz" },
	{ 515, WHAT_GRAPH_LAUNCH, 0, true, "cuGraphLaunch_ptsz" },
	{ 580, WHAT_UPLOAD, 0, false, "cuGraphUpload" },
	{ 581, WHAT_UPLOAD, 0, true, "cuGraphUpload_ptsz" },
	{ 561, WHAT_UPDATE, 0, false, "cuGraphExecUpdate" },
	{ 696, WHAT_UPDATE, 0, false, "cuGraphExecUpdate_v2" },
	{ 516, WHAT_DESTROY, 0, false, "cuGraphExecDestroy" },
	{ 538, WHAT_CHANGE, GRAPH_KERNEL_OLD, false, "cuGraphExecKernelNodeSetParams" },
	{ 692, WHAT_CHANGE, GRAPH_KERNEL, false, "cuGraphExecKernelNodeSetParams_v2" },
	{ 562, WHAT_CHANGE, GRAPH_MEMCPY, false, "cuGraphExecMemcpyNodeSetParams" },
	{ 563, WHAT_CHANGE, GRAPH_MEMSET, false, "cuGraphExecMemsetNodeSetParams" },
	{ 564, WHAT_CHANGE, GRAPH_OTHER, false, "cuGraphExecHostNodeSetParams" },
	{ 586, WHAT_CHANGE, GRAPH_OTHER, false, "cuGraphExecChildGraphNodeSetParams" },
	{ 595, WHAT_CHANGE, GRAPH_OTHER, false, "cuGraphExecEventRecordNodeSetEvent" },
	{ 596, WHAT_CHANGE, GRAPH_OTHER, false, "cuGraphExecEventWaitNodeSetEvent" },
	{ 624, WHAT_CHANGE, GRAPH_OTHER, false,
	  "cuGraphExecExternalSemaphoresSignalNodeSetParams" },
	{ 625, WHAT_CHANGE, GRAPH_OTHER, false, "cuGraphExecExternalSemaphoresWaitNodeSetParams" },
	{ 672, WHAT_CHANGE, GRAPH_OTHER, false, "cuGraphExecBatchMemOpNodeSetParams" },
	{ 714, WHAT_CHANGE, GRAPH_OTHER, false, "cuGraphExecNodeSetParams" },
	{ 497, WHAT_END_CAPTURE, 0, false, "cuStreamEndCapture" },
	{ 498, WHAT_END_CAPTURE, 0, true, "cuStreamEndCapture_ptsz" },
	{ 17, WHAT_WAIT, 0, false, "cuCtxSynchronize" },
	{ 800, WHAT_WAIT, 0, false, "cuCtxSynchronize_v2" },
	{ 126, WHAT_WAIT, 0, false, "cuStreamSynchronize" },
	{ 440, WHAT_WAIT, 0, true, "cuStreamSynchronize_ptsz" },
	{ 121, WHAT_WAIT, 0, false, "cuEventSynchronize" },
	{ 278, WHAT_WAIT, 0, false, "cuMemcpyDtoH_v2" },
	{ 398, WHAT_WAIT, 0, true, "cuMemcpyDtoH_v2_ptds" },
	{ 10, WHAT_CONTEXT, 0, false, "cuCtxCreate" },
	{ 235, WHAT_CONTEXT, 0, false, "cuCtxCreate_v2" },
	{ 645, WHAT_CONTEXT, 0, false, "cuCtxCreate_v3" },
	{ 757, WHAT_CONTEXT, 0, false, "cuCtxCreate_v4" },
	{ 386, WHAT_CONTEXT, 0, false, "cuDevicePrimaryCtxRetain" },
	{ 1, WHAT_INIT, 0, false, "cuInit" },
	{ 744, WHAT_GREEN_DESTROY, 0, false, "cuGreenCtxDestroy" },
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct cuda_api *cuda;
static atomic_bool launches_asked;

/* The @n'th of the rows that say what @first to @last say. */
static int nth(unsigned int n, enum what first, enum what last)
{
	for (unsigned int i = 0; i < NR_ROWS; i++)
		if (rows[i].what >= first && rows[i].what <= last && !n--)
			return rows[i].cbid;
	return -1;
}

static int cbid_of_graphs(unsigned int n)
{
	return nth(n, WHAT_INSTANTIATE, WHAT_END_CAPTURE);
}

static int cbid_of_launches(unsigned int n)
{
	return nth(n, WHAT_LAUNCH, WHAT_LAUNCH);
}

static int cbid_of_waits(unsigned int n)
{
	return nth(n, WHAT_WAIT, WHAT_WAIT);
}

static int cbid_of_begins(unsigned int n)
{
	return nth(n, WHAT_CONTEXT, WHAT_INIT);
}

static int cbid_of_greens(unsigned int n)
{
	return nth(n, WHAT_GREEN_DESTROY, WHAT_GREEN_DESTROY);
}

/* The name that the driver was seen to give, once it was found right: its address is kept. */
static _Atomic(const char *) names[NR_ROWS];

/* A launch that the driver tells of by another name; NULL: none was seen. */
static _Atomic(const struct row *) other_launch;

/*
 * What the driver has at this number is not the function that we know: what we do at that
 * one's begin and end is not done.
 */
static void other_function(const struct row *row)
{
	switch (row->what) {
	case WHAT_LAUNCH:
		atomic_store_explicit(&other_launch, row, memory_order_relaxed);
		break;
	case WHAT_UPDATE:
	case WHAT_CHANGE:
		graph_changes_unseen();
		__attribute__((fallthrough));
	case WHAT_INSTANTIATE:
	case WHAT_GRAPH_LAUNCH:
	case WHAT_UPLOAD:
	case WHAT_END_CAPTURE:
		graph_error_set("what this driver tells of as function %d is not %s",
				row->cbid, row->name);
		break;
	}
	/* It may have been the launch that a set waits for: it does not wait for another. */
	if ((row->what == WHAT_LAUNCH || row->what == WHAT_GRAPH_LAUNCH) && !scope_thread.own &&
	    scope_next_drop())
		control_count(CONTROL_NEXT_DROPPED);
}

const char *api_other_launch(int *cbid)
{
	const struct row *row = atomic_load_explicit(&other_launch, memory_order_relaxed);

	if (row)
		*cbid = row->cbid;
	return row ? row->name : NULL;
}

bool api_launch_told(void)
{
	/* cuLaunchKernel is the first row. A begin without an end is seen by what it left. */
	return atomic_load_explicit(&names[0], memory_order_relaxed) && !scope_thread.in_launch;
}

/* Out of line, so that functions seen before pay nothing for it. */
static __attribute__((noinline)) bool name_is_right(unsigned int i, const char *name)
{
	if (strcmp(name, rows[i].name)) {
		other_function(&rows[i]);
		return false;
	}
	atomic_store_explicit(&names[i], name, memory_order_relaxed);
	return true;
}

/* NULL where the function is not one of ours, or the driver's is another. */
static const struct row *row_of(int cbid, const char *name)
{
	unsigned int i = 0;

	while (i < NR_ROWS && rows[i].cbid != cbid)
		i++;
	if (i == NR_ROWS || !name ||
	    (atomic_load_explicit(&names[i], memory_order_relaxed) != name &&
	     !name_is_right(i, name)))
		return NULL;
	return &rows[i];
}

static struct gpupart_gpu *gpu_of_context(void *ctx)
{
	return scope_gpu_of(driver_gpu_of_context(ctx));
}

/*
 * The attached GPU of what goes into @stream, or NULL: a created stream's context counts,
 * whichever is current.
 */
static struct gpupart_gpu *gpu_of_stream(void *stream, void *ctx)
{
	struct gpupart_gpu *gpu = gpu_of_context(NULL);
	void *its = ctx;

	/* CUDA shows no other. */
	if (gpu)
		return gpu;
	if (stream && stream != CUDA_STREAM_LEGACY && stream != CUDA_STREAM_PER_THREAD &&
	    (!cuda->stream_ctx || cuda->stream_ctx(stream, &its)))
		its = ctx;
	if (its == ctx)
		return gpu_of_context(ctx);
	if (cuda->ctx_push(its))
		return NULL;
	gpu = gpu_of_context(its);
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

/* The driver did not find the stream, the function or the context that a launch named. */
static bool names_nothing(int result)
{
	return result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_INVALID_HANDLE ||
	       result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* A next-launch set is used up by the launch that it was set for, whatever became of it. */
static __attribute__((noinline)) void launch_ends(void *stream,
						  const struct cuda_call_params *params)
{
	struct gpupart_gpu *gpu;
	struct tmd_allow unused;
	bool waited;

	/* It failed, and where it was meant to go nobody knows: none waits for it anywhere. */
	if (*params->result && (!params->ctx || names_nothing(*params->result))) {
		waited = scope_next_drop();
	} else {
		gpu = gpu_of_stream(stream, params->ctx);
		waited = gpu && scope_next_take(gpu, &unused);
	}
	if (waited)
		control_count(CONTROL_NEXT_DROPPED);
}

static void at_begin(const struct row *row, const struct cuda_call_params *params,
		     const struct arguments *a)
{
	struct graph_place place;

	switch (row->what) {
	case WHAT_INSTANTIATE:
		graph_instantiate_begin(cuda, a->second);
		break;
	case WHAT_GRAPH_LAUNCH:
	case WHAT_UPLOAD:
		place = place_of(row, a->second, params->ctx);
		graph_launch_begin(cuda, a->first, &place, row->what == WHAT_GRAPH_LAUNCH);
		break;
	}
}

static void at_end(const struct row *row, const struct cuda_call_params *params,
		   const struct arguments *a)
{
	int result = *params->result;
	struct gpupart_gpu *gpu;
	struct scope_id stream;

	switch (row->what) {
	case WHAT_INSTANTIATE:
		graph_instantiate_end(cuda, a->second, result);
		break;
	case WHAT_DESTROY:
		graph_destroy_end(cuda);
		break;
	case WHAT_GRAPH_LAUNCH:
		graph_launch_end(result);
		if (scope_thread.next_gpus)
			launch_ends(a->second, params);
		break;
	case WHAT_UPLOAD:
		graph_launch_end(result);
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
	case WHAT_GREEN_DESTROY:
		for (unsigned int n = 0; !result && (gpu = scope_gpu(n)); n++)
			tmd_parts_gone(&gpu->parts);
		break;
	}
}

/* ------------------------------------------------------------------- refusing */

/* Ordered: what is refused at one is refused at the next. */
enum { REFUSE_NOTHING, REFUSE_PARENTS, REFUSE_LAUNCHES, REFUSE_ALL };

static atomic_bool strict, parents_refused;
static atomic_int refusing;
static _Thread_local bool refused;	/* the call that this thread is in */

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

static bool refuses(void)
{
	return atomic_load_explicit(&refusing, memory_order_relaxed) != REFUSE_NOTHING;
}

/*
 * Whether @row launches a kernel that can launch others: of a library, which loads code at its
 * first use, or of a module that was loaded where no call's end was told of. A graph may have one.
 */
static bool launches_parent(const struct row *row, const struct arguments *a)
{
	void *function = row->which == STREAM_OF_CONFIG ? a->second : a->first, *module;
	int result;

	if (row->what != WHAT_LAUNCH || row->which == STREAM_OF_LIST)
		return module_any();
	driver_own(true);
	result = stream_module(cuda, &function, &module);
	driver_own(false);
	return result == CUDA_ERROR_INVALID_CONTEXT ||
	       (!result && module_any() && module_find(module));
}

/* What a call loaded that is refused goes before anybody has it. */
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
 * At the begin: arguments for which the driver itself fails the call. That an argument changed
 * there takes effect was measured: Documentation/internals/hardware.md, "Memory". At the end: why.
 * @row NULL: a function that has none.
 */
static __attribute__((noinline)) void refuse(const struct row *row,
					     const struct cuda_call_params *params)
{
	bool launch = row && (row->what == WHAT_LAUNCH || row->what == WHAT_GRAPH_LAUNCH ||
			      row->what == WHAT_UPLOAD);
	bool first = row && (row->what == WHAT_CONTEXT || row->what == WHAT_INIT);
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
	if (row->what == WHAT_INIT)
		*(uint32_t *)a = ~0u;	/* flags, which must be 0 */
	else if (row->what == WHAT_LAUNCH && row->which != STREAM_CURRENT)
		a->second = NULL;	/* the grid's width, a function, the number of launches */
	else
		a->first = NULL;
}

static __attribute__((noinline)) void call_rare(const struct row *row,
						const struct cuda_call_params *params)
{
	driver_own(true);
	if (row->what == WHAT_LAUNCH)
		launch_ends(stream_of_launch(row, params->arguments), params);
	else if (params->site == CUDA_SITE_BEGIN)
		at_begin(row, params, params->arguments);
	else
		at_end(row, params, params->arguments);
	driver_own(false);
}

static void on_call(int cbid, const struct cuda_call_params *params)
{
	const struct row *row;
	bool launch;

	if (!params->arguments)
		return;
	row = row_of(cbid, params->name);
	if (!row) {
		if (refuses())
			refuse(NULL, params);
		return;
	}
	launch = row->what == WHAT_LAUNCH;
	if (__builtin_expect(launch, 1))
		scope_thread.in_launch = params->site == CUDA_SITE_BEGIN;
	/*
	 * The usual one calls nothing of the driver's. One of our own is none that a set waits
	 * for.
	 */
	if (!launch || (!scope_thread.in_launch && scope_thread.next_gpus && !scope_thread.own))
		call_rare(row, params);
	if (__builtin_expect(params->site == CUDA_SITE_END &&
			     atomic_load_explicit(&report_unnamed, memory_order_relaxed), 0)) {
		driver_own(true);
		report_names(cuda);
		driver_own(false);
	}
	if (__builtin_expect(refuses() || refused, 0))
		refuse(row, params);
}

/* ------------------------------------------------------------------- watching */

static const struct driver_observer observer = { .name = "calls", .call = on_call };

int api_watch(struct gpupart *gp, const struct cuda_api *api, int *launched)
{
	struct driver_table table;
	int err;

	cuda = api;
	err = driver_observe(gp, api, &observer);
	if (err)
		return err;
	*launched = driver_watch(&observer, cbid_of_graphs, true);
	/* Where the names of kernels are found out. */
	if (atomic_load(&report_joined))
		driver_watch(&observer, cbid_of_waits, true);
	/* Elsewhere there is none to destroy. */
	if (driver_table_get(&table) && table.green)
		driver_watch(&observer, cbid_of_greens, true);
	return 0;
}

/* Some drivers lack some: cuLaunchKernel is the one that tells. */
static bool watch_launches(void)
{
	bool all = !driver_watch(&observer, cbid_of_launches, true);

	atomic_store_explicit(&scope_launches_watched, all, memory_order_relaxed);
	atomic_store_explicit(&launches_asked, true, memory_order_release);
	return all;
}

void api_watch_launches(void)
{
	if (__builtin_expect(!atomic_load_explicit(&launches_asked, memory_order_acquire), 0))
		watch_launches();
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
			       "this driver does not tell of its launch functions: it cannot be made to refuse them");
	if (refuse) {
		driver_watch(&observer, cbid_of_begins, true);
		/* Where a GPU was attached these are watched already. */
		driver_watch(&observer, cbid_of_graphs, true);
	}
	atomic_store(&strict, true);
	if (refuse)
		refuse_from(REFUSE_ALL);
	return 0;
}

static int cbid_of_all(unsigned int n)
{
	return n + 1 < DRIVER_MAX_CBID ? (int)n + 1 : -1;
}

int api_refuse_parents(struct gpupart *gp)
{
	if (driver_watch_resource(DRIVER_MODULE_LOADED) || !cuda->func_module || !watch_launches())
		return ctx_fail(gp, -EOPNOTSUPP,
				ENVIRONMENT_NO_DEVICE_LAUNCH
				"=1: this driver does not tell of modules and launches");
	/* A module may be loaded in any: which ones the driver does not say. */
	driver_watch(&observer, cbid_of_all, true);
	atomic_store(&parents_refused, true);
	refuse_from(REFUSE_PARENTS);
	return 0;
}
