// SPDX-License-Identifier: MIT
/*
 * Stores the nodes of an executable graph in a table. The address of a node's TMD is the key. The
 * table also has a hash of the mask that the library wrote into this TMD.
 */
#include <stdlib.h>
#include "lib/confine/graph.h"
#include "lib/core/hash.h"

struct graph_node {
	uint64_t tmd;		/* address of the TMD; 0: the entry is free */
	uint64_t left;		/* hash of the mask that the library wrote */
	struct tmd_mask drivers; /* the mask as the driver built it */
	bool counted;		/* the GPU adds this node to the graph's record when the node
				 * ends */
};

/*
 * A hash table with open addressing for one executable graph. The table needs no lock, because
 * two threads never launch the graph at the same time.
 */
struct graph_nodes {
	unsigned int size;	/* a power of two */
	struct graph_node node[];
};

#define MAX_PROBES 64

static uint64_t mask_hash(const struct tmd_mask *mask)
{
	return hash_bytes(hash_bytes(HASH_INIT, &mask->off, sizeof(mask->off)), &mask->valid,
			  sizeof(mask->valid));
}

static struct graph_node *node_of(struct graph_nodes *nodes, uint64_t tmd)
{
	unsigned int at = (tmd >> 4) * 0x9e3779b97f4a7c15ull >> 32;

	for (int probe = 0; probe < MAX_PROBES; probe++, at++) {
		struct graph_node *node = &nodes->node[at & (nodes->size - 1)];

		if (node->tmd == tmd || !node->tmd)
			return node;
	}
	return NULL;
}

struct graph_node *graph_node_begin(struct scope_graph *graph, const struct tmd_map *map, void *tmd)
{
	struct graph_node *node = graph->nodes ? node_of(graph->nodes, (uintptr_t)tmd) : NULL;
	struct tmd_mask mask;

	graph->nr_built++;
	if (!node || !tmd_mask_read(map, tmd, &mask))
		return NULL;
	if (node->tmd && mask_hash(&mask) == node->left) {
		tmd_mask_restore(map, tmd, &node->drivers);
	} else {
		node->tmd = (uintptr_t)tmd;
		node->drivers = mask;
	}
	return node;
}

void graph_node_end(struct graph_node *node, const struct tmd_map *map,
		    const struct launch_params *params, struct records *records)
{
	struct records_mark *mark = scope_thread.graph->mark;
	struct tmd_mask mask;
	bool counted = records && records_mark_node(mark, records, map, params,
						    node && node->counted);

	if (!node && counted)
		records_mark_unknown(mark);
	if (node)
		node->counted = counted;
	if (node && tmd_mask_read(map, params->tmd, &mask))
		node->left = mask_hash(&mask);
}

static int count_node(const struct cuda_api *cuda, void *node, int type, void *nr)
{
	(void)cuda, (void)node, (void)type;
	++*(unsigned int *)nr;
	return 0;
}

/* The driver sometimes adds nodes. The table has room for these nodes too. */
struct graph_nodes *graph_nodes_new(const struct cuda_api *cuda, void *graph)
{
	unsigned int size = 64, nr = 0;
	struct graph_nodes *nodes;

	cuda_graph_walk(cuda, graph, count_node, &nr);
	while (size < nr * 3 && size < 1u << 24)
		size *= 2;
	nodes = calloc(1, sizeof(*nodes) + size * sizeof(nodes->node[0]));
	if (nodes)
		nodes->size = size;
	return nodes;
}
