// SPDX-License-Identifier: MIT
/* Events: a moment of a stream's work. Must not know what that work is. */
#include <stdlib.h>
#include "sim.h"

static struct sim_event *events;	/* never freed: a stale handle is found dead */

static bool event_valid(const struct sim_event *event)
{
	const struct sim_event *e;

	for (e = events; e; e = e->next)
		if (e == event)
			return e->live;
	return false;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	struct sim_event *event;
	struct sim_ctx *ctx;
	CUresult error;

	(void)flags;	/* how the host waits, and whether it wants the time it gets anyway */
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	ctx = ctx_current(&error);
	if (ctx) {
		event = calloc(1, sizeof(*event));
		if (event) {
			event->ctx = ctx;
			event->live = true;
			event->next = events;
			events = event;
			*out = event;
		} else {
			error = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	sim_leave();
	return error;
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
	struct sim_op op = { .kind = SIM_OP_EVENT, .event = event };
	struct sim_stream *stream = NULL;
	struct sim_ctx *ctx;
	CUresult error;

	sim_enter();
	ctx = ctx_current(&error);
	if (ctx)
		stream = stream_get(ctx, handle, &error);
	if (stream && (!event_valid(event) || event->ctx != stream->ctx))
		error = CUDA_ERROR_INVALID_HANDLE;
	if (!error && !stream->ctx->error) {
		event->recorded = true;
		if (!engine_queue(stream, &op))
			error = CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_leave();
	return error;
}

CUresult cuEventSynchronize(CUevent event)
{
	CUresult error;

	sim_enter();
	if (ctx_current(&error))
		error = event_valid(event) ? engine_finish_event(event) :
					     CUDA_ERROR_INVALID_HANDLE;
	sim_leave();
	return error;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
	CUresult error;

	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	if (ctx_current(&error)) {
		if (!event_valid(from) || !event_valid(to) || !from->recorded || !to->recorded)
			error = CUDA_ERROR_INVALID_HANDLE;
		else if (from->pending || to->pending)
			error = CUDA_ERROR_NOT_READY;
		else
			*ms = (double)(int64_t)(to->time - from->time) / 1e6;
	}
	sim_leave();
	return error;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	return cuEventElapsedTime_v2(ms, from, to);
}

/* A record still queued keeps its place; nobody can ask for it any more. */
CUresult cuEventDestroy_v2(CUevent event)
{
	CUresult error;

	sim_enter();
	if (ctx_current(&error)) {
		if (event_valid(event))
			event->live = false;
		else
			error = CUDA_ERROR_INVALID_HANDLE;
	}
	sim_leave();
	return error;
}
