// SPDX-License-Identifier: MIT
/*
 * Tests executable graphs with builds for several sets, on the simulated driver. It tests the
 * number and the time of the builds. Each block must stay in its set, and launches of one graph
 * must never overlap. It also tests changes of the graph, refusals of the driver, and memory.
 */
#include <pthread.h>
#include "lib/driver/cuda.h"
#include "tests/lib/scenario.h"

#define NR_NODES	3
#define NR_BLOCKS	132
#define NR_OUTS		8

#define GRAPH_CALLS(F)                                                       \
	F(graph_create, "cuGraphCreate", (P *, U))                           \
	F(graph_destroy, "cuGraphDestroy", (P))                              \
	F(add_kernel, "cuGraphAddKernelNode_v2",                             \
	  (P *, P, const P *, size_t, const struct cuda_kernel_node *))      \
	F(instantiate, "cuGraphInstantiateWithFlags", (P *, P, U64))         \
	F(upload, "cuGraphUpload", (P, P))                                   \
	F(launch, "cuGraphLaunch", (P, P))                                   \
	F(exec_destroy, "cuGraphExecDestroy", (P))                           \
	F(exec_flags, "cuGraphExecGetFlags", (P, U64 *))                     \
	F(exec_update, "cuGraphExecUpdate_v2", (P, P, struct cuda_graph_update *)) \
	F(set_kernel, "cuGraphExecKernelNodeSetParams_v2",                   \
	  (P, P, const struct cuda_kernel_node *))                           \
	F(set_enabled, "cuGraphNodeSetEnabled", (P, P, U))                   \
	F(begin_capture, "cuStreamBeginCapture_v2", (P, int))                \
	F(end_capture, "cuStreamEndCapture", (P, P *))                       \
	F(stream_destroy, "cuStreamDestroy_v2", (P))                         \
	F(sim_memory, "gpupart_sim_memory", (int, uint64_t *, uint64_t *))

#define DECLARE_GRAPH(call, symbol, args) static CU (*call) args;
GRAPH_CALLS(DECLARE_GRAPH)

static struct record {
	unsigned int smid, cluster;
	U64 start, end;
} records[NR_OUTS][NR_NODES][NR_BLOCKS];

static P streams[2], graph, nodes[NR_NODES], exec;
static struct gpupart_tpcset a, b, c, d, e, all;
static U64 out;

/* --------------------------------------------------------------- callbacks of the driver */

static int nr_built;		/* number of TMDs of the program's kernel */
static P begun, ended;		/* the graphs at the start and at the end of the last launch */
static int nr_replaced;		/* number of launches for which @begun and @ended differ */
static int nr_destroyed;	/* executable graphs */
static struct program p;

/*
 * The callback of a second subscriber. At the start of a call, the driver first calls the
 * library's callback and then this callback.
 */
static void on_callback(void *user, int domain, int cbid, const void *params)
{
	const struct cuda_call_params *call = params;

	(void)user;
	if (domain == 0xb && cbid == 1)
		nr_built += ((P const *)params)[3] == p.function;
	else if (domain == 6 && cbid == 516)
		nr_destroyed += call->site == CUDA_SITE_BEGIN;
	else if (domain == 6 && cbid == 514 && call->site == CUDA_SITE_BEGIN)
		begun = *(P *)(uintptr_t)call->arguments;
	else if (domain == 6 && cbid == 514)
		nr_replaced += begun != (ended = *(P *)(uintptr_t)call->arguments);
}

static bool subscribe_too(void)
{
	static const unsigned char uuid[16] = {
		0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
		0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
	};
	int (*subscribe)(uint32_t *, void (*)(void *, int, int, const void *), void *);
	int (*enable)(uint32_t, uint32_t, int, int);
	const void *found, *const *table;
	uint32_t handle;

	if (cuGetExportTable(&found, uuid))
		return false;
	table = found;
	memcpy(&subscribe, &table[3], sizeof(subscribe));
	memcpy(&enable, &table[6], sizeof(enable));
	return !subscribe(&handle, on_callback, NULL) && !enable(1, handle, 0xb, 1) &&
	       !enable(1, handle, 6, 514) && !enable(1, handle, 6, 516);
}

static struct gpupart_counters counted(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters;
}

/* Returns the number of launches with a rebuilt graph since the previous call of this function. */
static U64 nr_reapplied(void)
{
	static U64 before;
	U64 now = counted().graphs_reapplied, more = now - before;

	before = now;
	return more;
}

