// SPDX-License-Identifier: MIT
/*
 * Runs the pipeline of a GPU without a scenario. The owner submits commands one by one, and
 * advances the time.
 */
#include <errno.h>
#include <stdlib.h>
#include "sim/pipe/pipe.h"

#define LAST_NS	(UINT64_MAX / 1000 / 2)	/* the load balancer counts in picoseconds */

struct pipe_fed {
	struct pipe pipe;
	struct pipe_fed_watch watch;
	struct pipe_watch blocks;	/* for the stages */
	struct pipe_scenario scenario;
	struct pipe_gpu gpu;
	struct pipe_result result;
	struct pipe_stream *specs;	/* by stream */
	unsigned int *closed, nr_closed;	/* numbers of closed streams, which can be reused */
	unsigned int nr_opened;
};

int pipe_fed_open(struct pipe_fed **out, const struct pipe_gpu *gpu,
		  const struct pipe_fed_watch *watch)
{
	static const char *const process = "fed";
	struct pipe_fed *fed = calloc(1, sizeof(*fed));

	if (!fed)
		return -ENOMEM;
	fed->gpu = *gpu;
	fed->watch = *watch;
	fed->blocks = (struct pipe_watch){ .user = watch->user, .block = watch->block };
	/* This array is large, but its unwritten pages use no memory. */
	fed->specs = calloc(PIPE_MAX_STREAMS, sizeof(*fed->specs));
	fed->closed = calloc(PIPE_MAX_STREAMS, sizeof(*fed->closed));
	fed->scenario = (struct pipe_scenario){
		.host = pipe_host_default, .gpus = &fed->gpu, .nr_gpus = 1,
		.streams = fed->specs, .processes = &process, .nr_processes = 1,
	};
	fed->pipe = (struct pipe){
		.scenario = &fed->scenario, .watch = &fed->blocks, .result = &fed->result,
		.fed = &fed->watch,
	};
	if (run_init(&fed->pipe, PIPE_MAX_STREAMS) || !fed->specs || !fed->closed) {
		pipe_fed_close(fed);
		return -ENOMEM;
	}
	*out = fed;
	return 0;
}

void pipe_fed_close(struct pipe_fed *fed)
{
	if (!fed)
		return;
	run_fini(&fed->pipe);
	free(fed->specs);
	free(fed->closed);
	free(fed);
}

/* ------------------------------------------------------------------------ streams */

int pipe_fed_stream(struct pipe_fed *fed, void *user)
{
	unsigned int nr;

	if (fed->nr_closed) {
		nr = fed->closed[--fed->nr_closed];
	} else {
		if (fed->nr_opened == PIPE_MAX_STREAMS)
			return -ENOSPC;
		nr = fed->nr_opened++;
		host_attach(&fed->pipe, 0, nr, nr);
	}
	fed->pipe.streams[nr].user = user;
	return nr;
}

void pipe_fed_stream_close(struct pipe_fed *fed, int stream)
{
	fed->closed[fed->nr_closed++] = stream;
}

/* Called when the oldest command of the stream is done. */
void fed_done(struct pipe *pipe, struct stream *stream)
{
	struct pipe_submission *pipe_submission = stream->errands;

	stream->errands = pipe_submission->next;
	pipe_submission->next = pipe->free_errands;
	pipe->free_errands = pipe_submission;
	if (pipe->fed->done)
		pipe->fed->done(pipe->fed->user, stream->user, stream->done);
}

void fed_node(struct pipe *pipe, const struct graph_run *run, unsigned int node)
{
	if (pipe->fed->node)
		pipe->fed->node(pipe->fed->user, pipe->streams[run->command.stream].user,
				run->command.seq, node);
}

/* ----------------------------------------------------------------------- commands */

