// SPDX-License-Identifier: MIT
/*
 * Tests graphs of the simulated driver without the library. The graphs are built by hand or
 * captured. Also tests the times at which subscribers see the TMDs of the nodes.
 */
#include "tests/sim/cuda/program.h"

#define NR_BLOCKS 264

/* ----------------------------------------------------------------- order of callbacks */

static struct {
	unsigned int nr, of[4];		/* all, and by cbid */
	int cbid[256];
	uint64_t params[256][6];
	bool sizes;			/* all callbacks had the measured sizes */
	bool mask_late;			/* sets every bit in the TMD of cbid 3 */
	bool slow;			/* the callback for cbid 1 is slow */
} seen = { .sizes = true };

static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_any(void *user, int domain, int cbid, const void *params)
{
	static const unsigned int size[4] = { 0, 88, 104, 168 };
	const uint64_t *slot = params;

	on_callback(user, domain, cbid, params);
	if (domain != 0xb)
		return;
	if (cbid == 1 && seen.slow)
		usleep(50000);
	pthread_mutex_lock(&seen_lock);
	seen.sizes &= (uint32_t)slot[0] == size[cbid];
	seen.of[cbid]++;
	if (seen.nr < 256) {
		seen.cbid[seen.nr] = cbid;
		memcpy(seen.params[seen.nr++], slot, sizeof(seen.params[0]));
	}
	pthread_mutex_unlock(&seen_lock);
	if (cbid == 3 && seen.mask_late) {
		((uint8_t *)(uintptr_t)slot[4])[3] |= 0x80;
		memset((uint8_t *)(uintptr_t)slot[4] + 304, 0xff, 16);
	}
}

static void start(void)
{
	read_truth(BOARD_B);
	if (take_table() || subscribe(&subscriber, on_any, NULL) ||
	    enable(1, subscriber, 0xb, 1) || enable(1, subscriber, 0xb, 2) ||
	    enable(1, subscriber, 0xb, 3))
		check(false, "the callback table");
	begin_on(0);
}

static void forget(void)
{
	memset(seen.of, 0, sizeof(seen.of));
	seen.nr = 0;
}

/* Returns true if each cbid had exactly this number of callbacks since the last check. */
static bool came(unsigned int built, unsigned int uploaded, unsigned int launched)
{
	bool good = seen.of[1] == built && seen.of[2] == uploaded && seen.of[3] == launched;

	if (!good)
		fprintf(stderr, "came %u %u %u\n", seen.of[1], seen.of[2], seen.of[3]);
	forget();
	return good;
}

/* ------------------------------------------------------------------- small helpers */

static CUdeviceptr memory(size_t bytes)
{
	CUdeviceptr address;

	TRY(cu.cuMemAlloc_v2(&address, bytes));
	memset((void *)(uintptr_t)address, 0xff, bytes);
	return address;
}

static const struct record *records(CUdeviceptr out)
{
	return (const struct record *)(uintptr_t)out;	/* device memory is host memory */
}

/* The parameters of a kernel node. They exist longer than the call. */
struct ask {
	CUdeviceptr out;
	uint32_t value;
	void *list[2];
	struct cu_kernel_node_params params;
};

static const struct cu_kernel_node_params *ask(struct ask *ask, CUfunction function,
					       unsigned int blocks, CUdeviceptr out)
{
	ask->out = out;
	ask->value = 1000;
	ask->list[0] = &ask->out;
	ask->list[1] = &ask->value;
	ask->params = (struct cu_kernel_node_params){
		.v1 = { function, blocks, 1, 1, 1024, 1, 1, 0, ask->list, NULL },
	};
	return &ask->params;
}

static CUgraph graph_new(void)
{
	CUgraph graph;

	TRY(cu.cuGraphCreate(&graph, 0));
	return graph;
}

/*
 * Adds a census node that depends on @before. If @before is NULL, the new node depends on no
 * node.
 */
static CUgraphNode node_new(CUgraph graph, CUgraphNode before, unsigned int blocks,
			    CUdeviceptr out)
{
	CUgraphNode node;
	struct ask a;

	TRY(cu.cuGraphAddKernelNode_v2(&node, graph, &before, before != NULL,
				       ask(&a, f_census, blocks, out)));
	return node;
}

