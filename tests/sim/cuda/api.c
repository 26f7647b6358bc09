// SPDX-License-Identifier: MIT
/*
 * Tests the simulated driver without the library. It tests the calls and graph events that
 * subscribers see, and the changes that subscribers may make in their callbacks.
 */
#include <stdatomic.h>
#include <time.h>
#include "tests/sim/cuda/program.h"

#define MAX_SEEN 256

/* The slots of the parameters of domain 6. */
enum { RESULT = 5, NAME = 6, ARGS = 7, CONTEXT = 8, WHICH = 10, NR_API_SLOTS = 13 };

static struct {
	unsigned int nr, built, deep, modules;
	struct {
		int domain, cbid, result;
		uint64_t slot[NR_API_SLOTS];
		uint64_t args[9];
	} event[MAX_SEEN];
	void (*at)(unsigned int nr, bool ended);	/* called at each callback of domain 6 */
} seen;

static pthread_t caller;
static bool same_thread = true;
static unsigned int args_bytes[807];

static void on_event(void *user, int domain, int cbid, const void *params)
{
	static const unsigned int graph_bytes[42] = { [36] = 24, [40] = 88, [41] = 24 };
	const uint64_t *slot = params;
	unsigned int nr = seen.nr;
	size_t bytes = domain == 6 ? 104 : 24;

	on_callback(user, domain, cbid, params);
	seen.built += domain == 0xb && cbid == 1;
	seen.modules += domain == 2 && cbid == 17 && (uint32_t)slot[7] == 2;
	if ((domain != 6 && domain != 2) || nr == MAX_SEEN)
		return;
	if (domain == 2 && (cbid < 36 || cbid > 41))
		return;
	if (domain == 2)
		bytes = graph_bytes[cbid] > 104 ? 104 : graph_bytes[cbid];
	seen.nr++;
	same_thread &= pthread_self() == caller;
	seen.event[nr].domain = domain;
	seen.event[nr].cbid = cbid;
	memcpy(seen.event[nr].slot, slot, bytes);
	if (domain != 6)
		return;
	seen.event[nr].result = *(const int *)(uintptr_t)slot[RESULT];
	if (slot[ARGS])
		memcpy(seen.event[nr].args, (const void *)(uintptr_t)slot[ARGS],
		       args_bytes[cbid] ? args_bytes[cbid] : 8);
	/* A single int has padding after it. */
	if (cbid == 307 || cbid == 477)
		seen.event[nr].args[4] = (uint32_t)seen.event[nr].args[4];
	if (cbid == 650)
		seen.event[nr].args[2] = (uint32_t)seen.event[nr].args[2];
	if (seen.at)
		seen.at(nr, slot[WHICH] >> 32);
}

/* The entry points that the driver reports, and the lengths of their arguments. */
static const struct entry {
	int cbid;
	const char *name;
	unsigned int bytes;
} entries[] = {
	{ 307, "cuLaunchKernel", 64 }, { 477, "cuLaunchCooperativeKernel", 56 },
	{ 652, "cuLaunchKernelEx", 32 }, { 513, "cuGraphInstantiate", 40 },
	{ 578, "cuGraphInstantiate_v2", 40 }, { 643, "cuGraphInstantiateWithFlags", 24 },
	{ 656, "cuGraphInstantiateWithParams", 24 }, { 514, "cuGraphLaunch", 16 },
	{ 515, "cuGraphLaunch_ptsz", 16 }, { 580, "cuGraphUpload", 16 },
	{ 581, "cuGraphUpload_ptsz", 16 }, { 516, "cuGraphExecDestroy", 8 },
	{ 561, "cuGraphExecUpdate", 32 }, { 696, "cuGraphExecUpdate_v2", 24 },
	{ 538, "cuGraphExecKernelNodeSetParams", 24 },
	{ 692, "cuGraphExecKernelNodeSetParams_v2", 24 },
	{ 563, "cuGraphExecMemsetNodeSetParams", 32 },
	{ 562, "cuGraphExecMemcpyNodeSetParams", 32 }, { 650, "cuGraphNodeSetEnabled", 24 },
	{ 497, "cuStreamEndCapture", 16 }, { 9, "cuDeviceGetAttribute", 16 },
	{ 384, "cuOccupancyMaxPotentialBlockSize", 48 },
	{ 452, "cuOccupancyMaxPotentialBlockSizeWithFlags", 56 },
	{ 646, "cuCtxGetExecAffinity", 16 }, { 675, "cuOccupancyMaxPotentialClusterSize", 24 },
	{ 676, "cuOccupancyMaxActiveClusters", 24 }, { 745, "cuDeviceGetDevResource", 24 },
	{ 746, "cuCtxGetDevResource", 24 }, { 744, "cuGreenCtxDestroy", 8 },
};

#define NR_ENTRIES (sizeof(entries) / sizeof(entries[0]))

/* Queries have separate scenarios, because the other scenarios also make other calls. */
static const struct entry waits[] = {
	{ 17, "cuCtxSynchronize", 8 }, { 120, "cuEventQuery", 8 },
	{ 121, "cuEventSynchronize", 8 }, { 125, "cuStreamQuery", 8 },
	{ 126, "cuStreamSynchronize", 8 }, { 216, "cuMemsetD8Async", 32 },
	{ 220, "cuMemsetD32Async", 32 }, { 249, "cuMemsetD8_v2", 24 },
	{ 276, "cuMemcpyHtoD_v2", 24 }, { 278, "cuMemcpyDtoH_v2", 24 },
	{ 281, "cuMemcpyDtoDAsync_v2", 32 }, { 295, "cuStreamWaitEvent", 24 },
	{ 322, "cuCtxDestroy_v2", 8 }, { 544, "cuDevicePrimaryCtxRelease_v2", 8 },
};

