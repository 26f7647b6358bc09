// SPDX-License-Identifier: MIT
/*
 * Tests rules by kernel name on the simulated driver. It tests which launches get the set of a
 * rule, and from which moment on.
 */
#include <pthread.h>
#include "lib/driver/cuda.h"
#include "lib/state/state_page.h"
#include "tests/lib/scenario.h"

#define MANGLED "_ZN2at6native14gpupart_censusILi4EEEvPvi"
#define OTHER	"_ZN5other14gpupart_censusEPvi"

static struct program p;
static P stream, module;
static struct gpupart_tpcset all, a, b, c;

static const char ptx[] =
	".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 spin_ns)\n{ ret; }\n"
	".visible .entry " MANGLED "(.param .u64 out, .param .u32 spin_ns)\n{ ret; }\n"
	".visible .entry " OTHER "(.param .u64 out, .param .u32 spin_ns)\n{ ret; }\n";

/* Finds the function @name of @from, and stores it in p->function. */
static bool take(P from, const char *name)
{
	return !cuModuleGetFunction(&p.function, from, name) &&
	       !cuFuncSetAttribute(p.function, 8, 200000);
}

static bool begin(void)
{
	bool good = !attach("cuda:0") &&
		    !program_start(&p, 0) && !cuStreamCreate(&stream, 1) &&
		    !cuModuleLoadData(&module, ptx) && take(module, MANGLED);

	if (good)
		all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	a = list("0-3");
	b = list("8-11");
	c = list("20-27");
	return tap_ok(good, "a program with C++ kernels: %s", gp ? gpupart_error(gp) : "");
}

static int rule(const char *pattern, const struct gpupart_tpcset *set)
{
	return gpupart_rule_set(gp, gpu, pattern, set);
}

static bool runs_on(const char *name, const struct gpupart_tpcset *want)
{
	return take(module, name) && ran_on(&p, stream, want);
}

static void names(void)
{
	if (!begin())
		return;
	tap_ok(runs_on(MANGLED, &all), "no rule: all TPCs");
	tap_ok(!rule("at::native::gpupart_*", &a) && runs_on(MANGLED, &a),
	       "a qualified name, of a function that was launched before");
	tap_ok(runs_on(OTHER, &all), "not another's");
	tap_ok(!rule("_ZN5other*", &b) && runs_on(OTHER, &b) && runs_on(MANGLED, &a),
	       "a mangled name, and a second rule");
	tap_ok(!rule("*gpupart_census", &c) && runs_on("gpupart_census", &c) &&
	       runs_on(MANGLED, &a) && runs_on(OTHER, &b), "the first that matches");
	tap_ok(!rule("at::native::gpupart_*", &b) && runs_on(MANGLED, &b),
	       "a pattern that is there has another set, in its place");
	tap_ok(!rule("at::native::gpupart_*", NULL) && runs_on(MANGLED, &c),
	       "it goes: the next that matches");
	tap_ok(!rule(NULL, NULL) && runs_on(MANGLED, &all) && runs_on(OTHER, &all) &&
	       runs_on("gpupart_census", &all), "all go");
}

static void scopes(void)
{
	struct gpupart_counters before, after;
	struct gpupart_tpcset seen;

	if (!begin() || rule("at::*", &a))
		return;
	tap_ok(!gpupart_stream_set(gp, gpu, stream, &b) && runs_on(MANGLED, &a) &&
	       runs_on(OTHER, &b), "before the stream's set");
	take(module, MANGLED);
	tap_ok(!gpupart_function_set(gp, gpu, p.function, &c) && runs_on(MANGLED, &c) &&
	       !rule("at::*", &b) && runs_on(MANGLED, &c),
	       "behind what the program gave the function itself");
	tap_ok(!gpupart_function_set(gp, gpu, p.function, NULL) && runs_on(MANGLED, &b),
	       "which it took away");
	tap_ok(gpupart_function_get(gpu, p.function, &seen) && gpupart_tpcset_equal(&seen, &b),
	       "it shows as the function's set");
	tap_ok(!gpupart_limit_set(gp, gpu, &c), "a limit outside of it");
	gpupart_counters_get(&before);
	tap_ok(runs_on(MANGLED, &c), "the limit alone holds then");
	gpupart_counters_get(&after);
	tap_ok(after.widened_empty == before.widened_empty + 1, "and that is counted");
}

