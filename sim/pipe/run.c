// SPDX-License-Identifier: MIT
/*
 * Runs the pipeline from the start to the end. Creates the stages, and handles events in the order
 * of time.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/pipe/pipe.h"

#define CHUNK_BYTES	65536

const struct pipe_host pipe_host_default = {
	.launch_ns = 2300, .graph_ns = 4000, .copy_ns = 2500, .call_ns = 300, .sync_ns = 2000,
	.ring = 1024,
};

struct chunk {
	struct chunk *next;
	size_t used;
	char bytes[];
};

/* The first word of a free object points to the next free object. */
void *pool_new(struct pipe *pipe, void *free_list, size_t size)
{
	struct chunk *chunk = pipe->chunks;
	void **list = free_list, *one = *list;

	if (one) {
		*list = *(void **)one;
		return one;
	}
	size = (size + 15) / 16 * 16;
	if (!chunk || chunk->used + size > CHUNK_BYTES) {
		chunk = malloc(sizeof(*chunk) + CHUNK_BYTES + 16);
		if (!chunk) {
			pipe_error(pipe, -ENOMEM, 0, "no memory");
			return NULL;
		}
		chunk->next = pipe->chunks;
		chunk->used = 0;
		pipe->chunks = chunk;
	}
	one = chunk->bytes + chunk->used;
	chunk->used += size;
	return one;
}

int pipe_error(struct pipe *pipe, int err, int line, const char *fmt, ...)
{
	va_list args;

	if (pipe->error)
		return pipe->error;
	pipe->error = err;
	pipe->result->line = line;
	va_start(args, fmt);
	vsnprintf(pipe->result->why, sizeof(pipe->result->why), fmt, args);
	va_end(args);
	return err;
}

/* Returns the maximum number of events in the queue. Each stage has separate events. */
static uint64_t nr_happenings(const struct pipe_scenario *scenario, unsigned int nr_streams)
{
	uint64_t nr = scenario->nr_programs + 2ull * nr_streams;

	for (unsigned int i = 0; i < scenario->nr_gpus; i++)
		nr += (uint64_t)scenario->gpus[i].map.nr_sms * scenario->nr_processes +
		      scenario->gpus[i].chip.pbdmas + 2 * scenario->gpus[i].chip.copy_engines + 2;
	return nr;
}

int run_init(struct pipe *pipe, unsigned int nr_streams)
{
	const struct pipe_scenario *scenario = pipe->scenario;

	pipe->streams = calloc(nr_streams + 1u, sizeof(*pipe->streams));
	pipe->events = calloc(scenario->nr_events + 1u, sizeof(*pipe->events));
	pipe->programs = calloc(scenario->nr_programs + 1u, sizeof(*pipe->programs));
	pipe->hosts = calloc(scenario->nr_gpus, sizeof(*pipe->hosts));
	pipe->slices = calloc(scenario->nr_gpus, sizeof(*pipe->slices));
	if (!pipe->streams || !pipe->events || !pipe->programs || !pipe->hosts || !pipe->slices ||
	    queue_init(&pipe->queue, nr_happenings(scenario, nr_streams)))
		return pipe_error(pipe, -ENOMEM, 0, "no memory");
	for (unsigned int i = 0; i < scenario->nr_events; i++)
		pipe->events[i].stream = NO_STREAM;
	for (unsigned int i = 0; i < scenario->nr_gpus; i++)
		if (slices_init(pipe, i) || host_init(pipe, i))
			return pipe_error(pipe, -ENOMEM, 0, "no memory");
	return 0;
}

void run_fini(struct pipe *pipe)
{
	struct graph_run *run;
	struct chunk *chunk;

	for (unsigned int i = 0; i < pipe->scenario->nr_gpus; i++) {
		if (pipe->slices)
			slices_fini(&pipe->slices[i]);
		if (pipe->hosts)
			host_fini(&pipe->hosts[i]);
	}
	while ((run = pipe->runs)) {
		pipe->runs = run->next;
		free(run->waits);
		free(run);
	}
	while ((chunk = pipe->chunks)) {
		pipe->chunks = chunk->next;
		free(chunk);
	}
	queue_fini(&pipe->queue);
	free(pipe->streams);
	free(pipe->events);
	free(pipe->programs);
	free(pipe->hosts);
	free(pipe->slices);
}

static void settle(struct pipe *pipe)
{
	struct machine *machine;

	while ((machine = pipe->dirty)) {
		pipe->dirty = machine->next_dirty;
		machine_settle(pipe, machine);
	}
}

static inline void instant(struct pipe *pipe, struct queue_event *what)
{
	pipe->now = what->time;
	do {
		pipe->result->events++;
		what->come(pipe, what);
	} while (pipe->queue.nr && pipe->queue.heap[0].time == pipe->now &&
		 !pipe->error && (what = queue_next(&pipe->queue)));
	settle(pipe);
}

void run_instant(struct pipe *pipe, struct queue_event *first)
{
	instant(pipe, first);
}

static void stop(struct pipe *pipe)
{
	const struct pipe_scenario *scenario = pipe->scenario;
	unsigned int i, j;

	pipe->now = scenario->stop_ns;
	pipe->result->stopped = true;
	for (i = 0; i < scenario->nr_programs; i++)
		cpu_stop(pipe, &pipe->programs[i]);
	for (i = 0; i < scenario->nr_gpus; i++) {
		slices_stop(pipe, &pipe->slices[i]);
		for (j = 0; j < scenario->gpus[i].chip.copy_engines; j++)
			copy_stop(pipe, &pipe->hosts[i].copy_engines[j]);
	}
}

static void loop(struct pipe *pipe)
{
	uint64_t end = pipe->scenario->stop_ns;
	struct queue_event *what;

	while (!pipe->error && (what = queue_next(&pipe->queue))) {
		if (what->time > PIPE_LAST_NS) {
			pipe_error(pipe, -EOVERFLOW, 0, "it takes longer than 19 hours");
			return;
		}
		if (end && what->time > end) {
			stop(pipe);
			return;
		}
		instant(pipe, what);
	}
}

int pipe_run(const struct pipe_scenario *scenario, const struct pipe_watch *watch,
	     struct pipe_result *result)
{
	struct pipe pipe = { .scenario = scenario, .watch = watch, .result = result };

	memset(result, 0, sizeof(*result));
	if (!run_init(&pipe, scenario->nr_streams) && !check_scenario(&pipe)) {
		for (unsigned int i = 0; i < scenario->nr_programs; i++)
			cpu_start(&pipe, &pipe.programs[i], &scenario->programs[i],
				  &result->programs[i]);
		loop(&pipe);
		result->end = pipe.now;
		for (unsigned int i = 0; i < scenario->nr_programs; i++)
			if (result->programs[i].end > result->end)
				result->end = result->programs[i].end;
		if (!pipe.error && !result->stopped && (pipe.nr_running || pipe.in_flight))
			deadlock_report(&pipe);
	}
	run_fini(&pipe);
	return pipe.error;
}