#define NR_WAITS (sizeof(waits) / sizeof(waits[0]))

static const struct entry *find_entry(const char *name)
{
	unsigned int i;

	for (i = 0; i < NR_ENTRIES; i++)
		if (!strcmp(entries[i].name, name))
			return &entries[i];
	for (i = 0; i < NR_WAITS; i++)
		if (!strcmp(waits[i].name, name))
			return &waits[i];
	return NULL;
}

static void start(void)
{
	unsigned int i;

	caller = pthread_self();
	read_truth(BOARD_B);
	if (take_table() || subscribe(&subscriber, on_event, NULL))
		check(false, "the callback table");
	for (i = 0; i < NR_ENTRIES; i++)
		args_bytes[entries[i].cbid] = entries[i].bytes;
	for (i = 0; i < NR_WAITS; i++)
		args_bytes[waits[i].cbid] = waits[i].bytes;
	begin_on(0);
}

static void enable_calls(void)
{
	unsigned int i, bad = 0;

	for (i = 0; i < NR_ENTRIES; i++)
		bad += enable(1, subscriber, 6, entries[i].cbid) != 0;
	check(!bad, "calls can be enabled");
}

/*
 * Returns true if there was exactly one pair of callbacks since the last check, and this pair was
 * complete and correct. @args has the expected arguments.
 */
static bool told(const char *name, int result, unsigned int nr_args, const uint64_t *args)
{
	const struct entry *entry = find_entry(name);
	unsigned int half, bad = seen.nr != 2 || !entry;

	for (half = 0; !bad && half < 2; half++) {
		const uint64_t *slot = seen.event[half].slot;

		bad += seen.event[half].cbid != entry->cbid;
		bad += (uint32_t)slot[0] != 104 || slot[1] != 1 || slot[2] || slot[3] || slot[4] ||
		       slot[9] || slot[11] || slot[12];
		bad += seen.event[half].result != (half ? result : 999);
		bad += strcmp((const char *)(uintptr_t)slot[NAME], name) != 0;
		bad += slot[CONTEXT] != (uintptr_t)ctx;
		bad += !bad && slot[WHICH] != ((uint64_t)half << 32 | (uint32_t)entry->cbid);
		bad += !bad && (nr_args * 8 != entry->bytes ||
				memcmp(seen.event[half].args, args, nr_args * 8));
	}
	seen.nr = 0;
	return !bad;
}

#define P(pointer) ((uintptr_t)(pointer))
#define TOLD(name, result, ...) do { \
	const uint64_t args_[] = { __VA_ARGS__ }; \
	check(told(name, result, sizeof(args_) / 8, args_), "%s tells", name); \
} while (0)

static CUdeviceptr memory(size_t bytes)
{
	CUdeviceptr address;

	TRY(cu.cuMemAlloc_v2(&address, bytes));
	memset((void *)(uintptr_t)address, 0xff, bytes);
	return address;
}

static CUdeviceptr out;
static uint32_t duration = 1000;
static void *census_args[2] = { &out, &duration };

static struct cu_kernel_node_params census(unsigned int blocks)
{
	return (struct cu_kernel_node_params){
		.v1 = { f_census, blocks, 1, 1, 1024, 1, 1, 0, census_args, NULL },
	};
}

static CUgraph graph_of(unsigned int blocks, CUgraphNode *node)
{
	struct cu_kernel_node_params params = census(blocks);
	CUgraph graph;

	TRY(cu.cuGraphCreate(&graph, 0));
	TRY(cu.cuGraphAddKernelNode_v2(node, graph, NULL, 0, &params));
	return graph;
}

/* --------------------------------------------------------------- domains and cbids */

static void domains(const char *arg)
{
	uint32_t handle = 77, later = 0;

	(void)arg;
	start();
	check(enable(1, subscriber, 6, 0) == 0 && enable(1, subscriber, 6, 806) == 0 &&
		      enable(1, subscriber, 6, 807) == 1 && enable(1, subscriber, 6, -1) == 1,
	      "cbids 0 to 806 of domain 6");
	check(enable(1, subscriber, 2, 0) == 0 && enable(1, subscriber, 2, 89) == 0 &&
		      enable(1, subscriber, 2, 90) == 1, "0 to 89 of domain 2");
	check(enable(1, subscriber, 0xb, 3) == 0 && enable(1, subscriber, 0xb, 4) == 1 &&
		      enable(1, subscriber, 5, 1) == 1, "0 to 3 of 0xB");
	check(subscribe(&handle, on_event, NULL) == 210 && handle == 77, "a second one: 210");
	enable_calls();
	check(unsubscribe(0) && unsubscribe(subscriber + 1) && unsubscribe(subscriber) == 0 &&
		      unsubscribe(subscriber), "unsubscribed once");
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	check(!seen.nr && enable(1, subscriber, 6, 307) == 1, "it hears nothing any more");
	check(subscribe(&later, on_event, NULL) == 0, "another may come");
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	check(!seen.nr, "for whom nothing is enabled");
	check(enable(1, later, 6, 307) == 0, "until it is");
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	check(seen.nr == 2, "then it hears of calls");
	enable(0, later, 6, 307);
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	check(seen.nr == 2, "and no more, disabled");
}

static void refused(const char *arg)
{
	(void)arg;
	start();
	check(enable(1, subscriber, 6, 514) == 1 && enable(1, subscriber, 2, 40) == 0,
	      "domain 6 is refused, 2 is not");
}

