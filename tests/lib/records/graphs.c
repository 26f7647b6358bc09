// SPDX-License-Identifier: MIT
/*
 * Tests the records of executable graphs on the simulated GPU. It tests the numbers of ended and
 * unknown launches.
 */
#include "lib/driver/cuda.h"
#include "lib/private.h"
#include "lib/records/records.h"
#include "tests/lib/scenario.h"

#define LONG_NS		3000000
#define IDLE_NS		300000000

#define GRAPH_CALLS(F)                                                       \
	F(graph_create, "cuGraphCreate", (P *, U))                           \
	F(graph_destroy, "cuGraphDestroy", (P))                              \
	F(graph_clone, "cuGraphClone", (P *, P))                             \
	F(add_kernel, "cuGraphAddKernelNode_v2",                             \
	  (P *, P, const P *, size_t, const struct cuda_kernel_node *))      \
	F(add_empty, "cuGraphAddEmptyNode", (P *, P, const P *, size_t))     \
	F(add_child, "cuGraphAddChildGraphNode", (P *, P, const P *, size_t, P)) \
	F(instantiate, "cuGraphInstantiateWithFlags", (P *, P, U64))         \
	F(upload, "cuGraphUpload", (P, P))                                   \
	F(launch, "cuGraphLaunch", (P, P))                                   \
	F(exec_destroy, "cuGraphExecDestroy", (P))                           \
	F(stream_query, "cuStreamQuery", (P))                                \
	F(exec_update, "cuGraphExecUpdate_v2", (P, P, struct cuda_graph_update *)) \
	F(set_kernel, "cuGraphExecKernelNodeSetParams_v2",                   \
	  (P, P, const struct cuda_kernel_node *))

#define DECLARE_GRAPH(call, symbol, args) static CU (*call) args;
GRAPH_CALLS(DECLARE_GRAPH)

static struct program p;
static P streams[2], other;

static bool begin(void)
{
	static const char ptx[] =
		".version 4.2\n.target sm_30\n.address_size 64\n"
		".visible .entry gpupart_trace_timed(.param .u64 out, .param .u32 spin_ns)\n"
		"{ ret; }\n";
	bool good = !gpupart_open(&gp) && !gpupart_process_publish(gp, "graphs") &&
		    !attach("cuda:0") && !program_start(&p, 0);
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	P module;

#define FIND_GRAPH(call, symbol, args) *(void **)&call = dlsym(lib, symbol);
	GRAPH_CALLS(FIND_GRAPH)
	for (int i = 0; i < 2; i++)
		good = good && !cuStreamCreate(&streams[i], 1);
	good = good && !cuModuleLoadData(&module, ptx) &&
	       !cuModuleGetFunction(&other, module, "gpupart_trace_timed");
	return tap_ok(good, "a program");
}

/* ------------------------------------------------------------------- reading */

static bool read_of(int pid, struct gpupart_records *r, int *busy)
{
	const char *pci = gpupart_topology_info(gpupart_gpu_topology(gpu))->pci;
	struct gpupart_records_reader *reader;
	bool good;

	if (gpupart_records_open(gp, pid, pci, &reader))
		return false;
	*busy = gpupart_records_busy(gp, reader);
	good = !gpupart_records_read(gp, reader, r, sizeof(*r)) && r->on;
	gpupart_records_close(reader);
	return good;
}

/* If the read values are wrong, prints the values. */
static bool reads_of(int pid, uint64_t issued, uint64_t outstanding, uint64_t unknown)
{
	struct gpupart_records r = { .on = false };
	int busy = -1;
	bool same = read_of(pid, &r, &busy) && r.issued == issued &&
		    r.outstanding == outstanding && r.unknown == unknown &&
		    r.all_known == !unknown && busy == (outstanding || unknown);

	if (!same)
		printf("# issued %llu ended %llu outstanding %llu unknown %llu graphs %llu "
		       "busy %d\n",
		       (U64)r.issued, (U64)r.ended, (U64)r.outstanding,
		       (U64)r.unknown, (U64)r.graphs, busy);
	return same;
}

static bool reads(uint64_t issued, uint64_t outstanding, uint64_t unknown)
{
	return reads_of(0, issued, outstanding, unknown);
}

static uint64_t busy_ns(void)
{
	struct gpupart_records r;
	int busy;

	return read_of(0, &r, &busy) ? r.busy_ns : 0;
}

/* ------------------------------------------------------------------- graphs */

static P kernel_node(P graph, P before, P function, unsigned int blocks, unsigned int ns)
{
	P node, args[] = { &p.out, &ns };
	struct cuda_kernel_node kernel = {
		.function = function, .grid = { blocks, 1, 1 }, .block = { 32, 1, 1 },
		.params = args,
	};

	return add_kernel(&node, graph, &before, !!before, &kernel) ? NULL : node;
}

/* Creates a graph. It begins with one kernel. @last parallel kernels with @function follow. */
static P graph_of(P function, unsigned int last, unsigned int ns)
{
	P graph, first;

	if (graph_create(&graph, 0))
		return NULL;
	first = kernel_node(graph, NULL, other, 1, 1000);
	for (unsigned int i = 0; i < last; i++)
		if (!kernel_node(graph, first, function, 1 + i, ns))
			return NULL;
	return graph;
}

