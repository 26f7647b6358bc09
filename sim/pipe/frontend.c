// SPDX-License-Identifier: MIT
/*
 * The compute front end. It creates a task for each launch. It passes the task to the task
 * management unit of the context. When a task is done, the front end informs the host interface.
 */
#include "sim/pipe/pipe.h"

static void frontend_comes(struct pipe *pipe, struct queue_event *what)
{
	struct frontend *frontend = (struct frontend *)what;
	struct task *task = frontend->head;

	frontend->head = task->next;
	frontend->busy = frontend->head;
	if (frontend->busy)
		queue_set(&pipe->queue, what, pipe->now +
			  frontend->head->machine->gpu->chip.frontend_ns);
	tmu_add(pipe, task);
}

void frontend_init(struct frontend *frontend)
{
	frontend->queue_event.come = frontend_comes;
}

void frontend_add(struct pipe *pipe, struct task *task)
{
	struct frontend *frontend = &pipe->hosts[task->machine->gpu_index].frontend;

	if (!frontend->head)
		frontend->tail = &frontend->head;
	task->next = NULL;
	*frontend->tail = task;
	frontend->tail = &task->next;
	if (frontend->busy)
		return;
	frontend->busy = true;
	queue_set(&pipe->queue, &frontend->queue_event,
		  pipe->now + task->machine->gpu->chip.frontend_ns);
}

/* Without a scenario, the demands come from the command instead of the scenario's tables. */
static void take_ask(struct task *task, const struct pipe_ask *ask)
{
	task->ask = ask;
	task->priority = ask->priority;
	task->turn = ask->turn;
	shape_make(&task->own, &task->machine->gpu->chip, &ask->kernel);
	task->shape = &task->own;
	balance_mask(task->machine, &ask->set, task->allowed);
}

static bool borrows(const struct pipe *pipe, const struct command *command, unsigned int kernel)
{
	const struct pipe_stream *stream = &pipe->scenario->streams[command->stream];
	const struct stream *lender;

	if (!stream->lender || command->step->kind != PIPE_LAUNCH || command->step->set ||
	    pipe->scenario->kernels[kernel].cooperative || !stream->may_borrow[kernel])
		return false;
	lender = &pipe->streams[stream->lender - 1];
	return lender->asked == lender->done;
}

struct task *launch_task(struct pipe *pipe, const struct command *command, unsigned int kernel)
{
	const struct pipe_stream *stream = &pipe->scenario->streams[command->stream];
	const struct pipe_ask *ask =
		command->pipe_submission ? command->pipe_submission->asks[kernel] : NULL;
	const struct pipe_kernel *spec = ask ? &ask->kernel : &pipe->scenario->kernels[kernel];
	struct task *task = pool_new(pipe, &pipe->free_tasks, sizeof(*task));
	const struct pipe_step *step = command->step;

	if (!task)
		return NULL;
	*task = (struct task){
		.machine = slices_machine(pipe, stream->gpu, stream->process), .kernel = spec,
		.cluster = spec->cluster, .priority = stream->priority, .turn = step->turn,
		.units = spec->cluster ? spec->blocks / spec->cluster : spec->blocks,
		.launch = {
			.launch = pipe->nr_launches++, .gpu = stream->gpu, .kernel = kernel,
			.stream = command->stream, .asked = command->visible,
			.issued = pipe->now, .blocks = spec->blocks,
		},
	};
	if (ask) {
		take_ask(task, ask);
		return task;
	}
	task->shape = &task->machine->shapes[kernel];
	task->launch.lent = borrows(pipe, command, kernel);
	balance_mask(task->machine, task->launch.lent ? stream->lent :
				    step->set ? step->set : stream->set, task->allowed);
	return task;
}

void launch_done(struct pipe *pipe, struct task *task)
{
	struct pipe_gpu_result *result = &pipe->result->gpus[task->launch.gpu];
	struct graph_run *run = task->run;
	unsigned int stream = task->launch.stream, node = task->node;

	task->launch.end = pipe->now;
	if (!result->last || task->launch.start < result->first)
		result->first = task->launch.start;
	if (pipe->now > result->last)
		result->last = pipe->now;
	pipe->result->launches++;
	if (pipe->watch && pipe->watch->launch)
		pipe->watch->launch(pipe->watch->user, &task->launch);
	task->next = pipe->free_tasks;
	pipe->free_tasks = task;
	if (run)
		graph_node_done(pipe, run, node);
	else
		host_done_later(pipe, stream);
}
