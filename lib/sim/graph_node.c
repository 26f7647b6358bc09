// SPDX-License-Identifier: MIT
/*
 * What the nodes of a graph ask for: parameters and attributes, read and set. Must not
 * know how they run, nor of TMDs.
 */
#include <string.h>
#include "sim.h"

static CUresult enter_kernel_node(CUgraphNode node)
{
	CUresult error = graph_enter_node(node);

	return !error && node->type != CU_NODE_KERNEL ? CUDA_ERROR_INVALID_VALUE : error;
}

CUresult graph_kernel_work(const struct cu_kernel_node_params *params, struct sim_work *work)
{
	const struct cu_kernel_node_params_v1 *v1 = &params->v1;
	CUresult error;

	if (!v1->function && params->kernel) {
		sim_say("a node of a CUkernel is not simulated: it takes a CUfunction");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!v1->function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function_valid(v1->function))
		return CUDA_ERROR_INVALID_HANDLE;
	work->launch.grid[0] = v1->grid_x;
	work->launch.grid[1] = v1->grid_y;
	work->launch.grid[2] = v1->grid_z;
	work->launch.block[0] = v1->block_x;
	work->launch.block[1] = v1->block_y;
	work->launch.block[2] = v1->block_z;
	work->dynamic = v1->shared;
	error = launch_check(v1->function, work);
	return error ? error :
		       launch_read_args(work->code, v1->params, v1->extra, &work->args);
}

CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
	CUresult error;

	if (!type)
		return CUDA_ERROR_INVALID_VALUE;
	error = graph_enter_node(node);
	if (!error)
		*type = node->type;
	sim_leave();
	return error;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, struct cu_kernel_node_params_v1 *params)
{
	const struct sim_launch *launch;
	CUresult error;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	error = enter_kernel_node(node);
	if (!error) {
		launch = &node->work.launch;
		*params = (struct cu_kernel_node_params_v1){
			node->work.function,
			launch->grid[0], launch->grid[1], launch->grid[2],
			launch->block[0], launch->block[1], launch->block[2],
			node->work.dynamic, node->work.code->nr_params ? node->params : NULL, NULL,
		};
	}
	sim_leave();
	return error;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, struct cu_kernel_node_params *params)
{
	struct cu_kernel_node_params_v1 v1;
	CUresult error = cuGraphKernelNodeGetParams(node, &v1);

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*params = (struct cu_kernel_node_params){
			.v1 = v1, .ctx = v1.function->module->ctx,
		};
	return error;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
				       const struct cu_kernel_node_params *params)
{
	struct sim_work work = { 0 };
	CUresult error;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	error = enter_kernel_node(node);
	if (!error) {
		work = node->work;	/* attributes stay */
		error = graph_kernel_work(params, &work);
	}
	if (!error)
		node->work = work;
	sim_leave();
	return error;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const struct cu_kernel_node_params_v1 *v1)
{
	struct cu_kernel_node_params params = { 0 };

	if (v1)
		params.v1 = *v1;
	return cuGraphKernelNodeSetParams_v2(node, v1 ? &params : NULL);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int id, union cu_launch_value *value)
{
	const struct sim_launch *launch;
	CUresult error;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	error = enter_kernel_node(node);
	if (error)
		goto leave;
	launch = &node->work.launch;
	memset(value, 0, sizeof(*value));
	switch ((enum cu_launch_attribute_id)id) {
	case CU_LAUNCH_COOPERATIVE:
		value->cooperative = launch->cooperative;
		break;
	case CU_LAUNCH_CLUSTER_DIMENSION:
		value->cluster.x = launch->cluster[0];
		value->cluster.y = launch->cluster[1];
		value->cluster.z = launch->cluster[2];
		break;
	case CU_LAUNCH_CLUSTER_POLICY:
		value->policy = launch->policy;
		break;
	default:
		error = CUDA_ERROR_INVALID_VALUE;
	}
leave:
	sim_leave();
	return error;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int id,
				       const union cu_launch_value *value)
{
	struct sim_work work = { 0 };
	CUresult error;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	error = enter_kernel_node(node);
	if (!error) {
		work = node->work;
		error = launch_set_attribute(&work.launch, id, value);
	}
	if (!error)
		error = launch_check(work.function, &work);
	if (!error)
		node->work = work;
	sim_leave();
	return error;
}