static P exec_of(P graph)
{
	P exec;

	return graph && !instantiate(&exec, graph, 0) ? exec : NULL;
}

static bool launched(P exec, unsigned int times)
{
	bool good = exec;

	for (unsigned int i = 0; good && i < times; i++)
		good = !launch(exec, streams[i % 2]);
	return good;
}

static bool synced(void)
{
	return !cuStreamSynchronize(streams[0]) && !cuStreamSynchronize(streams[1]);
}

static bool runs(P exec, unsigned int times)
{
	return launched(exec, times) && synced();
}

/* ------------------------------------------------------------------- scenarios */

static bool child_reads(uint64_t issued, uint64_t outstanding)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		bool good = reads_of(getppid(), issued, outstanding, 0);

		fflush(stdout);
		_exit(!good);
	}
	waitpid(pid, &status, 0);
	return !status;
}

static void counts(void)
{
	P one, three, child, clone, graph, node;

	if (!begin())
		return;
	one = exec_of(graph_of(p.function, 1, 1000));
	three = exec_of(graph_of(p.function, 3, 1000));
	tap_ok(reads(0, 0, 0), "two graphs, not launched");
	tap_ok(runs(one, 7) && reads(7, 0, 0), "one last kernel, 7 launches on two streams");
	tap_ok(runs(three, 5) && reads(12, 0, 0), "three last kernels: a launch each time");
	tap_ok(child_reads(12, 0), "another process reads the same");
	tap_ok(!upload(exec_of(graph_of(p.function, 1, 1000)), streams[0]) && synced() &&
	       reads(12, 0, 0), "an upload is no launch");
	tap_ok(!graph_create(&graph, 0) &&
	       !add_child(&node, graph, NULL, 0, graph_of(p.function, 2, 1000)) &&
	       runs(exec_of(graph), 3) && reads(15, 0, 0), "a child graph at the end");
	child = graph_of(p.function, 1, 1000);
	tap_ok(!graph_clone(&clone, child) && !graph_destroy(child) && runs(exec_of(clone), 2) &&
	       reads(17, 0, 0), "a graph that was cloned");
	tap_ok(runs(exec_of(graph_of(other, 2, 1000)), 4) && reads(21, 0, 0),
	       "the last kernels' function is an earlier one's, too");
	tap_ok(!program_launch(&p, streams[0], 1, 100) && synced() && reads(22, 0, 0),
	       "launches of kernels are counted beside them");
}

static void outstanding(void)
{
	P exec, two;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 3, LONG_NS));
	two = exec_of(graph_of(p.function, 1, LONG_NS));
	tap_ok(launched(exec, 1) && reads(1, 1, 0) && child_reads(1, 1), "one runs: busy");
	tap_ok(launched(exec, 3) && launched(two, 1) && reads(5, 5, 0), "and four more");
	tap_ok(synced() && reads(5, 0, 0), "they have ended");
	tap_ok(launched(exec, 2) && !exec_destroy(exec) && reads(7, 2, 0),
	       "destroyed while it runs: outstanding");
	/* An old graph still runs. The new graph must not get the cells of the old graph. */
	exec = exec_of(graph_of(p.function, 1, 1000));
	tap_ok(launched(exec, 1) && reads(8, 3, 0), "another one is launched meanwhile");
	tap_ok(synced() && reads(8, 0, 0), "all have ended");
	for (int i = 0; i < 600; i++) {
		exec = exec_of(graph_of(p.function, 1 + i % 3, 1000));
		if (!runs(exec, 1) || exec_destroy(exec))
			tap_ok(false, "graph %d", i);
	}
	tap_ok(reads(608, 0, 0), "600 more, one after the other: entries are used again");
}

/* The graph is built for several sets. All builds belong to one graph. */
static void several_sets(void)
{
	static const char *const tpcs[] = { "0-3", "8-11", "20,21", "30-32", "40-47" };
	struct gpupart_tpcset set;
	P exec;
	int good = 0;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 3, LONG_NS));
	for (int i = 0; i < 10; i++) {
		set = list(tpcs[i % 2]);
		gpupart_process_set(gp, gpu, &set);
		good += !launch(exec, streams[i / 2 % 2]) && reads(i + 1, i + 1, 0);
	}
	tap_ok(good == 10, "under two sets in turns: all %d run", good);
	tap_ok(synced() && reads(10, 0, 0), "they have ended");
	for (int i = 0; i < 10; i++) {
		set = list(tpcs[i % 5]);
		gpupart_process_set(gp, gpu, &set);
		good += !launch(exec, streams[0]);
	}
	tap_ok(good == 20 && reads(20, 10, 0), "under five sets");
	tap_ok(!exec_destroy(exec) && reads(20, 10, 0), "destroyed while they run: outstanding");
	tap_ok(synced() && reads(20, 0, 0), "all have ended");
}

