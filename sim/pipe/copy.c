// SPDX-License-Identifier: MIT
/* Copy engines. Each copy engine carries out one transfer at a time, independently of the SMs. */
#include "sim/pipe/pipe.h"

static void next_copy(struct pipe *pipe, struct copy_engine *engine)
{
	const struct pipe_chip *chip = &pipe->scenario->gpus[engine->gpu].chip;
	struct copy *copy = engine->head;

	engine->busy = copy;
	if (!copy)
		return;
	copy->launch.start = pipe->now;
	queue_set(&pipe->queue, &engine->queue_event, pipe->now + chip->copy_ns +
		  mul_div(copy->launch.bytes, 1000, chip->link_rate));
}

static void copy_comes(struct pipe *pipe, struct queue_event *what)
{
	struct copy_engine *engine = (struct copy_engine *)what;
	struct copy *copy = engine->head;

	copy->launch.end = pipe->now;
	pipe->result->gpus[engine->gpu].copy_ns += pipe->now - copy->launch.start;
	pipe->result->copies++;
	if (pipe->watch && pipe->watch->launch)
		pipe->watch->launch(pipe->watch->user, &copy->launch);
	engine->head = copy->next;
	copy->next = pipe->free_copies;
	pipe->free_copies = copy;
	host_stream_done(pipe, copy->launch.stream);
	next_copy(pipe, engine);
}

void copy_stop(struct pipe *pipe, const struct copy_engine *engine)
{
	if (engine->busy)
		pipe->result->gpus[engine->gpu].copy_ns += pipe->now - engine->head->launch.start;
}

void copy_init(struct copy_engine *engine, unsigned int gpu, unsigned int index)
{
	engine->queue_event.come = copy_comes;
	engine->gpu = gpu;
	engine->index = index;
}

void copy_start(struct pipe *pipe, const struct command *command)
{
	unsigned int gpu = pipe->scenario->streams[command->stream].gpu;
	unsigned int nr = pipe->scenario->gpus[gpu].chip.copy_engines;
	struct copy_engine *engine = &pipe->hosts[gpu].copy_engines[command->step->way % nr];
	struct copy *copy = pool_new(pipe, &pipe->free_copies, sizeof(*copy));

	if (!copy)
		return;
	*copy = (struct copy){ .launch = {
		.launch = pipe->nr_launches++, .gpu = gpu, .kernel = UINT32_MAX,
		.stream = command->stream, .engine = 1 + engine->index,
		.asked = command->visible, .issued = pipe->now, .bytes = command->step->amount,
	} };
	if (!engine->head)
		engine->tail = &engine->head;
	*engine->tail = copy;
	engine->tail = &copy->next;
	if (!engine->busy)
		next_copy(pipe, engine);
}