/* ----------------------------------------------------------------- a program and its graph */

/*
 * Returns parameters for node @n. With these parameters, the node writes its records to index
 * @to.
 */
static struct cuda_kernel_node kernel(int n, int to)
{
	static unsigned int ns = 20000;
	static U64 at;
	static P args[] = { &at, &ns };

	at = out + (char *)records[to][n] - (char *)records;
	return (struct cuda_kernel_node){
		.function = p.function, .grid = { NR_BLOCKS, 1, 1 }, .block = { 32, 1, 1 },
		.shared = 200000, .params = args,
	};
}

/* A chain of nodes. */
static P graph_to(int to, P *into)
{
	P made;

	if (graph_create(&made, 0))
		return NULL;
	for (int n = 0; n < NR_NODES; n++) {
		struct cuda_kernel_node k = kernel(n, to);

		if (add_kernel(&into[n], made, n ? &into[n - 1] : NULL, n > 0, &k))
			return NULL;
	}
	return made;
}

static bool begin(void)
{
	bool good = !attach("cuda:0") && !program_start(&p, 0) && subscribe_too();
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

#define FIND_GRAPH(call, symbol, args) *(void **)&call = dlsym(lib, symbol);
	GRAPH_CALLS(FIND_GRAPH)
	for (int i = 0; i < 2; i++)
		good = good && !cuStreamCreate(&streams[i], 1);
	good = good && !cuMemAlloc(&out, sizeof(records)) && (graph = graph_to(0, nodes)) &&
	       !instantiate(&exec, graph, 0);
	if (!tap_ok(good, "a program with a graph: %s", gpupart_error(gp)))
		return false;
	a = list("0-3");
	b = list("8-11");
	c = list("20,21");
	d = list("30-32");
	e = list("40-47");
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	return true;
}

static bool ran(int place, const struct gpupart_tpcset *want)
{
	const struct gpupart_topology *topo = gpupart_gpu_topology(gpu);
	struct gpupart_tpcset seen;

	for (int n = 0; n < NR_NODES; n++) {
		memset(&seen, 0, sizeof(seen));
		for (int block = 0; block < NR_BLOCKS; block++)
			gpupart_tpcset_add(&seen, gpupart_topology_sm_tpc(topo,
							records[place][n][block].smid));
		if (!gpupart_tpcset_equal(&seen, want))
			return false;
	}
	return true;
}

static bool read_records(void)
{
	return !cuMemcpyDtoH(records, out, sizeof(records));
}

/*
 * Launches the graph. The launch must run on exactly @want. The kernels of the graph write their
 * records to @place.
 */
static bool in(int place, const struct gpupart_tpcset *want)
{
	memset(records, 0xff, sizeof(records));
	return !launch(exec, streams[0]) && !cuStreamSynchronize(streams[0]) && read_records() &&
	       ran(place, want);
}

static bool in_set(int place, const struct gpupart_tpcset *set)
{
	return !gpupart_process_set(gp, gpu, set) && in(place, set ? set : &all);
}

/* ------------------------------------------------------------------- scenarios */

static void alternating(void)
{
	enum { ROUNDS = 500 };
	int wrong = 0, built;
	U64 flags = 9;
	P first;

	if (!begin())
		return;
	nr_reapplied();
	tap_ok(in_set(0, &a) && !nr_reapplied(), "the first launch is built for its set");
	first = begun;
	tap_ok(in_set(0, &b) && nr_reapplied() == 1, "the second for another");
	tap_ok(first == exec && begun != exec && ended == exec,
	       "the driver has another handle for it, and the program's again at the end");
	built = nr_built;
	for (int round = 0; round < ROUNDS; round++)
		wrong += !in_set(0, &a) + !in_set(0, &b);
	tap_ok(!wrong, "%d launches in turns: %d left their set", 2 * ROUNDS, wrong);
	tap_ok(nr_built == built && !nr_reapplied(), "and %d nodes were built", nr_built - built);
	tap_ok(!counted().graphs_stale, "none is counted as stale");
	tap_ok(!exec_flags(exec, &flags) && !flags, "the program's graph has its flags");
	gpupart_process_set(gp, gpu, NULL);
	tap_ok(!gpupart_stream_set(gp, gpu, streams[0], &a) && in(0, &a) &&
		       !gpupart_stream_set(gp, gpu, streams[0], NULL) && !nr_reapplied(),
	       "a stream's set is the same as the process's");
	tap_ok(!gpupart_next_set(gp, gpu, &b) && in(0, &b) && !nr_reapplied(),
	       "and a next-launch set");
	tap_ok(in(0, &all) && nr_reapplied() == 1, "and none is a set of its own");
	tap_ok(!gpupart_limit_set(gp, gpu, &c) && in(0, &c) && nr_reapplied() == 1 &&
		       in_set(0, NULL) == false && in(0, &c) && !nr_reapplied(),
	       "a limit");
}

