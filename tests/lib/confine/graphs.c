// SPDX-License-Identifier: MIT
/*
 * Tests graphs of programs with several threads or several GPUs. In some tests, sets change while
 * nodes are built. In other tests, streams and the current context belong to different GPUs, or
 * captures begin before a stream can have a set. This test uses the simulated driver.
 * tests/gpu/inside.c tests a real driver, and unreported.c tests drivers that do not report
 * everything.
 */
#include <pthread.h>
#include <stddef.h>
#include "lib/driver/cuda.h"
#include "tests/lib/scenario.h"

#define NR_NODES	20
#define NR_BLOCKS	264

static CU (*cuGraphCreate)(P *, U);
static CU (*cuGraphAddKernelNode)(P *, P, const P *, size_t, const struct cuda_kernel_node *);
static CU (*cuGraphInstantiate)(P *, P, U64);
static CU (*cuGraphLaunch)(P, P);
static CU (*cuStreamBeginCapture)(P, int);
static CU (*cuStreamEndCapture)(P, P *);
static CU (*cuStreamDestroy)(P);

static struct record {
	unsigned int smid, cluster;
	U64 start, end;
} records[NR_NODES][NR_BLOCKS];

static bool graphs_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	*(void **)&cuGraphCreate = dlsym(lib, "cuGraphCreate");
	*(void **)&cuGraphAddKernelNode = dlsym(lib, "cuGraphAddKernelNode_v2");
	*(void **)&cuGraphInstantiate = dlsym(lib, "cuGraphInstantiateWithFlags");
	*(void **)&cuGraphLaunch = dlsym(lib, "cuGraphLaunch");
	*(void **)&cuStreamBeginCapture = dlsym(lib, "cuStreamBeginCapture_v2");
	*(void **)&cuStreamEndCapture = dlsym(lib, "cuStreamEndCapture");
	*(void **)&cuStreamDestroy = dlsym(lib, "cuStreamDestroy_v2");
	return cuGraphCreate && cuGraphAddKernelNode && cuGraphInstantiate && cuGraphLaunch &&
	       cuStreamBeginCapture && cuStreamEndCapture && cuStreamDestroy;
}

/* Creates a graph of independent nodes. Each node has separate records at @out. */
static P graph_of(struct program *p, U64 out)
{
	unsigned int ns = 1000;
	P graph, node, exec;

	if (cuGraphCreate(&graph, 0))
		return NULL;
	for (int n = 0; n < NR_NODES; n++) {
		U64 at = out + n * sizeof(records[0]);
		P args[] = { &at, &ns };
		struct cuda_kernel_node kernel = {
			.function = p->function, .grid = { NR_BLOCKS, 1, 1 },
			.block = { 32, 1, 1 }, .shared = 200000, .params = args,
		};

		if (cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel))
			return NULL;
	}
	return cuGraphInstantiate(&exec, graph, 0) ? NULL : exec;
}

/*
 * Launches @exec. Returns the number of nodes that ran outside @want. If the launch failed,
 * returns -1.
 */
static int nodes_elsewhere(P exec, P stream, U64 out, const struct gpupart_tpcset *want)
{
	const struct gpupart_topology *topo = gpupart_gpu_topology(gpu);
	int wrong = 0;

	if (cuGraphLaunch(exec, stream) || cuStreamSynchronize(stream) ||
	    cuMemcpyDtoH(records, out, sizeof(records)))
		return -1;
	for (int n = 0; n < NR_NODES; n++) {
		struct gpupart_tpcset seen = { { 0 } };

		for (int block = 0; block < NR_BLOCKS; block++)
			gpupart_tpcset_add(&seen, gpupart_topology_sm_tpc(topo,
							records[n][block].smid));
		wrong += !gpupart_tpcset_equal(&seen, want);
	}
	return wrong;
}

/* Returns true if a captured launch of @p's census ran on @want. The launch must have ended. */
static bool captured_ran_on(struct program *p, const struct gpupart_tpcset *want)
{
	struct gpupart_tpcset seen = { { 0 } };

	if (cuMemcpyDtoH(records, p->out, sizeof(records[0])))
		return false;
	for (int block = 0; block < NR_BLOCKS; block++)
		gpupart_tpcset_add(&seen, gpupart_topology_sm_tpc(gpupart_gpu_topology(gpu),
								  records[0][block].smid));
	return gpupart_tpcset_equal(&seen, want);
}

static struct gpupart_counters counted(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters;
}

/* ------------------------------------------------- a set that changes while nodes are built */