static CUgraphExec exec_new(CUgraph graph)
{
	CUgraphExec exec;

	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static void go(CUgraphExec exec)
{
	TRY(cu.cuGraphLaunch(exec, NULL));
	TRY(cu.cuStreamSynchronize(NULL));
}

/*
 * Returns true if the last census of NR_BLOCKS ran on exactly the allowed SMs. Then clears the
 * records.
 */
static bool on_exactly(CUdeviceptr out, bool (*allowed)(unsigned int sm))
{
	unsigned int on_sm[MAX_SMS], sm;
	bool good = count(records(out), NR_BLOCKS, on_sm);

	for (sm = 0; good && sm < truth.nr_sms; sm++)
		good = !on_sm[sm] == !allowed(sm);
	memset((void *)(uintptr_t)out, 0xff, NR_BLOCKS * sizeof(struct record));
	return good;
}

static bool ran(CUdeviceptr out)
{
	bool good = records(out)->smid != UINT32_MAX;

	memset((void *)(uintptr_t)out, 0xff, sizeof(struct record));
	return good;
}

/* ----------------------------------------------------------------------- building */

static void building(const char *arg)
{
	CUdeviceptr out = memory(24 * NR_BLOCKS);
	CUgraph graph, clone, child, inside = NULL, bad_graph = (CUgraph)&graph;
	CUgraphNode a, b, c, all[8], foreign, bad_node = (CUgraphNode)&graph;
	struct cu_kernel_node_params_v1 old;
	struct cu_kernel_node_params params;
	struct cu_edge_data edge = { 0 };
	union cu_launch_value value;
	CUgraphExec exec;
	struct ask x;
	size_t nr;
	int type;

	(void)arg;
	check(cu.cuGraphCreate(NULL, 0) == 1 && cu.cuGraphCreate(&graph, 1) == 1, "wrong creation");
	graph = graph_new();
	a = node_new(graph, NULL, 3, out);
	ask(&x, f_work, 5, out);
	x.value = 77;
	check(cu.cuGraphAddKernelNode(&b, graph, &a, 1, &x.params.v1) == 0,
	      "the older kernel node");
	check(cu.cuGraphAddEmptyNode(&c, graph, (CUgraphNode[]){ a, b }, 2) == 0, "an empty node");
	for (nr = 8, type = 0; type < 8; type++)
		all[type] = a;
	check(cu.cuGraphGetNodes(graph, NULL, &nr) == 0 && nr == 3, "three nodes");
	nr = 8;
	check(cu.cuGraphGetNodes(graph, all, &nr) == 0 && nr == 3 && all[0] == a && all[1] == b &&
		      all[2] == c && !all[3] && !all[7], "as they were made");
	nr = 1;
	all[1] = NULL;
	check(cu.cuGraphGetNodes(graph, all, &nr) == 0 && nr == 1 && !all[1], "no more than asked");
	check(cu.cuGraphGetNodes(graph, all, NULL) == 1 && cu.cuGraphGetNodes(bad_graph, all, &nr),
	      "wrong questions");
	check(cu.cuGraphNodeGetType(a, &type) == 0 && type == 0 &&
		      cu.cuGraphNodeGetType(c, &type) == 0 && type == 5, "types 0 and 5");
	check(cu.cuGraphNodeGetType(bad_node, &type) == 1 && cu.cuGraphNodeGetType(a, NULL) == 1 &&
		      cu.cuGraphNodeGetType((CUgraphNode)graph, &type) == 1, "no node: 1");

	check(cu.cuGraphKernelNodeGetParams_v2(b, &params) == 0 && params.v1.function == f_work &&
		      params.v1.grid_x == 5 && params.v1.block_x == 1024 && params.ctx == ctx &&
		      *(uint32_t *)params.v1.params[1] == 77 &&
		      *(CUdeviceptr *)params.v1.params[0] == out, "a node's parameters");
	x.value = 0;
	check(*(uint32_t *)params.v1.params[1] == 77, "are its own");
	params.v1.grid_x = 6;
	params.v1.grid_y = 2;
	check(cu.cuGraphKernelNodeSetParams_v2(b, &params) == 0 &&
		      cu.cuGraphKernelNodeGetParams(b, &old) == 0 && old.grid_x == 6 &&
		      old.grid_y == 2 && *(uint32_t *)old.params[1] == 77, "set to others");
	old.grid_x = 7;
	check(cu.cuGraphKernelNodeSetParams(b, &old) == 0 &&
		      cu.cuGraphKernelNodeGetParams(b, &old) == 0 && old.grid_x == 7,
	      "as before 12.0");
	old.block_x = 2000;
	check(cu.cuGraphKernelNodeSetParams(b, &old) == 1 &&
		      cu.cuGraphKernelNodeGetParams(b, &old) == 0 && old.block_x == 1024,
	      "2000 threads: 1, and nothing changes");
	check(cu.cuGraphKernelNodeGetParams(c, &old) == 1 &&
		      cu.cuGraphKernelNodeGetParams(b, NULL) == 1 &&
		      cu.cuGraphKernelNodeGetParams_v2(b, NULL) == 1 &&
		      cu.cuGraphKernelNodeSetParams(b, NULL) == 1 &&
		      cu.cuGraphKernelNodeSetParams_v2(c, &params) == 1,
	      "not of an empty node");
	params.v1.function = (CUfunction)&graph;
	check(cu.cuGraphAddKernelNode_v2(&c, graph, NULL, 0, &params) == 400, "no function: 400");
	params.v1.function = NULL;
	check(cu.cuGraphAddKernelNode_v2(&c, graph, NULL, 0, &params) == 1 &&
		      cu.cuGraphAddKernelNode_v2(&c, graph, NULL, 0, NULL) == 1 &&
		      cu.cuGraphAddKernelNode(&c, graph, NULL, 0, NULL) == 1 &&
		      cu.cuGraphAddKernelNode_v2(NULL, graph, NULL, 0, &x.params) == 1 &&
		      cu.cuGraphAddKernelNode_v2(&c, NULL, NULL, 0, &x.params) == 1 &&
		      cu.cuGraphAddEmptyNode(&c, graph, NULL, 1) == 1 &&
		      cu.cuGraphAddEmptyNode(&c, graph, &bad_node, 1) == 1 &&
		      cu.cuGraphAddEmptyNode(&c, graph, (CUgraphNode[]){ a, a }, 2) == 1 &&
		      cu.cuGraphAddEmptyNode(NULL, graph, NULL, 0) == 1, "wrong nodes: 1");

	memset(&value, 0xff, sizeof(value));
	check(cu.cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_COOPERATIVE, &value) == 0 &&
		      value.cooperative == 0, "not cooperative at first");
	value.cooperative = 1;
	check(cu.cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_COOPERATIVE, &value) == 0 &&
		      cu.cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_COOPERATIVE, &value) == 0 &&
		      value.cooperative == 1, "then cooperative");
	value.cluster.x = 3;
	value.cluster.y = value.cluster.z = 1;
	check(cu.cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_CLUSTER_DIMENSION, &value) == 0 &&
		      cu.cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_CLUSTER_DIMENSION, &value) ==
			      0 &&
		      value.cluster.x == 3 && value.cluster.z == 1,
	      "and a cluster");
	value.cluster.x = 2;
	check(cu.cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_CLUSTER_DIMENSION, &value) == 912,
	      "3 blocks by 2: 912");
	check(cu.cuGraphKernelNodeSetAttribute(a, 999, &value) == 1 &&
		      cu.cuGraphKernelNodeGetAttribute(a, 999, &value) == 1 &&
		      cu.cuGraphKernelNodeSetAttribute(all[2], 2, &value) == 1 &&
		      cu.cuGraphKernelNodeGetAttribute(a, 2, NULL) == 1 &&
		      cu.cuGraphKernelNodeSetAttribute(a, 2, NULL) == 1, "what is none: 1");

	/* Dependencies. */
	graph = graph_new();
	a = node_new(graph, NULL, 1, out);
	b = node_new(graph, NULL, 1, out);
	c = node_new(graph, NULL, 1, out);
	child = graph_new();
	foreign = node_new(child, NULL, 1, out);
	check(cu.cuGraphAddDependencies(graph, &a, &b, 1) == 0 &&
		      cu.cuGraphAddDependencies_v2(graph, &b, &c, &edge, 1) == 0, "dependencies");
	check(cu.cuGraphAddDependencies(graph, &a, &b, 1) == 1, "once each");
	check(cu.cuGraphAddDependencies(graph, &a, &a, 1) == 1 &&
		      cu.cuGraphAddDependencies(graph, &a, &foreign, 1) == 1 &&
		      cu.cuGraphAddDependencies(graph, NULL, &a, 1) == 1 &&
		      cu.cuGraphAddDependencies(bad_graph, &a, &c, 1) == 1 &&
		      cu.cuGraphAddEmptyNode(&c, graph, &foreign, 1) == 1, "wrong ones: 1");
	check(cu.cuGraphInstantiateWithFlags(&exec, graph, 0) == 0 &&
		      cu.cuGraphExecDestroy(exec) == 0, "a chain can be instantiated");
	check(cu.cuGraphAddDependencies(graph, &c, &a, 1) == 0, "a cycle can be made");
	all[0] = NULL;
	check(cu.cuGraphInstantiate_v2(&exec, graph, all, NULL, 0) == 1 && all[0],
	      "and not be instantiated");
	struct cu_instantiate_params how = { 0 };

	check(cu.cuGraphInstantiateWithParams(&exec, graph, &how) == 1 &&
		      how.result == CU_INSTANTIATE_INVALID_STRUCTURE && how.error_node,
	      "invalid structure");

	/* Copies. */
	check(cu.cuGraphClone(&clone, graph) == 0 && clone != graph, "a clone of a cycle, too");
	nr = 8;
	check(cu.cuGraphGetNodes(clone, all, &nr) == 0 && nr == 3 && all[0] != a, "its own nodes");
	check(cu.cuGraphDestroy(graph) == 0 &&
		      cu.cuGraphAddDependencies(clone, all, all + 1, 1) == 1,
	      "and its own dependencies");
	graph = bad_graph;
	check(cu.cuGraphClone(NULL, clone) == 1 && cu.cuGraphClone(&clone, bad_graph) == 1,
	      "no clone: 1");
	check(cu.cuGraphInstantiate(&exec, clone, NULL, NULL, 0) == 1, "with its cycle");
	graph = graph_new();
	check(cu.cuGraphAddChildGraphNode(&a, graph, NULL, 0, child) == 0 &&
		      cu.cuGraphNodeGetType(a, &type) == 0 && type == 4 &&
		      cu.cuGraphChildGraphNodeGetGraph(a, &inside) == 0 && inside != child,
	      "a child graph");
	check(cu.cuGraphDestroy(inside) == 1 &&
		      cu.cuGraphInstantiateWithFlags(&exec, inside, 0) == 1,
	      "belongs to its node");
	check(cu.cuGraphAddChildGraphNode(&b, graph, NULL, 0, bad_graph) == 1 &&
		      cu.cuGraphAddChildGraphNode(NULL, graph, NULL, 0, child) == 1 &&
		      cu.cuGraphAddChildGraphNode(&b, graph, &foreign, 1, child) == 1 &&
		      cu.cuGraphChildGraphNodeGetGraph(foreign, &inside) == 1 &&
		      cu.cuGraphChildGraphNodeGetGraph(a, NULL) == 1, "wrong children: 1");
	check(cu.cuGraphClone(&clone, graph) == 0 && cu.cuGraphDestroy(graph) == 0 &&
		      cu.cuGraphDestroy(graph) == 1 && cu.cuGraphDestroy(NULL) == 1 &&
		      cu.cuGraphGetNodes(graph, NULL, &nr) == 1 &&
		      cu.cuGraphNodeGetType(a, &type) == 1,
	      "destroyed once, nodes and all");
	nr = 8;
	check(cu.cuGraphGetNodes(clone, all, &nr) == 0 && nr == 1 &&
		      cu.cuGraphInstantiateWithFlags(&exec, clone, 0) == 0, "a clone lives on");
	go(exec);
	check(ran(out), "and runs");

	check(cu.cuGraphInstantiateWithFlags(NULL, clone, 0) == 1 &&
		      cu.cuGraphInstantiateWithFlags(&exec, graph, 0) == 1 &&
		      cu.cuGraphInstantiateWithFlags(&exec, clone, 16) == 1 &&
		      cu.cuGraphInstantiateWithFlags(&exec, clone, 2) == 1 &&
		      cu.cuGraphInstantiateWithParams(&exec, clone, NULL) == 1, "wrong ways: 1");
}

static void building_first(const char *arg)
{
	CUgraph graph;

	check(cu.cuGraphCreate(&graph, 0) == 3 && cu.cuGraphLaunch(NULL, NULL) == 3 &&
		      cu.cuGraphDestroy(NULL) == 3, "before cuInit: 3");
	start();
	building(arg);
}

/* ---------------------------------------------------------------------- callbacks */

