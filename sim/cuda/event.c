// SPDX-License-Identifier: MIT
/* Events. An event is a point in the work of a stream. */
#include <stdlib.h>
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph.h"

/* events are never freed, so that a stale handle is recognized */
static struct sim_event *events;

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

	(void)flags;	/* the simulation ignores the flags */
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
	return sim_leave_with(error);
}

static CUresult record(struct sim_stream *stream, struct sim_event *event)
{
	struct sim_op op = { .kind = SIM_OP_EVENT, .event = event };
	struct sim_moment *moment = engine_moment();

	if (!moment)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op.moment = engine_moment_get(moment);
	if (!engine_queue(stream, &op)) {
		free(moment);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	engine_moment_put(event->moment);
	event->moment = moment;
	event->recorded = true;
	event->capture = 0;
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
	CUresult error;
	struct sim_stream *stream = stream_enter(handle, &error);

	if (stream && (!event_valid(event) || event->ctx != stream->ctx))
		error = CUDA_ERROR_INVALID_HANDLE;
	if (!error && stream->legacy)
		error = capture_forbids_legacy(stream->ctx);
	if (!error && stream->capture)
		error = capture_record(stream, event);
	else if (!error && !stream->ctx->error)
		error = record(stream, event);
	return sim_leave_with(error);
}

static CUresult wait_event(CUstream handle, CUevent event, unsigned int flags)
{
	struct sim_op op = { .kind = SIM_OP_NOTHING };
	struct sim_stream *stream;
	CUresult error;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_enter(handle, &error);
	if (stream && !event_valid(event))
		error = CUDA_ERROR_INVALID_HANDLE;
	if (!error && stream->legacy)
		error = capture_forbids_legacy(stream->ctx);
	if (error)
		goto leave;
	if (stream->capture || event->capture) {
		error = capture_wait(stream, event);
	} else if (event->ctx->gpu != stream->ctx->gpu) {
		sim_print("a wait for another GPU's event is not simulated");
		error = CUDA_ERROR_NOT_SUPPORTED;
	} else if (event->moment && !stream->ctx->error) {
		op.after = engine_moment_get(event->moment);
		if (!engine_queue(stream, &op)) {
			engine_moment_put(op.after);
			error = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
leave:
	return sim_leave_with(error);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	return API_CALL(cuStreamWaitEvent, wait_event(stream, event, flags),
			(uintptr_t)stream, (uintptr_t)event, API_NARROW(flags));
}

static CUresult synchronize(CUevent event)
{
	CUresult error;

	sim_enter();
	if (ctx_current(&error))
		error = !event_valid(event) ? CUDA_ERROR_INVALID_HANDLE :
			event->capture ? CUDA_ERROR_CAPTURED_EVENT : engine_finish_event(event);
	return sim_leave_with(error);
}

CUresult cuEventSynchronize(CUevent event)
{
	return API_CALL(cuEventSynchronize, synchronize(event), (uintptr_t)event);
}

/* If a program polls an event or a stream, the time must advance. */
static CUresult query(CUevent event)
{
	CUresult error;

	sim_enter();
	if (ctx_current(&error)) {
		if (!event_valid(event))
			error = CUDA_ERROR_INVALID_HANDLE;
		else if (event->capture)
			error = CUDA_ERROR_CAPTURED_EVENT;
		if (!error && event->pending && !event->ctx->error)
			engine_polled(event->ctx->gpu);
		if (!error)
			error = event->ctx->error;
		if (!error && event->pending)
			error = CUDA_ERROR_NOT_READY;
	}
	return sim_leave_with(error);
}

CUresult cuEventQuery(CUevent event)
{
	return API_CALL(cuEventQuery, query(event), (uintptr_t)event);
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
		else if (from->capture || to->capture)
			error = CUDA_ERROR_CAPTURED_EVENT;
		else if (from->pending || to->pending)
			error = CUDA_ERROR_NOT_READY;
		else
			*ms = (double)(int64_t)(to->time - from->time) / 1e6;
	}
	return sim_leave_with(error);
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	return cuEventElapsedTime_v2(ms, from, to);
}

/* The stream keeps a queued record of the event, but the program can no longer query the event. */
CUresult cuEventDestroy_v2(CUevent event)
{
	CUresult error;

	sim_enter();
	if (ctx_current(&error)) {
		if (event_valid(event)) {
			event->live = false;
			engine_moment_put(event->moment);
			free(event->tips);
			event->moment = NULL;
			event->tips = NULL;
		} else {
			error = CUDA_ERROR_INVALID_HANDLE;
		}
	}
	return sim_leave_with(error);
}
