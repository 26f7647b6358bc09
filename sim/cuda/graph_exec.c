// SPDX-License-Identifier: MIT
/*
 * Executable graphs. An executable graph is a copy of a graph. In the copy, each kernel has a
 * separate TMD. Each TMD is built one time, and subscribers see each TMD one time. Launches use
 * copies of these TMDs on the device.
 */
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph_exec.h"

#define NO_STEP UINT_MAX

/* ------------------------------------------------------- from nodes to steps */

void exec_free(struct sim_exec *exec)
{
	for (unsigned int i = 0; i < exec->nr_nodes; i++) {
		free(exec->nodes[i].before);
		free(exec->nodes[i].host);
		free(exec->nodes[i].device);
	}
	if (exec->charged)
		room_discharge(exec->charged, sim_faults()->graph_memory);
	free(exec->nodes);
	engine_moment_put(exec->last);
	free(exec);
}

/* Adds a step. Returns the index of the new step, or NO_STEP if memory is out. */
static unsigned int exec_add(struct sim_exec *exec, struct sim_node *from)
{
	unsigned int room = exec->room ? 2 * exec->room : 8;
	struct exec_node *nodes, *node;

	if (exec->nr_nodes == exec->room) {
		nodes = realloc(exec->nodes, room * sizeof(*nodes));
		if (!nodes)
			return NO_STEP;
		exec->nodes = nodes;
		exec->room = room;
	}
	node = &exec->nodes[exec->nr_nodes];
	memset(node, 0, sizeof(*node));
	node->type = CU_NODE_EMPTY;
	node->enabled = true;
	if (from) {
		node->from = from;
		node->serial = from->serial;
		node->type = from->type;
		node->work = from->work;
	}
	/* A small fill has no TMD, but an update may turn a small fill into a large fill. */
	if (node->work.function) {
		node->host = aligned_alloc(16, SIM_TMD_BYTES);
		node->device = aligned_alloc(16, SIM_TMD_BYTES);
		if (!node->host || !node->device) {
			free(node->host);
			free(node->device);
			return NO_STEP;
		}
	}
	return exec->nr_nodes++;
}

static bool exec_wait(struct sim_exec *exec, unsigned int place, unsigned int before)
{
	struct exec_node *node = &exec->nodes[place];
	unsigned int *list = realloc(node->before, (node->nr_before + 1) * sizeof(*list)), i;

	if (!list)
		return false;
	node->before = list;
	for (i = node->nr_before++; i && list[i - 1] > before; i--)
		list[i] = list[i - 1];
	list[i] = before;
	exec->nr_edges++;
	return true;
}

static CUresult exec_add_graph(struct sim_exec *exec, const struct sim_graph *graph,
			       unsigned int entry, unsigned int *end, struct sim_node **bad);

/*
 * Adds a node with its dependencies. The array @last contains the last step of each earlier node.
 * The function appends the last step of the new node to @last.
 */