typedef int (*set_fn)(struct gpupart *, struct gpupart_gpu *, const struct gpupart_tpcset *);

static struct gpupart_tpcset first, second;
/* during the build, this function sets @second and then @first again */
static set_fn changes;
static int nr_built;

/*
 * The callback of a second subscriber. The driver first calls the library's callback and then
 * this callback.
 */
static void on_built(void *user, int domain, int cbid, const void *params)
{
	(void)user;
	(void)params;
	if (domain != 0xb || cbid != 1 || !changes)
		return;
	nr_built++;
	if (nr_built == 5)
		changes(NULL, gpu, &second);
	else if (nr_built == 10)
		changes(NULL, gpu, &first);
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
	return !subscribe(&handle, on_built, NULL) && !enable(1, handle, 0xb, 1);
}

static void changed_while_built(set_fn set, const char *what)
{
	struct gpupart_counters before;
	struct program p;
	int during, after;
	P exec = NULL, s;
	U64 out;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) && graphs_open() && subscribe_too() &&
			    !cuMemAlloc(&out, sizeof(records)) && !cuStreamCreate(&s, 0) &&
			    (exec = graph_of(&p, out)), "attached: %s", gpupart_error(gp)))
		return;
	first = list("0-3");
	second = list("8-9");
	set(gp, gpu, &first);
	changes = set;
	during = nodes_elsewhere(exec, s, out, &first);
	changes = NULL;
	tap_ok(during == 5, "%d nodes were built while another %s was in force", during, what);
	before = counted();
	after = nodes_elsewhere(exec, s, out, &first);
	tap_ok(!after && counted().graphs_reapplied == before.graphs_reapplied + 1,
	       "the next launch has the %s in force: %d nodes have not", what, after);
	after = nodes_elsewhere(exec, s, out, &first);
	tap_ok(!after && counted().graphs_reapplied == before.graphs_reapplied + 1,
	       "and builds nothing again after that");
	tap_ok(!counted().graphs_stale, "none is counted as stale");
}

static void set_changed(void)
{
	changed_while_built(gpupart_process_set, "set");
}

static void limit_changed(void)
{
	changed_while_built(gpupart_limit_set, "limit");
}

/* ---------------------------------------------------------------------- several GPUs */

/* A launch belongs to the GPU of its stream. The current context does not matter. */
static void other_context(void)
{
	struct gpupart_tpcset one, two, all;
	struct gpupart_counters before;
	struct program here, there;
	P exec = NULL, s, elsewhere, graph, captured = NULL;
	U64 out;

	if (!tap_ok(!attach("cuda:0") && !gpupart_attach(gp, "cuda:1", NULL, &gpu) &&
			    !program_start(&here, 0) && !program_start(&there, 1) &&
			    graphs_open() && !cuMemAlloc(&out, sizeof(records)) &&
			    !cuStreamCreate(&s, 1) && !cuStreamCreate(&elsewhere, 1) &&
			    (exec = graph_of(&there, out)), "two GPUs: %s", gpupart_error(gp)))
		return;
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	one = list("0-3");
	two = list("8-9");
	tap_ok(!nodes_elsewhere(exec, s, out, &all), "a graph on the second");
	cuCtxSetCurrent(here.ctx);
	gpupart_stream_set(gp, gpu, s, &one);
	before = counted();
	tap_ok(!nodes_elsewhere(exec, s, out, &one), "with the first current: the stream's set");
	tap_ok(counted().graphs_reapplied == before.graphs_reapplied + 1, "built again once");
	gpupart_next_set(gp, gpu, &two);
	tap_ok(!nodes_elsewhere(exec, s, out, &two), "a next-launch set");
	tap_ok(ran_on(&there, s, &one), "is used up");
	tap_ok(!nodes_elsewhere(exec, s, out, &one), "and the stream's holds again");

	cuStreamBeginCapture(s, 0);
	gpupart_next_set(gp, gpu, &two);
	program_launch(&there, s, NR_BLOCKS, 1000);
	tap_ok(!cuStreamEndCapture(s, &graph) &&
		       counted().next_dropped == before.next_dropped + 1,
	       "a captured launch uses it up");
	tap_ok(ran_on(&there, s, &one), "so the one after it has none");
	cuCtxSetCurrent(there.ctx);
	tap_ok(!cuGraphInstantiate(&captured, graph, 0), "what was captured");
	tap_ok(!cuGraphLaunch(captured, elsewhere) && !cuStreamSynchronize(elsewhere),
	       "is launched into another stream");
	tap_ok(captured_ran_on(&there, &one), "and has the set of the one it was captured on");

	gpupart_next_set(gp, gpu, &two);
	cuCtxSetCurrent(NULL);
	tap_ok(program_launch(&there, s, 1, 1000) &&
		       counted().next_dropped == before.next_dropped + 2,
	       "a launch that fails, as no context is current, uses it up");
	cuCtxSetCurrent(there.ctx);
	tap_ok(ran_on(&there, elsewhere, &all), "so the one after it has none");

	gpupart_next_set(gp, gpu, &two);
	cuCtxSetCurrent(here.ctx);
	tap_ok(!program_launch(&here, NULL, 1, 1000) && !cuStreamSynchronize(NULL) &&
		       counted().next_dropped == before.next_dropped + 2,
	       "a launch on the first does not");
	cuCtxSetCurrent(there.ctx);
	tap_ok(ran_on(&there, elsewhere, &two), "which is for the second");
}

