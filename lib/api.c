// SPDX-License-Identifier: MIT
/*
 * See api.h. The numbers of the driver's functions are CUPTI's public ones; how they are
 * told of was measured: Documentation/hardware.md, "Functions". A function whose name is
 * not the expected one is left alone.
 */
#include <stdatomic.h>
#include <string.h>
#include "api.h"
#include "control.h"
#include "graph.h"
#include "hook.h"
#include "smcount.h"
#include "stream.h"

struct api_params {
	uint32_t size, pad;
	uint64_t unused[4];
	const int *result;
	const char *name;
	const void *arguments;
	void *ctx;
	uint64_t unused2;
	uint32_t cbid, site;
};

enum { SITE_BEGIN, SITE_END };

/* Arguments in their order, as every function here has them. */
struct arguments {
	void *first, *second;
	const void *third;
};

enum what {
	WHAT_LAUNCH, WHAT_INSTANTIATE, WHAT_GRAPH_LAUNCH, WHAT_UPLOAD, WHAT_UPDATE, WHAT_DESTROY,
	WHAT_CHANGE, WHAT_END_CAPTURE, WHAT_ASK,
};

static const struct row {
	uint16_t cbid;
	uint8_t what;
	uint8_t which;		/* of changes: what is changed; of questions: what is asked */
	bool per_thread;	/* stream 0 is the thread's own default stream */
	const char *name;
} rows[] = {
	{ 307, WHAT_LAUNCH, 0, false, "cuLaunchKernel" },
	{ 442, WHAT_LAUNCH, 0, true, "cuLaunchKernel_ptsz" },
	{ 477, WHAT_LAUNCH, 0, false, "cuLaunchCooperativeKernel" },
	{ 478, WHAT_LAUNCH, 0, true, "cuLaunchCooperativeKernel_ptsz" },
	{ 480, WHAT_LAUNCH, 0, false, "cuLaunchCooperativeKernelMultiDevice" },
	{ 652, WHAT_LAUNCH, 0, false, "cuLaunchKernelEx" },
	{ 653, WHAT_LAUNCH, 0, true, "cuLaunchKernelEx_ptsz" },
	{ 115, WHAT_LAUNCH, 0, false, "cuLaunch" },
	{ 116, WHAT_LAUNCH, 0, false, "cuLaunchGrid" },
	{ 117, WHAT_LAUNCH, 0, false, "cuLaunchGridAsync" },
	{ 513, WHAT_INSTANTIATE, 0, false, "cuGraphInstantiate" },
	{ 578, WHAT_INSTANTIATE, 0, false, "cuGraphInstantiate_v2" },
	{ 643, WHAT_INSTANTIATE, 0, false, "cuGraphInstantiateWithFlags" },
	{ 656, WHAT_INSTANTIATE, 0, false, "cuGraphInstantiateWithParams" },
	{ 657, WHAT_INSTANTIATE, 0, true, "cuGraphInstantiateWithParams_ptsz" },
	{ 514, WHAT_GRAPH_LAUNCH, 0, false, "cuGraphLaunch" },
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
	{ 9, WHAT_ASK, SMCOUNT_ATTRIBUTE, false, "cuDeviceGetAttribute" },
	{ 384, WHAT_ASK, SMCOUNT_GRID, false, "cuOccupancyMaxPotentialBlockSize" },
	{ 452, WHAT_ASK, SMCOUNT_GRID, false, "cuOccupancyMaxPotentialBlockSizeWithFlags" },
	{ 675, WHAT_ASK, SMCOUNT_CLUSTER_SIZE, false, "cuOccupancyMaxPotentialClusterSize" },
	{ 676, WHAT_ASK, SMCOUNT_CLUSTERS, false, "cuOccupancyMaxActiveClusters" },
	{ 745, WHAT_ASK, SMCOUNT_DEVICE_RESOURCE, false, "cuDeviceGetDevResource" },
	{ 746, WHAT_ASK, SMCOUNT_CONTEXT_RESOURCE, false, "cuCtxGetDevResource" },
	{ 747, WHAT_ASK, SMCOUNT_GREEN_RESOURCE, false, "cuGreenCtxGetDevResource" },
	{ 646, WHAT_ASK, SMCOUNT_AFFINITY, false, "cuCtxGetExecAffinity" },
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

/* The @n'th of the rows that say what @first to @last say. */
static int nth(unsigned int n, enum what first, enum what last)
{
	for (unsigned int i = 0; i < NR_ROWS; i++)
		if (rows[i].what >= first && rows[i].what <= last && !n--)
			return rows[i].cbid;
	return -1;
}

int api_cbid_graphs(unsigned int n)
{
	return nth(n, WHAT_INSTANTIATE, WHAT_END_CAPTURE);
}

int api_cbid_launches(unsigned int n)
{
	return nth(n, WHAT_LAUNCH, WHAT_LAUNCH);
}

int api_cbid_questions(unsigned int n)
{
	return nth(n, WHAT_ASK, WHAT_ASK);
}

/* The name that the driver was seen to give, once it was found right: its address is kept. */
static _Atomic(const char *) names[NR_ROWS];

/* NULL where the function is not one of ours, or the driver's is another. */
static const struct row *row_of(int cbid, const char *name)
{
	unsigned int i = 0;

	while (i < NR_ROWS && rows[i].cbid != cbid)
		i++;
	if (i == NR_ROWS || !name)
		return NULL;
	if (atomic_load_explicit(&names[i], memory_order_relaxed) != name) {
		if (strcmp(name, rows[i].name))
			return NULL;
		atomic_store_explicit(&names[i], name, memory_order_relaxed);
	}
	return &rows[i];
}

static struct graph_place place_of(const struct row *row, void *stream, void *ctx)
{
	struct graph_place place = { .gpu = hook_gpu_of_context(ctx) };

	stream_identify_in_call(stream, row->per_thread, ctx, &place.id);
	return place;
}

/* A next-launch set is used up by the launch that it was set for, whatever became of it. */
static void launch_ends(const struct api_params *params)
{
	const struct gpupart_gpu *gpu = hook_gpu_of_context(params->ctx);
	struct tmd_allow unused;

	/* One of our own is none that a set waits for. */
	if (!scope_thread.own && gpu && scope_next_take(gpu, &unused))
		control_count(CONTROL_NEXT_DROPPED);
}

static void at_begin(const struct cuda_api *cuda, const struct row *row,
		     const struct api_params *params, const struct arguments *a)
{
	struct graph_place place;

	switch (row->what) {
	case WHAT_INSTANTIATE:
		graph_instantiate_begin();
		break;
	case WHAT_GRAPH_LAUNCH:
	case WHAT_UPLOAD:
		place = place_of(row, a->second, params->ctx);
		graph_launch_begin(cuda, a->first, &place, row->what == WHAT_GRAPH_LAUNCH);
		break;
	}
}

static void at_end(const struct cuda_api *cuda, const struct row *row,
		   const struct api_params *params, const struct arguments *a)
{
	int result = *params->result;
	struct graph_place place;

	switch (row->what) {
	case WHAT_INSTANTIATE:
		graph_instantiate_end(cuda, result);
		break;
	case WHAT_DESTROY:
		graph_destroyed(cuda);
		break;
	case WHAT_GRAPH_LAUNCH:
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
		place = place_of(row, a->first, params->ctx);
		graph_captured(&place, *(void **)a->second);
		break;
	case WHAT_ASK:
		if (!result)
			smcount_answer(cuda, row->which, params->arguments, params->ctx);
		break;
	}
}

/* Functions that we call are not the program's. */
static _Thread_local bool inside;

bool api_own(bool own)
{
	bool was = inside;

	inside = own;
	return was;
}

void api_callback(const struct cuda_api *cuda, int cbid, const void *given)
{
	const struct api_params *params = given;
	const struct row *row;

	if (inside || params->size < sizeof(*params) || params->cbid != (uint32_t)cbid ||
	    !params->arguments || !params->result)
		return;
	row = row_of(cbid, params->name);
	if (!row)
		return;
	/* The usual one calls nothing of the driver's. */
	if (__builtin_expect(row->what == WHAT_LAUNCH, 1)) {
		scope_thread.in_launch = params->site == SITE_BEGIN;
		if (!scope_thread.in_launch && scope_thread.next_gpus)
			launch_ends(params);
		return;
	}
	inside = true;
	if (params->site == SITE_BEGIN)
		at_begin(cuda, row, params, params->arguments);
	else
		at_end(cuda, row, params, params->arguments);
	inside = false;
}