static void refused(void)
{
	const struct cuda_api *api;
	char pattern[300] = "", many[16];
	struct gpupart_tpcset none = { 0 };
	int err = 0;

	if (!begin())
		return;
	memset(pattern, 'x', 256);
	tap_ok(rule("", &a) == -EINVAL && rule(pattern, &a) == -EINVAL &&
	       rule(NULL, &a) == -EINVAL && rule("x", &none) == -EINVAL,
	       "no pattern, 256 letters, no set: %s", gpupart_error(gp));
	pattern[255] = 0;
	tap_ok(!rule(pattern, &a), "255 letters");
	for (int i = 0; i < 31 && !err; i++) {
		snprintf(many, sizeof(many), "many%d", i);
		err = rule(many, &a);
	}
	tap_ok(!err && rule("last", &a) == -ENOSPC && !rule("many3", &b), "33 rules: %s",
	       gpupart_error(gp));
	tap_ok(!rule("many3", NULL) && !rule("last", &a) && runs_on(MANGLED, &all), "32 again");
	/* In this test, the driver behaves like a driver before CUDA 12.3. */
	api = cuda_loaded();
	((struct cuda_api *)(uintptr_t)api)->func_name = NULL;
	tap_ok(rule("*", &a) == -EOPNOTSUPP, "a driver without names: %s", gpupart_error(gp));
}

static void untold(void)
{
	if (begin())
		tap_ok(rule("*", &a) == -EOPNOTSUPP, "launches are not told of: %s",
		       gpupart_error(gp));
}

/*
 * Functions are created and destroyed. Some functions get the address of a destroyed function.
 */
static void modules(void)
{
	int wrong = 0, same = 0;
	P before = NULL, m;

	if (!begin() || rule("at::*", &a))
		return;
	for (int i = 0; i < 40; i++) {
		const char *name = i % 3 ? MANGLED : OTHER;

		if (cuModuleLoadData(&m, ptx) || !take(m, name))
			break;
		same += p.function == before;
		before = p.function;
		wrong += !ran_on(&p, stream, i % 3 ? &a : &all);
		cuModuleUnload(m);
	}
	tap_ok(before && !wrong, "40 modules: %d launches elsewhere, %d functions where one was",
	       wrong, same);
}

static void kernels(void)
{
	CU (*load)(P *, const void *, P, P, U, P, P, U);
	CU (*get)(P *, P, const char *), (*function)(P *, P);
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	P library, own;

	*(void **)&load = dlsym(lib, "cuLibraryLoadData");
	*(void **)&get = dlsym(lib, "cuLibraryGetKernel");
	*(void **)&function = dlsym(lib, "cuKernelGetFunction");
	if (!begin() || rule("at::*", &a))
		return;
	if (!tap_ok(!load(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) &&
		    !get(&p.function, library, MANGLED) && !function(&own, p.function) &&
		    !cuFuncSetAttribute(own, 8, 200000), "a library"))
		return;
	tap_ok(ran_on(&p, stream, &a), "a CUkernel, which is loaded at its first launch");
	tap_ok(ran_on(&p, stream, &a) && !rule("at::*", &b) && ran_on(&p, stream, &b), "and again");
	tap_ok(!get(&p.function, library, OTHER) && !function(&own, p.function) &&
	       !cuFuncSetAttribute(own, 8, 200000) && ran_on(&p, stream, &all), "not another one");
}

static CU (*create)(P *, U), (*add)(P *, P, const P *, size_t, const struct cuda_kernel_node *);
static CU (*instantiate)(P *, P, U64), (*launch)(P, P);
static CU (*child)(P *, P, const P *, size_t, P);
static CU (*change)(P, P, const struct cuda_kernel_node *);

static unsigned int grid_ns = 1000;
static P args[] = { &p.out, &grid_ns };

/* A kernel node of @function. */
static struct cuda_kernel_node node_of(P function)
{
	return (struct cuda_kernel_node){ .function = function, .grid = { 264, 1, 1 },
					  .block = { 32, 1, 1 }, .shared = 200000,
					  .params = args };
}

