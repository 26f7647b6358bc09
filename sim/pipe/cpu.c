// SPDX-License-Identifier: MIT
/*
 * Runs the programs of a scenario. Each program is a thread. The steps of a program use CPU time
 * and write commands to buffers. Loops are not unrolled in memory. Programs read the state of the
 * GPU only from progress values.
 */
#include "sim/pipe/pipe.h"

/* Returns the program's next step, without loops. If the program has ended, returns NULL. */
static const struct pipe_step *next_step(struct program *program)
{
	const struct pipe_step *step;
	struct frame *frame;

	while (program->depth) {
		frame = &program->frames[program->depth - 1];
		if (frame->at == frame->nr) {
			frame->at = 0;
			if (!--frame->left)
				program->depth--;
			continue;
		}
		step = &frame->steps[frame->at++];
		if (step->kind != PIPE_LOOP)
			return step;
		if (step->amount && step->nr_body)
			program->frames[program->depth++] = (struct frame){
				step->body, step->nr_body, 0, step->amount,
			};
	}
	return NULL;
}

uint64_t cpu_cost(const struct pipe_host *host, const struct pipe_step *step)
{
	switch (step->kind) {
	case PIPE_LAUNCH:
		return host->launch_ns;
	case PIPE_GRAPH:
		return host->graph_ns;
	case PIPE_COPY:
		return host->copy_ns;
	case PIPE_CPU:
		return step->amount;
	default:
		return host->call_ns;
	}
}

/* Continues with the next step after @late ns. */
static void go_on(struct pipe *pipe, struct program *program, uint64_t late)
{
	program->step = next_step(program);
	if (!program->step) {
		program->state = PROGRAM_DONE;
		program->result->done = true;
		program->result->end = pipe->now + late;
		pipe->nr_running--;
		return;
	}
	program->state = PROGRAM_RUNS;
	queue_set(&pipe->queue, &program->queue_event,
		  pipe->now + late + cpu_cost(&pipe->scenario->host, program->step));
}

/* ------------------------------------------------------------------------ commands */

static enum command_kind kind_of(const struct pipe_step *step)
{
	switch (step->kind) {
	case PIPE_GRAPH:
		return DO_GRAPH;
	case PIPE_COPY:
		return DO_COPY;
	case PIPE_RECORD:
		return DO_RECORD;
	case PIPE_WAIT:
		return DO_WAIT;
	default:
		return DO_LAUNCH;
	}
}

static void put(struct pipe *pipe, struct program *program)
{
	const struct pipe_step *step = program->step;
	struct stream *stream = &pipe->streams[step->stream];
	unsigned int gpu = pipe->scenario->streams[step->stream].gpu;
	struct command command = {
		.kind = kind_of(step), .stream = step->stream, .seq = stream->asked + 1,
		.visible = pipe->now + pipe->scenario->gpus[gpu].chip.doorbell_ns,
		.step = step,
	};
	struct channel *channel = host_channel(pipe, step->stream, step);
	struct program **link;

	/*
	 * A wait is for the last submitted record of the event. If no record was submitted yet,
	 * the wait is for the first future record.
	 */
	if (step->kind == PIPE_WAIT) {
		command.other = pipe->events[step->what].stream;
		command.value = pipe->events[step->what].seq;
	}
	if (!cmdbuf_put(pipe, channel, &command)) {
		program->state = PROGRAM_FULL;
		program->since = pipe->now;
		program->waits_for = channel;
		program->next = NULL;
		for (link = &channel->full; *link; link = &(*link)->next)
			;
		*link = program;
		return;
	}
	stream->asked++;
	pipe->in_flight++;
	if (step->kind == PIPE_RECORD) {
		pipe->events[step->what].stream = step->stream;
		pipe->events[step->what].seq = stream->asked;
	}
	go_on(pipe, program, 0);
}

void cpu_buffer_free(struct pipe *pipe, struct program *program)
{
	program->result->full_ns += pipe->now - program->since;
	put(pipe, program);
}

/* --------------------------------------------------------------------------- waits */