static void unknown(void)
{
	P graph, node, exec;

	if (!begin())
		return;
	graph = graph_of(p.function, 1, 1000);
	tap_ok(runs(exec_of(graph), 1) && reads(1, 0, 0), "known");
	tap_ok(!add_empty(&node, graph, NULL, 0) && runs(exec_of(graph), 2) && reads(1, 0, 2),
	       "a last node that is no kernel: unknown, so not idle");
	tap_ok(runs(exec_of(graph_of(p.function, 40, 1000)), 1) && reads(1, 0, 3),
	       "too many kernels that would count: unknown");
	exec = exec_of(graph_of(p.function, 1, 1000));
	tap_ok(runs(exec, 1) && reads(2, 0, 3), "and a known one beside them");
}

static bool reads_streams(struct gpupart_records r[2])
{
	return !gpupart_records_stream(gp, gpu, streams[0], &r[0], sizeof(r[0])) &&
	       !gpupart_records_stream(gp, gpu, streams[1], &r[1], sizeof(r[1]));
}

static bool unknown_on(unsigned int first, unsigned int second)
{
	struct gpupart_records r[2];

	return reads_streams(r) && r[0].unknown == first && r[1].unknown == second;
}

static bool outstanding_on(unsigned int first, unsigned int second)
{
	struct gpupart_records r[2];

	return reads_streams(r) && r[0].outstanding == first && r[1].outstanding == second;
}

/* A launch of a graph makes the launches of its stream unknown, but not those of other streams. */
static void each_stream(void)
{
	P graph, node, odd, exec;

	if (!begin())
		return;
	graph = graph_of(p.function, 1, 1000);
	tap_ok(!add_empty(&node, graph, NULL, 0) && (odd = exec_of(graph)) &&
	       !program_launch(&p, streams[0], 1, 100) && !program_launch(&p, streams[1], 1, 100) &&
	       !launch(odd, streams[0]) && !launch(odd, streams[0]) && synced() &&
	       reads(2, 0, 2) && unknown_on(2, 0), "a last node that is no kernel, on one stream");
	tap_ok(!program_launch(&p, streams[1], 1, 100) && synced() && reads(3, 0, 2) &&
	       unknown_on(2, 0), "a kernel on the other stream shows nothing");
	tap_ok(!program_launch(&p, streams[0], 1, 100) && synced() && reads(4, 0, 0) &&
	       unknown_on(0, 0), "when a later kernel on its stream has ended, the graph has too");
	exec = exec_of(graph_of(p.function, 1, LONG_NS));
	tap_ok(exec && !launch(exec, streams[1]) && reads(5, 1, 0) && unknown_on(0, 0) &&
	       outstanding_on(0, 1), "a known graph runs on one stream");
	tap_ok(!launch(exec, streams[0]) && reads(6, 2, 0) && unknown_on(2, 2) &&
	       outstanding_on(0, 0), "and on the other");
	tap_ok(synced() && reads(6, 0, 0) && unknown_on(0, 0), "they have ended");
	tap_ok(!launch(exec, streams[0]) && reads(7, 1, 0) && outstanding_on(1, 0) && synced() &&
	       outstanding_on(0, 0), "and it runs on the first stream alone");
}

static void updates(void)
{
	struct cuda_graph_update info = { 0 };
	unsigned int ns = 1000;
	P args[] = { &p.out, &ns }, graph, first, last = NULL, exec = NULL;
	struct cuda_kernel_node kernel = {
		.function = p.function, .grid = { 5, 1, 1 }, .block = { 32, 1, 1 }, .params = args,
	};

	if (!begin())
		return;
	tap_ok(!graph_create(&graph, 0) && (first = kernel_node(graph, NULL, other, 1, 1000)) &&
	       (last = kernel_node(graph, first, p.function, 1, 1000)) &&
	       (exec = exec_of(graph)) && runs(exec, 3) && reads(3, 0, 0), "a graph");
	kernel.function = p.function;
	tap_ok(!set_kernel(exec, last, &kernel) && runs(exec, 3) && reads(6, 0, 0),
	       "another grid: its node is built again, and counts once");
	tap_ok(!exec_update(exec, graph_of(p.function, 1, 2000), &info) && runs(exec, 3) &&
	       reads(9, 0, 0), "updated to a graph like it");
	kernel.function = other;
	tap_ok(!set_kernel(exec, last, &kernel) && runs(exec, 2) && reads(9, 0, 2),
	       "another function: unknown from now on");
	exec = exec_of(graph);
	tap_ok(runs(exec, 1) && reads(10, 0, 2) &&
	       !exec_update(exec, graph_of(other, 1, 1000), &info) && runs(exec, 1) &&
	       reads(10, 0, 3), "updated to a graph with another last kernel: unknown");
}

/* If launches have sets, the library rebuilds nodes. */
static void sets(void)
{
	struct gpupart_tpcset set = list("0-3");
	P exec;

	if (!begin())
		return;
	set = list("0-3");
	exec = exec_of(graph_of(p.function, 2, 1000));
	tap_ok(runs(exec, 2) && reads(2, 0, 0), "a graph");
	tap_ok(!gpupart_limit_set(gp, gpu, &set) && runs(exec, 2) && reads(4, 0, 0),
	       "in a limit, for which it is built again: known");
}