static bool graph_begin(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	*(void **)&create = dlsym(lib, "cuGraphCreate");
	*(void **)&add = dlsym(lib, "cuGraphAddKernelNode_v2");
	*(void **)&child = dlsym(lib, "cuGraphAddChildGraphNode");
	*(void **)&instantiate = dlsym(lib, "cuGraphInstantiateWithFlags");
	*(void **)&change = dlsym(lib, "cuGraphExecKernelNodeSetParams_v2");
	*(void **)&launch = dlsym(lib, "cuGraphLaunch");
	return begin();
}

/* Launches a graph. Returns true if it ran on exactly @want. */
static bool graph_ran_on(P exec, const struct gpupart_tpcset *want)
{
	static struct { unsigned int smid, cluster; U64 start, end; } records[264];
	struct gpupart_tpcset seen = { 0 };

	if (launch(exec, stream) || cuStreamSynchronize(stream) ||
	    cuMemcpyDtoH(records, p.out, sizeof(records)))
		return false;
	for (int n = 0; n < 264; n++)
		gpupart_tpcset_add(&seen, gpupart_topology_sm_tpc(gpupart_gpu_topology(gpu),
								  records[n].smid));
	return gpupart_tpcset_equal(&seen, want);
}

static void graphs(void)
{
	struct cuda_kernel_node kernel;
	P graph, outer, node, child_node, exec;

	if (!graph_begin() || rule("at::*", &a) || rule("other::*", &b))
		return;
	kernel = node_of(p.function);
	if (!tap_ok(!create(&graph, 0) && !add(&node, graph, NULL, 0, &kernel) &&
		    !create(&outer, 0) && !child(&child_node, outer, NULL, 0, graph) &&
		    !instantiate(&exec, outer, 0), "a graph in a graph, never launched before"))
		return;
	tap_ok(graph_ran_on(exec, &a) && !instantiate(&exec, graph, 0) && graph_ran_on(exec, &a),
	       "its kernel runs in the rule's set");
	if (!take(module, OTHER))
		return;
	kernel = node_of(p.function);
	tap_ok(!change(exec, node, &kernel) && graph_ran_on(exec, &b),
	       "so does one that takes its place");
}

/* Tests kernels that only graphs launch. Rules for these kernels change after the first launch. */
static void live_graphs(void)
{
	struct cuda_kernel_node kernel;
	P graph, node, exec;

	if (!graph_begin())
		return;
	kernel = node_of(p.function);
	if (create(&graph, 0) || add(&node, graph, NULL, 0, &kernel) ||
	    instantiate(&exec, graph, 0))
		return;
	tap_ok(graph_ran_on(exec, &all), "an executable graph, no rule");
	tap_ok(!rule("at::*", &a) && graph_ran_on(exec, &a), "a rule that is new to it");
	tap_ok(!rule("at::*", &b) && graph_ran_on(exec, &b), "which has another set");
	tap_ok(!rule(NULL, NULL) && graph_ran_on(exec, &all), "and goes");
}

static CU type_conditional(P node, int *type)
{
	(void)node;
	*type = CUDA_NODE_CONDITIONAL;
	return 0;
}

/* The driver does not list the nodes in the bodies of conditional nodes. */
static void conditional(void)
{
	struct gpupart_process *list = calloc(64, sizeof(*list));
	struct cuda_kernel_node kernel;
	struct cuda_api *api;
	P graph, node, exec;
	int n;

	if (!graph_begin() || rule("at::*", &a))
		return;
	api = (struct cuda_api *)(uintptr_t)cuda_loaded();
	api->node_type = type_conditional;
	kernel = node_of(p.function);
	tap_ok(!create(&graph, 0) && !add(&node, graph, NULL, 0, &kernel) &&
	       !*state_page_own->problem && !instantiate(&exec, graph, 0) &&
	       strstr(state_page_own->problem, "conditional"),
	       "a graph with a conditional node: %s", state_page_own->problem);
	tap_ok(!gpupart_limit_set(gp, gpu, &b) && !gpupart_process_publish(gp, "rules"),
	       "a limit: %s", gpupart_error(gp));
	n = gpupart_process_list(gp, list, 64, sizeof(*list));
	tap_ok(n > 0, "%d processes", n);
	for (n = 0; n < 63 && list[n].pid != getpid(); n++)
		;
	tap_ok(*list[n].limit && strstr(list[n].problem, "conditional"),
	       "other processes see the limit and the problem: %s", list[n].problem);
}