static void sleep_on(struct pipe *pipe, struct program *program, struct program **list,
		     unsigned int what, uint64_t value)
{
	if (program->state != PROGRAM_SLEEPS)
		program->since = pipe->now;
	program->state = PROGRAM_SLEEPS;
	program->asleep_on = what;
	program->value = value;
	program->next = *list;
	*list = program;
}

/*
 * Sleeps until the first busy stream of the process is idle. Returns false if all streams are idle.
 */
static bool sleep_on_any(struct pipe *pipe, struct program *program)
{
	const struct pipe_scenario *scenario = pipe->scenario;
	struct stream *stream;

	for (unsigned int i = 0; i < scenario->nr_streams; i++) {
		stream = &pipe->streams[i];
		if (scenario->streams[i].process != program->spec->process ||
		    stream->done == stream->asked)
			continue;
		sleep_on(pipe, program, &stream->sleeper, i, stream->asked);
		return true;
	}
	return false;
}

/* Returns true if the wait has ended. */
static bool wait_is_over(struct pipe *pipe, struct program *program)
{
	const struct pipe_step *step = program->step;
	struct stream *stream = &pipe->streams[step->stream];
	struct event *event = &pipe->events[step->what];
	uint64_t value;
	unsigned int other;

	switch (step->kind) {
	case PIPE_SYNC:
		value = program->state == PROGRAM_SLEEPS ? program->value : stream->asked;
		if (stream->done >= value)
			return true;
		sleep_on(pipe, program, &stream->sleeper, step->stream, value);
		return false;
	case PIPE_SYNC_EVENT:
		other = program->state == PROGRAM_SLEEPS ? program->asleep_on : event->stream;
		value = program->state == PROGRAM_SLEEPS ? program->value : event->seq;
		if (other == NO_STREAM ? event->done : pipe->streams[other].done >= value)
			return true;
		sleep_on(pipe, program, other == NO_STREAM ? &event->sleeper :
			 &pipe->streams[other].sleeper, other, value);
		return false;
	default:
		return !sleep_on_any(pipe, program);
	}
}

static void try_to_go_on(struct pipe *pipe, struct program *program)
{
	bool slept = program->state == PROGRAM_SLEEPS;

	if (!wait_is_over(pipe, program))
		return;
	if (slept)
		program->result->sync_ns += pipe->now - program->since;
	go_on(pipe, program, slept ? pipe->scenario->host.sync_ns : 0);
}

void cpu_wake(struct pipe *pipe, struct program **list)
{
	struct program *program = *list, *next;

	*list = NULL;
	for (; program; program = next) {
		next = program->next;
		try_to_go_on(pipe, program);
	}
}

static void cpu_comes(struct pipe *pipe, struct queue_event *what)
{
	struct program *program = (struct program *)what;

	switch (program->step->kind) {
	case PIPE_CPU:
		go_on(pipe, program, 0);
		break;
	case PIPE_SYNC:
	case PIPE_SYNC_EVENT:
	case PIPE_SYNC_ALL:
		try_to_go_on(pipe, program);
		break;
	default:
		put(pipe, program);
	}
}

/* If the program is waiting now, adds the time of the wait up to this moment. */
void cpu_stop(struct pipe *pipe, struct program *program)
{
	if (program->state == PROGRAM_FULL)
		program->result->full_ns += pipe->now - program->since;
	if (program->state == PROGRAM_SLEEPS)
		program->result->sync_ns += pipe->now - program->since;
}

void cpu_start(struct pipe *pipe, struct program *program, const struct pipe_program *spec,
	       struct pipe_program_result *result)
{
	program->queue_event.come = cpu_comes;
	program->spec = spec;
	program->result = result;
	program->frames[0] = (struct frame){ spec->steps, spec->nr_steps, 0, 1 };
	program->depth = 1;
	program->step = NULL;
	pipe->nr_running++;
	program->step = next_step(program);
	if (!program->step) {
		program->state = PROGRAM_DONE;
		result->done = true;
		pipe->nr_running--;
		return;
	}
	program->state = PROGRAM_RUNS;
	queue_set(&pipe->queue, &program->queue_event,
		  spec->start_ns + cpu_cost(&pipe->scenario->host, program->step));
}
