// SPDX-License-Identifier: MIT
/*
 * Tests drivers that report their functions differently from measured drivers. If an operation
 * cannot work with such a driver, the library must refuse the operation, or must report and count
 * it. The test uses the simulated driver.
 */
#include "lib/driver/cuda.h"
#include "tests/lib/scenario.h"

static CU (*cuLaunchKernelEx)(const struct cuda_launch_config *, P, P *, P *);
static CU (*cuMemsetD8Async)(U64, unsigned char, size_t, P);

static struct program p;
static struct gpupart_tpcset all, set;
static P s;

static bool begins(void)
{
	void *lib;
	int err = attach(NULL);

	if (!tap_ok(!err && !program_start(&p, 0) && !cuStreamCreate(&s, 1), "attached: %s",
		    err ? gpupart_error(gp) : ""))
		return false;
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	*(void **)&cuLaunchKernelEx = dlsym(lib, "cuLaunchKernelEx");
	*(void **)&cuMemsetD8Async = dlsym(lib, "cuMemsetD8Async");
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	set = list("0-3");
	return true;
}

static U64 dropped(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters.next_dropped;
}

/* ---------------------------------------------------------------- next-launch sets */

static void next_refused(const char *word)
{
	int err;

	if (!begins())
		return;
	for (int i = 0; i < 2; i++) {
		err = gpupart_next_set(gp, gpu, &set);
		tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), word), "refused: %d %s", err,
		       gpupart_error(gp));
	}
	tap_ok(!gpupart_next_set(gp, gpu, NULL), "none can be taken away");
	tap_ok(!cuMemsetD8Async(p.out, 0, 24 * 4096, s) && ran_on(&p, s, &all),
	       "and no launch has one");
	tap_ok(!gpupart_process_set(gp, gpu, &set) && ran_on(&p, s, &set),
	       "a process set holds all the same");
}

static void next_silent(void)
{
	next_refused("does not report launches");
}

static void next_renamed(void)
{
	next_refused("function 307 of this driver is not cuLaunchKernel");
}

/*
 * The driver reports cuLaunchKernel correctly, but not another launch function. The library can
 * detect this only when the program launches a kernel.
 */
static void next_renamed_other(void)
{
	struct cuda_launch_config config = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	unsigned int ns = 1000;
	P args[] = { &p.out, &ns };
	int err;

	if (!begins())
		return;
	config.stream = s;
	tap_ok(!gpupart_next_set(gp, gpu, &set) && ran_on(&p, s, &set), "a next-launch set: %s",
	       gpupart_error(gp));
	tap_ok(!gpupart_next_set(gp, gpu, &set) && !dropped(), "another");
	tap_ok(!cuLaunchKernelEx(&config, p.function, args, NULL) && dropped() == 1,
	       "is used up by a launch of another name, which is counted");
	tap_ok(ran_on(&p, s, &all), "so it does not wait for a later one");
	err = gpupart_next_set(gp, gpu, &set);
	tap_ok(err == -EOPNOTSUPP &&
		       strstr(gpupart_error(gp), "652 of this driver is not cuLaunchKernelEx"),
	       "and the next is refused: %d %s", err, gpupart_error(gp));
}

/* ------------------------------------------------------------------------- graphs */

static CU (*cuGraphCreate)(P *, U);
static CU (*cuGraphAddKernelNode)(P *, P, const P *, size_t, const struct cuda_kernel_node *);
static CU (*cuGraphInstantiate)(P *, P, U64);
static CU (*cuGraphLaunch)(P, P);
static CU (*cuGraphExecKernelNodeSetParams)(P, P, const struct cuda_kernel_node *);
static CU (*cuGraphExecUpdate)(P, P, struct cuda_graph_update *);

#define NR_BLOCKS	264
#define RECORD		24

/*
 * Returns the parameters of a census node with @blocks blocks. The node writes into half @n of
 * the program's record memory.
 */
static struct cuda_kernel_node census(int n, unsigned int blocks)
{
	static U64 at[2];
	static unsigned int ns = 1000;
	static P args[2][2];

	at[n] = p.out + n * 1024 * RECORD;
	args[n][0] = &at[n];
	args[n][1] = &ns;
	return (struct cuda_kernel_node){
		.function = p.function, .grid = { blocks, 1, 1 }, .block = { 32, 1, 1 },
		.shared = 200000, .params = args[n],
	};
}

static P graph_of(int n, P *node)
{
	struct cuda_kernel_node kernel = census(n, NR_BLOCKS);
	P graph;

	return cuGraphCreate(&graph, 0) || cuGraphAddKernelNode(node, graph, NULL, 0, &kernel) ?
		       NULL : graph;
}

/* Launches @exec. Returns the number of records in half @n, and stores their TPCs. */
static int launched(P exec, int n, struct gpupart_tpcset *seen)
{
	static struct { unsigned int smid, cluster; U64 start, end; } records[1024];
	int nr = 0;

	memset(seen, 0, sizeof(*seen));
	if (cuMemsetD8Async(p.out, 0xff, 2048 * RECORD, s) || cuGraphLaunch(exec, s) ||
	    cuStreamSynchronize(s) ||
	    cuMemcpyDtoH(records, p.out + n * sizeof(records), sizeof(records)))
		return -1;
	for (int i = 0; i < 1024; i++) {
		if (records[i].smid == ~0u)
			continue;
		gpupart_tpcset_add(seen, gpupart_topology_sm_tpc(gpupart_gpu_topology(gpu),
								 records[i].smid));
		nr++;
	}
	return nr;
}

