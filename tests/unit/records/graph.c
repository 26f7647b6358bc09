// SPDX-License-Identifier: MIT
/*
 * Tests graphs whose launches fail, whose nodes change, and whose counters wrap around. A process
 * must never count as idle while a graph runs.
 */
#include "lib/driver/cuda.h"
#include "tests/unit/records/gpu.h"

#define CTX		((void *)0x7000)
/* the function of each graph's last kernels */
#define LAST		((void *)0x1000)
#define OTHER		((void *)0x2000)

/* A graph of kernels. All other kernels depend on the first kernel. */
static struct fake_graph {
	unsigned int nr;
	void *functions[4];
} two = { 2, { OTHER, LAST } }, three = { 3, { OTHER, LAST, LAST } };

static cuda_result fake_nodes(void *graph, void **nodes, size_t *nr)
{
	struct fake_graph *g = graph;

	for (size_t n = 0; nodes && n < *nr; n++)
		nodes[n] = &g->functions[n];
	*nr = g->nr;
	return 0;
}

static cuda_result fake_edges(void *graph, void **from, void **to, size_t *nr)
{
	struct fake_graph *g = graph;

	for (size_t n = 0; from && n < *nr; n++) {
		from[n] = &g->functions[0];
		to[n] = &g->functions[n + 1];
	}
	*nr = g->nr - 1;
	return 0;
}

static cuda_result fake_type(void *node, int *type)
{
	*type = CUDA_NODE_KERNEL;
	return !node;
}

static cuda_result fake_kernel(void *node, struct cuda_kernel_node *kernel)
{
	*kernel = (struct cuda_kernel_node){ .function = *(void **)node };
	return 0;
}

static const struct cuda_api graph_api = {
	.graph_nodes = fake_nodes, .graph_edges = fake_edges, .node_type = fake_type,
	.kernel_get = fake_kernel,
};

struct executable {
	struct records_mark *mark;
	struct stream nodes[4];
	bool counted[4];
	unsigned int nr_nodes, nr_built;
};

/* Like the driver, builds node @n for @function in the launch callback. */
static bool node_build(struct executable *e, unsigned int n, void *function)
{
	struct launch_params params = {
		.size = sizeof(params), .ctx = CTX, .function = function, .tmd = e->nodes[n].tmd,
	};

	build(&e->nodes[n]);
	e->counted[n] = records_mark_node(e->mark, records, &map, &params, e->counted[n]);
	return e->counted[n];
}

/* The first launch builds the nodes. */
static void launch_graph(struct executable *e, struct fake_graph *graph, int result)
{
	records_graph_begins(e->mark, records, NULL, 0);
	records_mark_built(e->mark, e->nr_built);
	for (unsigned int n = 0; graph && n < graph->nr; n++)
		node_build(e, n, graph->functions[n]);
	records_graph_ends(e->mark, records, NULL, 0, result);
	e->nr_built = records_mark_built(e->mark, 0);
}

/* Launches with two rebuilt nodes. Returns the result of the first node. */
static bool relaunch(struct executable *e, unsigned int a, void *is, unsigned int b, void *other)
{
	bool counts;

	records_graph_begins(e->mark, records, NULL, 0);
	records_mark_built(e->mark, e->nr_built);
	counts = node_build(e, a, is);
	node_build(e, b, other);
	records_graph_ends(e->mark, records, NULL, 0, 0);
	e->nr_built = records_mark_built(e->mark, 0);
	return counts;
}

static void instantiate(struct executable *e, struct fake_graph *graph)
{
	memset(e, 0, sizeof(*e));
	e->mark = records_mark_new(&graph_api, graph);
	e->nr_nodes = graph->nr;
	launch_graph(e, graph, 0);
}

/* A node increments the counter of its graph. Returns the cell with this counter. */
static struct records_graph_cell *cell_of(struct executable *e)
{
	struct records_graph_cell *cell = NULL;

	for (unsigned int n = 0; n < e->nr_nodes; n++)
		if (e->counted[n])
			memcpy(&cell, e->nodes[n].tmd + ADDRESS(2), sizeof(cell));
	return cell;
}