static void times(void)
{
	uint64_t before, after;
	struct gpupart_records r;
	int busy;
	P exec;

	if (!begin())
		return;
	/* A launch shows the offset of the clocks. */
	for (int i = 0; i < 100; i++)
		program_launch(&p, streams[0], 1, 1000);
	exec = exec_of(graph_of(p.function, 2, LONG_NS));
	tap_ok(synced() && runs(exec, 1), "a graph was launched");
	before = busy_ns();
	tap_ok(runs(exec, 4), "it is launched 4 times");
	after = busy_ns();
	tap_ok(after - before >= 4 * LONG_NS, "busy for %llu us more", (after - before) / 1000ull);
	before = after;
	for (int i = 0; i < 400; i++)
		if (program_launch(&p, streams[0], 1, 1000) || (i % 4 == 3 && !synced()))
			break;
	tap_ok(read_of(0, &r, &busy) && r.busy_ns >= before && !r.late_ns,
	       "as much and not less after 100 times of launches, each with a gap: %llu us, %llu late",
	       (U64)r.busy_ns / 1000, (U64)r.late_ns / 1000);
	after = r.busy_ns;
	tap_ok(runs(exec, 1) && read_of(0, &r, &busy) && r.busy_ns >= after + LONG_NS &&
	       r.busy_ns <= r.kernels_ns, "and longer after another one");
	for (busy = 0; busy < (int)r.nr_functions; busy++)
		if (!strcmp(r.functions[busy].name, "(CUDA graphs)"))
			break;
	tap_ok(busy < (int)r.nr_functions && r.functions[busy].ns >= 6 * LONG_NS &&
	       r.functions[busy].longest_ns >= 4 * LONG_NS, "graphs are one of its functions");
}

static uint64_t busy_of(unsigned int stream)
{
	struct gpupart_records r[2];

	return reads_streams(r) ? r[stream].busy_ns : 0;
}

/* Sleeps while nothing runs. */
static void idle(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = IDLE_NS }, NULL);
}

/* All launches are followed by a long idle time, which is no busy time. */
static void idle_times(void)
{
	uint64_t first;
	P exec;

	if (!begin())
		return;
	for (int i = 0; i < 3; i++) {
		if (program_launch(&p, streams[0], 1, 1000) || cuStreamSynchronize(streams[0]))
			tap_ok(false, "launch %d", i);
		idle();
	}
	first = busy_of(0);
	tap_ok(first && first < IDLE_NS, "busy for %llu us, the waits show the ends",
	       first / 1000ull);
	idle();
	tap_ok(busy_of(0) == first && busy_ns() == first, "and not longer while nothing runs");
	exec = exec_of(graph_of(p.function, 1, LONG_NS));
	tap_ok(exec && !launch(exec, streams[1]) && !cuStreamSynchronize(streams[1]),
	       "a graph on a stream without kernels");
	idle();
	first = busy_of(1);
	tap_ok(first >= LONG_NS && first < IDLE_NS, "its stream was busy for %llu us",
	       first / 1000ull);
	tap_ok(!program_launch(&p, streams[1], 1, 1000) && synced() && busy_of(1) > first,
	       "a kernel on the same stream adds its time");
}

/* A launch that fails after an idle time does not change the times of later launches. */
static void failed_launch(void)
{
	uint64_t first;
	P exec, ctx, stream;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 1, LONG_NS));
	tap_ok(exec && !launch(exec, streams[0]) && synced() && !cuCtxCreate(&ctx, 0, 0) &&
	       !cuStreamCreate(&stream, 1), "a graph, and a stream of another context");
	idle();
	tap_ok(launch(exec, stream) && !cuCtxSetCurrent(p.ctx) && synced(), "a launch fails");
	first = busy_of(0);
	for (int i = 0; i < 4; i++) {
		program_launch(&p, streams[0], 1, 1000);
		nanosleep(&(struct timespec){ .tv_nsec = IDLE_NS / 4 }, NULL);
	}
	tap_ok(busy_of(0) - first < IDLE_NS / 2 && busy_ns() < IDLE_NS,
	       "four launches take %llu us", (U64)(busy_of(0) - first) / 1000);
}