/*
 * If a launch fails, its GPU is not always known. A failed launch must not leave a next-launch
 * set pending.
 */
static void failed_launch(void)
{
	struct gpupart_tpcset set, all[2];
	struct gpupart_gpu *gpus[2];
	struct program p[2];
	P s[2], gone, exec = NULL;
	U64 out, before;

	if (!tap_ok(!attach("cuda:0"), "attached"))
		return;
	gpus[0] = gpu;
	if (!tap_ok(!gpupart_attach(gp, "cuda:1", NULL, &gpus[1]) && graphs_open() &&
			    !program_start(&p[0], 0) && !cuStreamCreate(&s[0], 1) &&
			    !cuMemAlloc(&out, sizeof(records)) && (exec = graph_of(&p[0], out)) &&
			    !program_start(&p[1], 1) && !cuStreamCreate(&s[1], 1) &&
			    !cuStreamCreate(&gone, 1) && !cuStreamDestroy(gone),
		    "two GPUs: %s", gpupart_error(gp)))
		return;
	set = list("0-3");
	for (int i = 0; i < 2; i++)
		all[i] = gpupart_topology_all(gpupart_gpu_topology(gpus[i]));
	cuCtxSetCurrent(p[0].ctx);

	before = counted().next_dropped;
	gpupart_next_set(gp, gpus[1], &set);
	tap_ok(program_launch(&p[1], gone, 1, 1000) && counted().next_dropped == before + 1,
	       "a stream that went, with the first's context current: the second's set is used up");
	gpu = gpus[1];
	cuCtxSetCurrent(p[1].ctx);
	tap_ok(ran_on(&p[1], s[1], &all[1]), "and a later launch has none");

	cuCtxSetCurrent(p[0].ctx);
	gpupart_next_set(gp, gpus[1], &set);
	tap_ok(program_launch(&p[1], NULL, 1, 1000) && counted().next_dropped == before + 2,
	       "a function of the second in a stream of the first: the same");
	cuCtxSetCurrent(p[1].ctx);
	tap_ok(ran_on(&p[1], s[1], &all[1]), "and a later launch has none");

	gpu = gpus[0];
	gpupart_next_set(gp, gpus[0], &set);
	cuCtxSetCurrent(NULL);
	tap_ok(cuGraphLaunch(exec, NULL) && counted().next_dropped == before + 3,
	       "a graph, with no context current: the same");
	cuCtxSetCurrent(p[0].ctx);
	tap_ok(ran_on(&p[0], s[0], &all[0]), "and a later launch has none");

	gpupart_next_set(gp, gpus[0], &set);
	tap_ok(cuGraphLaunch(exec, gone) && counted().next_dropped == before + 4 &&
		       ran_on(&p[0], s[0], &all[0]), "a graph, into a stream that went: the same");
	gpupart_next_set(gp, gpus[1], &set);
	tap_ok(cuLaunchKernel(p[0].function, 0, 1, 1, 32, 1, 1, 0, s[0], NULL, NULL) &&
		       counted().next_dropped == before + 4,
	       "one that fails on the first leaves the second's alone");
	gpu = gpus[1];
	cuCtxSetCurrent(p[1].ctx);
	tap_ok(ran_on(&p[1], s[1], &set), "which is for a launch there");
}

/* ---------------------------------------------- a stream destroyed during a look-up */

struct victim {
	P ctx, stream;
};

static void *destroy(void *given)
{
	struct victim *victim = given;

	return cuCtxSetCurrent(victim->ctx) || cuStreamDestroy(victim->stream) ? given : NULL;
}