static void injected(void)
{
	if (!begin())
		return;
	tap_ok(runs_on(MANGLED, &a) && runs_on(OTHER, &b), "the environment's rules");
	tap_ok(!rule("other*", &c) && runs_on(OTHER, &b), "come before those of the program");
}

static void wrong_rules(void)
{
	bool failed = gpupart_open(&gp) || gpupart_attach(gp, "cuda:0", NULL, &gpu);

	tap_ok(failed && strstr(gpupart_error(gp), "GPUPART_RULES"), "refused: %s",
	       gpupart_error(gp));
}

#define NR_THREADS 4

/*
 * Blocks of other threads may occupy TPCs all the time. So the launch may use only a part of
 * @want.
 */
static bool stays_on(struct program *own, P mine, const struct gpupart_tpcset *want)
{
	struct { unsigned int smid, cluster; U64 start, end; } records[264];
	struct gpupart_tpcset seen = { 0 }, outside;

	if (program_launch(own, mine, 264, 1000) || cuStreamSynchronize(mine) ||
	    cuMemcpyDtoH(records, own->out, sizeof(records)))
		return false;
	for (int n = 0; n < 264; n++)
		gpupart_tpcset_add(&seen, gpupart_topology_sm_tpc(gpupart_gpu_topology(gpu),
								  records[n].smid));
	outside = gpupart_tpcset_or(&a, &b);
	outside = gpupart_tpcset_andnot(&seen, want == &all ? &outside : want);
	return gpupart_tpcset_empty(&outside) == (want != &all);
}

static void *launch_all(void *arg)
{
	static const char *const kinds[] = { MANGLED, OTHER, "gpupart_census" };
	struct program own = p;
	P mine = NULL;
	long bad = cuCtxSetCurrent(p.ctx) || cuStreamCreate(&mine, 1) ||
		   cuMemAlloc(&own.out, 24 * 4096);

	for (int i = 0; !bad && i < 60; i++) {
		P m;

		bad = cuModuleLoadData(&m, ptx) ||
		      cuModuleGetFunction(&own.function, m, kinds[i % 3]) ||
		      cuFuncSetAttribute(own.function, 8, 200000) ||
		      !stays_on(&own, mine, i % 3 == 2 ? &all : i % 3 ? &b : &a);
		bad = cuModuleUnload(m) || bad;
	}
	(void)arg;
	return (void *)bad;
}

static void threads(void)
{
	pthread_t thread[NR_THREADS];
	void *bad, *any = NULL;

	if (!begin() || rule("at::*", &a) || rule("_ZN5other*", &b))
		return;
	for (int t = 0; t < NR_THREADS; t++)
		pthread_create(&thread[t], NULL, launch_all, NULL);
	for (int i = 0; i < 20; i++)
		rule("unused", i % 2 ? NULL : &c);
	for (int t = 0; t < NR_THREADS; t++) {
		pthread_join(thread[t], &bad);
		any = any ? any : bad;
	}
	tap_ok(!any, "%d threads whose functions come and go, while rules change", NR_THREADS);
}

static const struct scenario scenarios[] = {
	{ "names", names, "@b", { NULL }, NULL },
	{ "scopes", scopes, "@b", { NULL }, NULL },
	{ "refused", refused, "@b", { NULL }, NULL },
	{ "untold", untold, "@b", { "GPUPART_SIM_FAULTS=no-api" }, NULL },
	{ "modules", modules, "@b", { NULL }, NULL },
	{ "kernels", kernels, "@b", { NULL }, NULL },
	{ "graphs", graphs, "@b", { NULL }, NULL },
	{ "live-graphs", live_graphs, "@b", { NULL }, NULL },
	{ "conditional", conditional, "@b", { NULL }, NULL },
	{ "threads", threads, "@b", { NULL }, NULL },
	{ "injected", injected, "@b", { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=0-30",
	  "GPUPART_RULES=0-3 at::*\n8-11 *other*" }, NULL },
	{ "environment", injected, "@b", { "GPUPART_RULES=0-3 at::*\n8-11 *other*" }, NULL },
	{ "no-set", wrong_rules, "@b", { "GPUPART_RULES=0-99 *" }, NULL },
	{ "no-pattern", wrong_rules, "@b", { "GPUPART_RULES=0-3" }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