/* Ends one launch, or only @nr kernels of the launch. */
static void kernels_end(struct executable *e, unsigned int nr)
{
	struct records_graph_cell *cell = cell_of(e);

	atomic_store(&cell->end.time, gpu_now());
	atomic_store(&cell->end.payload, 1);
	atomic_fetch_add(&cell->count, nr);
}

/*
 * After a failure, the launch may have been made. So the launch still uses its entry, and no
 * other graph gets this entry.
 */
static void failed(void)
{
	static struct executable e, again, next;

	instantiate(&e, &two);
	kernels_end(&e, 1);
	tap_ok(reads(1, 1, 0, 0, 0), "a graph has ended");
	launch_graph(&e, NULL, 1);
	launch_graph(&e, NULL, 0);
	tap_ok(reads(2, 1, 1, 0, 0), "a launch that was not made is none, and the graph goes on");
	kernels_end(&e, 1);
	launch_graph(&e, NULL, 719);
	tap_ok(reads(2, 2, 0, 0, 1), "one that may have been made is unknown");
	launch_graph(&e, NULL, 0);
	tap_ok(reads(2, 2, 0, 0, 2), "and so are all later ones, which may end before it");
	records_mark_free(e.mark);
	instantiate(&next, &two);
	tap_ok(cell_of(&next) != cell_of(&e) && reads(3, 2, 1, 0, 2), "no graph gets its entry");
	kernels_end(&e, 1);
	tap_ok(reads(3, 2, 1, 0, 2), "its end tells nothing of a later graph");
	instantiate(&again, &two);
	kernels_end(&next, 1);
	tap_ok(reads(4, 3, 1, 0, 2), "which ends by itself");
}

/*
 * An update exchanges the functions of two nodes. The number of counted kernels stays the same,
 * but different kernels count.
 */
static void exchanged(void)
{
	static struct executable e;

	instantiate(&e, &three);
	kernels_end(&e, 2);
	tap_ok(e.nr_built == 2 && reads(1, 1, 0, 0, 0), "a graph in which two kernels count");
	tap_ok(!relaunch(&e, 1, OTHER, 0, LAST) && !(e.nodes[1].tmd[SLOT(2)] & 1) &&
	       reads(2, 1, 1, 0, 0), "two nodes exchange functions: as many count");
	kernels_end(&e, 2);
	tap_ok(reads(2, 2, 0, 0, 0), "it has ended");
	tap_ok(!relaunch(&e, 2, OTHER, 1, OTHER) && reads(2, 2, 0, 0, 1),
	       "that fewer count was not told: unknown");
}

static void wraps(void)
{
	static struct executable e;
	struct records_graph_cell *cell;
	int good = 0;

	instantiate(&e, &three);
	kernels_end(&e, 2);
	cell = cell_of(&e);
	records->shown->graph[0].issued = 0x7ffffffeull;
	atomic_store(&cell->count, 0xfffffffcu);
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t issued = 0x7fffffffull + i;

		launch_graph(&e, NULL, 0);
		good += reads(issued, issued - 1, 1, 0, 0);
		kernels_end(&e, 1);
		good += reads(issued, issued - 1, 1, 0, 0);
		kernels_end(&e, 1);
		good += reads(issued, issued, 0, 0, 0);
	}
	tap_ok(good == 12 && atomic_load(&cell->count) == 4, "a counter of 32 bits goes round");
}

/* Records of a destroyed graph arrive late. At this time, another graph runs. */
static void late(void)
{
	static struct executable first, second;

	instantiate(&first, &three);
	kernels_end(&first, 1);
	records_mark_free(first.mark);
	tap_ok(reads(1, 0, 1, 0, 0), "a graph is destroyed, and one of two records is late");
	instantiate(&second, &two);
	tap_ok(cell_of(&second) != cell_of(&first) && reads(2, 0, 2, 0, 0),
	       "another one has an entry of its own");
	kernels_end(&first, 1);
	tap_ok(reads(2, 1, 1, 0, 0), "the late record ends the first");
	kernels_end(&second, 1);
	tap_ok(reads(2, 2, 0, 0, 0), "and its own the second");
}

int main(void)
{
	static void (*const tests[])(void) = { failed, exchanged, wraps, late };

	for (unsigned int i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		gpu_child(tests[i]);
	return tap_done();
}