static void two_subscribers(const char *arg)
{
	uint32_t second = 0, third = 0;

	(void)arg;
	start();
	check(subscribe(&second, on_event, NULL) == 0 && second != subscriber &&
		      subscribe(&third, on_event, NULL) == 210, "two and no more");
	enable(1, second, 6, 307);
	enable(1, subscriber, 6, 307);
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	check(seen.nr == 4, "both hear");
	check(unsubscribe(subscriber) == 0, "the first leaves");
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	check(seen.nr == 6, "the second hears on");
}

/* ------------------------------------------------------------------ every entry point */

static void calls(const char *arg)
{
	struct cu_launch_config config = { 3, 1, 1, 32, 1, 1, 0, NULL, NULL, 0 };
	struct cu_set_node_params fill = { .element = 1, .width = 8, .height = 1 };
	struct cu_copy_3d move = { .width = 8, .height = 1, .depth = 1 };
	struct cu_kernel_node_params params;
	struct cu_instantiate_params how = { 0 };
	struct cu_update_info info;
	CUgraph graph, captured;
	CUgraphNode node, set, copy, bad;
	CUgraphExec exec, other;
	CUstream stream;
	char log[4];
	int result;

	(void)arg;
	start();
	out = memory(24 * 264);
	TRY(cu.cuStreamCreate(&stream, 0));
	enable_calls();
	check(cu.cuLaunchKernel(f_empty, 2, 3, 4, 5, 6, 7, 8, stream, NULL, NULL) == 0, "a launch");
	TOLD("cuLaunchKernel", 0, P(f_empty), 2 | 3ull << 32, 4 | 5ull << 32, 6 | 7ull << 32, 8,
	     P(stream), 0, 0);
	check(cu.cuLaunchKernel(f_census, 2, 0, 4, 5, 6, 7, 8, stream, census_args, NULL) == 1,
	      "a wrong one");
	TOLD("cuLaunchKernel", 1, P(f_census), 2, 4 | 5ull << 32, 6 | 7ull << 32, 8, P(stream),
	     P(census_args), 0);
	TRY(cu.cuLaunchCooperativeKernel(f_empty, 2, 1, 1, 5, 1, 1, 8, stream, NULL));
	TOLD("cuLaunchCooperativeKernel", 0, P(f_empty), 2 | 1ull << 32, 1 | 5ull << 32,
	     1 | 1ull << 32, 8, P(stream), 0);
	TRY(cu.cuLaunchKernelEx(&config, f_empty, NULL, NULL));
	TOLD("cuLaunchKernelEx", 0, P(&config), P(f_empty), 0, 0);
	check(cu.cuLaunchKernelEx(NULL, f_empty, NULL, NULL) == 1, "none");
	TOLD("cuLaunchKernelEx", 1, 0, P(f_empty), 0, 0);

	graph = graph_of(1, &node);
	fill.to = move.to.device = out;
	move.from.device = out + 8;
	move.to.type = move.from.type = CU_MEMORY_DEVICE;
	TRY(cu.cuGraphAddMemsetNode(&set, graph, &node, 1, &fill, NULL));
	TRY(cu.cuGraphAddMemcpyNode(&copy, graph, &set, 1, &move, NULL));
	check(!seen.nr, "building calls no subscriber");
	TRY(cu.cuGraphInstantiate(&exec, graph, &bad, log, 4));
	TOLD("cuGraphInstantiate", 0, P(&exec), P(graph), P(&bad), P(log), 4);
	TRY(cu.cuGraphInstantiate_v2(&exec, graph, &bad, log, 4));
	TOLD("cuGraphInstantiate_v2", 0, P(&exec), P(graph), P(&bad), P(log), 4);
	how.flags = 2;
	TRY(cu.cuGraphInstantiateWithParams(&other, graph, &how));
	TOLD("cuGraphInstantiateWithParams", 0, P(&other), P(graph), P(&how));
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 8));
	TOLD("cuGraphInstantiateWithFlags", 0, P(&exec), P(graph), 8);
	check(cu.cuGraphInstantiateWithFlags(&other, graph, 2) == 1, "wrong flags");
	TOLD("cuGraphInstantiateWithFlags", 1, P(&other), P(graph), 2);
	TRY(cu.cuGraphUpload(exec, stream));
	TOLD("cuGraphUpload", 0, P(exec), P(stream));
	TRY(cu.cuGraphUpload_ptsz(exec, NULL));
	TOLD("cuGraphUpload_ptsz", 0, P(exec), 0);
	TRY(cu.cuGraphLaunch(exec, stream));
	TOLD("cuGraphLaunch", 0, P(exec), P(stream));
	TRY(cu.cuGraphLaunch_ptsz(exec, NULL));
	TOLD("cuGraphLaunch_ptsz", 0, P(exec), 0);
	check(cu.cuGraphLaunch(NULL, stream) == 1, "nothing to launch");
	TOLD("cuGraphLaunch", 1, 0, P(stream));
	TRY(cu.cuGraphExecUpdate(exec, graph, &bad, &result));
	TOLD("cuGraphExecUpdate", 0, P(exec), P(graph), P(&bad), P(&result));
	TRY(cu.cuGraphExecUpdate_v2(exec, graph, &info));
	TOLD("cuGraphExecUpdate_v2", 0, P(exec), P(graph), P(&info));
	params = census(2);
	TRY(cu.cuGraphExecKernelNodeSetParams(exec, node, &params.v1));
	TOLD("cuGraphExecKernelNodeSetParams", 0, P(exec), P(node), P(&params));
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
	TOLD("cuGraphExecKernelNodeSetParams_v2", 0, P(exec), P(node), P(&params));
	TRY(cu.cuGraphExecMemsetNodeSetParams(exec, set, &fill, ctx));
	TOLD("cuGraphExecMemsetNodeSetParams", 0, P(exec), P(set), P(&fill), P(ctx));
	TRY(cu.cuGraphExecMemcpyNodeSetParams(exec, copy, &move, NULL));
	TOLD("cuGraphExecMemcpyNodeSetParams", 0, P(exec), P(copy), P(&move), 0);
	TRY(cu.cuGraphNodeSetEnabled(exec, node, 0));
	TOLD("cuGraphNodeSetEnabled", 0, P(exec), P(node), 0);
	TRY(cu.cuGraphExecDestroy(exec));
	TOLD("cuGraphExecDestroy", 0, P(exec));
	check(cu.cuGraphExecDestroy(exec) == 1, "twice");
	TOLD("cuGraphExecDestroy", 1, P(exec));
	TRY(cu.cuStreamBeginCapture_v2(stream, 2));
	TRY(cu.cuStreamEndCapture(stream, &captured));
	TOLD("cuStreamEndCapture", 0, P(stream), P(&captured));
	check(cu.cuStreamEndCapture(stream, &captured) == 401, "no capture");
	TOLD("cuStreamEndCapture", 401, P(stream), P(&captured));
	check(same_thread, "all on the thread that calls");
	TRY(cu.cuCtxSetCurrent(NULL));
	check(cu.cuGraphLaunch(other, NULL) == 201 && seen.nr == 2 &&
		      !seen.event[0].slot[CONTEXT] && seen.event[1].result == 201,
	      "without a context");
}

