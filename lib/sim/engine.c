// SPDX-License-Identifier: MIT
/*
 * Time: the order of work on streams and a clock that jumps from one block's end to
 * the next. It runs when somebody waits; until then work is only queued, so that
 * everything queued by then starts together. A graph is one thing on a stream; its steps
 * start when those before them are done. Must not know where blocks go.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "sim.h"

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

/* ----------------------------------------------------------- queues of streams */

static void catch_up(struct sim_gpu *gpu);

bool engine_queue(struct sim_stream *stream, const struct sim_op *from)
{
	struct sim_gpu *gpu = stream->ctx->gpu;
	struct sim_op *op = malloc(sizeof(*op));
	struct sim_stream **last;
	unsigned int i;

	if (!op)
		return false;
	if (sim_faults()->host_clock)
		catch_up(gpu);
	*op = *from;
	op->next = NULL;
	op->number = stream->ctx->nr_ops++;
	if (op->kernel)
		op->kernel->op = op;
	for (i = 0; op->run && i < op->run->nr_steps; i++)
		if (op->run->steps[i].op.kernel)
			op->run->steps[i].op.kernel->op = op;
	if (op->event)
		op->event->pending++;
	if (!stream->head)
		stream->tail = &stream->head;
	*stream->tail = op;
	stream->tail = &op->next;
	if (!stream->busy) {	/* last in line: who comes first starts first */
		stream->busy = true;
		stream->next_busy = NULL;
		for (last = &gpu->busy; *last; last = &(*last)->next_busy)
			;
		*last = stream;
	}
	gpu->stale = true;
	return true;
}

/* The legacy default stream waits for every blocking stream and they for it. */
static bool may_start(const struct sim_gpu *gpu, const struct sim_stream *stream)
{
	const struct sim_ctx *ctx = stream->ctx;
	const struct sim_stream *other;

	if (stream->head->after && !stream->head->after->over)
		return false;
	if (!stream->blocking)
		return true;
	if (!stream->legacy)
		return !ctx->legacy || !ctx->legacy->head ||
		       ctx->legacy->head->number > stream->head->number;
	for (other = gpu->busy; other; other = other->next_busy)
		if (other != stream && other->ctx == ctx && other->blocking && other->head &&
		    other->head->number < stream->head->number)
			return false;
	return true;
}

static void finish_head(struct sim_gpu *gpu, struct sim_stream *stream)
{
	struct sim_op *op = stream->head;

	stream->head = op->next;
	if (op->moment)
		op->moment->over = true;
	engine_moment_put(op->moment);
	engine_moment_put(op->after);
	dispatch_free(op->kernel);
	engine_run_free(op->run);
	free(op);
	gpu->stale = true;
}

/* Work that takes no SM is done at once, as if copy engines took no time. */
static void perform(struct sim_gpu *gpu, const struct sim_op *op)
{
	uint32_t *word = (uint32_t *)(uintptr_t)op->args.address;
	uint64_t i;

	switch (op->kind) {
	case SIM_OP_SET8:
		memset((void *)(uintptr_t)op->args.address, op->args.value, op->args.bytes);
		break;
	case SIM_OP_SET32:
		for (i = 0; i < op->args.bytes / 4; i++)
			word[i] = op->args.value;
		break;
	case SIM_OP_COPY:
		memmove((void *)(uintptr_t)op->args.address, (void *)(uintptr_t)op->args.from,
			op->args.bytes);
		break;
	case SIM_OP_EVENT:
		op->event->time = gpu->clock;
		op->event->pending--;
		break;
	case SIM_OP_NOTHING:
	case SIM_OP_KERNEL:
	case SIM_OP_GRAPH:
		break;
	}
}

static void activate(struct sim_gpu *gpu, struct sim_op *op)
{
	struct sim_kernel **last = &gpu->active;

	while (*last)
		last = &(*last)->next;
	*last = op->kernel;
	op->active = true;
}

/* ------------------------------------------------------------ steps of a graph */

void engine_run_free(struct sim_run *run)
{
	unsigned int i;

	if (!run)
		return;
	for (i = 0; i < run->nr_steps; i++)
		dispatch_free(run->steps[i].op.kernel);
	free(run->edges);
	free(run);
}