static CUresult exec_add_node(struct sim_exec *exec, struct sim_node *node, unsigned int entry,
			      unsigned int *last, struct sim_node **bad)
{
	unsigned int place = exec_add(exec, node), i;
	struct sim_ctx *ctx;

	if (place == NO_STEP)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (i = 0; i < node->nr_before; i++)
		if (!exec_wait(exec, place, last[node->before[i]->at]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	if (!node->nr_before && entry != NO_STEP && !exec_wait(exec, place, entry))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (node->work.function) {
		*bad = node;
		if (!function_valid(node->work.function))
			return CUDA_ERROR_INVALID_HANDLE;
		ctx = node->work.function->module->ctx;
		if (exec->ctx && exec->ctx != ctx) {
			sim_print("a graph across two contexts is not simulated");
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		exec->ctx = ctx;
		*bad = NULL;
	}
	last[node->at] = place;
	return node->child ? exec_add_graph(exec, node->child, place, &last[node->at], bad) :
			     CUDA_SUCCESS;
}

/*
 * Adds an empty step after the last steps of @graph. The last steps are the steps without
 * dependents.
 */
static CUresult exec_add_end(struct sim_exec *exec, const struct sim_graph *graph,
			     const unsigned int *last, unsigned int entry, unsigned int *end)
{
	bool *has_after = calloc(graph->nr_nodes + 1, sizeof(*has_after));
	unsigned int i, j, place = exec_add(exec, NULL);
	CUresult error = CUDA_ERROR_OUT_OF_MEMORY;

	if (!has_after || place == NO_STEP)
		goto free_has_after;
	for (i = 0; i < graph->nr_nodes; i++)
		for (j = 0; j < graph->nodes[i]->nr_before; j++)
			has_after[graph->nodes[i]->before[j]->at] = true;
	for (i = 0; i < graph->nr_nodes; i++)
		if (!has_after[i] && !exec_wait(exec, place, last[i]))
			goto free_has_after;
	if (!graph->nr_nodes && !exec_wait(exec, place, entry))
		goto free_has_after;
	*end = place;
	error = CUDA_SUCCESS;
free_has_after:
	free(has_after);
	return error;
}

static bool all_placed(const struct sim_node *node, const unsigned int *last)
{
	for (unsigned int i = 0; i < node->nr_before; i++)
		if (last[node->before[i]->at] == NO_STEP)
			return false;
	return true;
}

/*
 * Adds @graph after the step @entry. @entry may be NO_STEP. If possible, adds the nodes in the
 * order of their creation.
 */
static CUresult exec_add_graph(struct sim_exec *exec, const struct sim_graph *graph,
			       unsigned int entry, unsigned int *end, struct sim_node **bad)
{
	unsigned int *last = malloc((graph->nr_nodes + 1) * sizeof(*last)), i, left;
	CUresult error = last ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	struct sim_node *stuck;
	bool placed = true;

	for (i = 0; !error && i < graph->nr_nodes; i++)
		last[i] = NO_STEP;
	for (left = graph->nr_nodes; !error && placed && left; ) {
		placed = false;
		stuck = NULL;
		for (i = 0; !error && i < graph->nr_nodes; i++) {
			if (last[i] != NO_STEP)
				continue;
			stuck = graph->nodes[i];
			if (!all_placed(stuck, last))
				continue;
			error = exec_add_node(exec, stuck, entry, last, bad);
			placed = true;
			left--;
		}
		if (!error && !placed) {	/* a cycle */
			*bad = stuck;
			error = CUDA_ERROR_INVALID_VALUE;
		}
	}
	if (!error && end)
		error = exec_add_end(exec, graph, last, entry, end);
	free(last);
	return error;
}

struct sim_exec *exec_of(const struct sim_graph *graph, struct sim_node **bad, CUresult *error)
{
	struct sim_exec *exec = calloc(1, sizeof(*exec));

	*bad = NULL;
	*error = exec ? exec_add_graph(exec, graph, NO_STEP, NULL, bad) :
			CUDA_ERROR_OUT_OF_MEMORY;
	if (!*error)
		return exec;
	if (exec)
		exec_free(exec);
	return NULL;
}

/* ------------------------------------------------------------------ upload, launch */

/*
 * Builds the TMD of a step, and applies the changes of the subscribers. If a subscriber made an
 * invalid change, returns false.
 */
static bool node_build(struct sim_exec *exec, struct exec_node *node)
{
	const struct sim_work *work = &node->work;
	struct sim_launch launch = work->launch;
	const struct exec_node *other = node + 1;

	while (other < exec->nodes + exec->nr_nodes && !exec_has_tmd(other))
		other++;
	launch.place = other < exec->nodes + exec->nr_nodes ? SIM_IN_GRAPH : SIM_LAST_OF_GRAPH;
	node->number = launch_number();
	if (node->used)
		tmd_rebuild(node->host, exec->ctx->gpu, &launch);
	else
		tmd_build(node->host, exec->ctx->gpu, &launch);
	node->used = true;
	memcpy(node->device, node->host, SIM_TMD_BYTES);
	hook_launch(exec->ctx, work->function, node->host, node->number, HOOK_TMD_BUILT);
	sim_enter();
	node->built = launch_accepts_edit(work, node->device, node->host, node->number);
	sim_leave();
	memcpy(node->device, node->host, SIM_TMD_BYTES);
	node->uploads = true;
	return node->built;
}

static void node_report(struct sim_exec *exec, struct exec_node *node, int cbid)
{
	hook_launch(exec->ctx, node->work.function, node->host, (uintptr_t)node->device, cbid);
}

/*
 * Calls the subscribers with each new TMD, and keeps the changes of the subscribers. Call this
 * function without sim_lock, after exec_take(). A launch always uploads the first TMD. If a
 * subscriber made an invalid change, returns false.
 */
static bool exec_build(struct sim_exec *exec, bool launch)
{
	struct exec_node *node;
	bool good = true, first = true;

	for (node = exec->nodes; node < exec->nodes + exec->nr_nodes; node++) {
		node->uploads = false;
		if (!exec_has_tmd(node) || !node->enabled)
			continue;
		node->uploads = launch && first;
		first = false;
		if (!node->built)
			good &= node_build(exec, node);
		node_report(exec, node, HOOK_GRAPH_NODE);
	}
	for (node = exec->nodes; node < exec->nodes + exec->nr_nodes; node++)
		if (node->uploads)
			node_report(exec, node, HOOK_TMD_UPLOADED);
	return good;
}

/* Allocates the data of one launch of the graph, and fills in the dependencies. */
static struct sim_run *run_init(const struct sim_exec *exec)
{
	unsigned int i, j, at = 0;
	struct sim_run *run;

	run = calloc(1, sizeof(*run) + exec->nr_nodes * sizeof(run->steps[0]));
	if (!run)
		return NULL;
	run->nr_steps = exec->nr_nodes;
	run->nodes = calloc(exec->nr_nodes + 1u, sizeof(*run->nodes));
	run->asks = calloc(exec->nr_nodes + 1u, sizeof(*run->asks));
	run->edges = malloc((exec->nr_edges + 1u) * sizeof(*run->edges));
	if (!run->nodes || !run->asks || !run->edges) {
		engine_run_free(run);
		return NULL;
	}
	run->graph = (struct pipe_graph){ .nodes = run->nodes, .nr_nodes = exec->nr_nodes };
	for (i = 0; i < exec->nr_nodes; i++) {
		run->nodes[i] = (struct pipe_node){
			PIPE_NO_KERNEL, run->edges + at, exec->nodes[i].nr_before,
		};
		for (j = 0; j < exec->nodes[i].nr_before; j++)
			run->edges[at++] = exec->nodes[i].before[j];
	}
	return run;
}

/*
 * Fills in step @i for this launch. If the graph cannot run, returns false and may set *error.
 */
static bool step_fill(struct sim_exec *exec, unsigned int i, struct sim_run *run, CUresult *error)
{
	struct exec_node *node = &exec->nodes[i];
	struct sim_step *step = &run->steps[i];

	if (!node->work.function || !node->enabled)
		return true;
	step->kind = node->work.kind;
	step->args = node->work.args;
	if (!exec_has_tmd(node)) {
		if (memory_work_valid(&node->work))
			return true;
		sim_print("device %d: a small fill or copy of a graph is outside any allocation",
			exec->ctx->device);
		launch_failed(exec->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
		return false;
	}
	step->kernel = launch_kernel(&node->work, node->device, node->number, error);
	if (!step->kernel)
		return false;
	step->kernel->ask.priority = launch_priority(node->work.launch.priority);
	run->nodes[i].kernel = i;
	run->asks[i] = &step->kernel->ask;
	return true;
}

static CUresult exec_queue(struct sim_exec *exec, struct sim_stream *stream)
{
	struct sim_op op = { .kind = SIM_OP_GRAPH };
	struct sim_moment *end;
	CUresult error = CUDA_SUCCESS;

	op.run = run_init(exec);
	end = engine_moment();
	if (!op.run || !end) {
		error = CUDA_ERROR_OUT_OF_MEMORY;
		goto free_run;
	}
	for (unsigned int i = 0; i < exec->nr_nodes; i++)
		if (!step_fill(exec, i, op.run, &error))
			goto free_run;
	if (stream->ctx->error)		/* after a failure, the context runs no more work */
		goto free_run;
	op.after = exec->last ? engine_moment_get(exec->last) : NULL;
	op.moment = engine_moment_get(end);
	if (engine_queue(stream, &op)) {
		engine_moment_put(exec->last);
		exec->last = end;
		return CUDA_SUCCESS;
	}
	engine_moment_put(op.after);
	engine_moment_put(op.moment);
	error = CUDA_ERROR_OUT_OF_MEMORY;
free_run:
	engine_moment_put(end);
	engine_run_free(op.run);
	return error;
}

/* Call with sim_lock held. If the graph cannot be launched, returns NULL and sets *error. */
static struct sim_stream *launch_stream(struct sim_exec *exec, CUstream handle, CUresult *error)
{
	struct sim_stream *stream = NULL;
	struct sim_ctx *ctx;

	ctx = ctx_current(error);
	if (ctx)
		stream = stream_get(ctx, handle, error);
	if (stream && stream->legacy)
		*error = capture_forbids_legacy(ctx);
	if (!*error && (stream->capture || (exec->ctx && exec->ctx != stream->ctx))) {
		sim_print("a launch of a graph into a stream %s is not simulated",
			stream->capture ? "that is captured" : "of another context");
		*error = CUDA_ERROR_NOT_SUPPORTED;
	}
	for (unsigned int i = 0; !*error && i < exec->nr_nodes; i++)
		if (exec->nodes[i].work.function && !function_valid(exec->nodes[i].work.function))
			*error = CUDA_ERROR_INVALID_HANDLE;
	return *error ? NULL : stream;
}

static pthread_cond_t exec_given = PTHREAD_COND_INITIALIZER;

CUresult exec_enter(struct sim_exec *exec)
{
	sim_enter();
	if (!__atomic_load_n(&sim_ready, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_NOT_INITIALIZED;
	while (handle_valid(exec, SIM_HANDLE_EXEC)) {
		if (!exec->taken) {
			exec->taken = true;
			return CUDA_SUCCESS;
		}
		pthread_cond_wait(&exec_given, &sim_lock);
	}
	return CUDA_ERROR_INVALID_VALUE;
}

void exec_give(struct sim_exec *exec)
{
	exec->taken = false;
	pthread_cond_broadcast(&exec_given);
}

static CUresult upload_or_launch(CUgraphExec exec, CUstream handle, bool launch)
{
	struct sim_stream *stream;
	CUresult error;
	bool good;

	error = exec_enter(exec);
	if (error)
		goto leave;
	stream = launch_stream(exec, handle, &error);
	if (!stream)
		goto give;
	sim_leave();
	good = exec_build(exec, launch);
	sim_enter();
	if (!exec_takes_memory(exec, stream->ctx->gpu))
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (!launch || !good || error)
		goto give;
	error = exec_queue(exec, stream);
give:
	exec_give(exec);
leave:
	return sim_leave_with(error);
}

struct launch_args {
	CUgraphExec exec;
	CUstream stream;
};

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	return API_CALL_CHANGED(cuGraphUpload, struct launch_args, args,
				upload_or_launch(args.exec, args.stream, false), exec, stream);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return API_CALL_CHANGED(cuGraphLaunch, struct launch_args, args,
				upload_or_launch(args.exec, args.stream, true), exec, stream);
}

/* The entry points with _ptsz are for programs with per-thread default streams. */
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	CUstream real = stream ? stream : CU_STREAM_PER_THREAD;

	return API_CALL_CHANGED(cuGraphUpload_ptsz, struct launch_args, args,
				upload_or_launch(args.exec, real, false), exec, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	CUstream real = stream ? stream : CU_STREAM_PER_THREAD;

	return API_CALL_CHANGED(cuGraphLaunch_ptsz, struct launch_args, args,
				upload_or_launch(args.exec, real, true), exec, stream);
}

/* ----------------------------------------------------------------- instantiation */

/* If the flags request an upload, @stream is the stream for the upload. */
static CUresult instantiate(CUgraphExec *out, CUgraph graph, uint64_t flags, CUstream stream,
			    struct sim_node **bad)
{
	static uint64_t nr_made;
	struct sim_exec *exec = NULL;
	struct sim_ctx *ctx = NULL;
	CUresult error, ignored;

	*bad = NULL;
	if (!__atomic_load_n(&sim_ready, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!out || flags & ~(uint64_t)(CU_INSTANTIATE_AUTO_FREE | CU_INSTANTIATE_UPLOAD |
					CU_INSTANTIATE_DEVICE_LAUNCH |
					CU_INSTANTIATE_NODE_PRIORITY))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_INSTANTIATE_DEVICE_LAUNCH) {
		sim_print("graphs that are launched from the device are not simulated");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	sim_enter();
	error = handle_valid(graph, SIM_HANDLE_GRAPH) && !graph->owned ?
			CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!error && nr_made++ >= sim_faults()->graphs)
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (!error)
		exec = exec_of(graph, bad, &error);
	if (exec && flags & CU_INSTANTIATE_UPLOAD && !launch_stream(exec, stream, &error)) {
		exec_free(exec);
		exec = NULL;
	}
	if (exec) {
		exec->flags = flags & ~(uint64_t)CU_INSTANTIATE_UPLOAD;
		handle_add(&exec->handle, SIM_HANDLE_EXEC);
		ctx = exec->ctx;
	}
	sim_leave();
	if (!exec)
		return error;
	*out = exec;
	hook_exec_created(ctx ? ctx : ctx_current(&ignored), graph, exec);
	return flags & CU_INSTANTIATE_UPLOAD ? upload_or_launch(exec, stream, false) :
					       CUDA_SUCCESS;
}

static CUresult instantiate_with_flags(CUgraphExec *exec, CUgraph graph, uint64_t flags)
{
	struct sim_node *bad;

	/* this function has no argument for the upload's stream */
	if (flags & CU_INSTANTIATE_UPLOAD)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate(exec, graph, flags, NULL, &bad);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags)
{
	return API_CALL(cuGraphInstantiateWithFlags,
			instantiate_with_flags(exec, graph, flags), (uintptr_t)exec,
			(uintptr_t)graph, flags);
}

static CUresult instantiate_with_log(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
				     char *log, size_t bytes)
{
	struct sim_node *bad;
	CUresult error = instantiate(exec, graph, 0, NULL, &bad);

	if (error_node)
		*error_node = bad;
	if (log && bytes)
		*log = '\0';
	return error;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
			       char *log, size_t bytes)
{
	return API_CALL(cuGraphInstantiate_v2,
			instantiate_with_log(exec, graph, error_node, log, bytes),
			(uintptr_t)exec, (uintptr_t)graph, (uintptr_t)error_node,
			(uintptr_t)log, bytes);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
			    char *log, size_t bytes)
{
	return API_CALL(cuGraphInstantiate,
			instantiate_with_log(exec, graph, error_node, log, bytes),
			(uintptr_t)exec, (uintptr_t)graph, (uintptr_t)error_node,
			(uintptr_t)log, bytes);
}

static CUresult instantiate_with_params(CUgraphExec *exec, CUgraph graph,
					struct cu_instantiate_params *params)
{
	struct sim_node *bad;
	CUresult error;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	error = instantiate(exec, graph, params->flags, params->upload_stream, &bad);
	params->error_node = bad;
	params->result = !error ? CU_INSTANTIATE_SUCCESS :
			 error == CUDA_ERROR_NOT_SUPPORTED && bad ?
				  CU_INSTANTIATE_MULTIPLE_CONTEXTS :
			 error == CUDA_ERROR_NOT_SUPPORTED ? CU_INSTANTIATE_NOT_SUPPORTED :
			 error == CUDA_ERROR_INVALID_VALUE && bad ?
				  CU_INSTANTIATE_INVALID_STRUCTURE : CU_INSTANTIATE_ERROR;
	return error;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
				      struct cu_instantiate_params *params)
{
	return API_CALL(cuGraphInstantiateWithParams,
			instantiate_with_params(exec, graph, params), (uintptr_t)exec,
			(uintptr_t)graph, (uintptr_t)params);
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags)
{
	CUresult error;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	error = exec_enter(exec);
	if (!error) {
		*flags = exec->flags;
		exec_give(exec);
	}
	return sim_leave_with(error);
}

static CUresult destroy(CUgraphExec exec)
{
	CUresult error = exec_enter(exec);

	if (!error)
		exec_give(exec);
	sim_leave();
	if (error)
		return error;
	/* subscribers may still use the graph, so free the graph later */
	hook_exec_dying(exec);
	error = exec_enter(exec);
	if (!error) {
		handle_drop(&exec->handle);
		exec_give(exec);
	}
	sim_leave();
	if (error)
		return error;
	hook_graph_destroyed(&exec->inner);
	sim_enter();
	exec_free(exec);
	sim_leave();
	return CUDA_SUCCESS;
}

/* Queued launches of the executable graph still run. */
CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	return API_CALL(cuGraphExecDestroy, destroy(exec), (uintptr_t)exec);
}