/* ---------------------------------------------------------------------- queries */

/* A value that is narrower than its slot. */
#define NARROW(value) (0x5a5a5a5aull << 32 | (uint32_t)(value))

static size_t no_shared(int block)
{
	return block > 512 ? 200000 : 0;
}

static void questions(const char *arg)
{
	struct cu_launch_attribute attribute = { .id = CU_LAUNCH_CLUSTER_DIMENSION };
	struct cu_launch_config config = { 4, 1, 1, 32, 1, 1, 200000, NULL, &attribute, 1 };
	struct cu_resource part;
	struct cu_affinity affinity = { 7, 0 };
	int value, block;

	(void)arg;
	start();
	TRY(cu.cuFuncSetAttribute(f_census, CU_FUNCTION_MAX_DYNAMIC_SHARED, 200000));
	attribute.value.cluster.x = 4;
	attribute.value.cluster.y = attribute.value.cluster.z = 1;
	enable_calls();
	check(cu.cuDeviceGetAttribute(&value, 16, 0) == 0 && value == 132, "an attribute");
	TOLD("cuDeviceGetAttribute", 0, P(&value), (uint64_t)0 << 32 | 16);
	check(cu.cuDeviceGetAttribute(&value, 16, 1) == 101, "of no device");
	TOLD("cuDeviceGetAttribute", 101, P(&value), (uint64_t)1 << 32 | 16);
	check(cu.cuDeviceGetDevResource(0, &part, 1) == 0 && part.type == 1 &&
		      part.sm.nr_sms == 132 && part.sm.smallest_part == 8 &&
		      part.sm.alignment == 8, "a device's SMs");
	TOLD("cuDeviceGetDevResource", 0, NARROW(0), P(&part), NARROW(1));
	check(cu.cuCtxGetDevResource(ctx, &part, 1) == 0 && part.sm.nr_sms == 132,
	      "a context's");
	TOLD("cuCtxGetDevResource", 0, P(ctx), P(&part), NARROW(1));
	check(cu.cuCtxGetDevResource(ctx, &part, 2) == 1, "no other part");
	TOLD("cuCtxGetDevResource", 1, P(ctx), P(&part), NARROW(2));
	check(cu.cuGreenCtxDestroy(ctx) == 201, "not a green context");
	TOLD("cuGreenCtxDestroy", 201, P(ctx));
	check(cu.cuCtxGetExecAffinity(&affinity, 0) == 0 && !affinity.type &&
		      affinity.nr_sms == 132, "its affinity");
	TOLD("cuCtxGetExecAffinity", 0, P(&affinity), NARROW(0));
	check(cu.cuOccupancyMaxPotentialBlockSize(&value, &block, f_census, NULL, 0, 0) == 0 &&
		      value == 264 && block == 1024, "the block that fills an SM: %d of %d", value,
	      block);
	TOLD("cuOccupancyMaxPotentialBlockSize", 0, P(&value), P(&block), P(f_census), 0, 0,
	     NARROW(0));
	check(cu.cuOccupancyMaxPotentialBlockSizeWithFlags(&value, &block, f_census, no_shared, 1,
							   600, 1) == 0 && value == 528 &&
		      block == 512, "with shared memory by size: %d of %d", value, block);
	TOLD("cuOccupancyMaxPotentialBlockSizeWithFlags", 0, P(&value), P(&block), P(f_census),
	     P(no_shared), 1, NARROW(600), NARROW(1));
	check(cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&value, f_census, 32, 0, 1)
		      == 0 && value == 32 && !seen.nr, "a query calls no subscriber");
	/*
	 * One virtual GPC has 8 SMs, five have 16 SMs, and two have 18 SMs. No cluster fits on
	 * the singletons.
	 */
	check(cu.cuOccupancyMaxActiveClusters(&value, f_census, &config) == 0 && value == 30,
	      "clusters of 4, a block an SM: %d", value);
	TOLD("cuOccupancyMaxActiveClusters", 0, P(&value), P(f_census), P(&config));
	config.shared = 100000;
	check(cu.cuOccupancyMaxActiveClusters(&value, f_census, &config) == 0 && value == 62,
	      "two blocks an SM: %d", value);
	TOLD("cuOccupancyMaxActiveClusters", 0, P(&value), P(f_census), P(&config));
	check(cu.cuOccupancyMaxPotentialClusterSize(&value, f_census, &config) == 0 && value == 8,
	      "the largest cluster: %d", value);
	TOLD("cuOccupancyMaxPotentialClusterSize", 0, P(&value), P(f_census), P(&config));
	TRY(cu.cuFuncSetAttribute(f_census, CU_FUNCTION_NON_PORTABLE_CLUSTER, 1));
	check(cu.cuOccupancyMaxPotentialClusterSize(&value, f_census, &config) == 0 && value == 16,
	      "not portable: %d", value);
	check(cu.cuOccupancyMaxActiveClusters(&value, NULL, &config) == 400 &&
		      cu.cuOccupancyMaxActiveClusters(NULL, f_census, &config) == 1 &&
		      cu.cuOccupancyMaxPotentialClusterSize(&value, f_census, NULL) == 1,
	      "wrong ones");
}