/* A graph and other work on the same stream, which is submitted while the graph runs. */
static void queued(void)
{
	uint64_t first, all;
	P exec, other_exec;

	if (!begin())
		return;
	tap_ok(!program_launch(&p, streams[0], 1, 1000) && synced(), "a kernel");
	exec = exec_of(graph_of(p.function, 1, 5 * LONG_NS));
	other_exec = exec_of(graph_of(p.function, 1, 3 * LONG_NS));
	first = busy_of(0);
	all = busy_ns();
	for (int i = 0; i < 4; i++) {
		launch(exec, streams[0]);
		nanosleep(&(struct timespec){ .tv_nsec = 4 * LONG_NS }, NULL);
		program_launch(&p, streams[0], 1, LONG_NS);
		cuStreamSynchronize(streams[0]);
	}
	tap_ok(busy_of(0) - first > 23 * LONG_NS && busy_ns() - all > 23 * LONG_NS,
	       "a graph and a kernel, four times: %llu us", (U64)(busy_of(0) - first) / 1000);
	first = busy_of(0);
	for (int i = 0; i < 4; i++) {
		launch(i % 2 ? exec : other_exec, streams[0]);
		nanosleep(&(struct timespec){ .tv_nsec = 2 * LONG_NS }, NULL);
		launch(i % 2 ? other_exec : exec, streams[0]);
		cuStreamSynchronize(streams[0]);
	}
	tap_ok(busy_of(0) - first > 31 * LONG_NS, "two graphs, four times: %llu us",
	       (U64)(busy_of(0) - first) / 1000);
	first = busy_of(0);
	for (int i = 0; i < 5; i++)
		launch(exec, streams[0]);
	nanosleep(&(struct timespec){ .tv_nsec = 12 * LONG_NS }, NULL);
	tap_ok(busy_of(0) - first > 9 * LONG_NS, "five launches, seen in the middle: %llu us",
	       (U64)(busy_of(0) - first) / 1000);
	tap_ok(synced() && busy_of(0) - first > 24 * LONG_NS, "and at their end");
	first = busy_of(1);
	for (int i = 0; i < 3; i++) {
		program_launch(&p, streams[1], 1, 1000);
		while (stream_query(streams[1]))
			;
		idle();
	}
	tap_ok(busy_of(1) - first < IDLE_NS, "a program that asks instead of waiting: %llu us",
	       (U64)(busy_of(1) - first) / 1000);
}

#define NR_EXECS 8

/* Returns how much more the sum of all times is than the busy time. */
static int64_t surplus_of(int pid)
{
	struct gpupart_records r;
	int busy;

	return read_of(pid, &r, &busy) ? (int64_t)(r.kernels_ns - r.busy_ns) : INT64_MAX;
}

/* Another process reads before this process has added the times of its graphs to the totals. */
static bool child_surplus_below(int64_t limit)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		const int64_t surplus = surplus_of(getppid());

		printf("# another process reads %lld us too much\n", (long long)surplus / 1000);
		fflush(stdout);
		_exit(surplus >= limit);
	}
	waitpid(pid, &status, 0);
	return !status;
}

/* Launches all graphs on the first stream, each followed by @kernels kernels. */
static void launch_all(P execs[NR_EXECS], unsigned int kernels)
{
	for (unsigned int i = 0; i < NR_EXECS; i++) {
		launch(execs[i], streams[0]);
		for (unsigned int n = 0; n < kernels; n++)
			program_launch(&p, streams[0], 1, LONG_NS / 4);
	}
}

/* Returns an upper bound of the time of all graphs that a reader has watched. */
static uint64_t watched_ns(struct gpupart_records_reader *reader)
{
	struct gpupart_records_watched watched;
	struct gpupart_records now;
	unsigned int pause_us;

	for (int i = 0; i < 3; i++)
		if (gpupart_records_watch(gp, reader, &now, &pause_us))
			return 0;
	gpupart_records_watched(reader, &watched);
	for (unsigned int n = 0; n < watched.nr_kernels; n++)
		if (!strcmp(watched.kernels[n].name, "(CUDA graphs)"))
			return watched.kernels[n].most_ns;
	return 0;
}

/* Different graphs on one stream never overlap, so the sum of their times is the busy time. */
static void queued_graphs(void)
{
	const char *pci;
	struct gpupart_records_reader *reader;
	struct gpupart_records r;
	unsigned int pause_us;
	uint64_t before;
	P execs[NR_EXECS], beside;
	int busy;

	if (!begin())
		return;
	for (int i = 0; i < 100; i++)
		program_launch(&p, streams[0], 1, 1000);
	for (unsigned int i = 0; i < NR_EXECS; i++)
		execs[i] = exec_of(graph_of(p.function, 1, LONG_NS));
	beside = exec_of(graph_of(p.function, 1, NR_EXECS * LONG_NS));
	pci = gpupart_topology_info(gpupart_gpu_topology(gpu))->pci;
	tap_ok(synced() && surplus_of(0) < LONG_NS / 2 &&
	       !gpupart_records_open(gp, 0, pci, &reader) &&
	       !gpupart_records_watch(gp, reader, &r, &pause_us), "kernels");
	launch_all(execs, 0);
	tap_ok(synced() && surplus_of(0) < LONG_NS / 2, "%d graphs at once: %lld us too much",
	       NR_EXECS, (long long)surplus_of(0) / 1000);
	tap_ok(read_of(0, &r, &busy) && r.functions[0].longest_ns < 2 * LONG_NS,
	       "the longest one took %llu us", (U64)r.functions[0].longest_ns / 1000);
	before = watched_ns(reader);
	tap_ok(before > (NR_EXECS - 1) * LONG_NS && before < 2 * NR_EXECS * LONG_NS,
	       "and they took at most %llu us", (U64)before / 1000);
	gpupart_records_close(reader);
	launch_all(execs, 0);
	nanosleep(&(struct timespec){ .tv_nsec = NR_EXECS * LONG_NS / 2 }, NULL);
	tap_ok(child_surplus_below(LONG_NS / 2), "another process reads while they run");
	nanosleep(&(struct timespec){ .tv_nsec = NR_EXECS * LONG_NS }, NULL);
	tap_ok(child_surplus_below(LONG_NS / 2), "and after they have ended");
	tap_ok(synced() && surplus_of(0) < LONG_NS / 2, "and so does this process");
	launch_all(execs, 1);
	tap_ok(synced() && surplus_of(0) < LONG_NS / 2,
	       "each before a kernel: %lld us too much", (long long)surplus_of(0) / 1000);
	launch_all(execs, 3);
	tap_ok(synced() && surplus_of(0) < LONG_NS / 2,
	       "each before three kernels: %lld us too much", (long long)surplus_of(0) / 1000);
	before = surplus_of(0);
	launch(beside, streams[1]);
	launch_all(execs, 0);
	tap_ok(synced() && surplus_of(0) - before > (NR_EXECS - 2) * LONG_NS,
	       "graphs of two streams run at the same time: %llu us twice",
	       (U64)(surplus_of(0) - before) / 1000);
}