static void fifth_set(void)
{
	const struct gpupart_tpcset *sets[] = { &a, &b, &c, &d, &e };
	int wrong = 0;

	if (!begin())
		return;
	nr_reapplied();
	for (int round = 0; round < 2; round++)
		for (int n = 0; n < 4; n++)
			wrong += !in_set(0, sets[n]);
	tap_ok(!wrong && nr_reapplied() == 3, "four sets, each built for once");
	tap_ok(in_set(0, &a) && in_set(0, &e) && nr_reapplied() == 1,
	       "a fifth takes the place of the one not used for longest");
	tap_ok(in_set(0, &a) && in_set(0, &c) && in_set(0, &d) && !nr_reapplied(),
	       "the others stay");
	tap_ok(in_set(0, &b) && nr_reapplied() == 1, "which is built for again");
	tap_ok(!counted().graphs_stale, "none is counted as stale");
}

static void limited(void)
{
	if (!begin())
		return;
	nr_reapplied();
	tap_ok(in_set(0, &a) && in_set(0, &b) && in_set(0, &a) && in_set(0, &b) &&
		       nr_reapplied() == 3 && begun == exec,
	       "GPUPART_GRAPH_SETS=1, or a profiler is let in: built again each time");
	tap_ok(gpupart_graph_prepare(gp, gpu, exec, streams[0],
				     (struct gpupart_tpcset[]){ a, b }, 2) == -EOPNOTSUPP,
	       "no second set beforehand: %s", gpupart_error(gp));
}

/* A launch into a captured stream becomes a part of a graph. This graph belongs to the program. */
static void captured(void)
{
	P into = NULL;

	if (!begin())
		return;
	nr_reapplied();
	tap_ok(in_set(0, &a) && in_set(0, &b) && begun != exec && nr_reapplied() == 1,
	       "built for two sets");
	begin_capture(streams[0], 2);
	launch(exec, streams[0]);
	tap_ok(begun == exec && !end_capture(streams[0], &into), "captured: the program's own");
	begin_capture(streams[0], 2);
	gpupart_process_set(gp, gpu, &c);
	launch(exec, streams[0]);
	tap_ok(begun == exec && !end_capture(streams[0], &into) && into,
	       "for a third set: no upload is in the capture");
	tap_ok(in_set(0, &a) && in_set(0, &b) && in_set(0, &c), "afterwards each set is kept");
	tap_ok(!counted().graphs_stale, "none is counted as stale");
}

/* The driver fails to create a second graph, or there is not enough memory for a second graph. */
static void refused(void)
{
	uint64_t before, after, total;

	if (!begin())
		return;
	nr_reapplied();
	tap_ok(in_set(0, &a), "built for a set");
	sim_memory(0, &before, &total);
	tap_ok(in_set(0, &b) && in_set(0, &a) && in_set(0, &b) && nr_reapplied() == 3 &&
		       begun == exec,
	       "no second graph can be made: it is built again each time");
	sim_memory(0, &after, &total);
	tap_ok(before == after, "nothing is left of the attempt");
	tap_ok(!counted().graphs_stale, "none is counted as stale");
	tap_ok(gpupart_graph_prepare(gp, gpu, exec, streams[0],
				     (struct gpupart_tpcset[]){ c, d }, 2) == -EOPNOTSUPP,
	       "nor beforehand: %s", gpupart_error(gp));
}

