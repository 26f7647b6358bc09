// SPDX-License-Identifier: MIT
/*
 * Runs graphs. A graph is one command. Each node starts when all nodes on which it depends are
 * done. Nodes start without the CPU and without the host interface.
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

/* Called when a node is done. Nodes that waited only for this node become ready. */
static void node_done(struct graph_run *run, unsigned int node)
{
	if (!--run->left)
		return;
	for (unsigned int i = run->first[node]; i < run->first[node + 1]; i++)
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

/*
 * For each node, computes a list of the nodes that depend on it. The list is in ascending order.
 */
static void reverse_edges(struct graph_run *run)
{
	const struct pipe_graph *graph = run->graph;
	unsigned int i, j, *first = run->first;

	/*
	 * The first loop counts the entries of each node, and the second loop sums up the counts.
	 * After that, first[n] is the index for the next entry of node n.
	 */
	for (i = 0; i < graph->nr_nodes; i++)
		for (j = 0; j < graph->nodes[i].nr_after; j++)
			first[graph->nodes[i].after[j] + 2]++;
	for (i = 2; i < graph->nr_nodes + 2; i++)
		first[i] += first[i - 1];
	for (i = 0; i < graph->nr_nodes; i++)
		for (j = 0; j < graph->nodes[i].nr_after; j++)
			run->next_nodes[first[graph->nodes[i].after[j] + 1]++] = i;
}

/*
 * Passes the ready nodes to the front end. A node without a kernel is done immediately. So more
 * nodes can become ready.
 */
static void on_ready_nodes(struct pipe *pipe, struct queue_event *what)
{
	struct graph_run *run = (struct graph_run *)what;
	struct task *task;

	for (unsigned int i = 0; i < run->nr_ready; i++) {
		if (run->graph->nodes[run->ready[i]].kernel == PIPE_NO_KERNEL) {
			fed_node(pipe, run, run->ready[i]);
			node_done(run, run->ready[i]);
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
	const struct pipe_graph *graph = command->pipe_submission
						 ? command->pipe_submission->graph
						 : &pipe->scenario->graphs[command->step->what];
	struct graph_run *run = calloc(1, sizeof(*run));

	if (run)
		run->waits = calloc(3 * (size_t)graph->nr_nodes + 2 + nr_edges(graph),
				    sizeof(*run->waits));
	if (!run || !run->waits) {
		free(run);
		pipe_error(pipe, -12, 0, "no memory");
		return;
	}
	run->queue_event.come = on_ready_nodes;
	run->command = *command;
	run->graph = graph;
	run->left = graph->nr_nodes;
	run->ready = run->waits + graph->nr_nodes;
	run->first = run->ready + graph->nr_nodes;
	run->next_nodes = run->first + graph->nr_nodes + 2;
	reverse_edges(run);
	run->next = pipe->runs;
	pipe->runs = run;
	for (unsigned int i = 0; i < graph->nr_nodes; i++) {
		run->waits[i] = graph->nodes[i].nr_after;
		if (!run->waits[i])
			ready(run, i);
	}
	queue_set(&pipe->queue, &run->queue_event, pipe->now);
}

void graph_node_done(struct pipe *pipe, struct graph_run *run, unsigned int node)
{
	unsigned int gpu = pipe->scenario->streams[run->command.stream].gpu;

	node_done(run, node);
	if (!run->left)
		run_end(pipe, run);
	else if (run->nr_ready && !run->queue_event.at)
		queue_set(&pipe->queue, &run->queue_event,
			  pipe->now + pipe->scenario->gpus[gpu].chip.node_ns);
}
