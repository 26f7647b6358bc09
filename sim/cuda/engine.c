// SPDX-License-Identifier: MIT
/*
 * Executes the work of streams. Converts each operation to commands of the scheduling pipeline
 * (sim/pipe). The effects of an operation happen when the pipeline reports that the operation is
 * done. The clock of the pipeline is the GPU's clock. There are two modes: the GPU's clock
 * advances while a thread waits, or it follows the host's clock. The caller holds sim_lock.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "sim/cuda/sim.h"

/* -------------------------------------------------------------------- moments */

struct sim_moment *engine_moment(void)
{
	struct sim_moment *moment = calloc(1, sizeof(*moment));

	return moment ? engine_moment_get(moment) : NULL;
}

struct sim_moment *engine_moment_get(struct sim_moment *moment)
{
	moment->users++;
	return moment;
}

void engine_moment_put(struct sim_moment *moment)
{
	if (moment && !--moment->users)
		free(moment);
}

/* ------------------------------------------------------------ operations */

void engine_run_free(struct sim_run *run)
{
	if (!run)
		return;
	for (unsigned int i = 0; i < run->nr_steps; i++)
		dispatch_free(run->steps[i].kernel);
	free(run->edges);
	free(run->nodes);
	free(run->asks);
	free(run);
}

/* Does the work that needs no SM. Called at the end of the work. */
static void perform(struct sim_gpu *gpu, enum sim_op_kind kind, const struct sim_args *args,
		    struct sim_event *event)
{
	uint32_t *word = (uint32_t *)(uintptr_t)args->address;
	uint64_t i;

	switch (kind) {
	case SIM_OP_SET8:
		memset((void *)(uintptr_t)args->address, args->value, args->bytes);
		break;
	case SIM_OP_SET32:
		for (i = 0; i < args->bytes / 4; i++)
			word[i] = args->value;
		break;
	case SIM_OP_COPY:
		memmove((void *)(uintptr_t)args->address, (void *)(uintptr_t)args->from,
			args->bytes);
		break;
	case SIM_OP_EVENT:
		event->time = pipe_fed_now(gpu->fed);
		event->pending--;
		break;
	case SIM_OP_NOTHING:
	case SIM_OP_KERNEL:
	case SIM_OP_GRAPH:
		break;
	}
}

static void finish_head(struct sim_stream *stream)
{
	struct sim_op *op = stream->head;

	stream->head = op->next;
	if (op->moment)
		op->moment->over = true;
	engine_moment_put(op->moment);
	dispatch_free(op->kernel);
	engine_run_free(op->run);
	free(op);
}

/* ------------------------------------------------------ callbacks of the pipeline */

static void on_block(void *user, const struct pipe_block *block)
{
	(void)user;
	dispatch_ran(block);
}

/*
 * The graph is the first operation in its stream's queue, because all earlier operations are done.
 */
static void on_node(void *user, void *of, uint64_t number, unsigned int node)
{
	struct sim_stream *stream = of;
	const struct sim_step *step = &stream->head->run->steps[node];

	(void)number;
	perform(user, step->kind, &step->args, NULL);
}

static void on_done(void *user, void *of, uint64_t number)
{
	struct sim_stream *stream = of;
	struct sim_op *op = stream->head;

	/*
	 * The wait before an operation is a separate command of the pipeline. The operation has
	 * not ended when its wait ends.
	 */
	if (!op || op->last != number)
		return;
	perform(user, op->kind, &op->args, op->event);
	finish_head(stream);
}

bool engine_open(struct sim_gpu *gpu)
{
	const struct pipe_fed_watch watch = {
		.user = gpu, .block = on_block, .node = on_node, .done = on_done,
	};

	return !pipe_fed_open(&gpu->fed, &gpu->hw, &watch);
}

/* ------------------------------------------------------------------ the two clocks */

/* Returns the host's time since the first call. A fault can multiply this time by a factor. */
static uint64_t host_ns(void)
{
	static uint64_t first;
	struct timespec ts;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	if (!first)
		first = ns;
	ns -= first;
	return ns + ns / 1000000 * sim_faults()->clock_drift;
}

/* The pipeline is out of memory or at the limit of its clock, so it can do no more work. */
static void mark_stuck(struct sim_gpu *gpu)
{
	struct sim_ctx *ctx;

	if (!gpu->stands)
		sim_print("%s: the simulated GPU cannot continue: no memory", gpu->info.pci);
	gpu->stands = true;
	for (ctx = ctx_first(); ctx; ctx = ctx->next)
		if (ctx->gpu == gpu)
			launch_failed(ctx, CUDA_ERROR_OUT_OF_MEMORY);
}

