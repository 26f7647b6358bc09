// SPDX-License-Identifier: MIT
/* Graphs that a program builds: nodes, and the parameters and dependencies of nodes. */
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/graph.h"

#define NR_BUCKETS 4096

/* --------------------------------------------------------------------- handles */

static struct sim_handle *buckets[NR_BUCKETS];

static struct sim_handle **bucket(const void *object)
{
	return &buckets[((uintptr_t)object >> 4) % NR_BUCKETS];
}

bool handle_valid(const void *object, enum sim_handle_kind kind)
{
	const struct sim_handle *handle;

	for (handle = *bucket(object); handle; handle = handle->next)
		if (handle == object)
			return handle->kind == kind;
	return false;
}

void handle_add(struct sim_handle *handle, enum sim_handle_kind kind)
{
	struct sim_handle **link = bucket(handle);

	handle->kind = kind;
	handle->next = *link;
	*link = handle;
}

void handle_drop(struct sim_handle *handle)
{
	struct sim_handle **link;

	for (link = bucket(handle); *link != handle; link = &(*link)->next)
		;
	*link = handle->next;
}

/* ------------------------------------------------------------- graphs and nodes */

struct sim_graph *graph_make(void)
{
	struct sim_graph *graph = calloc(1, sizeof(*graph));

	if (graph)
		handle_add(&graph->handle, SIM_HANDLE_GRAPH);
	return graph;
}

static void node_free(struct sim_node *node)
{
	handle_drop(&node->handle);
	graph_free(node->child);
	free(node->before);
	free(node);
}

void graph_empty(struct sim_graph *graph)
{
	for (unsigned int i = 0; i < graph->nr_nodes; i++)
		node_free(graph->nodes[i]);
	handle_drop(&graph->handle);
	free(graph->nodes);
}

void graph_free(struct sim_graph *graph)
{
	if (!graph)
		return;
	graph_empty(graph);
	free(graph);
}

static bool graph_grow(struct sim_graph *graph)
{
	unsigned int room = graph->room ? 2 * graph->room : 8;
	struct sim_node **nodes;

	if (graph->nr_nodes < graph->room)
		return true;
	nodes = realloc(graph->nodes, room * sizeof(*nodes));
	if (!nodes)
		return false;
	graph->nodes = nodes;
	graph->room = room;
	return true;
}

struct sim_node *graph_add(struct sim_graph *graph, enum cu_node_type type,
			   const struct sim_work *work, struct sim_node *const *before,
			   unsigned int nr_before)
{
	static uint64_t nr_nodes;
	struct sim_node *node;

	if (!graph_grow(graph))
		return NULL;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->before = malloc((nr_before + 1) * sizeof(*node->before));
	if (!node->before) {
		free(node);
		return NULL;
	}
	if (nr_before)
		memcpy(node->before, before, nr_before * sizeof(*before));
	node->nr_before = nr_before;
	node->graph = graph;
	node->serial = ++nr_nodes;
	node->type = type;
	if (work)
		node->work = *work;
	node->params[0] = &node->work.args.address;
	node->params[1] = &node->work.args.value;
	node->at = graph->nr_nodes;
	graph->nodes[graph->nr_nodes++] = node;
	handle_add(&node->handle, SIM_HANDLE_NODE);
	return node;
}

struct sim_graph *graph_clone(const struct sim_graph *graph)
{
	struct sim_graph *clone = graph_make();
	const struct sim_node *from;
	struct sim_node *node;
	unsigned int i, j;

	if (!clone)
		return NULL;
	for (i = 0; i < graph->nr_nodes; i++) {
		from = graph->nodes[i];
		node = graph_add(clone, from->type, &from->work, from->before, from->nr_before);
		if (!node)
			goto free_clone;
		node->clone_of = from->serial;
		if (!from->child)
			continue;
		node->child = graph_clone(from->child);
		if (!node->child)
			goto free_clone;
		node->child->owned = true;
	}
	/*
	 * A second loop is necessary, because a node may depend on nodes that were created later.
	 */
	for (i = 0; i < clone->nr_nodes; i++)
		for (j = 0; j < clone->nodes[i]->nr_before; j++)
			clone->nodes[i]->before[j] = clone->nodes[clone->nodes[i]->before[j]->at];
	return clone;

free_clone:
	graph_free(clone);
	return NULL;
}

/* --------------------------------------------------------- arguments of a program */