static void step_ready(struct sim_run *run, struct sim_step *step)
{
	if (!run->ready)
		run->last_ready = &run->ready;
	step->next_ready = NULL;
	*run->last_ready = step;
	run->last_ready = &step->next_ready;
}

static void step_done(struct sim_run *run, struct sim_step *step)
{
	unsigned int i;

	run->left--;
	for (i = 0; i < step->nr_next; i++)
		if (!--run->steps[step->next[i]].waits)
			step_ready(run, &run->steps[step->next[i]]);
}

/* Starts what waits for nothing any more, and what that lets start. */
static void run_go_on(struct sim_gpu *gpu, struct sim_run *run)
{
	struct sim_step *step;

	while ((step = run->ready)) {
		run->ready = step->next_ready;
		if (step->op.kind == SIM_OP_KERNEL) {
			activate(gpu, &step->op);
		} else {
			perform(gpu, &step->op);
			step_done(run, step);
		}
	}
}

static void run_start(struct sim_gpu *gpu, struct sim_op *op)
{
	unsigned int i;

	op->active = true;
	for (i = 0; i < op->run->nr_steps; i++)
		if (!op->run->steps[i].waits)
			step_ready(op->run, &op->run->steps[i]);
	run_go_on(gpu, op->run);
}

/* Starts what may start, again and again until that lets nothing new start. */
static void look_at_heads(struct sim_gpu *gpu)
{
	struct sim_stream **link, *stream;

	while (gpu->stale) {
		gpu->stale = false;
		for (link = &gpu->busy; *link; ) {
			stream = *link;
			while (stream->head && !stream->head->active && may_start(gpu, stream)) {
				if (stream->head->kind == SIM_OP_KERNEL) {
					activate(gpu, stream->head);
					break;
				}
				if (stream->head->kind == SIM_OP_GRAPH) {
					run_start(gpu, stream->head);
					if (stream->head->run->left)
						break;
				}
				perform(gpu, stream->head);
				finish_head(gpu, stream);
			}
			if (!stream->head) {
				stream->busy = false;
				*link = stream->next_busy;
			} else {
				link = &stream->next_busy;
			}
		}
	}
}

/* ------------------------------------------------------- blocks, by their ends */

static bool ends_before(const struct sim_block *a, const struct sim_block *b)
{
	return a->end != b->end ? a->end < b->end : a->order < b->order;
}

static void heap_push(struct sim_gpu *gpu, struct sim_block *block)
{
	unsigned int i = gpu->nr_running++, up;

	for (; i; i = up) {
		up = (i - 1) / 2;
		if (!ends_before(block, gpu->running[up]))
			break;
		gpu->running[i] = gpu->running[up];
	}
	gpu->running[i] = block;
}

static struct sim_block *heap_pop(struct sim_gpu *gpu)
{
	struct sim_block *first = gpu->running[0], *last = gpu->running[--gpu->nr_running];
	unsigned int i = 0, down;

	for (; (down = 2 * i + 1) < gpu->nr_running; i = down) {
		if (down + 1 < gpu->nr_running &&
		    ends_before(gpu->running[down + 1], gpu->running[down]))
			down++;
		if (!ends_before(gpu->running[down], last))
			break;
		gpu->running[i] = gpu->running[down];
	}
	gpu->running[i] = last;
	return first;
}

static void start_blocks(struct sim_gpu *gpu)
{
	struct sim_block *block = dispatch_place(gpu), *next, *list = NULL;

	/* It comes last first. */
	for (; block; block = next) {
		next = block->next;
		block->next = list;
		list = block;
	}
	for (block = list; block; block = block->next) {
		block->start = gpu->clock;
		block->order = gpu->nr_blocks++;
		block->end = gpu->clock + block->kernel->code->duration(block->kernel, block);
		heap_push(gpu, block);
	}
}

static void deactivate(struct sim_gpu *gpu, const struct sim_kernel *kernel)
{
	struct sim_kernel **link = &gpu->active;

	while (*link != kernel)
		link = &(*link)->next;
	*link = kernel->next;
}