static void callbacks(const char *arg)
{
	CUdeviceptr out = 0, big;
	CUgraph graph, child, other_graph;
	CUgraphNode node[4], set, copy;
	union cu_launch_value value;
	CUgraphExec exec, other;
	struct cu_update_info info;
	struct cu_set_node_params fill = { .element = 1, .width = 1 << 16, .height = 1 };
	uint64_t tmd[3], device[3], number;
	unsigned int i, bad = 0, on;
	uint64_t flags;
	struct ask a;
	CUstream stream;

	(void)arg;
	start();
	out = memory(24 * NR_BLOCKS);
	big = memory((1 << 16) + 2);
	TRY(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	graph = graph_new();
	node[0] = node_new(graph, NULL, 1, out);
	TRY(cu.cuGraphAddEmptyNode(&node[3], graph, &node[0], 1));
	node[1] = node_new(graph, node[3], 2, out);
	node[2] = node_new(graph, node[1], 3, out);
	exec = exec_new(graph);
	check(came(0, 0, 0), "building and instantiating calls no subscriber");
	go(exec);
	check(seen.nr == 9 && seen.sizes, "the first launch: 9 calls, each of its size");
	for (i = 0; i < 3; i++) {
		bad += seen.cbid[2 * i] != 1 || seen.cbid[2 * i + 1] != 3 ||
		       seen.cbid[6 + i] != 2;
		tmd[i] = seen.params[2 * i][4];
		device[i] = seen.params[2 * i + 1][5];
		number = seen.params[2 * i][5];
		bad += i && number != seen.params[2 * i - 2][5] + 1;
		bad += seen.params[2 * i + 1][4] != tmd[i] || seen.params[6 + i][4] != tmd[i] ||
		       seen.params[6 + i][5] != device[i] || device[i] == tmd[i];
		bad += seen.params[6 + i][3] != (uintptr_t)f_census ||
		       seen.params[6 + i][2] != (uintptr_t)module ||
		       seen.params[6 + i][1] != (uintptr_t)ctx;
	}
	check(!bad, "1 then 3 of each node, then 2 of each; the same TMDs, numbers one by one");
	check(tmd[0] != tmd[1] && tmd[1] != tmd[2] && tmd[0] != tmd[2], "a TMD a node");
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
	for (i = 0; i < 3; i++)
		bad += hook.params[4] == tmd[i];
	check(!bad, "and no stream's");
	forget();
	go(exec);
	check(seen.cbid[3] == 2 && seen.params[3][4] == tmd[0] && came(0, 1, 3),
	      "a later launch: 3 each, and 2 of the first");
	TRY(cu.cuGraphUpload(exec, stream));
	check(came(0, 0, 3), "an upload after it too");

	other = exec_new(graph);
	TRY(cu.cuGraphUpload(other, NULL));
	check(came(3, 3, 3), "an upload shows each TMD");
	TRY(cu.cuGraphUpload(other, NULL));
	check(came(0, 0, 3), "a second one none");
	go(other);
	check(came(0, 1, 3), "nor the launch after it");
	TRY(cu.cuGraphLaunch_ptsz(other, NULL));
	TRY(cu.cuGraphUpload_ptsz(other, NULL));
	check(came(0, 1, 6), "the per-thread forms");

	/* The TMD does not contain the arguments, but it contains the grid. */
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node[1], ask(&a, f_census, 2, out + 24)));
	go(exec);
	check(came(0, 1, 3), "other arguments: no TMD is built");
	check(records(out)[2].smid != UINT32_MAX, "but they count");
	ask(&a, f_census, 4, out);
	TRY(cu.cuGraphExecKernelNodeSetParams(exec, node[1], &a.params.v1));
	check(came(0, 0, 0), "another grid calls no subscriber yet");
	go(exec);
	check(seen.nr == 6 && seen.cbid[1] == 1 && seen.params[1][4] == tmd[1] && came(1, 2, 3),
	      "but at the next launch, for that node");
	go(exec);
	check(came(0, 1, 3), "once");
	TRY(cu.cuGraphKernelNodeSetParams_v2(node[1], ask(&a, f_census, 5, out)));
	go(exec);
	check(came(0, 1, 3), "the graph itself has no say any more");

	TRY(cu.cuGraphExecUpdate_v2(exec, graph, &info));
	check(info.result == 0 && came(0, 0, 0), "an update calls no subscriber");
	go(exec);
	check(seen.params[1][4] == tmd[1] && came(1, 2, 3),
	      "but at the next launch, for the node that it changed");
	TRY(cu.cuGraphExecUpdate_v2(exec, graph, &info));
	go(exec);
	check(came(0, 1, 3), "the same again: no TMD is built");

	/* The node is changed and then changed back. */
	TRY(cu.cuGraphClone(&other_graph, graph));
	TRY(cu.cuGraphNodeFindInClone(&copy, node[2], other_graph));
	TRY(cu.cuGraphKernelNodeSetParams_v2(copy, ask(&a, f_census, 7, out)));
	TRY(cu.cuGraphExecUpdate_v2(exec, other_graph, &info));
	TRY(cu.cuGraphExecUpdate_v2(exec, graph, &info));
	go(exec);
	check(seen.params[2][4] == tmd[2] && came(1, 2, 3), "there and back by updates counts");
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node[1], ask(&a, f_census, 6, out)));
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node[1], ask(&a, f_census, 5, out)));
	go(exec);
	check(seen.params[1][4] == tmd[1] && came(1, 2, 3), "and by parameters");
	TRY(cu.cuGraphKernelNodeSetParams_v2(copy, ask(&a, f_census, 3, out)));
	value.priority = -3;
	TRY(cu.cuGraphKernelNodeSetAttribute(copy, CU_LAUNCH_PRIORITY, &value));
	value.priority = 0;
	TRY(cu.cuGraphKernelNodeGetAttribute(copy, CU_LAUNCH_PRIORITY, &value));
	TRY(cu.cuGraphExecUpdate_v2(exec, other_graph, &info));
	go(exec);
	check(value.priority == -3 && came(1, 2, 3), "another priority");
	TRY(cu.cuGraphKernelNodeGetParams_v2(copy, &a.params));
	a.params.v1.shared = 64;
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node[2], &a.params));
	go(exec);
	check(came(1, 2, 3), "other shared memory");
	TRY(cu.cuGraphExecUpdate_v2(exec, other_graph, &info));
	TRY(cu.cuGraphExecUpdate_v2(exec, other_graph, &info));
	go(exec);
	check(came(1, 2, 3), "and back, twice the same");
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node[2], &a.params));
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node[2], &a.params));
	go(exec);
	check(came(1, 2, 3), "by parameters, too");

	/* The node is disabled, then the graph is launched, and then the node is enabled. */
	TRY(cu.cuGraphNodeSetEnabled(exec, node[2], 0));
	TRY(cu.cuGraphNodeGetEnabled(exec, node[2], &on));
	check(!on, "disabled");
	TRY(cu.cuGraphNodeSetEnabled(exec, node[2], 1));
	go(exec);
	check(seen.params[2][4] == tmd[2] && came(1, 2, 3),
	      "disabled and enabled without a launch: built again");
	TRY(cu.cuGraphNodeSetEnabled(exec, node[2], 1));
	go(exec);
	check(came(0, 1, 3), "enabled twice: no TMD is built");
	TRY(cu.cuGraphNodeSetEnabled(exec, node[2], 0));
	go(exec);
	check(came(0, 1, 2), "a disabled node is not launched");
	TRY(cu.cuGraphExecUpdate_v2(exec, graph, &info));
	TRY(cu.cuGraphNodeGetEnabled(exec, node[2], &on));
	go(exec);
	check(!on && came(0, 1, 2), "an update leaves it disabled");
	TRY(cu.cuGraphNodeSetEnabled(exec, node[2], 1));
	go(exec);
	check(seen.params[2][4] == tmd[2] && came(1, 2, 3), "enabled after that: built again");

	/* Tests fills. Like outside graphs, large fills have a TMD. */
	TRY(cu.cuGraphDestroy(graph));
	go(exec);
	check(came(0, 1, 3), "an executable graph outlives its graph");
	graph = graph_new();
	fill.to = big;
	TRY(cu.cuGraphAddMemsetNode(&set, graph, NULL, 0, &fill, ctx));
	exec = exec_new(graph);
	go(exec);
	check(seen.params[0][2] && seen.params[0][2] != (uintptr_t)module &&
		      seen.params[0][3] && came(1, 1, 1), "a large fill, of a module never seen");
	fill.value = 5;
	TRY(cu.cuGraphExecMemsetNodeSetParams(exec, set, &fill, ctx));
	go(exec);
	check(*(uint8_t *)(uintptr_t)big == 5 && came(0, 1, 1), "another value: no TMD is built");
	fill.value = 6;
	TRY(cu.cuGraphMemsetNodeSetParams(set, &fill));
	TRY(cu.cuGraphExecUpdate_v2(exec, graph, &info));
	go(exec);
	check(*(uint8_t *)(uintptr_t)big == 6 && came(0, 1, 1), "nor after an update with one");
	fill.width++;
	TRY(cu.cuGraphMemsetNodeSetParams(set, &fill));
	TRY(cu.cuGraphExecUpdate_v2(exec, graph, &info));
	go(exec);
	check(came(1, 1, 1), "another width");
	fill.width++;
	TRY(cu.cuGraphExecMemsetNodeSetParams(exec, set, &fill, NULL));
	go(exec);
	check(came(1, 1, 1), "even where it is the same grid");
	fill.width = 1 << 16;
	TRY(cu.cuGraphExecMemsetNodeSetParams(exec, set, &fill, NULL));
	go(exec);
	check(came(1, 1, 1), "and back");
	fill.width--;
	check(cu.cuGraphExecMemsetNodeSetParams(exec, set, NULL, ctx) == 1 &&
		      cu.cuGraphExecMemsetNodeSetParams(exec, copy, &fill, ctx) == 1 &&
		      cu.cuGraphExecMemsetNodeSetParams(NULL, set, &fill, ctx) == 1,
	      "what is none: 1");
	TRY(cu.cuGraphExecMemsetNodeSetParams(exec, set, &fill, ctx));
	fill.width++;
	TRY(cu.cuGraphExecMemsetNodeSetParams(exec, set, &fill, ctx));
	go(exec);
	check(came(1, 1, 1), "so small that it is no kernel, and back");
	fill.width--;
	fill.width++;
	graph = graph_new();
	fill.width--;
	TRY(cu.cuGraphAddMemsetNode(&set, graph, NULL, 0, &fill, NULL));
	exec = exec_new(graph);
	go(exec);
	check(came(0, 0, 0), "a smaller one is no kernel");

	/* A child's nodes belong to its parent. */
	child = graph_new();
	node_new(child, node_new(child, NULL, 1, out), 1, out);
	graph = graph_new();
	node[0] = node_new(graph, NULL, 1, out);
	TRY(cu.cuGraphAddChildGraphNode(&node[1], graph, &node[0], 1, child));
	TRY(cu.cuGraphAddChildGraphNode(&node[2], graph, &node[1], 1, child));
	exec = exec_new(graph);
	go(exec);
	check(came(5, 5, 5), "each kernel of child graphs has a TMD");
	struct cu_instantiate_params how = { .flags = 2 | 8, .upload_stream = stream };

	TRY(cu.cuGraphInstantiateWithParams(&exec, graph, &how));
	check(how.result == 0 && came(5, 5, 5), "uploaded while instantiated");
	TRY(cu.cuGraphExecGetFlags(exec, &flags));
	check(flags == 8 && cu.cuGraphExecGetFlags(exec, NULL) == 1, "flags, without the upload's");
}