/* Reading assigns no ring, and the child of a fork can read. */
static void readers(void)
{
	struct gpupart_records r;
	int status;
	P exec, stream;
	pid_t pid;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 1, 1000));
	for (int i = 0; i < 70; i++)
		if (cuStreamCreate(&stream, 1) ||
		    gpupart_records_stream(gp, gpu, stream, &r, sizeof(r)))
			tap_ok(false, "stream %d is read", i);
	tap_ok(!program_launch(&p, stream, 1, 1000) && !cuStreamSynchronize(stream) &&
	       reads(1, 0, 0) && !gpupart_records_stream(gp, gpu, stream, &r, sizeof(r)) &&
	       r.ended == 1,
	       "the last of 70 streams has a record");
	tap_ok(!launch(exec, streams[0]) && synced(), "a graph");
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(gpupart_records_stream(gp, gpu, streams[0], &r, sizeof(r)) ||
		      launch(exec, streams[0]) != 3);
	tap_ok(waitpid(pid, &status, 0) == pid && !status,
	       "the child of a fork reads and launches");
	tap_ok(reads(2, 0, 0), "which changes nothing here");
}

/* Another context is destroyed while a graph runs on a stream without kernels. */
static void other_context(void)
{
	struct gpupart_records r;
	P ctx;

	if (!begin())
		return;
	ctx = p.ctx;
	tap_ok(!program_launch(&p, streams[0], 1, 1000) && synced(), "a kernel");
	tap_ok(!program_start(&p, 0) && !cuStreamCreate(&streams[0], 1) &&
	       (other = p.function) &&
	       !launch(exec_of(graph_of(p.function, 1, 100 * LONG_NS)), streams[0]),
	       "a graph runs in a second context");
	tap_ok(!cuCtxDestroy(ctx) && !cuCtxSetCurrent(p.ctx) &&
	       !gpupart_records_stream(gp, gpu, streams[0], &r, sizeof(r)) &&
	       (r.outstanding == 1 || r.busy_ns), "the first context is destroyed");
	tap_ok(!cuStreamSynchronize(streams[0]) && busy_of(0) > 99 * LONG_NS,
	       "the graph was busy for %llu us", (U64)busy_of(0) / 1000);
}

/* A program that never waits. The first read shows the end, and later reads change nothing. */
static void never_waits(void)
{
	uint64_t first;

	if (!begin())
		return;
	tap_ok(!program_launch(&p, streams[0], 1, 1000), "a launch without a wait");
	idle();
	first = busy_of(0);
	idle();
	tap_ok(first && busy_of(0) == first && busy_ns() == first, "busy for %llu us, read twice",
	       first / 1000ull);
}

static void lost_records(void)
{
	P exec;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 1, 1000));
	tap_ok(runs(exec, 3) && reads(3, 3, 0), "records that never come: busy");
}

static void slots_busy(void)
{
	P exec;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 1, 1000));
	tap_ok(runs(exec, 3) && reads(0, 0, 3), "slots in use: unknown, so not idle");
}

static void contexts(void)
{
	P exec;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 1, 1000));
	tap_ok(runs(exec, 3) && reads(3, 0, 0), "a graph");
	tap_ok(!cuCtxDestroy(p.ctx) && reads(3, 0, 0), "its context goes");
	for (int i = 0; i < 20; i++)
		if (program_start(&p, 0) || cuStreamCreate(&streams[0], 1) ||
		    cuStreamCreate(&streams[1], 1) ||
		    !runs(exec_of(graph_of(p.function, 1, 1000)), 1) || cuCtxDestroy(p.ctx))
			tap_ok(false, "context %d", i);
	tap_ok(reads(23, 0, 0), "20 more, one after the other");
}