static void stream_destroyed(void)
{
	enum { ROUNDS = 40 };
	int failed = 0, lost = 0;
	struct program p;
	P other;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) && graphs_open() &&
			    !cuStreamCreate(&other, 1), "attached: %s", gpupart_error(gp)))
		return;
	first = list("0-3");
	for (int round = 0; round < ROUNDS && !failed; round++) {
		struct victim victim = { .ctx = p.ctx };
		pthread_t thread;
		P graph, exec;
		void *bad;

		failed += cuStreamCreate(&victim.stream, 1) ||
			  gpupart_stream_set(gp, gpu, victim.stream, &first) ||
			  cuStreamBeginCapture(victim.stream, 0) ||
			  program_launch(&p, victim.stream, NR_BLOCKS, 1000) ||
			  cuStreamEndCapture(victim.stream, &graph) ||
			  cuGraphInstantiate(&exec, graph, 0) ||
			  pthread_create(&thread, NULL, destroy, &victim);
		for (int i = 0; i < 20 && !failed; i++)
			failed += cuGraphLaunch(exec, other);
		failed += pthread_join(thread, &bad) || bad || cuGraphLaunch(exec, other) ||
			  cuStreamSynchronize(other);
		lost += !captured_ran_on(&p, &first);
	}
	tap_ok(!failed, "%d captures whose stream goes while they are launched elsewhere", ROUNDS);
	tap_ok(!lost, "of which %d lost its set", lost);
}

/* ------------------------------------------- captured before its stream can have a set */

/* Captures a census of @p on @stream. On a failure, returns NULL. */
static P exec_captured_on(struct program *p, P stream)
{
	P graph, exec;

	return cuStreamBeginCapture(stream, 0) || program_launch(p, stream, NR_BLOCKS, 1000) ||
	       cuStreamEndCapture(stream, &graph) || cuGraphInstantiate(&exec, graph, 0) ? NULL :
										       exec;
}

static bool launched_on(struct program *p, P exec, P stream, const struct gpupart_tpcset *want)
{
	return !cuGraphLaunch(exec, stream) && !cuStreamSynchronize(stream) &&
	       captured_ran_on(p, want);
}

static void child_attaches(void)
{
	tap_ok(!attach(NULL), "attached");
}

/* Checks the mask bits, so that the next child can attach without a launch. */
static void prepare_checked(const struct scenario *s)
{
	static const struct scenario checked = { "checked", child_attaches, "@b", { NULL }, NULL };

	tap_ok(!child_quiet(&checked), "%s: the mask bits were checked", s->name);
}

/* Like under `gpupart run`, only a later attach learns how to distinguish streams. */
static void captured_early(void)
{
	struct gpupart_tpcset set, other_set, all;
	P s, gone, reused = NULL, own, o, exec[3];
	struct program p;

	if (!tap_ok(!gpupart_open(&gp) && !driver_open() && !cuInit(0) &&
			    !gpupart_attach_early(gp, NULL, NULL, &gpu) && !program_start(&p, 0) &&
			    graphs_open() && !cuStreamCreate(&s, 1) && !cuStreamCreate(&gone, 1) &&
			    !cuStreamCreate(&o, 1), "attached early: %s", gpupart_error(gp)))
		return;
	own = (P)2;
	exec[0] = exec_captured_on(&p, s);
	exec[1] = exec_captured_on(&p, gone);
	exec[2] = exec_captured_on(&p, own);
	cuStreamDestroy(gone);
	tap_ok(!cuStreamCreate(&reused, 1) && reused == gone,
	       "one stream went, and the next has its handle");
	if (!tap_ok(exec[0] && exec[1] && exec[2] && !gpupart_attach(gp, NULL, NULL, &gpu),
		    "attached: %s", gpupart_error(gp)))
		return;
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	set = list("0-3");
	other_set = list("8-9");
	tap_ok(!gpupart_stream_set(gp, gpu, s, &set) &&
		       !gpupart_stream_set(gp, gpu, reused, &other_set),
	       "sets: %s", gpupart_error(gp));
	tap_ok(launched_on(&p, exec[0], o, &set), "a graph has that of its capture's stream");
	tap_ok(launched_on(&p, exec[1], o, &all), "and none of one at that stream's place");
	gpupart_stream_set(gp, gpu, s, &other_set);
	tap_ok(launched_on(&p, exec[0], o, &other_set), "it follows its stream");
	tap_ok(!gpupart_stream_set(gp, gpu, own, &set) && launched_on(&p, exec[2], o, &set),
	       "captured on the thread's own stream: the same");
	cuStreamDestroy(s);
	tap_ok(launched_on(&p, exec[0], o, &other_set), "what it had when it went stays");
	tap_ok(!counted().graphs_stale, "none is counted as stale");
}

