// SPDX-License-Identifier: MIT
/* Gets and sets the parameters and attributes of graph nodes. */
#include <string.h>
#include "sim/cuda/graph.h"

static CUresult enter_node_of(CUgraphNode node, enum cu_node_type type, bool valid)
{
	CUresult error = graph_enter_node(node, valid);

	return !error && node->type != type ? CUDA_ERROR_INVALID_VALUE : error;
}

static CUresult enter_kernel_node(CUgraphNode node, bool valid)
{
	return enter_node_of(node, CU_NODE_KERNEL, valid);
}

CUresult graph_kernel_work(const struct cu_kernel_node_params *params, struct sim_work *work)
{
	const struct cu_kernel_node_params_v1 *v1 = &params->v1;
	CUresult error;

	if (!v1->function && params->kernel) {
		sim_print("a node of a CUkernel is not simulated: use a CUfunction");
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

/* Returns the address of one side of a copy. The simulation supports only addresses. */
static bool side_address(const struct cu_copy_side *side, uint64_t *address)
{
	if (side->type != CU_MEMORY_DEVICE && side->type != CU_MEMORY_UNIFIED)
		return false;
	if (side->y || side->z || side->level)
		return false;
	*address = side->device + side->x;
	return true;
}

/* Returns the context in a node's parameters. If @ctx is NULL, returns the current context. */
static struct sim_ctx *context_of(CUcontext ctx, CUresult *error)
{
	if (!ctx)
		return ctx_current(error);
	*error = ctx_valid(ctx) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	return *error ? NULL : ctx;
}

CUresult graph_set_work(const struct cu_set_node_params *params, CUcontext in,
			struct sim_work *work)
{
	struct sim_ctx *ctx;
	CUresult error;

	if ((params->element != 1 && params->element != 2 && params->element != 4) ||
	    params->to % params->element || params->width > SIZE_MAX / 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->height != 1 || params->element == 2) {
		sim_print(
			"fill nodes with several rows or with elements of 2 bytes are not simulated");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	work->kind = params->element == 1 ? SIM_OP_SET8 : SIM_OP_SET32;
	work->args.address = params->to;
	work->args.bytes = params->width * params->element;
	work->args.value = params->value;
	ctx = context_of(in, &error);
	return ctx ? memory_work(ctx, work) : error;
}

CUresult graph_copy_work(const struct cu_copy_3d *params, CUcontext in, struct sim_work *work)
{
	struct sim_ctx *ctx;
	CUresult error;

	if (params->height != 1 || params->depth != 1 ||
	    !side_address(&params->from, &work->args.from) ||
	    !side_address(&params->to, &work->args.address)) {
		sim_print(
			"copy nodes are simulated only if they copy one row from device to device");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!work->args.from)
		return CUDA_ERROR_INVALID_VALUE;
	work->kind = SIM_OP_COPY;
	work->args.bytes = params->width;
	ctx = context_of(in, &error);
	return ctx ? memory_work(ctx, work) : error;
}

CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
	CUresult error = graph_enter_node(node, type);

	if (!error)
		*type = node->type;
	return sim_leave_with(error);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, struct cu_kernel_node_params_v1 *params)
{
	const struct sim_launch *launch;
	CUresult error = enter_kernel_node(node, params != NULL);

	if (!error) {
		launch = &node->work.launch;
		*params = (struct cu_kernel_node_params_v1){
			node->work.function,
			launch->grid[0], launch->grid[1], launch->grid[2],
			launch->block[0], launch->block[1], launch->block[2],
			node->work.dynamic, node->work.code->nr_params ? node->params : NULL, NULL,
		};
	}
	return sim_leave_with(error);
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
	CUresult error = enter_kernel_node(node, params != NULL);

	if (!error) {
		work = node->work;	/* attributes are kept */
		error = graph_kernel_work(params, &work);
	}
	if (!error)
		node->work = work;
	return sim_leave_with(error);
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
	CUresult error = enter_kernel_node(node, value);

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
	case CU_LAUNCH_PRIORITY:
		value->priority = launch->priority;
		break;
	default:
		error = CUDA_ERROR_INVALID_VALUE;
	}
leave:
	return sim_leave_with(error);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int id,
				       const union cu_launch_value *value)
{
	struct sim_work work = { 0 };
	CUresult error = enter_kernel_node(node, value);

	if (!error) {
		work = node->work;
		error = launch_set_attribute(&work.launch, id, value);
	}
	if (!error)
		error = launch_check(work.function, &work);
	if (!error)
		node->work = work;
	return sim_leave_with(error);
}

/* ------------------------------------------------------------- fills and copies */

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, struct cu_set_node_params *params)
{
	const struct sim_args *args;
	unsigned int element;
	CUresult error = enter_node_of(node, CU_NODE_SET, params);

	if (!error) {
		args = &node->work.args;
		element = node->work.code == &kernels_set8 ? 1 : 4;
		*params = (struct cu_set_node_params){
			.to = args->address, .value = args->value, .element = element,
			.width = args->bytes / element, .height = 1,
		};
	}
	return sim_leave_with(error);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const struct cu_set_node_params *params)
{
	struct sim_work work = { 0 };
	CUresult error = enter_node_of(node, CU_NODE_SET, params);

	error = error ?: graph_set_work(params, node->work.function->module->ctx, &work);
	if (!error)
		node->work = work;
	return sim_leave_with(error);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, struct cu_copy_3d *params)
{
	CUresult error = enter_node_of(node, CU_NODE_COPY, params);

	if (!error)
		*params = (struct cu_copy_3d){
			.from = { .type = CU_MEMORY_DEVICE, .device = node->work.args.from },
			.to = { .type = CU_MEMORY_DEVICE, .device = node->work.args.address },
			.width = node->work.args.bytes, .height = 1, .depth = 1,
		};
	return sim_leave_with(error);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const struct cu_copy_3d *params)
{
	struct sim_work work = { 0 };
	CUresult error = enter_node_of(node, CU_NODE_COPY, params);

	error = error ?: graph_copy_work(params, node->work.function->module->ctx, &work);
	if (!error)
		node->work = work;
	return sim_leave_with(error);
}