static void memory(void)
{
	uint64_t none, one, two, again, total;
	P later;

	if (!begin())
		return;
	sim_memory(0, &none, &total);
	tap_ok(in_set(0, &a) && !sim_memory(0, &one, &total) && one == none + (64 << 20),
	       "a graph takes 64 MiB");
	tap_ok(in_set(0, &b) && in_set(0, &a) && !sim_memory(0, &two, &total) &&
		       two == one + (64 << 20), "built for another set, as much again");
	tap_ok(!launch(exec, streams[0]) && !gpupart_process_set(gp, gpu, &b) &&
		       !launch(exec, streams[0]) && !exec_destroy(exec) &&
		       !cuStreamSynchronize(streams[0]) && read_records() && ran(0, &b),
	       "destroyed while both run: they run to their end");
	tap_ok(!sim_memory(0, &again, &total) && again == none && nr_destroyed == 2,
	       "and nothing is left");
	tap_ok(!instantiate(&later, graph, 0), "another graph");
	exec = later;
	tap_ok(in_set(0, &a) && in_set(0, &b) && !cuCtxDestroy(p.ctx) && !exec_destroy(exec) &&
		       nr_destroyed == 3, "after its context nothing of it but the program's is");
}

static void updated(void)
{
	struct cuda_kernel_node k;
	struct cuda_graph_update info = { 0 };
	P other_nodes[NR_NODES], other;
	int wrong = 0, built;

	if (!begin())
		return;
	nr_reapplied();
	tap_ok(in_set(0, &a) && in_set(0, &b) && nr_reapplied() == 1, "built for two sets");
	for (int n = 0; n < NR_NODES; n++) {
		k = kernel(n, 1);
		wrong += set_kernel(exec, nodes[n], &k);
	}
	built = nr_built;
	tap_ok(!wrong && in_set(1, &a) && in_set(1, &b), "other arguments reach both");
	tap_ok(nr_built == built && !nr_reapplied(), "and build nothing");
	k = kernel(1, 1);
	k.shared -= 1024;
	built = nr_built;
	tap_ok(!set_kernel(exec, nodes[1], &k) && in_set(1, &a) && in_set(1, &b) &&
		       nr_built == built + 2, "a node that is built again is built in both");
	other = graph_to(2, other_nodes);
	tap_ok(other && !exec_update(exec, other, &info) && in_set(2, &b) && in_set(2, &a),
	       "an update reaches both");
	tap_ok(!exec_update(exec, graph, &info) && in_set(0, &b) && in_set(0, &a) &&
		       in_set(0, &b) && !nr_reapplied(), "and one back");
	tap_ok(in_set(0, &c) && nr_reapplied() == 1, "a third set after that");
	tap_ok(!graph_destroy(graph) && in_set(0, &d) && nr_reapplied() == 1,
	       "a fourth, with the graph destroyed");
	tap_ok(!counted().graphs_stale, "none is counted as stale");
}

/* The library cannot repeat a change by a node of an earlier graph on its clone. */
static void not_built_again(void)
{
	struct cuda_graph_update info = { 0 };
	struct cuda_kernel_node k;
	P other_nodes[NR_NODES], other;

	if (!begin() || !tap_ok(in_set(0, &a), "built for one set"))
		return;
	other = graph_to(1, other_nodes);
	k = kernel(0, 1);
	tap_ok(other && !exec_update(exec, other, &info) && !set_kernel(exec, nodes[0], &k),
	       "an update, and then a change by a node of the first graph");
	tap_ok(gpupart_graph_prepare(gp, gpu, exec, streams[0], &b, 1) == -EIO,
	       "it cannot be prepared: %s", gpupart_error(gp));
}

/* Only the program's own build has the disabled node, so the library removes the variants. */
static void disabled(void)
{
	if (!begin())
		return;
	nr_reapplied();
	tap_ok(in_set(0, &a) && in_set(0, &b) && nr_reapplied() == 1, "built for two sets");
	tap_ok(!gpupart_process_set(gp, gpu, &a) && !launch(exec, streams[0]) &&
		       !gpupart_process_set(gp, gpu, &b) && !launch(exec, streams[0]) &&
		       !set_enabled(exec, nodes[1], 0), "a node is disabled while they run");
	for (int i = 0; i < 2; i++) {
		/* All earlier launches have ended. The next launches clear the memory. */
		in_set(0, i ? &a : &b);
		tap_ok(begun == exec, "launch %d is of the program's own", i);
	}
	tap_ok(!set_enabled(exec, nodes[1], 1) && in_set(0, &b) && in_set(0, &a) &&
		       begun == exec, "enabled again, it runs in each set");
	tap_ok(gpupart_graph_prepare(gp, gpu, exec, streams[0],
				     (struct gpupart_tpcset[]){ a, b }, 2) == -EOPNOTSUPP,
	       "and has no variants: %s", gpupart_error(gp));
}

