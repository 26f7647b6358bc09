// SPDX-License-Identifier: MIT
/* Stream capture. Work that is submitted to a capturing stream becomes nodes of a graph. */
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph.h"

/*
 * A capture of one stream. If another stream waits for an event of a captured stream, it joins
 * the capture.
 */
struct sim_capture {
	uint64_t id;
	struct sim_graph *graph;
	struct sim_stream *origin;
	pthread_t thread;
	int mode;
	bool invalid;
};

static CUresult invalidate(struct sim_capture *capture, CUresult error)
{
	capture->invalid = true;
	return error;
}

/* Finds an active capture by its id. Returns NULL for a capture that has ended. */
static struct sim_capture *find(const struct sim_ctx *ctx, uint64_t id)
{
	const struct sim_stream *stream;

	for (stream = ctx->streams; stream; stream = stream->next)
		if (stream->capture && stream->capture->id == id)
			return stream->capture;
	return NULL;
}

/* -------------------------------------------------------------- dependencies */

static bool tips_set(struct sim_node ***tips, unsigned int *nr, struct sim_node *const *from,
		     unsigned int nr_from)
{
	struct sim_node **copy = malloc((nr_from + 1) * sizeof(*copy));

	if (!copy)
		return false;
	if (nr_from)
		memcpy(copy, from, nr_from * sizeof(*copy));
	free(*tips);
	*tips = copy;
	*nr = nr_from;
	return true;
}

static bool tips_join(struct sim_stream *stream, const struct sim_event *event)
{
	struct sim_node **both;
	unsigned int nr = stream->nr_tips, i, j;

	both = malloc((nr + event->nr_tips + 1) * sizeof(*both));
	if (!both)
		return false;
	if (nr)
		memcpy(both, stream->tips, nr * sizeof(*both));
	for (i = 0; i < event->nr_tips; i++) {
		for (j = 0; j < nr && both[j] != event->tips[i]; j++)
			;
		if (j == nr)
			both[nr++] = event->tips[i];
	}
	free(stream->tips);
	stream->tips = both;
	stream->nr_tips = nr;
	return true;
}

static void leave(struct sim_stream *stream)
{
	stream->capture = NULL;
	free(stream->tips);
	stream->tips = NULL;
	stream->nr_tips = 0;
}

/* Removes all streams from the capture; the graph remains. */
static void end(struct sim_capture *capture)
{
	struct sim_stream *stream;

	for (stream = capture->origin->ctx->streams; stream; stream = stream->next)
		if (stream->capture == capture)
			leave(stream);
	free(capture);
}

void capture_discard(struct sim_stream *stream)
{
	struct sim_capture *capture = stream->capture;

	if (!capture)
		return;
	if (capture->origin != stream) {
		/* if no stream has waited for some work, the end of the capture is an error */
		leave(stream);
		return;
	}
	graph_free(capture->graph);
	end(capture);
}

/* Returns true if each node without dependents is one of the stream's last nodes. */
static bool all_joined(const struct sim_stream *stream, const struct sim_graph *graph)
{
	unsigned int i, j, loose = graph->nr_nodes;
	bool *has_after = calloc(graph->nr_nodes + 1, sizeof(*has_after));

	if (!has_after)
		return false;
	for (i = 0; i < graph->nr_nodes; i++)
		for (j = 0; j < graph->nodes[i]->nr_before; j++)
			has_after[graph->nodes[i]->before[j]->at] = true;
	for (j = 0; j < stream->nr_tips; j++)
		has_after[stream->tips[j]->at] = true;
	for (i = 0; i < graph->nr_nodes; i++)
		loose -= has_after[i];
	free(has_after);
	return !loose;
}

/* --------------------------------------------------------------- work of streams */

CUresult capture_add(struct sim_stream *stream, enum cu_node_type type,
		     const struct sim_work *work)
{
	struct sim_capture *capture = stream->capture;
	struct sim_work own = *work;
	struct sim_node *node;

	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	/*
	 * keep the priority, because the graph may be launched into a stream with another priority
	 */
	if (!own.launch.prioritized)
		own.launch.priority = stream->priority;
	if (stream->green)		/* the nodes of the graph stay in the green context */
		memcpy(own.launch.off, stream->green->off, sizeof(own.launch.off));
	node = graph_add(capture->graph, type, &own, stream->tips, stream->nr_tips);
	if (!node || !tips_set(&stream->tips, &stream->nr_tips, &node, 1))
		return invalidate(capture, CUDA_ERROR_OUT_OF_MEMORY);
	return CUDA_SUCCESS;
}

CUresult capture_record(struct sim_stream *stream, struct sim_event *event)
{
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!tips_set(&event->tips, &event->nr_tips, stream->tips, stream->nr_tips))
		return invalidate(stream->capture, CUDA_ERROR_OUT_OF_MEMORY);
	event->capture = stream->capture->id;
	event->recorded = true;
	return CUDA_SUCCESS;
}