/* Writes the delayed records that are due. Returns the time of the next delayed record. */
static uint64_t write_late_records(struct sim_gpu *gpu)
{
	return release_late(gpu, SIM_CLOCK_START + pipe_fed_now(gpu->fed));
}

bool engine_step(struct sim_gpu *gpu)
{
	uint64_t next, now;
	int did;

	if (sim_faults()->host_clock) {
		next = pipe_fed_next(gpu->fed);
		now = host_ns();
		if (next != UINT64_MAX && next > now)
			engine_sleep(next - now);
	}
	did = pipe_fed_step(gpu->fed);
	if (did < 0)
		mark_stuck(gpu);
	next = write_late_records(gpu);
	if (did || next == UINT64_MAX)
		return did > 0;
	/* Only delayed records remain to be written. */
	next -= SIM_CLOCK_START;
	now = sim_faults()->host_clock ? host_ns() : next;
	if (next > now)
		engine_sleep(next - now);
	if (pipe_fed_until(gpu->fed, next))
		return false;
	write_late_records(gpu);
	return true;
}

/*
 * Advances to the host's time and returns this time. The time of an idle GPU advances as well.
 */
static uint64_t catch_up(struct sim_gpu *gpu)
{
	uint64_t now = host_ns();

	if (pipe_fed_until(gpu->fed, now))
		mark_stuck(gpu);
	write_late_records(gpu);
	return now;
}

void engine_polled(struct sim_gpu *gpu)
{
	if (sim_faults()->host_clock)
		catch_up(gpu);
	else
		engine_step(gpu);
}

uint64_t engine_idle_ns(struct sim_gpu *gpu)
{
	uint64_t now, next;

	if (!sim_faults()->host_clock)
		return 0;
	/*
	 * Use the time at which the call began. Otherwise the wait could end because of work that
	 * becomes due while this thread is suspended.
	 */
	now = catch_up(gpu);
	next = pipe_fed_next(gpu->fed);
	return next != UINT64_MAX && next > now ? next - now : 0;
}

void engine_sleep(uint64_t ns)
{
	struct timespec left = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&left, NULL);
}

#define NEAR_NS 50000	/* typical delay with which a sleeping thread wakes up */

static pthread_cond_t queued = PTHREAD_COND_INITIALIZER;

/*
 * This thread runs only with the host's clock. Like a GPU, it does work at the due time of the
 * work, even if the program makes no call.
 */
static void *thread_runs(void *arg)
{
	struct timespec until;
	uint64_t due, now, next;

	sim_enter();
	for (;;) {
		due = 1000000000;
		for (unsigned int i = 0; i < sim_nr_gpus; i++) {
			now = catch_up(sim_gpus[i]);
			next = pipe_fed_next(sim_gpus[i]->fed);
			if (next != UINT64_MAX && next - now < due)
				due = next - now;
			next = write_late_records(sim_gpus[i]);
			if (next != UINT64_MAX && next - SIM_CLOCK_START - now < due)
				due = next - SIM_CLOCK_START - now;
		}
		if (due > NEAR_NS) {
			clock_gettime(CLOCK_MONOTONIC, &until);
			until.tv_nsec += due - NEAR_NS;
			until.tv_sec += until.tv_nsec / 1000000000;
			until.tv_nsec %= 1000000000;
			pthread_cond_clockwait(&queued, &sim_lock, CLOCK_MONOTONIC, &until);
		} else {
			sim_leave();
			sim_enter();
		}
	}
	return arg;
}

static void thread_start(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, NULL, thread_runs, NULL))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ----------------------------------------------------------- queues of streams */

static int64_t put_wait(struct sim_stream *stream, int other, uint64_t number)
{
	struct sim_gpu *gpu = stream->ctx->gpu;
	int64_t put;

	while ((put = pipe_fed_wait(gpu->fed, stream->pipe, other, number)) == -EAGAIN &&
	       engine_step(gpu))
		;
	return put;
}

/*
 * Makes the stream wait for the present commands of @other. If the stream already waits for these
 * commands, does nothing.
 */
static bool follow(struct sim_stream *stream, const struct sim_stream *other, uint64_t *followed)
{
	if (!other->head || *followed >= other->last)
		return true;
	*followed = other->last;
	return put_wait(stream, other->pipe, other->last) > 0;
}