/* -------------------------------------------------------------------------- masks */

/* The next launch builds the TMD again. */
static void change_and_back(CUgraphExec exec, CUgraphNode node, CUdeviceptr out)
{
	struct ask a;

	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, ask(&a, f_census, 1, out)));
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, ask(&a, f_census, NR_BLOCKS, out)));
}

static void masks(const char *arg)
{
	CUdeviceptr out, out_two;
	CUgraph graph, inside;
	CUgraphNode node, two;
	CUgraphExec exec;
	struct ask a;
	size_t nr = 1;
	uint8_t mask[16];
	unsigned int i;
	bool wrong_bits;

	(void)arg;
	start();
	out = memory(24 * NR_BLOCKS);
	out_two = memory(24 * NR_BLOCKS);
	graph = graph_new();
	node = node_new(graph, NULL, NR_BLOCKS, out);
	two = node_new(graph, node, NR_BLOCKS, out_two);
	exec = exec_new(graph);
	hook.only = true;
	off_unless(first_half);
	go(exec);
	check(on_exactly(out, first_half) && on_exactly(out_two, first_half),
	      "a mask set when it is first launched confines each node");
	off_unless(second_half);
	go(exec);
	check(on_exactly(out, first_half), "and every later launch: another changes nothing");
	seen.mask_late = true;
	hook.on = false;
	go(exec);
	check(on_exactly(out, first_half), "what is written in cbid 3 does nothing");
	seen.mask_late = false;
	TRY(cu.cuGraphUpload(exec, NULL));
	go(exec);
	check(on_exactly(out, first_half), "nor a second upload");
	off_unless(second_half);
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, ask(&a, f_census, NR_BLOCKS, out)));
	go(exec);
	check(on_exactly(out, first_half), "nor the same grid again");
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node,
						 ask(&a, f_census, NR_BLOCKS - 1, out)));
	on_exactly(out_two, every);
	go(exec);
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, ask(&a, f_census, NR_BLOCKS, out)));
	go(exec);
	check(on_exactly(out, second_half) && on_exactly(out_two, first_half),
	      "another grid does, for its node");
	hook.on = false;
	wrong_bits = false;
	change_and_back(exec, node, out);
	go(exec);
	memcpy(mask, hook.tmd + 304, 16);
	for (i = 0; i < truth.nr_sms; i++)
		wrong_bits |= !(mask[truth.bit[i] / 8] >> truth.bit[i] % 8 & 1) != second_half(i);
	check(!wrong_bits && hook.tmd[3] & 0x80 && on_exactly(out, second_half),
	      "a TMD built again has the mask that it had");
	off_none();
	change_and_back(exec, node, out);
	change_and_back(exec, two, out_two);
	go(exec);
	check(on_exactly(out, every) && on_exactly(out_two, every), "until one takes it away");
	off_unless(second_half);
	TRY(cu.cuGraphNodeSetEnabled(exec, two, 0));
	go(exec);
	TRY(cu.cuGraphNodeSetEnabled(exec, two, 1));
	go(exec);
	check(on_exactly(out, every) && on_exactly(out_two, second_half),
	      "and disabling over a launch, for its node");

	off_unless(first_half);
	exec = exec_new(graph);
	TRY(cu.cuGraphUpload(exec, NULL));
	hook.on = false;
	go(exec);
	check(on_exactly(out, first_half), "a mask set at upload holds");

	/* The node is in a child graph. The change is in the child graph. */
	CUgraph parent = graph_new();
	CUgraphNode child, in_child;

	TRY(cu.cuGraphAddChildGraphNode(&child, parent, NULL, 0, graph));
	TRY(cu.cuGraphChildGraphNodeGetGraph(child, &inside));
	TRY(cu.cuGraphGetNodes(inside, &in_child, &nr));
	off_unless(second_half);
	exec = exec_new(parent);
	go(exec);
	check(on_exactly(out, second_half) && on_exactly(out_two, second_half),
	      "child graphs obey");
	off_unless(first_half);
	check(cu.cuGraphExecKernelNodeSetParams_v2(exec, node,
						   ask(&a, f_census, NR_BLOCKS - 1, out)) == 1,
	      "the child's nodes are copies");
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, in_child,
						 ask(&a, f_census, NR_BLOCKS + 1, out_two)));
	check(cu.cuGraphLaunch(exec, NULL) == 0 && cu.cuStreamSynchronize(NULL) == 700,
	      "a grid for which the memory is too small: 700");
}

/* -------------------------------------------------------------------------- order */