CUresult capture_wait(struct sim_stream *stream, const struct sim_event *event)
{
	struct sim_capture *capture;

	capture = event->capture ? find(event->ctx, event->capture) : NULL;
	if (stream->capture && stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->capture && !event->capture)
		return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	if (!capture)
		return CUDA_ERROR_CAPTURED_EVENT;	/* the capture of the event has ended */
	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->capture && stream->capture != capture) {
		invalidate(stream->capture, CUDA_SUCCESS);
		return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	if (stream->legacy)
		return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	if (stream->ctx != event->ctx) {
		sim_print("a stream capture across two contexts is not simulated");
		return invalidate(capture, CUDA_ERROR_NOT_SUPPORTED);
	}
	if (!tips_join(stream, event))
		return invalidate(capture, CUDA_ERROR_OUT_OF_MEMORY);
	stream->capture = capture;
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------- forbidden calls */

CUresult capture_forbids(struct sim_stream *stream)
{
	if (stream->legacy)
		return capture_forbids_legacy(stream->ctx);
	return stream->capture ?
		invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

/*
 * Returns true if a stream of the context is being captured. If @blocking is true, ignores
 * non-blocking streams.
 */
static bool any_captured(struct sim_ctx *ctx, bool blocking, bool invalidates)
{
	struct sim_stream *stream;
	bool any = false;

	for (stream = ctx->streams; stream; stream = stream->next)
		if (stream->capture && (stream->blocking || !blocking)) {
			any = true;
			stream->capture->invalid |= invalidates;
		}
	return any;
}

CUresult capture_forbids_ctx(struct sim_ctx *ctx)
{
	return any_captured(ctx, false, true) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED :
						CUDA_SUCCESS;
}

CUresult capture_forbids_legacy(struct sim_ctx *ctx)
{
	return any_captured(ctx, true, true) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

/* ----------------------------------------------------------------- entry points */

static CUresult begin(struct sim_stream *stream, int mode)
{
	static uint64_t nr_captures;
	struct sim_capture *capture;

	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture->graph = graph_make();
	if (!capture->graph) {
		free(capture);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	capture->graph->owned = true;
	capture->id = ++nr_captures;
	capture->origin = stream;
	capture->thread = pthread_self();
	capture->mode = mode;
	stream->capture = capture;
	return CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream handle, int mode)
{
	struct sim_stream *stream;
	CUresult error;

	if (mode < CU_CAPTURE_GLOBAL || mode > CU_CAPTURE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_enter(handle, &error);
	if (stream)
		error = begin(stream, mode);
	return sim_leave_with(error);
}

CUresult cuStreamBeginCapture_v2(CUstream handle, int mode)
{
	return API_CALL(cuStreamBeginCapture_v2, begin_capture(handle, mode),
			(uintptr_t)handle, API_NARROW(mode));
}

CUresult cuStreamBeginCapture(CUstream handle)
{
	return cuStreamBeginCapture_v2(handle, CU_CAPTURE_GLOBAL);
}

static CUresult end_capture(CUstream handle, CUgraph *graph)
{
	struct sim_capture *capture = NULL;
	struct sim_stream *stream;
	CUresult error;

	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = NULL;
	stream = stream_enter(handle, &error);
	if (stream)
		capture = stream->capture;
	if (error)
		goto leave;
	if (!capture) {
		error = CUDA_ERROR_ILLEGAL_STATE;
		goto leave;
	}
	if (capture->origin != stream) {
		error = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
		goto leave;
	}
	if (capture->mode != CU_CAPTURE_RELAXED && capture->thread != pthread_self()) {
		error = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
		goto leave;
	}
	if (capture->invalid)
		error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!all_joined(stream, capture->graph))
		error = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (error) {
		graph_free(capture->graph);
	} else {
		capture->graph->owned = false;
		*graph = capture->graph;
	}
	end(capture);
leave:
	return sim_leave_with(error);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	return API_CALL(cuStreamEndCapture, end_capture(stream, graph),
			(uintptr_t)stream, (uintptr_t)graph);
}

static int status_of(const struct sim_stream *stream)
{
	if (!stream->capture)	/* a fault of the simulation may report every stream as captured */
		return sim_faults()->capturing ? CU_CAPTURE_ACTIVE : CU_CAPTURE_NONE;
	return stream->capture->invalid ? CU_CAPTURE_INVALIDATED : CU_CAPTURE_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, int *status)
{
	return cuStreamGetCaptureInfo_v2(handle, status, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, int *status, uint64_t *id, CUgraph *graph,
				   const CUgraphNode **before, size_t *nr_before)
{
	const struct sim_stream *stream;
	CUresult error;

	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_enter(handle, &error);
	/* A query does not invalidate the capture. */
	if (stream && stream->legacy && any_captured(stream->ctx, true, false))
		error = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (error)
		goto leave;
	*status = status_of(stream);
	if (!stream->capture || stream->capture->invalid)
		goto leave;
	if (id)
		*id = stream->capture->id;
	if (graph)
		*graph = stream->capture->graph;
	if (before)
		*before = stream->tips;
	if (nr_before)
		*nr_before = stream->nr_tips;
leave:
	return sim_leave_with(error);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, int *status, uint64_t *id, CUgraph *graph,
				   const CUgraphNode **before,
				   const struct cu_edge_data **edges, size_t *nr_before)
{
	if (edges)
		*edges = NULL;		/* edges have no data */
	return cuStreamGetCaptureInfo_v2(handle, status, id, graph, before, nr_before);
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	static __thread int current;
	int old = current;

	if (!mode || *mode < CU_CAPTURE_GLOBAL || *mode > CU_CAPTURE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	current = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