/* Takes sim_lock, even on an error. */
static CUresult enter(const void *object, enum sim_handle_kind kind, bool valid)
{
	sim_enter();
	if (!valid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!__atomic_load_n(&sim_ready, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_NOT_INITIALIZED;
	return handle_valid(object, kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult enter_graph(CUgraph graph, bool valid)
{
	return enter(graph, SIM_HANDLE_GRAPH, valid);
}

CUresult graph_enter_node(CUgraphNode node, bool valid)
{
	return enter(node, SIM_HANDLE_NODE, valid);
}

static bool is_node_of(const struct sim_graph *graph, const struct sim_node *node)
{
	return handle_valid(node, SIM_HANDLE_NODE) && node->graph == graph;
}

static bool waits_for(const struct sim_node *node, const struct sim_node *other)
{
	for (unsigned int i = 0; i < node->nr_before; i++)
		if (node->before[i] == other)
			return true;
	return false;
}

/* Adds a valid node that depends on the nodes @before. Checks that these nodes are valid. */
static CUresult add(CUgraphNode *out, struct sim_graph *graph, enum cu_node_type type,
		    const struct sim_work *work, const CUgraphNode *before, size_t nr_before)
{
	struct sim_node *node;
	size_t i, j;

	if (nr_before && !before)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < nr_before; i++) {
		if (!is_node_of(graph, before[i]))
			return CUDA_ERROR_INVALID_VALUE;
		for (j = 0; j < i; j++)
			if (before[j] == before[i])
				return CUDA_ERROR_INVALID_VALUE;
	}
	node = graph_add(graph, type, work, before, nr_before);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = node;
	return CUDA_SUCCESS;
}

/* --------------------------------------------------------- entry points: graphs */

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
	struct sim_graph *graph;

	if (!__atomic_load_n(&sim_ready, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	graph = graph_make();
	sim_leave();
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = graph;
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	CUresult error = enter_graph(graph, true);

	if (!error && graph->owned)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		graph_empty(graph);
	sim_leave();
	if (!error) {
		hook_graph_destroyed(graph);
		/*
		 * free the graph after the callbacks, so that no other graph gets its address
		 * earlier
		 */
		free(graph);
	}
	return error;
}

CUresult cuGraphClone(CUgraph *out, CUgraph graph)
{
	struct sim_graph *clone;
	CUresult error = enter_graph(graph, out);

	if (!error) {
		clone = graph_clone(graph);
		if (clone)
			*out = clone;
		else
			error = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return sim_leave_with(error);
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
	CUresult error = graph_enter_node(original, out);

	if (error)
		goto leave;
	error = CUDA_ERROR_INVALID_VALUE;
	if (!handle_valid(clone, SIM_HANDLE_GRAPH))
		goto leave;
	for (unsigned int i = 0; i < clone->nr_nodes; i++)
		if (clone->nodes[i]->clone_of == original->serial) {
			*out = clone->nodes[i];
			error = CUDA_SUCCESS;
		}
leave:
	return sim_leave_with(error);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *nr)
{
	CUresult error = enter_graph(graph, nr);

	if (!error && nodes) {
		for (size_t i = 0; i < *nr; i++)
			nodes[i] = i < graph->nr_nodes ? graph->nodes[i] : NULL;
		if (*nr > graph->nr_nodes)
			*nr = graph->nr_nodes;
	} else if (!error) {
		*nr = graph->nr_nodes;
	}
	return sim_leave_with(error);
}

/*
 * As in NVIDIA's driver, a cycle is found only when the graph is instantiated. The caller passes
 * both arrays or no array. The edges of a node are in the order of its dependencies.
 */
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *nr)
{
	size_t edges = 0;
	CUresult error = enter_graph(graph, nr && !from == !to);
	unsigned int i, j;

	for (i = 0; !error && i < graph->nr_nodes; i++)
		for (j = 0; j < graph->nodes[i]->nr_before; j++, edges++)
			if (from && edges < *nr) {
				from[edges] = graph->nodes[i]->before[j];
				to[edges] = graph->nodes[i];
			}
	if (!error && (!from || *nr > edges))
		*nr = edges;
	return sim_leave_with(error);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				size_t nr)
{
	CUresult error = enter_graph(graph, !nr || (from && to));
	struct sim_node **before;
	size_t i, j;

	for (i = 0; !error && i < nr; i++) {
		if (!is_node_of(graph, from[i]) || !is_node_of(graph, to[i]) ||
		    from[i] == to[i] || waits_for(to[i], from[i]))
			error = CUDA_ERROR_INVALID_VALUE;
		for (j = 0; !error && j < i; j++)
			if (from[j] == from[i] && to[j] == to[i])
				error = CUDA_ERROR_INVALID_VALUE;
	}
	for (i = 0; !error && i < nr; i++) {
		before = realloc(to[i]->before, (to[i]->nr_before + 1) * sizeof(*before));
		if (!before) {
			error = CUDA_ERROR_OUT_OF_MEMORY;
			break;
		}
		before[to[i]->nr_before++] = from[i];
		to[i]->before = before;
	}
	return sim_leave_with(error);
}

static bool plain_edges(const struct cu_edge_data *edges, size_t nr)
{
	static const struct cu_edge_data plain;

	for (size_t i = 0; edges && i < nr; i++)
		if (memcmp(&edges[i], &plain, sizeof(plain))) {
			sim_print("edges with ports or a type are not simulated");
			return false;
		}
	return true;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const struct cu_edge_data *edges, size_t nr)
{
	return plain_edges(edges, nr) ? cuGraphAddDependencies(graph, from, to, nr) :
					CUDA_ERROR_NOT_SUPPORTED;
}

/* ---------------------------------------------------------- entry points: nodes */

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
				 size_t nr_before, const struct cu_kernel_node_params *params)
{
	struct sim_work work = { 0 };
	CUresult error = enter_graph(graph, node && params);

	error = error ?: graph_kernel_work(params, &work) ?:
		add(node, graph, CU_NODE_KERNEL, &work, before, nr_before);
	return sim_leave_with(error);
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			      size_t nr_before, const struct cu_kernel_node_params_v1 *v1)
{
	struct cu_kernel_node_params params = { 0 };

	if (v1)
		params.v1 = *v1;
	return cuGraphAddKernelNode_v2(node, graph, before, nr_before, v1 ? &params : NULL);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			      size_t nr_before, const struct cu_set_node_params *params,
			      CUcontext ctx)
{
	struct sim_work work = { 0 };
	CUresult error = enter_graph(graph, node && params);

	error = error ?: graph_set_work(params, ctx, &work) ?:
		add(node, graph, CU_NODE_SET, &work, before, nr_before);
	return sim_leave_with(error);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			      size_t nr_before, const struct cu_copy_3d *params, CUcontext ctx)
{
	struct sim_work work = { 0 };
	CUresult error = enter_graph(graph, node && params);

	error = error ?: graph_copy_work(params, ctx, &work) ?:
		add(node, graph, CU_NODE_COPY, &work, before, nr_before);
	return sim_leave_with(error);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			     size_t nr_before)
{
	CUresult error = enter_graph(graph, node);

	error = error ?: add(node, graph, CU_NODE_EMPTY, NULL, before, nr_before);
	return sim_leave_with(error);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
				size_t nr_before, struct cu_alloc_node_params *params)
{
	struct sim_work work = { .kind = SIM_OP_NOTHING };
	static uint64_t next = GRAPH_MEMORY_NODES;
	CUresult error = enter_graph(graph, node && params && params->bytes &&
						params->pool.type == CU_MEMORY_PINNED);

	if (!error) {
		params->address = work.args.address = next;
		work.args.bytes = params->bytes;
		next += vram_round(params->bytes);
		error = add(node, graph, CU_NODE_ALLOC, &work, before, nr_before);
	}
	return sim_leave_with(error);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
				  size_t nr_before, CUgraph child)
{
	struct sim_graph *clone = NULL;
	CUresult error = enter_graph(graph, node);

	if (!error && !handle_valid(child, SIM_HANDLE_GRAPH))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error) {
		clone = graph_clone(child);
		error = clone ? add(node, graph, CU_NODE_GRAPH, NULL, before, nr_before) :
				CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!error) {
		clone->owned = true;
		(*node)->child = clone;
	} else {
		graph_free(clone);
	}
	return sim_leave_with(error);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
	CUresult error = graph_enter_node(node, graph);

	if (!error && !node->child)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*graph = node->child;
	return sim_leave_with(error);
}

/* Only kernels on the GPU can read the value of a condition. */
CUresult cuGraphConditionalHandleCreate(uint64_t *handle, CUgraph graph, CUcontext ctx,
					unsigned int value, unsigned int flags)
{
	CUresult error = enter_graph(graph, handle);

	(void)ctx;
	(void)value;
	(void)flags;
	sim_leave();
	if (error)
		return error;
	sim_print("conditional nodes are not simulated");
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			size_t nr_before, void *params)
{
	CUresult error = enter_graph(graph, node && params);

	(void)before;
	(void)nr_before;
	sim_leave();
	if (error)
		return error;
	sim_print("cuGraphAddNode is not simulated: use the call for the kind of node");
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
			   const struct cu_edge_data *edges, size_t nr_before, void *params)
{
	(void)edges;
	return cuGraphAddNode(node, graph, before, nr_before, params);
}