static void end_kernel(struct sim_gpu *gpu, struct sim_kernel *kernel)
{
	struct sim_stream *stream = gpu->busy;
	struct sim_step *step = kernel->step;
	struct sim_op *op = kernel->op;

	deactivate(gpu, kernel);
	if (step) {
		step->op.active = false;
		step_done(op->run, step);
		run_go_on(gpu, op->run);
		if (op->run->left)
			return;
	}
	while (stream->head != op)
		stream = stream->next_busy;
	finish_head(gpu, stream);
}

/* Of the host, from where a GPU's begins at the first question. */
static uint64_t host_ns(void)
{
	static uint64_t first;
	struct timespec ts;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	if (!first)
		first = ns - SIM_CLOCK_START;
	return ns - first;
}

static void sleep_until(uint64_t end)
{
	uint64_t now = host_ns();

	if (end > now)
		engine_sleep(end - now);
}

bool engine_step(struct sim_gpu *gpu)
{
	struct sim_kernel *kernel;
	struct sim_block *block;
	bool did = gpu->stale;

	look_at_heads(gpu);
	start_blocks(gpu);
	if (!gpu->nr_running)
		return did;
	if (sim_faults()->host_clock)
		sleep_until(gpu->running[0]->end);
	gpu->clock = gpu->running[0]->end;
	while (gpu->nr_running && gpu->running[0]->end == gpu->clock) {
		block = heap_pop(gpu);
		kernel = block->kernel;
		if (kernel->code->finish)
			kernel->code->finish(kernel, block);
		dispatch_retire(gpu, block);
		if (!kernel->resident && kernel->placed == kernel->nr_units)
			end_kernel(gpu, kernel);
	}
	return true;
}

/* Does what is due by the host's clock: an idle GPU's time goes by, too. */
static void catch_up(struct sim_gpu *gpu)
{
	uint64_t now = host_ns();

	do {
		look_at_heads(gpu);
		start_blocks(gpu);
	} while (gpu->nr_running && gpu->running[0]->end <= now && engine_step(gpu));
	if (gpu->clock < now)
		gpu->clock = now;
}

void engine_asked(struct sim_gpu *gpu)
{
	if (sim_faults()->host_clock)
		catch_up(gpu);
	else
		engine_step(gpu);
}

uint64_t engine_idle_ns(struct sim_gpu *gpu)
{
	uint64_t now;

	if (!sim_faults()->host_clock)
		return 0;
	catch_up(gpu);
	now = host_ns();
	return gpu->nr_running && gpu->running[0]->end > now ? gpu->running[0]->end - now : 0;
}

void engine_sleep(uint64_t ns)
{
	struct timespec left = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&left, NULL);
}

void engine_forget(struct sim_stream *stream)
{
	struct sim_gpu *gpu = stream->ctx->gpu;
	struct sim_stream **link = &gpu->busy;
	struct sim_op *op;
	unsigned int i;

	while ((op = stream->head)) {
		if (op->active && op->kernel)
			deactivate(gpu, op->kernel);
		for (i = 0; op->run && i < op->run->nr_steps; i++)
			if (op->run->steps[i].op.active)
				deactivate(gpu, op->run->steps[i].op.kernel);
		finish_head(gpu, stream);
	}
	if (!stream->busy)
		return;
	while (*link != stream)
		link = &(*link)->next_busy;
	*link = stream->next_busy;
}

/* ----------------------------------------------------------------------- waits */

CUresult engine_finish_stream(struct sim_stream *stream)
{
	struct sim_ctx *ctx = stream->ctx;

	while (!ctx->error && stream->head && engine_step(ctx->gpu))
		;
	return ctx->error;
}

static bool has_work(const struct sim_ctx *ctx, bool all)
{
	const struct sim_stream *stream;

	for (stream = ctx->gpu->busy; stream; stream = stream->next_busy)
		if (stream->ctx == ctx && stream->head && (all || stream->blocking))
			return true;
	return false;
}

CUresult engine_finish_blocking(struct sim_ctx *ctx)
{
	while (!ctx->error && has_work(ctx, false) && engine_step(ctx->gpu))
		;
	return ctx->error;
}

CUresult engine_finish_ctx(struct sim_ctx *ctx)
{
	while (!ctx->error && has_work(ctx, true) && engine_step(ctx->gpu))
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