static void at_question(unsigned int nr, bool ended)
{
	const uint64_t *slot = seen.event[nr].slot;

	if (!ended || seen.event[nr].cbid != 9)
		return;
	*(int *)(uintptr_t)seen.event[nr].args[0] = 40;
	if ((int)seen.event[nr].args[1] == 17)
		*(int *)(uintptr_t)slot[RESULT] = 0;
}

static void answers(const char *arg)
{
	int value = 0;

	(void)arg;
	start();
	enable_calls();
	seen.at = at_question;
	check(cu.cuDeviceGetAttribute(&value, 16, 0) == 0 && value == 40,
	      "what a subscriber writes is what the program gets");
	value = 0;
	check(cu.cuDeviceGetAttribute(&value, 17, 0) == 0 && value == 40, "the result too");
}

static void renamed(const char *arg)
{
	int value;

	(void)arg;
	start();
	enable_calls();
	TRY(cu.cuDeviceGetAttribute(&value, 16, 0));
	check(seen.nr == 2 && strcmp((const char *)(uintptr_t)seen.event[1].slot[NAME],
				     "cuDeviceGetAttribute"), "another name");
}

/* ------------------------------------------------------------------ inside of a callback */

static CUgraph the_graph;
static CUgraphNode the_node;
static CUgraphExec the_exec, *the_out;
static CUresult inside[8];

static void at_launch(unsigned int nr, bool ended)
{
	struct cu_kernel_node_params params = census(5);
	struct cu_update_info info;
	CUgraphNode in_clone;
	CUgraph clone;

	if (ended || seen.event[nr].cbid != 514 || seen.deep++)
		return;
	inside[0] = cu.cuGraphClone(&clone, the_graph);
	inside[1] = cu.cuGraphNodeFindInClone(&in_clone, the_node, clone);
	inside[2] = cu.cuGraphKernelNodeSetParams_v2(in_clone, &params);
	inside[3] = cu.cuGraphExecUpdate_v2(the_exec, clone, &info);
	inside[4] = cu.cuGraphDestroy(clone);
	inside[5] = cu.cuCtxSynchronize();
}

static void at_instantiate(unsigned int nr, bool ended)
{
	struct cu_kernel_node_params params = census(6);

	if (!ended || seen.event[nr].cbid != 643)
		return;
	inside[0] = cu.cuGraphExecKernelNodeSetParams_v2(*the_out, the_node, &params);
	inside[1] = cu.cuGraphLaunch(*the_out, NULL);
	inside[2] = cu.cuCtxSynchronize();
}

static unsigned int blocks_ran(void)
{
	const struct record *records = (const struct record *)(uintptr_t)out;
	unsigned int nr = 0;

	while (nr < 264 && records[nr].smid != UINT32_MAX)
		nr++;
	memset((void *)(uintptr_t)out, 0xff, 24 * 264);
	return nr;
}

static void nested(const char *arg)
{
	unsigned int i, bad = 0;

	(void)arg;
	start();
	out = memory(24 * 264);
	the_graph = graph_of(1, &the_node);
	TRY(cu.cuGraphInstantiateWithFlags(&the_exec, the_graph, 0));
	TRY(cu.cuGraphLaunch(the_exec, NULL));
	TRY(cu.cuStreamSynchronize(NULL));
	check(blocks_ran() == 1, "a block");
	enable_calls();
	enable(1, subscriber, 0xb, 1);
	seen.at = at_launch;
	memset(inside, 0xff, sizeof(inside));
	TRY(cu.cuGraphLaunch(the_exec, NULL));
	TRY(cu.cuStreamSynchronize(NULL));
	for (i = 0; i < 6; i++)
		bad += inside[i] != 0;
	check(!bad, "at the start of a launch every call works");
	check(seen.built == 1 && blocks_ran() == 5, "and takes effect in that launch");
	check(seen.nr == 4 && seen.event[0].cbid == 514 && seen.event[1].cbid == 696 &&
		      seen.event[2].cbid == 696 && seen.event[3].cbid == 514,
	      "calls inside of callbacks give callbacks");
	seen.nr = 0;
	seen.at = at_instantiate;
	the_out = &the_exec;
	memset(inside, 0xff, sizeof(inside));
	TRY(cu.cuGraphInstantiateWithFlags(&the_exec, the_graph, 0));
	check(!inside[0] && !inside[1] && !inside[2] && blocks_ran() == 6,
	      "at the end of an instantiation it is there and can be changed and launched");
	check(seen.nr == 6 && seen.event[1].cbid == 643, "the end callback comes after the work");
}

/* --------------------------------------------------------------------- graph events */