/*
 * Each of these functions returns a time of the launch with records at @place: its begin or its
 * end.
 */
static U64 first_start(int place)
{
	U64 least = ~0ull;

	for (int n = 0; n < NR_NODES; n++)
		for (int block = 0; block < NR_BLOCKS; block++)
			if (records[place][n][block].start < least)
				least = records[place][n][block].start;
	return least;
}

static U64 last_end(int place)
{
	U64 most = 0;

	for (int n = 0; n < NR_NODES; n++)
		for (int block = 0; block < NR_BLOCKS; block++)
			if (records[place][n][block].end > most)
				most = records[place][n][block].end;
	return most;
}

/*
 * Launches @places times without waiting. Each launch uses the stream @into(n) and has separate
 * records.
 */
static bool one_after_the_other(int places, P (*into)(int), int *overlaps, int *outside)
{
	memset(records, 0xff, sizeof(records));
	for (int n = 0; n < places; n++) {
		for (int node = 0; node < NR_NODES; node++) {
			struct cuda_kernel_node k = kernel(node, n);

			if (set_kernel(exec, nodes[node], &k))
				return false;
		}
		if (launch(exec, into(n)))
			return false;
	}
	for (int i = 0; i < 2; i++)
		if (cuStreamSynchronize(streams[i]))
			return false;
	if (!read_records())
		return false;
	*overlaps = *outside = 0;
	for (int n = 0; n < places; n++) {
		*outside += !ran(n, into(n) == streams[0] ? &a : &b);
		*overlaps += n && first_start(n) < last_end(n - 1);
	}
	return true;
}

static P in_turns(int n)
{
	return streams[n % 2];
}

static P in_pairs(int n)
{
	return streams[n / 2 % 2];
}

/*
 * The driver never runs two launches of a graph at the same time. So launches of the graph's
 * variants must not overlap.
 */
static void order(void)
{
	int overlaps, outside;

	if (!begin())
		return;
	gpupart_stream_set(gp, gpu, streams[0], &a);
	gpupart_stream_set(gp, gpu, streams[1], &b);
	for (int round = 0; round < 3; round++)
		tap_ok(one_after_the_other(NR_OUTS, round == 1 ? in_pairs : in_turns, &overlaps,
					   &outside) && !overlaps && !outside,
		       "two streams with a set each: %d launches overlap, %d left their set",
		       overlaps, outside);
	nr_reapplied();
	nr_replaced = 0;
	tap_ok(one_after_the_other(NR_OUTS, in_turns, &overlaps, &outside) && !nr_reapplied() &&
		       nr_replaced == NR_OUTS / 2, "and nothing is built again");
	gpupart_stream_set(gp, gpu, streams[1], NULL);
	tap_ok(!set_enabled(exec, nodes[0], 1) &&
		       !gpupart_stream_set(gp, gpu, streams[1], &b) &&
		       one_after_the_other(NR_OUTS, in_turns, &overlaps, &outside) &&
		       !overlaps && !outside && begun == exec,
	       "without variants: %d overlap, %d left their set", overlaps, outside);
}

/*
 * The first launch in the second stream must wait for the launch in the first stream. No event
 * shows the end of the launch in the first stream.
 */
static void order_at_first(void)
{
	int overlaps, outside;

	if (!begin())
		return;
	gpupart_stream_set(gp, gpu, streams[0], &a);
	gpupart_stream_set(gp, gpu, streams[1], &b);
	tap_ok(one_after_the_other(2, in_turns, &overlaps, &outside) && !overlaps && !outside,
	       "the first two launches: %d overlap, %d left their set", overlaps, outside);
}

/*
 * The last launch is of a variant, which is then removed. No event shows the end of this launch. A
 * launch into another stream must wait for it.
 */
static void order_removed(void)
{
	const struct gpupart_tpcset *sets[] = { &a, &b, &a };
	struct cuda_kernel_node k;
	int wrong = 0;

	if (!begin())
		return;
	memset(records, 0xff, sizeof(records));
	for (int n = 0; n < 3; n++) {
		for (int node = 0; node < NR_NODES; node++) {
			k = kernel(node, n);
			wrong += set_kernel(exec, nodes[node], &k);
		}
		wrong += n == 2 && set_enabled(exec, nodes[0], 1);
		wrong += gpupart_process_set(gp, gpu, sets[n]) || launch(exec, streams[n / 2]);
		tap_ok(!wrong && (begun == exec) == (n != 1), "launch %d", n);
	}
	tap_ok(!cuStreamSynchronize(streams[1]) && read_records() && ran(0, &a) && ran(1, &b) &&
		       ran(2, &a), "each in its set");
	tap_ok(last_end(1) <= first_start(2), "and one after the other");
}