/* If a context fails, the library treats its running launches as ended. */
static void lost_context(void)
{
	struct gpupart_records r;
	int busy = -1;
	P exec;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 1, 1000000000));
	tap_ok(!launch(exec, streams[0]) && !launch(exec, streams[0]) && reads(2, 2, 0),
	       "a graph runs for seconds");
	for (int i = 0; i < 2000; i++)
		if (program_launch(&p, streams[1], 1, 1000) || cuStreamSynchronize(streams[1]))
			break;
	tap_ok(cuStreamSynchronize(streams[1]) && read_of(0, &r, &busy) && busy == 1 &&
	       r.outstanding + r.unknown >= 2, "a kernel fails: %llu outstanding, %llu unknown",
	       (U64)r.outstanding, (U64)r.unknown);
	cuCtxDestroy(p.ctx);
	tap_ok(read_of(0, &r, &busy) && busy == 1 && r.unknown >= 2 && !r.all_known,
	       "its context is destroyed: %llu unknown", (U64)r.unknown);
	tap_ok(!program_start(&p, 0) && read_of(0, &r, &busy) && !busy && r.all_known &&
	       r.issued == r.ended,
	       "the driver has let go of its memory: nothing runs any more");
}

/* With the simulated clock, time advances only with later work. */
static void late(void)
{
	P exec, other_exec = NULL;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 2, 1000));
	tap_ok(runs(exec, 2) && reads(2, 2, 0), "records that come later: busy");
	tap_ok(!exec_destroy(exec) && (other_exec = exec_of(graph_of(p.function, 1, 1000))) &&
	       launched(other_exec, 1) && reads(3, 3, 0),
	       "its graph is destroyed, and another one has an entry of its own");
	tap_ok(!program_launch(&p, streams[0], 1, LONG_NS) && synced() && reads(4, 1, 0),
	       "they come: the kernel after them is outstanding");
	tap_ok(!program_launch(&p, streams[0], 1, LONG_NS) && synced() &&
	       runs(other_exec, 1) && reads(6, 2, 0), "and so is the graph's next launch");
}

/*
 * The first launch failed, so it must not count. The second launch may have been made, so it must
 * count as unknown.
 */
static void failed(void)
{
	P exec;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 1, 1000));
	tap_ok(runs(exec, 2) && reads(2, 0, 0), "a graph");
	tap_ok(launch(exec, (P)0x1234) && reads(2, 0, 0), "a launch that was not made is none");
	tap_ok(runs(exec, 1) && reads(3, 0, 0), "and the graph goes on");
}

/* The 32-bit counter and the 64-bit counter of launches wrap around. */
static void wraps(void)
{
	static struct state_ring rings[STATE_NR_RINGS];
	struct records_graph_cell *cell;
	struct state_records *shown;
	P exec, first;

	if (!begin())
		return;
	shown = &state_page_own->records[0];
	first = exec = exec_of(graph_of(p.function, 3, 1000));
	tap_ok(runs(exec, 1) && reads(1, 0, 0) && shown->nr_graphs == 1, "a graph of 3 kernels");
	cell = records_file_find(0)->graphs;
	shown->graph[0].issued = 0x155555554ull;
	atomic_store(&cell->count, (uint32_t)(3 * 0x155555554ull));
	tap_ok(reads(0x155555554ull, 0, 0), "its counter is about to go round");
	for (int i = 1; i <= 4; i++)
		tap_ok(runs(exec, 1) && reads(0x155555554ull + i, 0, 0), "launch %d", i);
	shown->graph[1].issued = 0xffffffffull;
	exec = exec_of(graph_of(p.function, 1, LONG_NS));
	tap_ok(launched(exec, 1) && shown->nr_graphs == 2 && reads(0x255555558ull, 1, 0),
	       "another one whose number goes round is outstanding");
	tap_ok(synced() && reads(0x255555558ull, 0, 0), "and has ended");
	/* Any program of the user can write to this page. */
	shown->nr_graphs = 1ull << 31;
	exec = exec_of(graph_of(p.function, 1, 100 * LONG_NS));
	memcpy(rings, shown->rings, sizeof(rings));
	tap_ok(launched(exec, 1) && runs(first, 1) && reads(0x25555555aull, 0, 0) &&
	       !memcmp(&rings[1], &shown->rings[1], (RECORDS_GRAPH_RING - 1) * sizeof(rings[0])),
	       "more graphs than there can be are none");
}

/*
 * If the state of a graph has become unknown, the graph still uses its entry. No other graph may
 * get this entry.
 */
static void spoilt(void)
{
	unsigned int ns = LONG_NS;
	P args[] = { &p.out, &ns }, graph, first, last = NULL, exec = NULL;
	struct cuda_kernel_node kernel = {
		.function = NULL, .grid = { 5, 1, 1 }, .block = { 32, 1, 1 }, .params = args,
	};
	struct records_graph_cell *cell;

	if (!begin())
		return;
	tap_ok(!graph_create(&graph, 0) && (first = kernel_node(graph, NULL, other, 1, 1000)) &&
	       kernel_node(graph, first, p.function, 1, LONG_NS) &&
	       (last = kernel_node(graph, first, p.function, 1, LONG_NS)) &&
	       (exec = exec_of(graph)) && runs(exec, 1) && reads(1, 0, 0), "a graph");
	kernel.function = other;
	tap_ok(!set_kernel(exec, last, &kernel) && launched(exec, 1) && !exec_destroy(exec) &&
	       reads(1, 0, 1), "with another function it is unknown, and destroyed while it runs");
	exec = exec_of(graph_of(p.function, 1, 3 * LONG_NS));
	tap_ok(exec && !launch(exec, streams[1]) && !cuStreamSynchronize(streams[0]) &&
	       reads(2, 1, 1), "its end tells nothing of a later graph");
	tap_ok(synced() && reads(2, 0, 1), "which ends by itself");
	cell = &records_file_find(0)->graphs[1];
	atomic_fetch_add(&cell->count, 1);
	tap_ok(runs(exec, 1) && reads(2, 0, 2), "more ended than was launched: unknown");
}