static int64_t put(struct pipe_fed *fed, const struct pipe_submission *from, enum command_kind kind,
		   uint64_t value)
{
	struct pipe *pipe = &fed->pipe;
	struct stream *stream = &pipe->streams[from->step.stream];
	struct channel *channel = host_channel(pipe, from->step.stream, &from->step);
	struct pipe_submission *pipe_submission;
	struct command command = {
		.kind = kind, .stream = from->step.stream, .seq = stream->asked + 1,
		.visible = pipe->now + fed->gpu.chip.doorbell_ns, .value = value,
		.other = from->other,
	};

	if (pipe->error)
		return pipe->error;
	if (channel->nr == fed->scenario.host.ring)
		return -EAGAIN;
	pipe_submission = pool_new(pipe, &pipe->free_errands, sizeof(*pipe_submission));
	if (!pipe_submission)
		return -ENOMEM;
	*pipe_submission = *from;
	if (pipe_submission->ask)
		pipe_submission->asks = &pipe_submission->ask;
	command.step = &pipe_submission->step;
	command.pipe_submission = pipe_submission;
	if (!cmdbuf_put(pipe, channel, &command) || pipe->error)
		return -ENOMEM;
	if (!stream->errands)
		stream->last_errand = &stream->errands;
	*stream->last_errand = pipe_submission;
	stream->last_errand = &pipe_submission->next;
	pipe->in_flight++;
	return ++stream->asked;
}

int64_t pipe_fed_launch(struct pipe_fed *fed, int stream, const struct pipe_ask *ask)
{
	const struct pipe_submission pipe_submission = {
		.step = { .kind = PIPE_LAUNCH, .stream = stream }, .ask = ask,
	};

	return put(fed, &pipe_submission, DO_LAUNCH, 0);
}

int64_t pipe_fed_graph(struct pipe_fed *fed, int stream, const struct pipe_graph *graph,
		       const struct pipe_ask *const *asks)
{
	const struct pipe_submission pipe_submission = {
		.step = { .kind = PIPE_GRAPH, .stream = stream }, .graph = graph, .asks = asks,
	};

	return put(fed, &pipe_submission, DO_GRAPH, 0);
}

int64_t pipe_fed_copy(struct pipe_fed *fed, int stream, enum pipe_way way, uint64_t bytes)
{
	const struct pipe_submission pipe_submission = {
		.step = { .kind = PIPE_COPY, .stream = stream, .way = way, .amount = bytes },
	};

	return put(fed, &pipe_submission, DO_COPY, 0);
}

int64_t pipe_fed_record(struct pipe_fed *fed, int stream)
{
	const struct pipe_submission pipe_submission = { .step = { .kind = PIPE_RECORD,
								   .stream = stream } };

	return put(fed, &pipe_submission, DO_RECORD, 0);
}

int64_t pipe_fed_wait(struct pipe_fed *fed, int stream, int other, uint64_t number)
{
	const struct pipe_submission pipe_submission = {
		.step = { .kind = PIPE_WAIT, .stream = stream }, .other = other,
	};

	return put(fed, &pipe_submission, DO_WAIT, number);
}

uint64_t pipe_fed_room(const struct pipe_fed *fed, const struct pipe_ask *ask)
{
	const struct machine *machine = &fed->pipe.slices[0].machines[0];
	uint64_t allowed[MAX_WORDS];

	balance_mask(machine, &ask->set, allowed);
	return balance_capacity(machine, &ask->kernel, allowed);
}

/* --------------------------------------------------------------------------- time */

uint64_t pipe_fed_now(const struct pipe_fed *fed)
{
	return fed->pipe.now;
}

uint64_t pipe_fed_next(const struct pipe_fed *fed)
{
	return fed->pipe.queue.nr ? fed->pipe.queue.heap[0].time : NEVER;
}

int pipe_fed_step(struct pipe_fed *fed)
{
	struct pipe *pipe = &fed->pipe;
	struct queue_event *what;

	if (pipe->error)
		return pipe->error;
	what = queue_next(&pipe->queue);
	if (!what)
		return 0;
	if (what->time > LAST_NS)
		return pipe_error(pipe, -EOVERFLOW, 0, "its clock has reached its limit");
	run_instant(pipe, what);
	return pipe->error ? pipe->error : 1;
}

int pipe_fed_until(struct pipe_fed *fed, uint64_t ns)
{
	int err = fed->pipe.error;

	while (!err && fed->pipe.queue.nr && pipe_fed_next(fed) <= ns)
		if (pipe_fed_step(fed) < 0)
			err = fed->pipe.error;
	if (!err && fed->pipe.now < ns && ns <= LAST_NS)
		fed->pipe.now = ns;
	return err;
}