static void order(const char *arg)
{
	CUdeviceptr out[6];
	CUgraph graph, child;
	CUgraphNode node[6], middle;
	CUgraphExec exec;
	CUstream one, two;
	const struct record *r[6];
	CUdeviceptr big, copy;
	CUevent event;
	struct cu_set_node_params fill = { .element = 4, .value = 0x12345678, .height = 1 };
	struct cu_copy_3d move = { .height = 1, .depth = 1 };
	unsigned int i, bad = 0;

	(void)arg;
	start();
	for (i = 0; i < 6; i++) {
		out[i] = memory(24);
		r[i] = records(out[i]);
	}
	TRY(cu.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	TRY(cu.cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));

	/* Tests a diamond of four nodes. The last node of the diamond is created first. */
	graph = graph_new();
	node[3] = node_new(graph, NULL, 1, out[3]);
	node[0] = node_new(graph, NULL, 1, out[0]);
	node[1] = node_new(graph, node[0], 1, out[1]);
	node[2] = node_new(graph, node[0], 1, out[2]);
	TRY(cu.cuGraphAddDependencies(graph, (CUgraphNode[]){ node[1], node[2] },
				      (CUgraphNode[]){ node[3], node[3] }, 2));
	exec = exec_new(graph);
	forget();
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = one }, out[4]));
	TRY(cu.cuGraphLaunch(exec, one));
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = one }, out[5]));
	TRY(cu.cuStreamSynchronize(one));
	check(r[1]->start >= r[0]->end && r[2]->start >= r[0]->end &&
		      r[3]->start >= r[1]->end && r[3]->start >= r[2]->end &&
		      r[2]->start < r[1]->end && r[1]->start < r[2]->end,
	      "what depends waits, what does not runs at once");
	check(r[0]->start >= r[4]->end && r[5]->start >= r[3]->end, "its stream keeps order");

	/*
	 * One executable graph is launched on two streams. These launches must run one after the
	 * other.
	 */
	graph = graph_new();
	node_new(graph, NULL, 1, out[0]);
	exec = exec_new(graph);
	TRY(cu.cuGraphLaunch(exec, one));
	TRY(cu.cuGraphLaunch(exec, two));
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = two }, out[1]));
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = one }, out[2]));
	TRY(cu.cuCtxSynchronize());
	check(r[2]->start < r[0]->end && r[1]->start >= r[0]->end && r[0]->start < r[2]->end,
	      "launched twice it does not overlap itself");
	ran(out[0]);
	TRY(cu.cuGraphLaunch(exec, one));
	check(cu.cuGraphExecDestroy(exec) == 0 && cu.cuGraphExecDestroy(exec) == 1 &&
		      cu.cuGraphLaunch(exec, one) == 1 && cu.cuGraphUpload(exec, one) == 1,
	      "destroyed once, and not launched any more");
	check(!ran(out[0]) && cu.cuStreamSynchronize(one) == 0 && ran(out[0]),
	      "what was queued runs");

	/* Tests child graphs. One of the child graphs is empty. */
	child = graph_new();
	node_new(child, NULL, 1, out[1]);
	node_new(child, NULL, 1, out[2]);
	graph = graph_new();
	node[0] = node_new(graph, NULL, 1, out[0]);
	TRY(cu.cuGraphAddChildGraphNode(&middle, graph, &node[0], 1, child));
	TRY(cu.cuGraphAddChildGraphNode(&middle, graph, &middle, 1, graph_new()));
	node_new(graph, middle, 1, out[3]);
	exec = exec_new(graph);
	go(exec);
	check(r[1]->start >= r[0]->end && r[2]->start >= r[0]->end &&
		      r[3]->start >= r[1]->end && r[3]->start >= r[2]->end &&
		      r[2]->start < r[1]->end && r[1]->start < r[2]->end,
	      "a child graph comes between");

	/* Tests small and large fills and copies. They must run in order. */
	for (i = 0; i < 2; i++) {
		size_t bytes = i ? 1 << 18 : 64, at;

		big = memory(bytes);
		copy = memory(bytes);
		graph = graph_new();
		fill.to = big;
		fill.width = bytes / 4;
		TRY(cu.cuGraphAddMemsetNode(&node[0], graph, NULL, 0, &fill, ctx));
		move.from = (struct cu_copy_side){ .type = CU_MEMORY_DEVICE, .device = big };
		move.to =
			(struct cu_copy_side){ .type = CU_MEMORY_DEVICE, .device = copy, .x = 16 };
		move.width = bytes - 16;
		TRY(cu.cuGraphAddMemcpyNode(&node[1], graph, &node[0], 1, &move, ctx));
		exec = exec_new(graph);
		go(exec);
		for (bad = 0, at = 0; at < bytes / 4; at++) {
			bad += ((uint32_t *)(uintptr_t)big)[at] != 0x12345678;
			bad += ((uint32_t *)(uintptr_t)copy)[at] !=
			       (at < 4 ? 0xffffffff : 0x12345678);
		}
		check(!bad, "a fill, then a copy of %zu bytes (%u words wrong)", bytes, bad);
	}
	fill.width++;
	check(cu.cuGraphAddMemsetNode(&node[0], graph, NULL, 0, &fill, ctx) == 1,
	      "past the end: 1");
	fill.to += 2;
	fill.width = 1;
	check(cu.cuGraphAddMemsetNode(&node[0], graph, NULL, 0, &fill, ctx) == 1, "not aligned: 1");
	check(cu.cuGraphAddMemsetNode(&node[0], graph, NULL, 0, NULL, ctx) == 1 &&
		      cu.cuGraphAddMemcpyNode(&node[0], graph, NULL, 0, NULL, ctx) == 1 &&
		      cu.cuGraphAddMemcpyNode(&node[0], NULL, NULL, 0, &move, ctx) == 1 &&
		      cu.cuGraphAddMemcpyNode(NULL, graph, NULL, 0, &move, ctx) == 1, "wrong: 1");
	fill.to = big;
	check(cu.cuGraphAddMemsetNode(&node[0], graph, NULL, 0, &fill, (CUcontext)&fill) == 201,
	      "no context: 201");
	check(cu.cuGraphNodeSetEnabled(exec, node[1], 0) == 0, "a copy can be disabled");
	memset((void *)(uintptr_t)copy, 0, 64);
	go(exec);
	check(*(uint32_t *)(uintptr_t)(copy + 32) == 0, "and does nothing then");

	/* Tests a wait for an event outside graphs. */
	TRY(cu.cuEventCreate(&event, 0));
	check(cu.cuStreamWaitEvent(two, event, 0) == 0, "an event never recorded is no obstacle");
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = one }, out[0]));
	TRY(cu.cuEventRecord(event, one));
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = one }, out[1]));
	TRY(cu.cuStreamWaitEvent(two, event, 0));
	TRY(cu.cuEventRecord(event, one));
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = two }, out[2]));
	TRY(cu.cuCtxSynchronize());
	check(r[2]->start >= r[0]->end && r[1]->start >= r[0]->end && r[2]->start < r[1]->end,
	      "a stream waits for the record that there was, not for a later one");
	check(cu.cuStreamWaitEvent(two, (CUevent)&event, 0) == 400 &&
		      cu.cuStreamWaitEvent(two, event, 2) == 1, "wrong waits");
}

/* ------------------------------------------------------------------------ capture */