/*
 * A launch into a second stream would use the build of the last launch, and build it again. If
 * another stream is destroyed, a launch into the first stream must not count as such a launch.
 */
static void another_destroyed(bool is_default)
{
	P stream, other;

	if (!begin())
		return;
	stream = is_default ? NULL : streams[0];
	tap_ok(!gpupart_process_set(gp, gpu, &a) && !launch(exec, stream) &&
		       !gpupart_process_set(gp, gpu, &b) && !launch(exec, stream) &&
		       !cuStreamCreate(&other, 0) && !stream_destroy(other) &&
		       !gpupart_process_set(gp, gpu, &a) && nr_reapplied() == 1,
	       "two builds, and another stream is destroyed");
	tap_ok(!launch(exec, stream) && !nr_reapplied() && begun == exec,
	       "nothing is built again for a launch into the first stream");
}

static void order_destroyed(void)
{
	another_destroyed(false);
}

static void order_default(void)
{
	another_destroyed(true);
}

static void *launch_in_thread(void *set)
{
	return (void *)(intptr_t)(cuCtxSetCurrent(p.ctx) || gpupart_process_set(gp, gpu, set) ||
				  launch(exec, (P)2));
}

/*
 * The per-thread default stream ends with its thread. A later thread has another one, although it
 * may have the same thread-local memory.
 */
static void order_thread(void)
{
	struct gpupart_tpcset *sets[] = { &a, &b };
	pthread_t thread;
	void *wrong;

	if (!begin())
		return;
	for (int n = 0; n < 2; n++)
		tap_ok(!pthread_create(&thread, NULL, launch_in_thread, sets[n]) &&
			       !pthread_join(thread, &wrong) && !wrong, "thread %d launches", n);
	tap_ok(begun == exec, "into a second stream, so the last build is built again");
}

static P prepared_between(int n)
{
	if (n && gpupart_graph_prepare(gp, gpu, exec, streams[1], &b, 1))
		return NULL;
	return streams[n];
}

static void order_prepared(void)
{
	struct cuda_kernel_node k;

	if (!begin())
		return;
	gpupart_stream_set(gp, gpu, streams[0], &a);
	gpupart_stream_set(gp, gpu, streams[1], &b);
	memset(records, 0xff, sizeof(records));
	for (int n = 0; n < 2; n++) {
		for (int node = 0; node < NR_NODES; node++) {
			k = kernel(node, n);
			set_kernel(exec, nodes[node], &k);
		}
		tap_ok(!launch(exec, prepared_between(n)), "launch %d", n);
	}
	tap_ok(!cuStreamSynchronize(streams[0]) && !cuStreamSynchronize(streams[1]) &&
		       read_records() && ran(0, &a) && ran(1, &b), "each in its set");
	tap_ok(last_end(0) <= first_start(1),
	       "prepared while it runs in one stream, it waits for that in another");
}

