// SPDX-License-Identifier: MIT
/* Changes an executable graph, and marks each TMD that the next launch must build again. */
#include <string.h>
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph_exec.h"

/*
 * Returns true if a new TMD would equal the old TMD. In this case, the driver does not build a
 * new TMD.
 */
static bool same_tmd(const struct sim_work *a, const struct sim_work *b)
{
	const struct sim_launch *one = &a->launch, *two = &b->launch;

	return a->function == b->function && !memcmp(one->grid, two->grid, sizeof(one->grid)) &&
	       !memcmp(one->block, two->block, sizeof(one->block)) &&
	       !memcmp(one->cluster, two->cluster, sizeof(one->cluster)) &&
	       one->registers == two->registers && one->shared == two->shared &&
	       one->cooperative == two->cooperative && one->policy == two->policy &&
	       one->priority == two->priority && a->args.bytes == b->args.bytes;
}

/* Finds the node of @exec for @handle. */
static struct exec_node *exec_find(struct sim_exec *exec, CUgraphNode handle)
{
	if (!handle_valid(handle, SIM_HANDLE_NODE))
		return NULL;
	for (unsigned int i = 0; i < exec->nr_nodes; i++)
		if (exec->nodes[i].serial == handle->serial)
			return &exec->nodes[i];
	return NULL;
}

/*
 * Changes the kernel, the fill or the copy of a node to one of the same context. The other two of
 * the parameters are NULL.
 */
static CUresult set_work(CUgraphExec exec, CUgraphNode handle, CUcontext ctx,
			 const struct cu_kernel_node_params *kernel,
			 const struct cu_set_node_params *fill, const struct cu_copy_3d *copy)
{
	enum cu_node_type type = kernel ? CU_NODE_KERNEL : fill ? CU_NODE_SET : CU_NODE_COPY;
	struct sim_work work = { 0 };
	struct exec_node *node;
	CUresult error;

	if (!kernel && !fill && !copy)
		return CUDA_ERROR_INVALID_VALUE;
	error = exec_enter(exec);
	if (error)
		goto leave;
	node = exec_find(exec, handle);
	if (kernel && node)
		work = node->work;	/* attributes are kept */
	error = !node || node->type != type ? CUDA_ERROR_INVALID_VALUE :
		kernel ? graph_kernel_work(kernel, &work) :
		fill ? graph_set_work(fill, ctx, &work) : graph_copy_work(copy, ctx, &work);
	if (!error && work.function->module->ctx != exec->ctx)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error) {
		/*
		 * If only the arguments change, the TMD does not change. A node may be changed and
		 * then changed back. Its TMD is then still built again.
		 */
		node->built &= same_tmd(&node->work, &work);
		node->work = work;
	}
	exec_give(exec);
leave:
	return sim_leave_with(error);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const struct cu_kernel_node_params *params)
{
	return API_CALL(cuGraphExecKernelNodeSetParams_v2,
			set_work(exec, node, NULL, params, NULL, NULL),
			(uintptr_t)exec, (uintptr_t)node, (uintptr_t)params);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const struct cu_kernel_node_params_v1 *v1)
{
	struct cu_kernel_node_params params = { 0 };

	if (v1)
		params.v1 = *v1;
	return API_CALL(cuGraphExecKernelNodeSetParams,
			set_work(exec, node, NULL, v1 ? &params : NULL, NULL, NULL),
			(uintptr_t)exec, (uintptr_t)node, (uintptr_t)v1);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const struct cu_set_node_params *params, CUcontext ctx)
{
	return API_CALL(cuGraphExecMemsetNodeSetParams,
			set_work(exec, node, ctx, NULL, params, NULL), (uintptr_t)exec,
			(uintptr_t)node, (uintptr_t)params, (uintptr_t)ctx);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const struct cu_copy_3d *params, CUcontext ctx)
{
	return API_CALL(cuGraphExecMemcpyNodeSetParams,
			set_work(exec, node, ctx, NULL, NULL, params), (uintptr_t)exec,
			(uintptr_t)node, (uintptr_t)params, (uintptr_t)ctx);
}