/*
 * The legacy default stream waits for all blocking streams, and all blocking streams wait for the
 * legacy default stream.
 */
static bool put_legacy_waits(struct sim_stream *stream)
{
	struct sim_ctx *ctx = stream->ctx;
	struct sim_stream *other;

	if (!stream->blocking)
		return true;
	if (!stream->legacy)
		return !ctx->legacy || follow(stream, ctx->legacy, &stream->followed);
	for (other = ctx->streams; other; other = other->next)
		if (other != stream && other->blocking &&
		    !follow(stream, other, &other->followed_by))
			return false;
	return true;
}

static int64_t put_once(struct sim_stream *stream, struct sim_op *op)
{
	struct pipe_fed *fed = stream->ctx->gpu->fed;

	switch (op->kind) {
	case SIM_OP_KERNEL:
		return pipe_fed_launch(fed, stream->pipe, &op->kernel->ask);
	case SIM_OP_GRAPH:
		return pipe_fed_graph(fed, stream->pipe, &op->run->graph, op->run->asks);
	case SIM_OP_SET8:
	case SIM_OP_SET32:
	case SIM_OP_COPY:
		return pipe_fed_copy(fed, stream->pipe, op->way, op->args.bytes);
	case SIM_OP_EVENT:
	case SIM_OP_NOTHING:
		break;
	}
	return pipe_fed_record(fed, stream->pipe);
}

/*
 * Submits the commands of @op. Returns the number of the last command in the stream. If there is
 * not enough memory, returns 0 or a negative number.
 */
static int64_t put(struct sim_stream *stream, struct sim_op *op)
{
	struct sim_gpu *gpu = stream->ctx->gpu;
	int64_t number;

	if (!put_legacy_waits(stream))
		return -ENOMEM;
	if (op->after && !op->after->over) {
		number = put_wait(stream, op->after->stream, op->after->number);
		if (number <= 0 || op->kind == SIM_OP_NOTHING)
			return number;
	}
	/* If the command buffer is full, the CPU waits. */
	while ((number = put_once(stream, op)) == -EAGAIN && engine_step(gpu))
		;
	return number;
}

bool engine_queue(struct sim_stream *stream, const struct sim_op *from)
{
	struct sim_gpu *gpu = stream->ctx->gpu;
	struct sim_op *op = malloc(sizeof(*op));
	int64_t number;

	if (!op)
		return false;
	if (sim_faults()->host_clock) {
		static pthread_once_t once = PTHREAD_ONCE_INIT;

		catch_up(gpu);
		if (sim_faults()->host_thread)
			pthread_once(&once, thread_start);
	}
	*op = *from;
	op->next = NULL;
	if (stream->pipe < 0)
		stream->pipe = pipe_fed_stream(gpu->fed, stream);
	number = stream->pipe < 0 ? 0 : put(stream, op);
	if (number <= 0) {
		free(op);
		return false;
	}
	op->last = number;
	pthread_cond_signal(&queued);
	engine_moment_put(op->after);
	op->after = NULL;
	if (op->moment) {
		op->moment->stream = stream->pipe;
		op->moment->number = op->last;
	}
	if (op->event)
		op->event->pending++;
	if (!stream->head)
		stream->tail = &stream->head;
	*stream->tail = op;
	stream->tail = &op->next;
	stream->last = op->last;
	return true;
}

/* If operations remain here, the GPU cannot continue. */
void engine_discard(struct sim_stream *stream)
{
	while (stream->head)
		finish_head(stream);
	if (stream->pipe >= 0)
		pipe_fed_stream_close(stream->ctx->gpu->fed, stream->pipe);
	stream->pipe = -1;
}

/* ----------------------------------------------------------------------- waits */

CUresult engine_finish_stream(struct sim_stream *stream)
{
	struct sim_ctx *ctx = stream->ctx;

	while (!ctx->error && stream->head && engine_step(ctx->gpu))
		;
	return ctx->error;
}

CUresult engine_finish_ctx(struct sim_ctx *ctx)
{
	const struct sim_stream *stream;

	for (stream = ctx->streams; stream; stream = stream->next)
		while (!ctx->error && stream->head && engine_step(ctx->gpu))
			;
	return ctx->error;
}

CUresult engine_finish_event(struct sim_event *event)
{
	struct sim_ctx *ctx = event->ctx;

	while (!ctx->error && event->pending && engine_step(ctx->gpu))
		;
	return ctx->error;
}