static void captured_elsewhere(void)
{
	struct gpupart_tpcset set;
	struct program there;
	P s, o, exec = NULL;

	if (!tap_ok(!attach("cuda:0") && !program_start(&there, 1) && graphs_open() &&
			    !cuStreamCreate(&s, 1) && !cuStreamCreate(&o, 1) &&
			    (exec = exec_captured_on(&there, s)) &&
			    !gpupart_attach(gp, "cuda:1", NULL, &gpu),
		    "captured before that GPU was attached: %s", gpupart_error(gp)))
		return;
	set = list("0-3");
	tap_ok(!gpupart_stream_set(gp, gpu, s, &set) && launched_on(&there, exec, o, &set),
	       "it has its stream's set");
}

/* ---------------------------- launches of the library during a program's capture */

/* Ends the capture on @s. The captured graph must be complete, and its launch must run. */
static bool unspoilt(P s)
{
	P graph, exec;

	return !cuStreamEndCapture(s, &graph) && !cuGraphInstantiate(&exec, graph, 0) &&
	       !cuGraphLaunch(exec, s) && !cuStreamSynchronize(s);
}

static void while_captured(void)
{
	struct gpupart_tpcset seen, set;
	struct program p;
	P s, free_one;
	int err;

	if (!tap_ok(!gpupart_open(&gp) && !driver_open() && !program_start(&p, 0) &&
			    graphs_open() && !cuStreamCreate(&s, 0) &&
			    !cuStreamCreate(&free_one, 1), "a program"))
		return;
	cuStreamBeginCapture(s, 0);
	program_launch(&p, s, NR_BLOCKS, 1000);
	err = gpupart_attach(gp, NULL, NULL, &gpu);
	tap_ok(err == -EBUSY, "the first attach while a blocking stream is captured: %d %s", err,
	       gpupart_error(gp));
	tap_ok(unspoilt(s), "spoils nothing");
	if (!tap_ok(!gpupart_attach(gp, NULL, NULL, &gpu),
	    "and works afterwards: %s", gpupart_error(gp)))
		return;
	set = list("0-3");

	cuStreamBeginCapture(s, 0);
	program_launch(&p, s, NR_BLOCKS, 1000);
	err = gpupart_census(gp, gpu, NULL, &seen);
	tap_ok(err == -EBUSY, "a census in the legacy stream: %d %s", err, gpupart_error(gp));
	tap_ok(gpupart_census(gp, gpu, s, &seen) == -EBUSY, "in the captured one: %s",
	       gpupart_error(gp));
	tap_ok(gpupart_census(gp, gpu, free_one, &seen) == -EBUSY, "and in another: %s",
	       gpupart_error(gp));
	tap_ok(!gpupart_next_set(gp, gpu, &set) && !gpupart_next_set(gp, gpu, NULL),
	       "the first next-launch set is not in it: %s", gpupart_error(gp));
	tap_ok(unspoilt(s), "nothing is spoilt");

	cuStreamBeginCapture(free_one, 0);
	program_launch(&p, free_one, NR_BLOCKS, 1000);
	tap_ok(gpupart_census(gp, gpu, free_one, &seen) == -EBUSY,
	       "in a captured stream that waits for no other: %s", gpupart_error(gp));
	tap_ok(!gpupart_census(gp, gpu, NULL, &seen) && !gpupart_census(gp, gpu, s, &seen),
	       "and elsewhere, meanwhile: %s", gpupart_error(gp));
	tap_ok(unspoilt(free_one), "nothing is spoilt");
}

static const struct scenario scenarios[] = {
	{ "while-captured", while_captured, "@b", { NULL }, NULL },
	{ "captured-early", captured_early, "@b", { NULL }, prepare_checked },
	{ "captured-elsewhere", captured_elsewhere, "@b:@e", { NULL }, NULL },
	{ "checked", child_attaches, "@b", { NULL }, NULL },
	{ "stream-destroyed", stream_destroyed, "@b", { NULL }, NULL },
	{ "failed-launch", failed_launch, "@b:@e", { NULL }, NULL },
	{ "other-context", other_context, "@b:@e", { NULL }, NULL },
	{ "set-changed", set_changed, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "limit-changed", limit_changed, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