static bool graphs_begin(P *graph, P *node, P *exec)
{
	struct gpupart_check check;
	void *lib;

	if (!begins())
		return false;
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	*(void **)&cuGraphCreate = dlsym(lib, "cuGraphCreate");
	*(void **)&cuGraphAddKernelNode = dlsym(lib, "cuGraphAddKernelNode_v2");
	*(void **)&cuGraphInstantiate = dlsym(lib, "cuGraphInstantiateWithFlags");
	*(void **)&cuGraphLaunch = dlsym(lib, "cuGraphLaunch");
	*(void **)&cuGraphExecKernelNodeSetParams =
		dlsym(lib, "cuGraphExecKernelNodeSetParams_v2");
	*(void **)&cuGraphExecUpdate = dlsym(lib, "cuGraphExecUpdate_v2");
	gpupart_gpu_check(gpu, &check);
	return tap_ok(!*check.graphs && (*graph = graph_of(0, node)) &&
			      !cuGraphInstantiate(exec, *graph, 0),
		      "a graph, without an error so far");
}

static bool graphs_error_has(const char *word)
{
	struct gpupart_check check;

	gpupart_gpu_check(gpu, &check);
	return tap_ok(strstr(check.graphs, word) != NULL, "the check tells now: %s", check.graphs);
}

static U64 stale(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters.graphs_stale;
}

/* The driver does not report launches of graphs, or does not report the creation of graphs. */
static void graph_renamed(void)
{
	struct gpupart_tpcset seen;
	P graph, node, exec;

	if (!graphs_begin(&graph, &node, &exec))
		return;
	tap_ok(!gpupart_next_set(gp, gpu, &set), "a next-launch set: %s", gpupart_error(gp));
	tap_ok(launched(exec, 0, &seen) == NR_BLOCKS && dropped() == 1,
	       "is used up by the graph's launch, which is counted");
	tap_ok(ran_on(&p, s, &all), "so it does not wait for a later one");
	graphs_error_has("function 514 of this driver is not cuGraphLaunch");
}

static void made_renamed(void)
{
	P graph, node, exec;

	if (graphs_begin(&graph, &node, &exec))
		graphs_error_has("function 643 of this driver is not cuGraphInstantiateWithFlags");
}

/*
 * The library did not see some changes of a graph. It must not undo these changes. Instead, the
 * graph keeps its set.
 */
static void change_renamed(void)
{
	struct cuda_kernel_node kernel;
	struct gpupart_tpcset seen;
	P graph, node, exec;

	if (!graphs_begin(&graph, &node, &exec))
		return;
	tap_ok(launched(exec, 0, &seen) == NR_BLOCKS, "is launched");
	kernel = census(1, NR_BLOCKS / 2);
	tap_ok(!cuGraphExecKernelNodeSetParams(exec, node, &kernel), "its node is changed, unseen");
	gpupart_process_set(gp, gpu, &set);
	tap_ok(launched(exec, 1, &seen) == NR_BLOCKS / 2, "another set leaves it so");
	tap_ok(stale() == 1, "which is counted");
	graphs_error_has("function 692 of this driver is not cuGraphExecKernelNodeSetParams_v2");
}

static void update_renamed(void)
{
	struct cuda_graph_update info;
	struct gpupart_tpcset seen;
	P graph, other, node, exec;

	if (!graphs_begin(&graph, &node, &exec))
		return;
	tap_ok(launched(exec, 0, &seen) == NR_BLOCKS, "is launched");
	tap_ok((other = graph_of(1, &node)) && !cuGraphExecUpdate(exec, other, &info),
	       "it is updated, unseen");
	gpupart_process_set(gp, gpu, &set);
	tap_ok(launched(exec, 1, &seen) == NR_BLOCKS && stale() == 1,
	       "another set leaves it so, which is counted");
	graphs_error_has("function 696 of this driver is not cuGraphExecUpdate_v2");
}

static const struct scenario scenarios[] = {
	{ "graph-renamed", graph_renamed, "@b", { "GPUPART_SIM_FAULTS=renamed=514" }, NULL },
	{ "made-renamed", made_renamed, "@b", { "GPUPART_SIM_FAULTS=renamed=643" }, NULL },
	{ "change-renamed", change_renamed, "@b", { "GPUPART_SIM_FAULTS=renamed=692" }, NULL },
	{ "update-renamed", update_renamed, "@b", { "GPUPART_SIM_FAULTS=renamed=696" }, NULL },
	{ "next-silent", next_silent, "@b", { "GPUPART_SIM_FAULTS=no-api" }, NULL },
	{ "next-renamed", next_renamed, "@b", { "GPUPART_SIM_FAULTS=renamed=307" }, NULL },
	{ "next-renamed-other", next_renamed_other, "@b", { "GPUPART_SIM_FAULTS=renamed=652" },
	  NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