static void graph_events(const char *arg)
{
	struct cu_instantiate_params how = { .flags = 2 };
	CUgraph graph, child;
	CUgraphNode node, cycle;
	CUgraphExec exec;
	CUcontext other;

	(void)arg;
	start();
	out = memory(24 * 264);
	check(!enable(1, subscriber, 2, 36) && !enable(1, subscriber, 2, 40) &&
		      !enable(1, subscriber, 2, 41), "enabled");
	graph = graph_of(1, &node);
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	check(seen.nr == 1 && seen.event[0].cbid == 40 && seen.event[0].slot[0] == 88 &&
		      seen.event[0].slot[1] == P(ctx) && seen.event[0].slot[2] == P(graph) &&
		      seen.event[0].slot[3] == P(exec) && !seen.event[0].slot[4], "40");
	seen.nr = 0;
	TRY(cu.cuGraphExecDestroy(exec));
	check(seen.nr == 2 && seen.event[0].cbid == 41 && seen.event[0].slot[0] == 24 &&
		      seen.event[0].slot[1] == P(exec) && !seen.event[0].slot[2], "41");
	check(seen.event[1].cbid == 36 && seen.event[1].slot[0] == 24 && seen.event[1].slot[1] &&
		      seen.event[1].slot[1] != P(graph), "36 of the inner graph");
	check(cu.cuGraphExecDestroy(exec) == 1 && seen.nr == 2, "not twice");
	seen.nr = 0;
	TRY(cu.cuGraphInstantiateWithParams(&exec, graph, &how));
	check(seen.nr == 1 && seen.event[0].cbid == 40, "with parameters");
	check(cu.cuGraphInstantiateWithFlags(&exec, NULL, 0) == 1 && seen.nr == 1, "not of none");
	TRY(cu.cuCtxCreate_v2(&other, 0, 0));
	check(cu.cuGraphInstantiateWithParams(&exec, graph, &how) == 801 && seen.nr == 1,
	      "nor where the upload cannot be");
	TRY(cu.cuCtxDestroy_v2(other));
	TRY(cu.cuCtxSetCurrent(ctx));
	seen.nr = 0;
	TRY(cu.cuGraphCreate(&child, 0));
	TRY(cu.cuGraphAddChildGraphNode(&cycle, child, NULL, 0, graph));
	check(!seen.nr, "building calls no subscriber");
	TRY(cu.cuGraphDestroy(graph));
	check(seen.nr == 1 && seen.event[0].cbid == 36 && seen.event[0].slot[1] == P(graph) &&
		      seen.event[0].slot[0] == 24, "36");
	check(cu.cuGraphDestroy(graph) == 1 && seen.nr == 1, "once");
	TRY(cu.cuGraphDestroy(child));
	check(seen.nr == 2 && seen.event[1].slot[1] == P(child), "one for a parent");
}

/* ------------------------------------------------------------------- new entry points */

