// SPDX-License-Identifier: MIT
/*
 * The host interface of a GPU. Each engine has a runlist of channels, and several PBDMAs. The
 * PBDMAs fetch commands from the channels in turn. Each stream has a progress value, which counts
 * the stream's finished commands. When all earlier commands of a stream are done, the host
 * interface passes the next command on. If the first command of a channel must wait, all commands
 * of the channel wait.
 */
#include <errno.h>
#include <stdlib.h>
#include "sim/pipe/pipe.h"

/* -------------------------------------------------------------------- run lists */

static void serve(struct pipe *pipe, struct pbdma *pbdma)
{
	struct runlist *runlist = pbdma->runlist;
	const struct pipe_chip *chip = &pipe->scenario->gpus[runlist->gpu].chip;
	struct channel *channel = runlist->head;
	uint64_t from;

	if (!channel)
		return;
	runlist->head = channel->next;
	pbdma->channel = channel;
	from = channel->head->visible > pipe->now ? channel->head->visible : pipe->now;
	queue_set(&pipe->queue, &pbdma->queue_event, from + chip->fetch_ns);
}

static void runlist_add(struct pipe *pipe, struct channel *channel)
{
	struct runlist *runlist = channel->runlist;

	if (!runlist->head)
		runlist->tail = &runlist->head;
	channel->next = NULL;
	*runlist->tail = channel;
	runlist->tail = &channel->next;
	for (unsigned int i = 0; i < runlist->nr_pbdmas; i++)
		if (!runlist->pbdmas[i].channel) {
			serve(pipe, &runlist->pbdmas[i]);
			return;
		}
}

void host_doorbell(struct pipe *pipe, struct channel *channel)
{
	if (channel->served)
		return;
	channel->served = true;
	runlist_add(pipe, channel);
}

static void stand_aside(struct channel *channel, struct channel **waiters)
{
	struct channel **link = waiters;

	while (*link)
		link = &(*link)->next;
	channel->next = NULL;
	*link = channel;
}

static void call_back(struct pipe *pipe, struct channel **waiters)
{
	struct channel *channel = *waiters, *next;

	*waiters = NULL;
	for (; channel; channel = next) {
		next = channel->next;
		runlist_add(pipe, channel);
	}
}

/* Wakes each channel that waits for a finished command of this stream. */
static void wake_followers(struct pipe *pipe, struct stream *stream)
{
	struct channel **link = &stream->followers, *channel;

	while ((channel = *link)) {
		if (channel->head->value > stream->done) {
			link = &channel->next;
			continue;
		}
		*link = channel->next;
		runlist_add(pipe, channel);
	}
}

/* --------------------------------------------------------------------- commands */

void host_stream_done(struct pipe *pipe, unsigned int nr)
{
	struct stream *stream = &pipe->streams[nr];

	stream->done++;
	pipe->in_flight--;
	if (stream->errands)
		fed_done(pipe, stream);
	call_back(pipe, &stream->waiters);
	if (stream->sleeper)
		cpu_wake(pipe, &stream->sleeper);
	if (stream->followers)
		wake_followers(pipe, stream);
}

static void finish_comes(struct pipe *pipe, struct queue_event *what)
{
	struct stream *stream = (struct stream *)what;

	host_stream_done(pipe, stream - pipe->streams);
}

void host_done_later(struct pipe *pipe, unsigned int nr)
{
	const struct pipe_stream *spec = &pipe->scenario->streams[nr];
	struct queue_event *finish = &pipe->streams[nr].finish;

	finish->come = finish_comes;
	queue_set(&pipe->queue, finish,
		  pipe->now + pipe->scenario->gpus[spec->gpu].chip.done_ns);
}

static void record(struct pipe *pipe, const struct command *command)
{
	struct event *event = &pipe->events[command->step->what];

	if (command->pipe_submission) {
		host_stream_done(pipe, command->stream);
		return;
	}
	event->done = true;
	host_stream_done(pipe, command->stream);
	call_back(pipe, &event->waiters);
	if (event->sleeper)
		cpu_wake(pipe, &event->sleeper);
}

static void launch(struct pipe *pipe, const struct command *command)
{
	struct task *task = launch_task(pipe, command, command->step->what);

	if (task)
		frontend_add(pipe, task);
}

static void pass_on(struct pipe *pipe, const struct command *command)
{
	switch (command->kind) {
	case DO_LAUNCH:
		launch(pipe, command);
		break;
	case DO_GRAPH:
		graph_start(pipe, command);
		break;
	case DO_COPY:
		copy_start(pipe, command);
		break;
	case DO_RECORD:
		record(pipe, command);
		break;
	case DO_WAIT:
		host_stream_done(pipe, command->stream);
		break;
	}
}

/*
 * If the command must wait, returns the list of waiters for the command. Otherwise returns NULL.
 */