/* Tests launches before and after a change of the graph. */
static void drains(void)
{
	struct gpupart_records_reader *reader;
	P exec, odd;

	if (!begin())
		return;
	exec = exec_of(graph_of(p.function, 2, LONG_NS));
	odd = exec_of(graph_of(p.function, 40, 1000));
	tap_ok(!gpupart_records_open(gp, 0, gpupart_topology_info(gpupart_gpu_topology(gpu))->pci,
				     &reader) && launched(exec, 2), "a graph runs");
	gpupart_records_drain(reader);
	tap_ok(gpupart_records_drained(gp, reader) == 0, "from before the change: not drained");
	tap_ok(synced() && launched(exec, 1) && gpupart_records_drained(gp, reader) == 1,
	       "it has ended, and a later launch does not count");
	gpupart_records_drain(reader);
	tap_ok(gpupart_records_drained(gp, reader) == 0, "which counts for the next change");
	tap_ok(launched(odd, 1) && synced() && gpupart_records_drained(gp, reader) == 1,
	       "it has ended, and a later graph without records does not count");
	gpupart_records_drain(reader);
	tap_ok(gpupart_records_drained(gp, reader) == -ENODATA,
	       "a graph without records: unknown (%s)", gpupart_error(gp));
	tap_ok(!program_launch(&p, streams[0], 1, 100) && synced() &&
	       gpupart_records_drained(gp, reader) == 1,
	       "until a later kernel on its stream has ended");
	gpupart_records_close(reader);
}

/* Proves the records before the faults begin. So the faults do no harm. */
static void proves(void)
{
	begin();
}

static void prepare(const struct scenario *scenario)
{
	struct scenario before = { "proves", proves, scenario->sim, { NULL }, NULL };

	tap_ok(!child_quiet(&before), "%s: proven before", scenario->name);
}

static const struct scenario scenarios[] = {
	{ "proves", proves, "@b", { NULL }, NULL },
	{ "counts", counts, "@b", { NULL }, NULL },
	{ "torn", counts, "@b", { "GPUPART_SIM_FAULTS=release-torn=1" }, NULL },
	{ "late", late, "@b", { "GPUPART_SIM_FAULTS=release-late=300" }, prepare },
	{ "outstanding", outstanding, "@b", { NULL }, NULL },
	{ "failed", failed, "@b", { NULL }, NULL },
	{ "wraps", wraps, "@b", { NULL }, NULL },
	{ "spoilt", spoilt, "@b", { NULL }, NULL },
	{ "drains", drains, "@b", { NULL }, NULL },
	{ "several-sets", several_sets, "@b", { NULL }, NULL },
	{ "unknown", unknown, "@b", { NULL }, NULL },
	{ "each-stream", each_stream, "@b", { NULL }, NULL },
	{ "updates", updates, "@b", { NULL }, NULL },
	{ "sets", sets, "@b", { NULL }, NULL },
	{ "times", times, "@b", { "GPUPART_SIM_FAULTS=host-clock" }, NULL },
	{ "idle-times", idle_times, "@b", { "GPUPART_SIM_FAULTS=host-clock,host-thread" }, NULL },
	{ "failed-launch", failed_launch, "@b", { "GPUPART_SIM_FAULTS=host-clock,host-thread" },
	  NULL },
	{ "queued", queued, "@b", { "GPUPART_SIM_FAULTS=host-clock,host-thread" }, NULL },
	{ "queued-graphs", queued_graphs, "@b", { "GPUPART_SIM_FAULTS=host-clock,host-thread" },
	  NULL },
	{ "readers", readers, "@b", { NULL }, NULL },
	{ "other-context", other_context, "@b", { "GPUPART_SIM_FAULTS=host-clock,host-thread" },
	  NULL },
	{ "never-waits", never_waits, "@b", { "GPUPART_SIM_FAULTS=host-clock,host-thread" }, NULL },
	{ "lost-records", lost_records, "@b", { "GPUPART_SIM_FAULTS=release-lost" }, prepare },
	{ "slots-busy", slots_busy, "@b", { "GPUPART_SIM_FAULTS=release-busy" }, prepare },
	{ "contexts", contexts, "@b", { NULL }, NULL },
	{ "contexts-again", contexts, "@b", { "GPUPART_SIM_FAULTS=reuse-contexts" }, NULL },
	{ "lost-context", lost_context, "@b",
	  { "GPUPART_SIM_FAULTS=lose-context=200" }, prepare },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