static void capture(const char *arg)
{
	CUdeviceptr out[4], big, other;
	CUstream one, two, three;
	CUevent fork, join, loose;
	CUgraph graph, under_way;
	CUgraphNode all[8];
	const CUgraphNode *before;
	const struct cu_edge_data *edges = (void *)&graph;
	CUgraphExec exec;
	const struct record *r[4];
	struct shape shape = { .blocks = 1, .threads = 32 };
	uint64_t id = 0, later;
	unsigned int i;
	int status = -1, mode, type;
	size_t nr = 99;
	float ms;

	(void)arg;
	start();
	for (i = 0; i < 4; i++) {
		out[i] = memory(24);
		r[i] = records(out[i]);
	}
	big = memory(1 << 16);
	other = memory(1 << 16);
	TRY(cu.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	TRY(cu.cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	TRY(cu.cuStreamCreate(&three, CU_STREAM_NON_BLOCKING));
	TRY(cu.cuEventCreate(&fork, 0));
	TRY(cu.cuEventCreate(&join, 0));
	TRY(cu.cuEventCreate(&loose, 0));
	check(cu.cuStreamIsCapturing(one, &status) == 0 && status == 0, "nothing is captured");
	check(cu.cuStreamEndCapture(one, &graph) == 401, "no end without a beginning: 401");
	check(cu.cuStreamBeginCapture_v2(NULL, 0) == 900, "not the legacy stream: 900");
	check(cu.cuStreamBeginCapture_v2(one, 3) == 1 &&
		      cu.cuStreamBeginCapture_v2((CUstream)&one, 0) == 400, "wrong beginnings");
	forget();

	/* A captured stream forks into two streams, and the two streams join again. */
	TRY(cu.cuStreamBeginCapture_v2(one, CU_CAPTURE_GLOBAL));
	check(cu.cuStreamBeginCapture(one) == 401, "once: 401");
	check(cu.cuStreamIsCapturing(one, &status) == 0 && status == 1, "active");
	shape.stream = one;
	TRY(launch(&shape, out[0]));
	TRY(cu.cuEventRecord(fork, one));
	TRY(cu.cuStreamWaitEvent(two, fork, 0));
	check(cu.cuStreamIsCapturing(two, &status) == 0 && status == 1 &&
		      cu.cuStreamIsCapturing(three, &status) == 0 && status == 0, "it spreads");
	TRY(launch(&shape, out[1]));
	shape.stream = two;
	TRY(launch(&shape, out[2]));
	TRY(cu.cuMemsetD8Async(big, 0x11, 1 << 16, two));
	TRY(cu.cuMemcpyDtoDAsync_v2(other, big, 1 << 16, two));
	TRY(cu.cuEventRecord(join, two));
	TRY(cu.cuStreamWaitEvent(one, join, 0));
	TRY(cu.cuStreamWaitEvent(one, join, 0));
	check(cu.cuStreamGetCaptureInfo_v2(one, &status, &id, &under_way, &before, &nr) == 0 &&
		      status == 1 && id && under_way && nr == 2, "two to depend on");
	check(cu.cuStreamGetCaptureInfo_v3(two, &status, &later, NULL, &before, &edges, &nr) == 0 &&
		      later == id && nr == 1 && !edges &&
		      cu.cuGraphNodeGetType(before[0], &type) == 0 && type == 1,
	      "the other stream's last is a copy");
	check(cu.cuGraphDestroy(under_way) == 1, "not the program's to destroy yet");
	shape.stream = one;
	TRY(launch(&shape, out[3]));
	check(cu.cuEventSynchronize(fork) == 907 && cu.cuEventElapsedTime(&ms, fork, join) == 907,
	      "a captured event has no time: 907");
	TRY(cu.cuStreamEndCapture(one, &graph));
	nr = 8;
	TRY(cu.cuGraphGetNodes(graph, all, &nr));
	check(graph == under_way && nr == 6, "six nodes");
	check(came(0, 0, 0), "no subscriber was called");
	check(!ran(out[0]) && cu.cuStreamSynchronize(one) == 0 && !ran(out[0]) &&
		      *(char *)(uintptr_t)big != 0x11, "and nothing ran");
	check(cu.cuStreamIsCapturing(one, &status) == 0 && !status &&
		      cu.cuStreamIsCapturing(two, &status) == 0 && !status,
	      "it has ended for both");
	check(cu.cuStreamWaitEvent(three, fork, 0) == 907, "its events with it: 907");
	exec = exec_new(graph);
	TRY(cu.cuGraphLaunch(exec, three));
	TRY(cu.cuStreamSynchronize(three));
	check(came(6, 6, 6), "six TMDs");
	check(r[1]->start >= r[0]->end && r[2]->start >= r[0]->end &&
		      r[2]->start < r[1]->end && r[3]->start > r[2]->end &&
		      ((char *)(uintptr_t)other)[65535] == 0x11, "in the order of the capture");

	/* Tests captures that end with an error. */
	TRY(cu.cuStreamBeginCapture_v2(one, CU_CAPTURE_RELAXED));
	TRY(launch(&shape, out[0]));
	TRY(cu.cuEventRecord(fork, one));
	TRY(cu.cuStreamWaitEvent(two, fork, 0));
	shape.stream = two;
	TRY(launch(&shape, out[1]));
	check(cu.cuStreamEndCapture(one, &graph) == 904 && !graph, "work that was not joined: 904");
	check(cu.cuStreamIsCapturing(two, &status) == 0 && !status, "ended all the same");

	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	TRY(cu.cuEventRecord(fork, one));
	TRY(cu.cuStreamWaitEvent(two, fork, 0));
	check(cu.cuStreamEndCapture(two, &graph) == 903, "not where it began: 903");
	check(cu.cuStreamEndCapture(one, &graph) == 901 && !graph, "and invalid then: 901");

	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	check(cu.cuStreamSynchronize(one) == 900, "no waiting: 900");
	check(cu.cuStreamIsCapturing(one, &status) == 0 && status == 2, "invalidated");
	shape.stream = one;
	check(launch(&shape, out[0]) == 901 && cu.cuEventRecord(fork, one) == 901 &&
		      cu.cuStreamWaitEvent(one, fork, 0) == 901, "nothing goes on: 901");
	check(cu.cuStreamEndCapture(one, &graph) == 901, "until it ends");

	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	check(cu.cuStreamQuery(one) == 900 && cu.cuStreamEndCapture(one, &graph) == 901,
	      "no query");
	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	check(cu.cuCtxSynchronize() == 900 && cu.cuStreamEndCapture(one, &graph) == 901,
	      "no waiting for the context");
	TRY(cu.cuEventRecord(loose, three));
	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	check(cu.cuStreamWaitEvent(one, loose, 0) == 905 &&
		      cu.cuStreamEndCapture(one, &graph) == 901,
	      "no event from outside: 905");
	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	TRY(cu.cuStreamBeginCapture_v2(two, 0));
	TRY(cu.cuEventRecord(fork, one));
	check(cu.cuStreamWaitEvent(two, fork, 0) == 902 &&
		      cu.cuStreamEndCapture(one, &graph) == 901 &&
		      cu.cuStreamEndCapture(two, &graph) == 901,
	      "no merging: 902");
	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	TRY(cu.cuStreamDestroy_v2(one));
	check(cu.cuStreamCreate(&one, 0) == 0 && cu.cuStreamIsCapturing(one, &status) == 0 &&
		      !status,
	      "a destroyed stream's capture is gone");

	check(cu.cuEventRecord(fork, three) == 0 && cu.cuEventSynchronize(fork) == 0 &&
		      cu.cuStreamWaitEvent(three, fork, 0) == 0,
	      "an event of a capture can be recorded again");

	/* Tests blocking streams and the legacy default stream. */
	TRY(cu.cuStreamBeginCapture_v2(three, 0));
	shape.stream = NULL;
	check(launch(&shape, out[0]) == 0 && cu.cuStreamSynchronize(NULL) == 0 &&
		      cu.cuStreamEndCapture(three, &graph) == 0,
	      "a non-blocking one does not touch it");
	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	check(cu.cuStreamIsCapturing(NULL, &status) == 906, "the legacy stream: 906");
	check(cu.cuStreamIsCapturing(one, &status) == 0 && status == 1, "asking does no harm");
	shape.stream = NULL;
	check(launch(&shape, out[0]) == 906, "launching there: 906");
	check(cu.cuStreamEndCapture(one, &graph) == 901, "does");
	TRY(cu.cuStreamBeginCapture_v2(one, 0));
	check(cu.cuMemcpyDtoH_v2(&status, out[0], 4) == 906 &&
		      cu.cuStreamEndCapture(one, &graph) == 901, "as a copy to the host");
	TRY(cu.cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, 0));
	shape.stream = CU_STREAM_PER_THREAD;
	TRY(launch(&shape, out[0]));
	check(cu.cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph) == 0,
	      "the per-thread one can be");
	check(cu.cuStreamEndCapture(one, NULL) == 1 && cu.cuStreamIsCapturing(one, NULL) == 1,
	      "no place");

	mode = 2;
	check(cu.cuThreadExchangeStreamCaptureMode(&mode) == 0 && mode == 0 &&
		      cu.cuThreadExchangeStreamCaptureMode(&mode) == 0 && mode == 2,
	      "the thread's mode");
}

static void *end_elsewhere(void *stream)
{
	CUgraph graph;

	TRY(cu.cuCtxSetCurrent(ctx));
	return (void *)(uintptr_t)cu.cuStreamEndCapture(stream, &graph);
}

static void capture_threads(const char *arg)
{
	pthread_t thread;
	CUstream stream;
	void *error;
	int mode;

	(void)arg;
	start();
	TRY(cu.cuStreamCreate(&stream, 0));
	for (mode = 0; mode < 3; mode++) {
		TRY(cu.cuStreamBeginCapture_v2(stream, mode));
		pthread_create(&thread, NULL, end_elsewhere, stream);
		pthread_join(thread, &error);
		check((uintptr_t)error == (mode < 2 ? 908 : 0),
		      "ended by another thread, mode %d: %d", mode, (int)(uintptr_t)error);
		if (mode < 2)
			TRY(cu.cuStreamEndCapture(stream, &(CUgraph){ NULL }));
	}
}

static void capture_fault(const char *arg)
{
	CUstream stream;
	int status = 0;

	(void)arg;
	start();
	TRY(cu.cuStreamCreate(&stream, 0));
	check(cu.cuStreamIsCapturing(stream, &status) == 0 && status == 1, "says so of any stream");
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = stream }, memory(24)));
	check(cu.cuStreamSynchronize(stream) == 0 && came(1, 1, 0), "which works all the same");
}

/* ------------------------------------------------------------------------ updates */