static CUresult enabled(CUgraphExec exec, CUgraphNode handle, unsigned int *out,
			const unsigned int *in)
{
	struct exec_node *node;
	CUresult error = exec_enter(exec);

	if (error)
		goto leave;
	node = exec_find(exec, handle);
	if (!node || !node->work.function)
		/* only kernels, fills and copies can be disabled */
		error = CUDA_ERROR_INVALID_VALUE;
	else if (!in)
		*out = node->enabled;
	if (!error && in) {
		node->enabled = *in;
		node->built &= node->enabled;	/* the node is built again when it is enabled */
	}
	exec_give(exec);
leave:
	return sim_leave_with(error);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int on)
{
	return API_CALL(cuGraphNodeSetEnabled, enabled(exec, node, NULL, &on),
			(uintptr_t)exec, (uintptr_t)node, on);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *on)
{
	return on ? enabled(exec, node, on, NULL) : CUDA_ERROR_INVALID_VALUE;
}

static struct sim_node *exec_source(const struct sim_exec *exec, unsigned int place)
{
	return exec->nodes[place].from;
}

/*
 * Checks that @new differs from @exec only in the parameters of nodes. If there is another
 * difference, stores the reason in *info.
 */
static bool same_shape(const struct sim_exec *exec, const struct sim_exec *new,
		       struct cu_update_info *info)
{
	const struct exec_node *a, *b;
	unsigned int i, j;

	info->result = CU_UPDATE_TOPOLOGY_CHANGED;
	if (exec->nr_nodes != new->nr_nodes)
		return false;
	for (i = 0; i < new->nr_nodes; i++) {
		a = &exec->nodes[i];
		b = &new->nodes[i];
		info->error_node = exec_source(new, i);
		info->result = CU_UPDATE_TYPE_CHANGED;
		if (a->type != b->type || !a->serial != !b->serial)
			return false;
		info->result = CU_UPDATE_TOPOLOGY_CHANGED;
		if (a->nr_before != b->nr_before)
			return false;
		for (j = 0; j < b->nr_before; j++) {
			info->error_from_node = exec_source(new, b->before[j]);
			if (a->before[j] != b->before[j])
				return false;
		}
		info->error_from_node = NULL;
		info->result = CU_UPDATE_ATTRIBUTES_CHANGED;
		if (a->work.launch.cooperative != b->work.launch.cooperative)
			return false;
	}
	info->error_node = NULL;
	info->result = CU_UPDATE_PARAMETERS_CHANGED;
	return exec->ctx == new->ctx;
}

static CUresult update(CUgraphExec exec, CUgraph graph, struct cu_update_info *info)
{
	struct sim_node *bad = NULL;
	struct sim_exec *new = NULL;
	CUresult error;

	if (!info)
		return CUDA_ERROR_INVALID_VALUE;
	*info = (struct cu_update_info){ .result = CU_UPDATE_ERROR };
	error = exec_enter(exec);
	if (error)
		goto leave;
	if (!handle_valid(graph, SIM_HANDLE_GRAPH) || graph->owned)
		error = CUDA_ERROR_INVALID_VALUE;
	else
		new = exec_of(graph, &bad, &error);
	if (!new) {
		info->error_node = bad;
		goto give;
	}
	if (!same_shape(exec, new, info)) {
		error = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
		goto free_new;
	}
	for (unsigned int i = 0; i < exec->nr_nodes; i++) {
		exec->nodes[i].built &= same_tmd(&exec->nodes[i].work, &new->nodes[i].work);
		exec->nodes[i].work = new->nodes[i].work;
	}
	info->result = CU_UPDATE_SUCCESS;
free_new:
	exec_free(new);
give:
	exec_give(exec);
leave:
	return sim_leave_with(error);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, struct cu_update_info *info)
{
	return API_CALL(cuGraphExecUpdate_v2, update(exec, graph, info),
			(uintptr_t)exec, (uintptr_t)graph, (uintptr_t)info);
}

static CUresult update_v1(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, int *result)
{
	struct cu_update_info info;
	CUresult error;

	if (!error_node || !result)
		return CUDA_ERROR_INVALID_VALUE;
	error = update(exec, graph, &info);
	*error_node = info.error_node;
	*result = info.result;
	return error;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
			   int *result)
{
	return API_CALL(cuGraphExecUpdate, update_v1(exec, graph, error_node, result),
			(uintptr_t)exec, (uintptr_t)graph, (uintptr_t)error_node,
			(uintptr_t)result);
}