static struct channel **waiters_of(struct pipe *pipe, const struct command *command)
{
	struct stream *stream = &pipe->streams[command->stream];
	struct event *event;

	if (stream->done < command->seq - 1)
		return &stream->waiters;
	if (command->kind != DO_WAIT)
		return NULL;
	if (command->other != NO_STREAM) {
		stream = &pipe->streams[command->other];
		return stream->done < command->value ? &stream->followers : NULL;
	}
	event = &pipe->events[command->step->what];
	return event->done ? NULL : &event->waiters;
}

static void pbdma_comes(struct pipe *pipe, struct queue_event *what)
{
	struct pbdma *pbdma = (struct pbdma *)what;
	struct channel *channel = pbdma->channel;
	struct command command = *channel->head;
	struct channel **waiters = waiters_of(pipe, &command);

	pbdma->channel = NULL;
	if (waiters) {
		stand_aside(channel, waiters);
	} else {
		cmdbuf_take(pipe, channel);
		if (channel->head)
			runlist_add(pipe, channel);
		else
			channel->served = false;
		pass_on(pipe, &command);
	}
	if (!pbdma->channel)
		serve(pipe, pbdma);
}

/* -------------------------------------------------------------- channels of streams */

struct channel *host_channel(struct pipe *pipe, unsigned int nr, const struct pipe_step *step)
{
	const struct stream *stream = &pipe->streams[nr];

	return step->kind == PIPE_COPY ? stream->copies[step->way] : stream->compute;
}

/* If a process has more streams than channels, several streams share a channel. */
void host_attach(struct pipe *pipe, unsigned int gpu, unsigned int nr, unsigned int nth)
{
	const struct pipe_scenario *scenario = pipe->scenario;
	const struct pipe_gpu *spec = &scenario->gpus[gpu];
	struct host *host = &pipe->hosts[gpu];
	struct stream *stream = &pipe->streams[nr];
	unsigned int at, way, engine;

	at = scenario->streams[nr].process * host->nr_channels + nth % host->nr_channels;
	stream->compute = &host->channels[at];
	for (way = 0; way < 2; way++) {
		engine = spec->one_queue ? 0 : 1 + way % spec->chip.copy_engines;
		stream->copies[way] = &host->channels[at + engine * host->nr_channels *
						      scenario->nr_processes];
	}
}

static void assign(struct pipe *pipe, unsigned int gpu)
{
	const struct pipe_scenario *scenario = pipe->scenario;
	unsigned int i, process, seen;

	for (process = 0; process < scenario->nr_processes; process++)
		for (i = 0, seen = 0; i < scenario->nr_streams; i++)
			if (scenario->streams[i].gpu == gpu &&
			    scenario->streams[i].process == process)
				host_attach(pipe, gpu, i, seen++);
}

static int runlist_init(struct runlist *runlist, unsigned int gpu, unsigned int nr_pbdmas)
{
	runlist->gpu = gpu;
	runlist->nr_pbdmas = nr_pbdmas;
	runlist->pbdmas = calloc(nr_pbdmas, sizeof(*runlist->pbdmas));
	if (!runlist->pbdmas)
		return -ENOMEM;
	for (unsigned int i = 0; i < nr_pbdmas; i++) {
		runlist->pbdmas[i].queue_event.come = pbdma_comes;
		runlist->pbdmas[i].runlist = runlist;
	}
	return 0;
}

int host_init(struct pipe *pipe, unsigned int gpu)
{
	const struct pipe_gpu *spec = &pipe->scenario->gpus[gpu];
	struct host *host = &pipe->hosts[gpu];
	unsigned int i, each;

	host->nr_runlists = 1 + spec->chip.copy_engines;
	host->nr_channels = spec->one_queue ? 1 : spec->chip.channels;
	each = host->nr_channels * pipe->scenario->nr_processes;
	host->runlists = calloc(host->nr_runlists, sizeof(*host->runlists));
	host->channels = calloc((size_t)each * host->nr_runlists, sizeof(*host->channels));
	host->copy_engines = calloc(spec->chip.copy_engines, sizeof(*host->copy_engines));
	if (!host->runlists || !host->channels || !host->copy_engines)
		return -ENOMEM;
	for (i = 0; i < host->nr_runlists; i++)
		if (runlist_init(&host->runlists[i], gpu, i ? 1 : spec->chip.pbdmas))
			return -ENOMEM;
	for (i = 0; i < each * host->nr_runlists; i++)
		host->channels[i].runlist = &host->runlists[i / each];
	for (i = 0; i < spec->chip.copy_engines; i++)
		copy_init(&host->copy_engines[i], gpu, i);
	frontend_init(&host->frontend);
	assign(pipe, gpu);
	return 0;
}

void host_fini(struct host *host)
{
	for (unsigned int i = 0; host->runlists && i < host->nr_runlists; i++)
		free(host->runlists[i].pbdmas);
	free(host->runlists);
	free(host->channels);
	free(host->copy_engines);
}