static void prepared(void)
{
	struct gpupart_tpcset bad = { { 0 } }, five[5];
	P captured = NULL;
	int built;

	if (!begin())
		return;
	memcpy(five, (struct gpupart_tpcset[]){ a, b, c, d, e }, sizeof(five));
	tap_ok(!gpupart_graph_prepare(gp, gpu, exec, streams[0], five, 3),
	       "three sets before the first launch: %s", gpupart_error(gp));
	tap_ok(nr_built == 3 * NR_NODES, "%d nodes are built", nr_built);
	nr_reapplied();
	built = nr_built;
	tap_ok(in_set(0, &c) && in_set(0, &a) && in_set(0, &b), "the process's set");
	tap_ok(!gpupart_process_set(gp, gpu, NULL) && !gpupart_thread_set(gp, gpu, &b) &&
		       in(0, &b) && !gpupart_thread_set(gp, gpu, NULL), "the thread's");
	tap_ok(!gpupart_stream_set(gp, gpu, streams[0], &a) && in(0, &a), "the stream's");
	tap_ok(!gpupart_next_set(gp, gpu, &c) && in(0, &c) && in(0, &a), "the next launch's");
	gpupart_stream_set(gp, gpu, streams[0], NULL);
	tap_ok(nr_built == built && !nr_reapplied(), "and nothing is built");
	tap_ok(!gpupart_graph_prepare(gp, gpu, exec, streams[0], five, 4) &&
		       nr_built == built + NR_NODES, "a fourth is built alone");
	tap_ok(!gpupart_graph_prepare(gp, gpu, exec, streams[0], &five[4], 1) &&
		       nr_built == built + 2 * NR_NODES && in_set(0, &e) &&
		       nr_built == built + 2 * NR_NODES, "a fifth in place of another");

	tap_ok(gpupart_graph_prepare(gp, gpu, exec, streams[0], five, 5) == -EOPNOTSUPP,
	       "five at once: %s", gpupart_error(gp));
	tap_ok(gpupart_graph_prepare(gp, gpu, exec, streams[0], &bad, 1) == -EINVAL,
	       "an empty set: %s", gpupart_error(gp));
	tap_ok(gpupart_graph_prepare(gp, gpu, graph, streams[0], five, 1) == -EINVAL,
	       "what is no executable graph: %s", gpupart_error(gp));
	begin_capture(streams[0], 2);
	tap_ok(gpupart_graph_prepare(gp, gpu, exec, streams[0], five, 1) == -EBUSY &&
		       !end_capture(streams[0], &captured),
	       "in a stream that is captured: %s", gpupart_error(gp));
	cuCtxSetCurrent(NULL);
	tap_ok(gpupart_graph_prepare(gp, gpu, exec, streams[0], five, 1) == -EINVAL,
	       "without a context: %s", gpupart_error(gp));
}

static void uploaded(void)
{
	if (!begin())
		return;
	tap_ok(in_set(0, &a) && !gpupart_process_set(gp, gpu, &b) && !upload(exec, streams[0]) &&
		       nr_built == 2 * NR_NODES, "uploaded for another set");
	tap_ok(in(0, &b) && in_set(0, &a) && nr_built == 2 * NR_NODES, "a launch builds nothing");
}

/* A function's set takes precedence over other sets. A new set of a function needs a new build. */
static void functions(void)
{
	if (!begin())
		return;
	tap_ok(in_set(0, &a) && in_set(0, &b), "built for two sets");
	tap_ok(!gpupart_rule_set(gp, gpu, "gpupart_*", &c) && in(0, &c) &&
		       !gpupart_process_set(gp, gpu, &a) && in(0, &c) &&
		       !gpupart_process_set(gp, gpu, &b) && in(0, &c),
	       "a rule for its kernels: %s", gpupart_error(gp));
	nr_reapplied();
	gpupart_process_set(gp, gpu, &a);
	tap_ok(in(0, &c) && !nr_reapplied(), "and nothing more is built");
	tap_ok(!gpupart_next_set(gp, gpu, &a) && in(0, &a) && nr_reapplied() == 1 && in(0, &c),
	       "a next-launch set goes before it");
	tap_ok(!gpupart_rule_set(gp, gpu, "gpupart_*", NULL) && in_set(0, &b) && in_set(0, &a) &&
		       in_set(0, &b), "taken away");
	tap_ok(!counted().graphs_stale, "none is counted as stale");
}

static const struct scenario scenarios[] = {
	{ "alternating", alternating, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "fifth-set", fifth_set, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "limited", limited, "@b",
	  { "GPUPART_SIM_FAULTS=subscribers=2", "GPUPART_GRAPH_SETS=1" }, NULL },
	{ "profiled", limited, "@b",
	  { "GPUPART_SIM_FAULTS=subscribers=2", "GPUPART_PROFILE=1" }, NULL },
	{ "captured", captured, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "refused", refused, "@b", { "GPUPART_SIM_FAULTS=subscribers=2,graphs=1" }, NULL },
	{ "no-memory", refused, "@b",
	  { "GPUPART_SIM_FAULTS=subscribers=2,graph-memory=100000000000" }, NULL },
	{ "memory", memory, "@b", { "GPUPART_SIM_FAULTS=subscribers=2,graph-memory=67108864" },
	  NULL },
	{ "updated", updated, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "not-built-again", not_built_again, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "disabled", disabled, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "order", order, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "order-at-first", order_at_first, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "order-destroyed", order_destroyed, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "order-default", order_default, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "order-removed", order_removed, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "order-thread", order_thread, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "order-prepared", order_prepared, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "prepared", prepared, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "uploaded", uploaded, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "functions", functions, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