static void updates(const char *arg)
{
	CUdeviceptr out;
	CUgraph graph, same, more, turned, kind, cooperative, cycle;
	CUgraphNode a, b, c, x[3], node = NULL;
	struct cu_update_info info;
	union cu_launch_value one = { .cooperative = 1 };
	CUgraphExec exec;
	struct ask q;
	unsigned int on;
	int result;

	(void)arg;
	start();
	out = memory(24 * NR_BLOCKS);
	graph = graph_new();
	a = node_new(graph, NULL, 1, out);
	b = node_new(graph, a, 1, out);
	c = node_new(graph, a, 1, out);
	exec = exec_new(graph);
	go(exec);

	same = graph_new();
	x[0] = node_new(same, NULL, 1, out + 24);
	node_new(same, x[0], 1, out + 24);
	node_new(same, x[0], 1, out + 24);
	memset((void *)(uintptr_t)out, 0xff, 48);
	check(cu.cuGraphExecUpdate_v2(exec, same, &info) == 0 && info.result == 0 &&
		      !info.error_node && !info.error_from_node, "the same shape");
	go(exec);
	check(!ran(out) && ran(out + 24), "with other parameters");
	check(cu.cuGraphExecUpdate(exec, graph, &node, &result) == 0 && !node && !result,
	      "and back, as before 12.0");
	go(exec);
	check(ran(out), "they count");

	more = graph_new();
	node_new(more, NULL, 1, out);
	check(cu.cuGraphExecUpdate_v2(exec, more, &info) == 910 && info.result == 2 &&
		      !info.error_node, "another number of nodes: 910");
	turned = graph_new();
	x[0] = node_new(turned, NULL, 1, out);
	x[1] = node_new(turned, x[0], 1, out);
	x[2] = node_new(turned, x[1], 1, out);
	check(cu.cuGraphExecUpdate_v2(exec, turned, &info) == 910 && info.result == 2 &&
		      info.error_node == x[2] && info.error_from_node == x[1],
	      "another edge, and which");
	check(cu.cuGraphExecUpdate(exec, turned, &node, &result) == 910 && result == 2 &&
		      node == x[2], "the older form says the node");
	kind = graph_new();
	x[0] = node_new(kind, NULL, 1, out);
	TRY(cu.cuGraphAddEmptyNode(&x[1], kind, x, 1));
	node_new(kind, x[0], 1, out);
	check(cu.cuGraphExecUpdate_v2(exec, kind, &info) == 910 && info.result == 3 &&
		      info.error_node == x[1], "another kind of node");
	TRY(cu.cuGraphClone(&cooperative, graph));
	size_t nr = 3;

	TRY(cu.cuGraphGetNodes(cooperative, x, &nr));
	TRY(cu.cuGraphKernelNodeSetAttribute(x[1], CU_LAUNCH_COOPERATIVE, &one));
	check(cu.cuGraphExecUpdate_v2(exec, cooperative, &info) == 910 && info.result == 8 &&
		      info.error_node == x[1], "cooperative or not does not change");
	TRY(cu.cuGraphClone(&cycle, graph));
	TRY(cu.cuGraphGetNodes(cycle, x, &nr));
	TRY(cu.cuGraphAddDependencies(cycle, &x[1], &x[0], 1));
	check(cu.cuGraphExecUpdate_v2(exec, cycle, &info) == 1 && info.result == 1, "a cycle: 1");
	check(cu.cuGraphExecUpdate_v2(exec, NULL, &info) == 1 && info.result == 1 &&
		      cu.cuGraphExecUpdate_v2(exec, graph, NULL) == 1 &&
		      cu.cuGraphExecUpdate_v2(NULL, graph, &info) == 1 &&
		      cu.cuGraphExecUpdate(exec, graph, NULL, &result) == 1, "wrong updates: 1");
	forget();
	go(exec);
	check(came(0, 1, 3), "what failed changed nothing");

	/* Tests changed dependencies, fills that change their kind, and contexts. */
	struct cu_set_node_params fill = { .to = memory(1 << 16), .element = 1, .width = 1 << 16,
					   .height = 1 };
	CUgraph two[4];
	CUgraphNode early[4][2], last, parted;
	CUgraphExec joined;
	CUcontext other;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		two[i] = graph_new();
		if (i == 3)
			TRY(cu.cuCtxCreate_v2(&other, 0, 0));
		fill.width = i == 2 ? 8 : 1 << 16;
		TRY(cu.cuGraphAddMemsetNode(&early[i][0], two[i], NULL, 0, &fill, NULL));
		TRY(cu.cuGraphAddEmptyNode(&early[i][1], two[i], NULL, 0));
		parted = early[i][0];
		if (i == 1) {
			early[i][0] = early[i][1];
			early[i][1] = parted;
		}
		TRY(cu.cuGraphAddEmptyNode(&last, two[i], early[i], 2));
	}
	TRY(cu.cuCtxSetCurrent(ctx));
	joined = exec_new(two[0]);
	check(cu.cuGraphExecUpdate_v2(joined, two[1], &info) == 0, "edges in another order");
	check(cu.cuGraphExecUpdate_v2(joined, two[2], &info) == 0, "a small fill");
	check(cu.cuGraphExecUpdate_v2(joined, two[3], &info) == 910 && info.result == 5,
	      "another context");

	/* Tests that new nodes reuse the freed memory of destroyed nodes. */
	for (i = 0; i < 32; i++)
		node_new(more, NULL, 1, out);
	joined = exec_new(more);
	TRY(cu.cuGraphDestroy(more));
	more = graph_new();
	for (i = on = 0; i < 64; i++)
		on += cu.cuGraphNodeSetEnabled(joined, node_new(more, NULL, 1, out), 0) != 1;
	check(!on, "a later node is not taken for one that was destroyed");

	check(cu.cuGraphExecKernelNodeSetParams_v2(exec, x[0], ask(&q, f_census, 1, out)) == 1 &&
		      cu.cuGraphExecKernelNodeSetParams_v2(exec, NULL, &q.params) == 1 &&
		      cu.cuGraphExecKernelNodeSetParams_v2(exec, a, NULL) == 1 &&
		      cu.cuGraphExecKernelNodeSetParams(exec, a, NULL) == 1 &&
		      cu.cuGraphExecKernelNodeSetParams_v2(NULL, a, &q.params) == 1,
	      "a node of another graph, or none: 1");
	q.params.v1.block_x = 1025;
	check(cu.cuGraphExecKernelNodeSetParams_v2(exec, a, &q.params) == 1, "1025 threads: 1");
	check(cu.cuGraphNodeSetEnabled(exec, x[0], 0) == 1 &&
		      cu.cuGraphNodeGetEnabled(exec, a, NULL) == 1 &&
		      cu.cuGraphNodeGetEnabled(exec, a, &on) == 0 && on == 1 &&
		      cu.cuGraphNodeSetEnabled(NULL, a, 0) == 1, "enabling what is none: 1");
	TRY(cu.cuGraphNodeSetEnabled(exec, b, 0));
	TRY(cu.cuGraphNodeSetEnabled(exec, c, 0));
	ran(out);
	go(exec);
	check(came(0, 1, 1) && ran(out), "one of three is left");
	TRY(cu.cuModuleUnload(module));
	check(cu.cuGraphLaunch(exec, NULL) == 400 &&
		      cu.cuGraphInstantiateWithFlags(&exec, graph, 0) == 400,
	      "not after the module is gone: 400");
}

/* --------------------------------------------------------------------- failures */