static CUmodule library_of(void **kernel)
{
	static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
		".visible .entry gpupart_parent(.param .u64 a, .param .u32 b)\n{ ret; }\n";
	CUmodule library;

	TRY(cu.cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	TRY(cu.cuLibraryGetKernel(kernel, library, "gpupart_parent"));
	return library;
}

/* If @lazily is set, the first use of a library's kernel loads the library's code. */
static void libraries(const char *lazily)
{
	CUdeviceptr to;
	unsigned int ns = 1000, at_load = *lazily ? 0 : 1;
	void *args[] = { &to, &ns }, *kernel;
	CUfunction function;
	CUmodule library, of;

	start();
	TRY(enable(1, subscriber, 2, 17));
	to = memory(24 * 264);
	library = library_of(&kernel);
	check(cu.cuLibraryGetKernel(NULL, library, "gpupart_parent") == 1 &&
		      cu.cuLibraryGetKernel(&kernel, library, "nothing") == 500 &&
		      cu.cuFuncGetModule(&of, kernel) == 400, "a kernel is no function");
	check(seen.modules == at_load, "its code is reported%s", *lazily ? " later" : "");
	check(cu.cuKernelGetFunction(&function, kernel) == 0 &&
		      cu.cuFuncGetModule(&of, function) == 0 && of == library &&
		      cu.cuKernelGetFunction(&function, kernel) == 0 && seen.modules == 1,
	      "its function, its module; the code comes once");
	TRY(cu.cuLibraryUnload(library));
	check(cu.cuKernelGetFunction(&function, kernel) == 400 &&
		      cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL) == 400,
	      "it goes with its library");
	library = library_of(&kernel);
	TRY(cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
	TRY(cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
	check(cu.cuStreamSynchronize(NULL) == 0 && seen.modules == 2,
	      "a kernel is launched, the code comes once");
}

static void lookups(const char *arg)
{
	struct cu_set_node_params fill = { .element = 4, .value = 7, .width = 3, .height = 1 };
	struct cu_set_node_params got;
	struct cu_copy_3d move = { .width = 8, .height = 1, .depth = 1 }, moved;
	CUgraph graph, clone, again;
	CUgraphNode node, set, copy, found, deeper;
	CUgraphExec exec;
	CUfunction function;
	CUmodule of;

	(void)arg;
	start();
	out = memory(24 * 264);
	check(cu.cuFuncGetModule(&of, f_census) == 0 && of == module &&
		      cu.cuFuncGetModule(&of, (CUfunction)&of) == 400 &&
		      cu.cuFuncGetModule(NULL, f_census) == 1, "a function's module");
	check(cu.cuKernelGetFunction(&function, f_census) == 400 &&
		      cu.cuKernelGetFunction(NULL, f_census) == 1, "no CUkernel: 400");
	graph = graph_of(1, &node);
	fill.to = out;
	move.to = (struct cu_copy_side){ .type = CU_MEMORY_DEVICE, .device = out };
	move.from = (struct cu_copy_side){ .type = CU_MEMORY_DEVICE, .device = out + 64 };
	TRY(cu.cuGraphAddMemsetNode(&set, graph, &node, 1, &fill, NULL));
	TRY(cu.cuGraphAddMemcpyNode(&copy, graph, &set, 1, &move, NULL));
	TRY(cu.cuGraphClone(&clone, graph));
	TRY(cu.cuGraphClone(&again, clone));
	check(cu.cuGraphNodeFindInClone(&found, set, clone) == 0 && found != set &&
		      cu.cuGraphMemsetNodeGetParams(found, &got) == 0 && got.value == 7,
	      "a node's clone");
	check(cu.cuGraphNodeFindInClone(&deeper, found, again) == 0 && deeper != found &&
		      cu.cuGraphNodeFindInClone(&deeper, set, again) == 1 &&
		      cu.cuGraphNodeFindInClone(&deeper, set, graph) == 1 &&
		      cu.cuGraphNodeFindInClone(&deeper, set, NULL) == 1 &&
		      cu.cuGraphNodeFindInClone(&deeper, NULL, clone) == 1 &&
		      cu.cuGraphNodeFindInClone(NULL, set, clone) == 1, "of that graph alone");
	check(cu.cuGraphMemsetNodeGetParams(set, &got) == 0 && got.to == out && got.element == 4 &&
		      got.width == 3 && got.height == 1 && got.value == 7, "a fill's parameters");
	got.value = 9;
	got.element = 1;
	check(cu.cuGraphMemsetNodeSetParams(set, &got) == 0 &&
		      cu.cuGraphMemsetNodeGetParams(set, &got) == 0 && got.value == 9 &&
		      got.element == 1 && got.width == 3, "and others");
	got.to = 8;
	check(cu.cuGraphMemsetNodeSetParams(set, &got) == 1 &&
		      cu.cuGraphMemsetNodeSetParams(node, &fill) == 1 &&
		      cu.cuGraphMemsetNodeSetParams(set, NULL) == 1 &&
		      cu.cuGraphMemsetNodeGetParams(node, &got) == 1 &&
		      cu.cuGraphMemsetNodeGetParams(set, NULL) == 1, "wrong ones: 1");
	check(cu.cuGraphMemcpyNodeGetParams(copy, &moved) == 0 && moved.width == 8 &&
		      moved.height == 1 && moved.depth == 1 && moved.to.device == out &&
		      moved.from.device == out + 64 && moved.from.type == CU_MEMORY_DEVICE,
	      "a copy's parameters");
	moved.width = 16;
	check(cu.cuGraphMemcpyNodeSetParams(copy, &moved) == 0 &&
		      cu.cuGraphMemcpyNodeGetParams(copy, &moved) == 0 && moved.width == 16,
	      "and others");
	check(cu.cuGraphMemcpyNodeSetParams(set, &moved) == 1 &&
		      cu.cuGraphMemcpyNodeSetParams(copy, NULL) == 1 &&
		      cu.cuGraphMemcpyNodeGetParams(node, &moved) == 1 &&
		      cu.cuGraphMemcpyNodeGetParams(copy, NULL) == 1, "wrong ones: 1");
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	memset((void *)(uintptr_t)(out + 128), 0x42, 16);
	moved.from.device = out + 128;
	check(cu.cuGraphExecMemcpyNodeSetParams(exec, copy, &moved, NULL) == 0 &&
		      cu.cuGraphExecMemcpyNodeSetParams(exec, set, &moved, NULL) == 1 &&
		      cu.cuGraphExecMemcpyNodeSetParams(exec, copy, NULL, NULL) == 1,
	      "an executable graph's copy");
	TRY(cu.cuGraphLaunch(exec, NULL));
	TRY(cu.cuStreamSynchronize(NULL));
	check(*(uint8_t *)(uintptr_t)(out + 15) == 0x42, "which counts");
}

/* ------------------------------------------------------------------------- threads */

static atomic_bool stop;

static void *launches(void *unused)
{
	while (!stop) {
		TRY(cu.cuCtxSetCurrent(ctx));
		TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
		TRY(cu.cuCtxSynchronize());
	}
	return unused;
}

/* Tests calls that wait, and calls that submit work other than launches. */
static void work_and_waits(const char *arg)
{
	char host[64] = { 0 };
	CUstream stream;
	CUevent event;
	CUcontext other;
	unsigned int i;

	(void)arg;
	start();
	out = memory(4096);
	TRY(cu.cuStreamCreate(&stream, 0));
	TRY(cu.cuEventCreate(&event, 0));
	for (i = 0; i < NR_WAITS; i++)
		TRY(enable(1, subscriber, 6, waits[i].cbid));
	TRY(cu.cuMemcpyHtoD_v2(out, host, 64));
	TOLD("cuMemcpyHtoD_v2", 0, out, P(host), 64);
	TRY(cu.cuMemcpyDtoH_v2(host, out, 32));
	TOLD("cuMemcpyDtoH_v2", 0, P(host), out, 32);
	TRY(cu.cuMemcpyDtoDAsync_v2(out, out + 512, 128, stream));
	TOLD("cuMemcpyDtoDAsync_v2", 0, out, out + 512, 128, P(stream));
	TRY(cu.cuMemsetD8_v2(out, 3, 8));
	TOLD("cuMemsetD8_v2", 0, out, NARROW(3), 8);
	TRY(cu.cuMemsetD8Async(out, 3, 8, stream));
	TOLD("cuMemsetD8Async", 0, out, NARROW(3), 8, P(stream));
	check(cu.cuMemsetD32Async(out + 1, 3, 8, stream) == 1, "a fill that is refused");
	TOLD("cuMemsetD32Async", 1, out + 1, NARROW(3), 8, P(stream));
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
	TRY(cu.cuEventRecord(event, stream));
	check(cu.cuStreamQuery(stream) == 600, "a stream with work in it");
	TOLD("cuStreamQuery", 600, P(stream));
	TRY(cu.cuStreamWaitEvent(NULL, event, 0));
	TOLD("cuStreamWaitEvent", 0, 0, P(event), NARROW(0));
	TRY(cu.cuEventSynchronize(event));
	TOLD("cuEventSynchronize", 0, P(event));
	TRY(cu.cuEventQuery(event));
	TOLD("cuEventQuery", 0, P(event));
	TRY(cu.cuStreamSynchronize(stream));
	TOLD("cuStreamSynchronize", 0, P(stream));
	TRY(cu.cuCtxSynchronize());
	TOLD("cuCtxSynchronize", 0, 0);
	TRY(cu.cuDevicePrimaryCtxRetain(&other, 0));
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	TOLD("cuDevicePrimaryCtxRelease_v2", 0, NARROW(0));
	check(cu.cuCtxDestroy_v2(NULL) == 201, "no context to end");
	TOLD("cuCtxDestroy_v2", 201, 0);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/*
 * Tests that work takes time, and that the time of an idle GPU advances. Events must show both
 * facts.
 */
static void host_clock(const char *arg)
{
	CUevent event[3];
	double begin, launched;
	float ms[2];
	int i;

	(void)arg;
	start();
	out = memory(4096);
	for (i = 0; i < 3; i++)
		TRY(cu.cuEventCreate(&event[i], 0));
	duration = 20000000;
	begin = seconds();
	TRY(cu.cuEventRecord(event[0], NULL));
	TRY(cu.cuLaunchKernel(f_census, 1, 1, 1, 32, 1, 1, 0, NULL, census_args, NULL));
	TRY(cu.cuEventRecord(event[1], NULL));
	launched = seconds();
	check(cu.cuEventQuery(event[0]) == 0 && cu.cuEventQuery(event[1]) == 600,
	      "what comes before a kernel is over, what comes after is not");
	TRY(cu.cuCtxSynchronize());
	check(seconds() - begin >= 0.0199, "who waits waits 20 ms");
	usleep(30000);
	TRY(cu.cuEventRecord(event[2], NULL));
	TRY(cu.cuEventSynchronize(event[2]));
	TRY(cu.cuEventElapsedTime_v2(&ms[0], event[0], event[1]));
	TRY(cu.cuEventElapsedTime_v2(&ms[1], event[1], event[2]));
	if (getenv("TEST_EMULATOR"))
		tap_skip("%s takes ten times as long itself: the kernel's 20 ms",
			 getenv("TEST_EMULATOR"));
	else
		/* On a busy machine, the launch may come late. */
		check(ms[0] >= 20 && ms[0] < 25 + (launched - begin) * 1e3,
		      "the kernel's 20 ms: %.3f", ms[0]);
	check(ms[1] >= 29, "and the 30 ms after it: %.3f", ms[1]);
}

static unsigned int nr_calls;

static void on_call(void *user, int domain, int cbid, const void *params)
{
	(void)params;
	if (user != &nr_calls || domain != 6 || cbid != 307)
		check(false, "a callback without a call");
	__atomic_add_fetch(&nr_calls, 1, __ATOMIC_RELAXED);
}

/* One thread subscribes and unsubscribes while other threads launch. */
static void coming_and_going(const char *arg)
{
	pthread_t thread[2];
	unsigned int i, bad = 0;

	(void)arg;
	start();
	unsubscribe(subscriber);
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, launches, NULL);
	/* On a busy machine, the two threads may not run for some time. */
	for (i = 0; i < 100 || (i < 10000 && !__atomic_load_n(&nr_calls, __ATOMIC_RELAXED)); i++) {
		bad += subscribe(&subscriber, on_call, &nr_calls) != 0;
		bad += enable(1, subscriber, 6, 307) != 0;
		usleep(200);
		bad += unsubscribe(subscriber) != 0;
	}
	stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	check(!bad && nr_calls, "100 times or more, while two threads launch");
}

int main(void)
{
	const char *b[] = { "GPUPART_SIM=" BOARD_B, NULL, NULL };

	scenario("domains", domains, "", b, NULL);
	scenario("calls", calls, "", b, NULL);
	scenario("questions", questions, "", b, NULL);
	scenario("answers", answers, "", b, NULL);
	scenario("inside", nested, "", b, NULL);
	scenario("graph events", graph_events, "", b, "of another context");
	scenario("look-ups", lookups, "", b, NULL);
	scenario("coming and going", coming_and_going, "", b, NULL);
	scenario("work and waits", work_and_waits, "", b, NULL);
	scenario("libraries", libraries, "", b, NULL);
	b[1] = "GPUPART_SIM_FAULTS=lazy-libraries";
	scenario("libraries, lazily", libraries, "lazily", b, NULL);
	b[1] = "GPUPART_SIM_FAULTS=host-clock";
	scenario("the host's clock", host_clock, "", b, NULL);
	b[1] = "GPUPART_SIM_FAULTS=no-api";
	scenario("the fault", refused, "", b, NULL);
	b[1] = "GPUPART_SIM_FAULTS=renamed=9";
	scenario("renamed", renamed, "", b, NULL);
	b[1] = "GPUPART_SIM_FAULTS=subscribers=2";
	scenario("two", two_subscribers, "", b, NULL);
	return tap_done();
}
