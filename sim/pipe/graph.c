// SPDX-License-Identifier: MIT
/*
 * Graphs on their way: one command, its nodes start as what they depend on is done, without
 * the CPU and without the host interface. Knows no SM.
 */
#include <stdlib.h>
#include "sim/pipe/pipe.h"

static void ready(struct graph_run *run, unsigned int node)
{
	run->ready[run->nr_ready++] = node;
}

static void run_end(struct pipe *pipe, struct graph_run *run)
{
	unsigned int stream = run->command.stream;
	struct graph_run **link = &pipe->runs;

	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	free(run->waits);
	free(run);
	host_done_later(pipe, stream);
}

/* A node is done: those that waited for nothing else are ready. */
static void node_over(struct graph_run *run, unsigned int node)
{
	unsigned int i;

	if (!--run->left)
		return;
	for (i = run->first[node]; i < run->first[node + 1]; i++)
		if (!--run->waits[run->next_nodes[i]])
			ready(run, run->next_nodes[i]);
}

static unsigned int nr_edges(const struct pipe_graph *graph)
{
	unsigned int i, nr = 0;

	for (i = 0; i < graph->nr_nodes; i++)
		nr += graph->nodes[i].nr_after;
	return nr;
}

/* Who comes after whom, the other way round than nodes tell it; each in rising order. */
static void turn_round(struct graph_run *run)
{
	const struct pipe_graph *graph = run->graph;
	unsigned int i, j, *first = run->first;

	/* Counted one place further on, then summed up: where the next one goes. */
	for (i = 0; i < graph->nr_nodes; i++)
		for (j = 0; j < graph->nodes[i].nr_after; j++)
			first[graph->nodes[i].after[j] + 2]++;
	for (i = 2; i < graph->nr_nodes + 2; i++)
		first[i] += first[i - 1];
	for (i = 0; i < graph->nr_nodes; i++)
		for (j = 0; j < graph->nodes[i].nr_after; j++)
			run->next_nodes[first[graph->nodes[i].after[j] + 1]++] = i;
}

/* The nodes that are ready go to the front end; one without a kernel lets others be ready. */
static void graph_comes(struct pipe *pipe, struct happening *what)
{
	struct graph_run *run = (struct graph_run *)what;
	struct task *task;
	unsigned int i;

	for (i = 0; i < run->nr_ready; i++) {
		if (run->graph->nodes[run->ready[i]].kernel == PIPE_NO_KERNEL) {
			fed_node(pipe, run, run->ready[i]);
			node_over(run, run->ready[i]);
			continue;
		}
		task = launch_task(pipe, &run->command, run->graph->nodes[run->ready[i]].kernel);
		if (!task)
			return;
		task->run = run;
		task->node = run->ready[i];
		frontend_add(pipe, task);
	}
	run->nr_ready = 0;
	if (!run->left)
		run_end(pipe, run);
}

void graph_start(struct pipe *pipe, const struct command *command)
{
	const struct pipe_graph *graph = command->errand ? command->errand->graph :
					 &pipe->scenario->graphs[command->step->what];
	struct graph_run *run = calloc(1, sizeof(*run));
	unsigned int i;

	if (run)
		run->waits = calloc(3 * (size_t)graph->nr_nodes + 2 + nr_edges(graph),
				    sizeof(*run->waits));
	if (!run || !run->waits) {
		free(run);
		pipe_error(pipe, -12, 0, "no memory");
		return;
	}
	run->happening.come = graph_comes;
	run->command = *command;
	run->graph = graph;
	run->left = graph->nr_nodes;
	run->ready = run->waits + graph->nr_nodes;
	run->first = run->ready + graph->nr_nodes;
	run->next_nodes = run->first + graph->nr_nodes + 2;
	turn_round(run);
	run->next = pipe->runs;
	pipe->runs = run;
	for (i = 0; i < graph->nr_nodes; i++) {
		run->waits[i] = graph->nodes[i].nr_after;
		if (!run->waits[i])
			ready(run, i);
	}
	queue_set(&pipe->queue, &run->happening, pipe->now);
}

void graph_node_done(struct pipe *pipe, struct graph_run *run, unsigned int node)
{
	unsigned int gpu = pipe->scenario->streams[run->command.stream].gpu;

	node_over(run, node);
	if (!run->left)
		run_end(pipe, run);
	else if (run->nr_ready && !run->happening.at)
		queue_set(&pipe->queue, &run->happening,
			  pipe->now + pipe->scenario->gpus[gpu].chip.node_ns);
}