static void wrong(const char *which)
{
	CUdeviceptr out;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec = NULL;
	CUstream stream;
	CUcontext other;
	struct cu_set_node_params fill = { .element = 1, .width = 8, .height = 2 };
	struct cu_copy_3d move = { .width = 8, .height = 1, .depth = 1 };
	struct cu_edge_data edge = { .type = 1 };
	uint64_t handle;
	int words[64] = { 0 };

	start();
	out = memory(24 * NR_BLOCKS);
	fill.to = out;
	graph = graph_new();
	node = node_new(graph, NULL, 4, out);
	if (!strcmp(which, "no TPC left")) {
		memset(hook.off, 0xff, sizeof(hook.off));
		hook.on = true;
		exec = exec_new(graph);
		TRY(cu.cuGraphLaunch(exec, NULL));
		check(cu.cuCtxSynchronize() == 702 && cu.gpupart_sim_hung() == 1,
		      "hangs: 702, counted");
		check(!ran(out), "and nothing runs");
	} else if (!strcmp(which, "spoilt")) {
		hook.spoil = true;
		memset(hook.off, 0xff, sizeof(hook.off));
		hook.on = true;
		exec = exec_new(graph);
		TRY(cu.cuGraphLaunch(exec, NULL));
		check(cu.gpupart_sim_hung() == 0, "what was spoilt is not looked at any more");
		check(cu.cuCtxSynchronize() == 719, "a callback that changes the grid: 719");
	} else if (!strcmp(which, "freed")) {
		fill.height = 1;
		TRY(cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, ctx));
		exec = exec_new(graph);
		go(exec);
		TRY(cu.cuMemFree_v2(out));
		TRY(cu.cuGraphLaunch(exec, NULL));
		check(cu.cuCtxSynchronize() == 700, "memory that is gone: 700");
	} else if (!strcmp(which, "small and freed")) {
		graph = graph_new();
		fill.height = 1;
		TRY(cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, ctx));
		exec = exec_new(graph);
		TRY(cu.cuMemFree_v2(out));
		TRY(cu.cuGraphLaunch(exec, NULL));
		check(cu.cuCtxSynchronize() == 700, "700");
	} else if (!strcmp(which, "rows")) {
		check(cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, ctx) == 801, "801");
	} else if (!strcmp(which, "host")) {
		move.from = (struct cu_copy_side){ .type = CU_MEMORY_HOST, .host = words };
		move.to = (struct cu_copy_side){ .type = CU_MEMORY_DEVICE, .device = out };
		check(cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &move, ctx) == 801, "801");
	} else if (!strcmp(which, "conditional")) {
		check(cu.cuGraphConditionalHandleCreate(&handle, graph, ctx, 1, 1) == 801, "801");
		check(cu.cuGraphConditionalHandleCreate(NULL, graph, ctx, 1, 1) == 1 &&
			      cu.cuGraphConditionalHandleCreate(&handle, NULL, ctx, 1, 1) == 1,
		      "wrong ones: 1");
	} else if (!strcmp(which, "any node")) {
		check(cu.cuGraphAddNode(&node, graph, NULL, 0, words) == 801 &&
			      cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, words) == 801,
		      "801");
		check(cu.cuGraphAddNode(&node, graph, NULL, 0, NULL) == 1 &&
			      cu.cuGraphAddNode(&node, NULL, NULL, 0, words) == 1, "wrong ones: 1");
	} else if (!strcmp(which, "edges")) {
		check(cu.cuGraphAddDependencies_v2(graph, &node, &node, &edge, 1) == 801, "801");
	} else if (!strcmp(which, "from the device")) {
		check(cu.cuGraphInstantiateWithFlags(&exec, graph, 4) == 801, "801");
	} else if (!strcmp(which, "captured")) {
		exec = exec_new(graph);
		TRY(cu.cuStreamCreate(&stream, 0));
		TRY(cu.cuStreamBeginCapture_v2(stream, 0));
		check(cu.cuGraphLaunch(exec, stream) == 801 &&
			      cu.cuGraphUpload(exec, stream) == 801,
		      "801");
		check(came(0, 0, 0), "and no subscriber is called");
		TRY(cu.cuStreamEndCapture(stream, &graph));
	} else if (!strcmp(which, "another context")) {
		exec = exec_new(graph);
		TRY(cu.cuCtxCreate_v2(&other, 0, 0));
		check(cu.cuGraphLaunch(exec, NULL) == 801, "801");
		TRY(cu.cuCtxDestroy_v2(other));
		go(exec);
		check(ran(out), "in its own it runs");
		TRY(cu.cuCtxCreate_v2(&other, 0, 0));
		fill.height = 1;
		TRY(cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
		struct cu_instantiate_params how = { 0 };

		check(cu.cuGraphInstantiateWithParams(&exec, graph, &how) == 801 &&
			      how.result == 4 && how.error_node == node,
		      "nor nodes of two");
	}
}

/* ------------------------------------------------------------------------ threads */

#define NR_THREADS 6

static CUgraphExec for_all;

/*
 * Each thread has a separate executable graph and a separate stream. All threads share one more
 * executable graph.
 */
static void *one_of_many(void *number)
{
	unsigned int tpc = (uintptr_t)number * 5, i, j, bad = 0;
	CUdeviceptr out;
	CUgraph graph = NULL;
	CUgraphExec exec;
	CUstream stream;

	TRY(cu.cuCtxSetCurrent(ctx));
	out = memory(24 * NR_BLOCKS);
	TRY(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	off_none();
	off_bit(truth.bit[2 * tpc]);
	for (i = 0; i < 10; i++) {
		TRY(cu.cuStreamBeginCapture_v2(stream, CU_CAPTURE_THREAD_LOCAL));
		TRY(launch(&(struct shape){ .blocks = NR_BLOCKS, .threads = 1024,
					    .stream = stream }, out));
		TRY(cu.cuStreamEndCapture(stream, &graph));
		TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
		TRY(cu.cuGraphDestroy(graph));
		for (j = 0; j < 3; j++) {
			TRY(cu.cuGraphLaunch(exec, stream));
			TRY(cu.cuGraphLaunch(for_all, stream));
			TRY(cu.cuStreamSynchronize(stream));
		}
		for (j = 0; j < NR_BLOCKS; j++)
			bad += records(out)[j].smid >= truth.nr_sms ||
			       truth.tpc[records(out)[j].smid] == (int)tpc;
		TRY(cu.cuGraphExecDestroy(exec));
	}
	/* the thread's executable graph, and in some cases the shared executable graph */
	bad += hook.built > 11;
	return (void *)(uintptr_t)bad;
}

static void *launch_for_all(void *unused)
{
	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuGraphLaunch(for_all, NULL));
	return unused;
}

static void threads(const char *arg)
{
	pthread_t thread[NR_THREADS];
	uintptr_t i, sum = 0;
	CUgraph graph;
	void *bad;

	(void)arg;
	start();
	graph = graph_new();
	node_new(graph, NULL, 1, memory(24));
	for_all = exec_new(graph);
	for (i = 0; i < NR_THREADS; i++)
		pthread_create(&thread[i], NULL, one_of_many, (void *)i);
	for (i = 0; i < NR_THREADS; i++) {
		pthread_join(thread[i], &bad);
		sum += (uintptr_t)bad;
	}
	check(!sum, "%d threads, each its own mask: %lu wrong", NR_THREADS, (unsigned long)sum);
	check(came(NR_THREADS * 10 + 1, NR_THREADS * 60, NR_THREADS * 60), "each TMD once");

	/* While the first launch is still calling the subscribers, the second launch starts. */
	for_all = exec_new(graph);
	seen.slow = true;
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, launch_for_all, NULL);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	check(came(1, 2, 2), "the first launch of two at once builds it for both");
}

/* ------------------------------------------------------------------------- by name */

static void by_name(const char *arg)
{
	void *f;

	(void)arg;
#define IS(name, version, what) check(!cu.cuGetProcAddress(name, &f, version, 0) && \
				      f == (void *)cu.what, name " of " #version " is " #what)
	IS("cuGraphInstantiate", 10000, cuGraphInstantiate);
	IS("cuGraphInstantiate", 11030, cuGraphInstantiate_v2);
	IS("cuGraphInstantiate", 12000, cuGraphInstantiateWithFlags);
	IS("cuGraphInstantiateWithFlags", 12000, cuGraphInstantiateWithFlags);
	IS("cuGraphExecUpdate", 11080, cuGraphExecUpdate);
	IS("cuGraphExecUpdate", 12000, cuGraphExecUpdate_v2);
	IS("cuGraphAddKernelNode", 11080, cuGraphAddKernelNode);
	IS("cuGraphAddKernelNode", 13000, cuGraphAddKernelNode_v2);
	IS("cuStreamGetCaptureInfo", 12000, cuStreamGetCaptureInfo_v2);
	IS("cuStreamGetCaptureInfo", 13000, cuStreamGetCaptureInfo_v3);
	IS("cuStreamBeginCapture", 12000, cuStreamBeginCapture_v2);
	IS("cuGraphLaunch_ptsz", 12000, cuGraphLaunch_ptsz);
	IS("cuGraphNodeFindInClone", 12000, cuGraphNodeFindInClone);
	IS("cuGraphExecMemsetNodeSetParams", 12000, cuGraphExecMemsetNodeSetParams);
	IS("cuGraphMemcpyNodeGetParams", 12000, cuGraphMemcpyNodeGetParams);
	IS("cuFuncGetModule", 12000, cuFuncGetModule);
}

int main(void)
{
	const char *b[] = { "GPUPART_SIM=" BOARD_B, NULL, NULL };
	static const struct {
		const char *name, *words;
	} wrongs[] = {
		{ "no TPC left", "never finishes: its mask disables all TPCs" },
		{ "spoilt", "changed byte 128 of its TMD" },
		{ "freed", "outside any allocation" },
		{ "small and freed", "small fill or copy of a graph is outside any allocation" },
		{ "rows", "fill nodes with several rows" },
		{ "host", "copy nodes are simulated only if they copy one row" },
		{ "conditional", "conditional nodes are not simulated" },
		{ "any node", "cuGraphAddNode is not simulated" },
		{ "edges", "edges with ports" },
		{ "from the device", "launched from the device" },
		{ "captured", "that is captured is not simulated" },
		{ "another context", "across two contexts" },
	};
	unsigned int i;

	scenario("building", building_first, "", b, NULL);
	scenario("callbacks", callbacks, "", b, NULL);
	scenario("masks", masks, "", b, "outside any allocation");
	scenario("order", order, "", b, NULL);
	scenario("capture", capture, "", b, NULL);
	scenario("capture and threads", capture_threads, "", b, NULL);
	scenario("updates", updates, "", b, NULL);
	for (i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		scenario(wrongs[i].name, wrong, wrongs[i].name, b, wrongs[i].words);
	scenario("threads", threads, "", b, NULL);
	scenario("by name", by_name, "", b, NULL);
	b[1] = "GPUPART_SIM_FAULTS=capturing";
	scenario("the fault", capture_fault, "", b, NULL);
	return tap_done();
}
