// SPDX-License-Identifier: MIT
/*
 * Some threads change sets while other threads launch. Each launch must use exactly one complete
 * set that was in force. No change may be lost. The test uses the simulated driver. A second
 * subscriber reads each TMD after libgpupart. GPUPART_STRESS=N is the number of changes and
 * launches of each thread.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "tests/tap.h"

#define NR_SETS		8	/* of each family */
#define MASK_BYTE	304
#define NR_LAUNCHERS	6
#define NR_SETTERS	4

typedef int CU;
typedef void *P;

static const unsigned char table_id[16] = {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
};

#define CALLS(F) \
	F(cuInit, (unsigned int)) F(cuDevicePrimaryCtxRetain, (P *, int)) F(cuCtxSetCurrent, (P)) \
	F(cuStreamCreate, (P *, unsigned int)) F(cuStreamSynchronize, (P)) \
	F(cuModuleLoadData, (P *, const void *)) F(cuModuleUnload, (P)) \
	F(cuModuleGetFunction, (P *, P, const char *)) \
	F(cuLaunchKernel, (P, unsigned int, unsigned int, unsigned int, unsigned int, \
		unsigned int, unsigned int, unsigned int, P, P *, P *)) \
	F(cuGraphCreate, (P *, unsigned int)) \
	F(cuGraphAddKernelNode, (P *, P, const P *, size_t, const void *)) \
	F(cuGraphInstantiateWithFlags, (P *, P, unsigned long long)) F(cuGraphLaunch, (P, P)) \
	F(cuGetExportTable, (const void **, const void *))

#define DECLARE(name, args) static CU (*name) args;
CALLS(DECLARE)

static struct gpupart_gpu *gpu;
static const struct gpupart_topology *topo;
static P ctx, function, own_function;
static unsigned long nr_each = 150000;
static const char text[] = ".version 8.0\n.target sm_90\n"
			   ".visible .entry gpupart_empty()\n{ ret; }\n"
			   ".visible .entry gpupart_own()\n{ ret; }\n";

/*
 * Each family has the possible sets of one scope: the limit, the process, a stream, a thread or a
 * function.
 */
enum { LIMITS, PROCESS, STREAM, OWN, FUNCTION, NR_FAMILIES };
static struct gpupart_tpcset family[NR_FAMILIES][NR_SETS];
static uint64_t off[NR_FAMILIES][NR_SETS][2];	/* the sets as masks in the form of a TMD */

/*
 * The allowed values of this thread's next TMD. Each value combines the mask of a limit with the
 * mask of a set of @family.
 */
static _Thread_local struct {
	int family, exactly, limit;	/* -1: any */
	bool watched;
	unsigned long seen, bad;
	uint64_t last[2];
} expected = { .family = -1, .limit = -1 };

static atomic_ulong nr_seen, nr_bad;

static bool matches(const uint64_t mask[2])
{
	for (int l = 0; l < NR_SETS; l++) {
		if (expected.limit >= 0 && l != expected.limit)
			continue;
		for (int s = 0; s < NR_SETS; s++) {
			if (expected.exactly >= 0 && s != expected.exactly)
				continue;
			if (mask[0] == (off[LIMITS][l][0] | off[expected.family][s][0]) &&
			    mask[1] == (off[LIMITS][l][1] | off[expected.family][s][1]))
				return true;
		}
	}
	return false;
}

/*
 * The driver calls this function after libgpupart's callback, so the function gets the final TMD.
 */
static void on_tmd(void *user, int domain, int cbid, const void *params)
{
	const char *tmd = ((char *const *)params)[4];

	(void)user;
	(void)domain;
	(void)cbid;
	memcpy(expected.last, tmd + MASK_BYTE, sizeof(expected.last));
	expected.seen++;
	if (expected.watched && !matches(expected.last))
		expected.bad++;
}

static int watch(void)
{
	CU (*subscribe)(uint32_t *, void (*)(void *, int, int, const void *), void *);
	CU (*enable)(uint32_t, uint32_t, int, int);
	const void *found;
	uint32_t id;

	if (cuGetExportTable(&found, table_id))
		return -1;
	*(const void **)&subscribe = ((const void *const *)found)[3];
	*(const void **)&enable = ((const void *const *)found)[6];
	return subscribe(&id, on_tmd, NULL) || enable(1, id, 0xb, 1);
}

static int launch(P what, P stream)
{
	return cuLaunchKernel(what, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

/* Makes launches. From these launches, finds the mask of each set of each family. */
static bool learn(struct gpupart *gp, P stream)
{
	for (int f = 0; f < NR_FAMILIES; f++)
		for (int s = 0; s < NR_SETS; s++) {
			if (gpupart_process_set(gp, gpu, &family[f][s]) || launch(function, stream))
				return false;
			memcpy(off[f][s], expected.last, sizeof(off[f][s]));
		}
	return !gpupart_process_set(gp, gpu, NULL) && !cuStreamSynchronize(stream);
}

/*
 * A torn set is a mixture of the words of two sets. Counts the mixtures that differ from all sets
 * of @f with any limit.
 */
static int nr_recognised(int f)
{
	int nr = 0;

	expected.family = f;
	expected.exactly = expected.limit = -1;
	for (int a = 0; a < NR_SETS; a++)
		for (int b = 0; b < NR_SETS; b++) {
			uint64_t mixed[2] = { off[LIMITS][0][0] | off[f][a][0],
					      off[LIMITS][0][1] | off[f][b][1] };

			nr += !matches(mixed);
		}
	return nr;
}

static void families(void)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo);
	unsigned int nr = gpupart_topology_nr_gpcs(topo);

	for (int s = 0; s < NR_SETS; s++) {
		/* This set has all TPCs except one TPC of GPC s, so it overlaps every other set. */
		family[LIMITS][s] = all;
		gpupart_tpcset_del(&family[LIMITS][s],
			gpupart_tpcset_next(&gpupart_topology_gpc(topo, s % nr)->tpcs, 0));
		family[PROCESS][s] = gpupart_topology_gpc(topo, s % nr)->tpcs;
		family[STREAM][s] = gpupart_tpcset_or(
			&gpupart_topology_gpc(topo, s % nr)->tpcs,
			&gpupart_topology_gpc(topo, (s + 1) % nr)->tpcs);
		family[OWN][s] = gpupart_tpcset_or(
			&gpupart_topology_gpc(topo, s % nr)->tpcs,
			&gpupart_topology_gpc(topo, (s + 2) % nr)->tpcs);
		family[FUNCTION][s] = gpupart_tpcset_or(
			&gpupart_topology_gpc(topo, s % nr)->tpcs,
			&gpupart_topology_gpc(topo, (s + 3) % nr)->tpcs);
	}
}

/* ---------------------------------------------------------------------- threads */

enum { BY_PROCESS, BY_STREAM = STREAM, BY_NEXT, BY_THREAD, BY_GRAPH,
       BY_FUNCTION };

static P streams[BY_FUNCTION + 1];	/* by their purpose */
static pthread_barrier_t start;
static atomic_int nr_launching;
static atomic_ulong nr_changes;

struct worker {
	int what, last;		/* @last is the last set of a thread that changes sets */
	unsigned long failed;
};

static void *set_away(void *given)
{
	struct worker *w = given;
	struct gpupart *gp;
	unsigned int seed = 1 + w->what;

	/* The library looks up a function in the current context. */
	if (gpupart_open(&gp) || cuCtxSetCurrent(ctx))
		exit(1);
	pthread_barrier_wait(&start);
	/* Changes sets until the last launch. Makes at least @nr_each changes. */
	for (unsigned long n = 0; n < nr_each || atomic_load(&nr_launching); n++) {
		int s = rand_r(&seed) % NR_SETS, err;

		w->last = s;
		if (w->what == LIMITS)
			err = gpupart_limit_set(gp, gpu, &family[LIMITS][s]);
		else if (w->what == PROCESS)
			err = gpupart_process_set(gp, gpu, &family[PROCESS][s]);
		else if (w->what == STREAM)
			err = gpupart_stream_set(gp, gpu, streams[STREAM], &family[STREAM][s]);
		else
			err = gpupart_function_set(gp, gpu, own_function, &family[FUNCTION][s]);
		w->failed += err != 0;
		atomic_fetch_add_explicit(&nr_changes, 1, memory_order_relaxed);
	}
	gpupart_close(gp);
	return NULL;
}

/* Kernel node parameters of version 1. */
struct node_params {
	P function;
	unsigned int grid[3], block[3], shared;
	P *params, *extra;
};

static P graph_of_two(void)
{
	struct node_params p = { .function = function, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	P graph, first, second, exec;

	if (cuGraphCreate(&graph, 0) || cuGraphAddKernelNode(&first, graph, NULL, 0, &p) ||
	    cuGraphAddKernelNode(&second, graph, &first, 1, &p) ||
	    cuGraphInstantiateWithFlags(&exec, graph, 0))
		return NULL;
	return exec;
}

static void *launch_away(void *given)
{
	static const int of[] = { [BY_PROCESS] = PROCESS, [BY_STREAM] = STREAM, [BY_NEXT] = OWN,
				  [BY_THREAD] = OWN, [BY_GRAPH] = PROCESS,
				  [BY_FUNCTION] = FUNCTION };
	struct worker *w = given;
	unsigned int seed = 77 + w->what;
	struct gpupart *gp;
	P exec = NULL, module;

	if (gpupart_open(&gp) || cuCtxSetCurrent(ctx))
		exit(1);
	if (w->what == BY_GRAPH) {
		exec = graph_of_two();
		w->failed += !exec;
	}
	expected.family = of[w->what];
	expected.exactly = expected.limit = -1;
	expected.watched = true;
	pthread_barrier_wait(&start);
	for (unsigned long n = 0; n < nr_each; n++) {
		int s = rand_r(&seed) % NR_SETS, err = 0;

		if (w->what == BY_NEXT || w->what == BY_THREAD)
			expected.exactly = s;
		if (w->what == BY_NEXT)
			err = gpupart_next_set(gp, gpu, &family[OWN][s]);
		else if (w->what == BY_THREAD)
			err = gpupart_thread_set(gp, gpu, &family[OWN][s]);
		if (exec)
			err |= n % 16 ? 0 : cuGraphLaunch(exec, streams[w->what]);
		else
			err |= launch(w->what == BY_FUNCTION ? own_function : function,
				      streams[w->what]);
		w->failed += err != 0;
		/* Queued work uses memory, so wait for the work from time to time. */
		if (n % 512 == 511)
			w->failed += cuStreamSynchronize(streams[w->what]) != 0;
		/* The library forgets functions of launches of all threads. */
		if (n % 16384 == 16383)
			w->failed += cuModuleLoadData(&module, text) || cuModuleUnload(module);
	}
	w->failed += cuStreamSynchronize(streams[w->what]) != 0;
	atomic_fetch_add(&nr_seen, expected.seen);
	atomic_fetch_add(&nr_bad, expected.bad);
	atomic_fetch_sub(&nr_launching, 1);
	gpupart_close(gp);
	return NULL;
}

/*
 * The next launch must use the last set of each thread that changes sets. Then the test makes
 * more changes, and each launch after a change must use the new set.
 */
static bool last_ones(struct gpupart *gp, const int last[NR_FAMILIES], bool functions)
{
	bool good;

	expected.watched = true;
	expected.bad = expected.seen = 0;
	expected.limit = last[LIMITS];
	expected.family = PROCESS;
	expected.exactly = last[PROCESS];
	good = !launch(function, streams[BY_PROCESS]);
	expected.family = STREAM;
	expected.exactly = last[STREAM];
	good = good && !launch(function, streams[STREAM]);
	expected.family = FUNCTION;
	expected.exactly = last[FUNCTION];
	good = good && (!functions || !launch(own_function, streams[BY_FUNCTION]));
	good = good && expected.seen == (functions ? 3 : 2);
	for (int s = 0; s < NR_SETS; s++) {
		expected.limit = s;
		expected.family = PROCESS;
		expected.exactly = s;
		good = good && !gpupart_limit_set(gp, gpu, &family[LIMITS][s]) &&
		       !gpupart_process_set(gp, gpu, &family[PROCESS][s]) &&
		       !launch(function, streams[BY_PROCESS]);
	}
	expected.watched = false;
	return good && !expected.bad;
}

/*
 * If a function has a set, every launch takes a different code path. So run one time without a
 * set of a function, and one time with such a set.
 */
static void stress(struct gpupart *gp, bool functions)
{
	static const int setters[NR_SETTERS] = { LIMITS, PROCESS, STREAM, FUNCTION };
	static const int launchers[NR_LAUNCHERS] = { BY_PROCESS, BY_STREAM, BY_NEXT, BY_THREAD,
						     BY_GRAPH, BY_FUNCTION };
	int nr_setters = NR_SETTERS - !functions, nr_launchers = NR_LAUNCHERS - !functions;
	struct worker work[NR_SETTERS + NR_LAUNCHERS] = { 0 };
	pthread_t thread[NR_SETTERS + NR_LAUNCHERS];
	struct gpupart_counters before, after;
	int last[NR_FAMILIES] = { 0 };
	unsigned long failed = 0;

	tap_ok(!gpupart_limit_set(gp, gpu, &family[LIMITS][0]) &&
	       !gpupart_process_set(gp, gpu, &family[PROCESS][0]) &&
	       !gpupart_stream_set(gp, gpu, streams[STREAM], &family[STREAM][0]) &&
	       (!functions || !gpupart_function_set(gp, gpu, own_function, &family[FUNCTION][0])),
	       "the first sets, %s a function's", functions ? "with" : "without");
	gpupart_counters_get(&before);
	atomic_store(&nr_seen, 0);
	atomic_store(&nr_bad, 0);
	atomic_store(&nr_changes, 0);
	pthread_barrier_init(&start, NULL, nr_setters + nr_launchers);
	atomic_store(&nr_launching, nr_launchers);
	for (int i = 0; i < nr_setters + nr_launchers; i++) {
		work[i].what = i < nr_setters ? setters[i] : launchers[i - nr_setters];
		if (pthread_create(&thread[i], NULL, i < nr_setters ? set_away : launch_away,
				   &work[i]))
			exit(1);
	}
	for (int i = 0; i < nr_setters + nr_launchers; i++) {
		pthread_join(thread[i], NULL);
		failed += work[i].failed;
		if (i < nr_setters)
			last[setters[i]] = work[i].last;
	}
	pthread_barrier_destroy(&start);
	gpupart_counters_get(&after);
	tap_ok(!failed, "%lu changes by %d threads: %lu calls failed", atomic_load(&nr_changes),
	       nr_setters, failed);
	tap_ok(!atomic_load(&nr_bad), "%lu launches by %d threads: %lu with a set that never was",
	       atomic_load(&nr_seen), nr_launchers, atomic_load(&nr_bad));
	tap_ok(atomic_load(&nr_seen) >= (nr_launchers - 1) * nr_each &&
	       after.launches - before.launches == atomic_load(&nr_seen) &&
	       after.confined - before.confined == atomic_load(&nr_seen),
	       "each counted, and confined: %lu, %lu",
	       (unsigned long)(after.launches - before.launches),
	       (unsigned long)(after.confined - before.confined));
	tap_ok(after.graphs_reapplied > before.graphs_reapplied &&
	       after.graphs_stale == before.graphs_stale, "graphs were built again %lu times",
	       (unsigned long)(after.graphs_reapplied - before.graphs_reapplied));
	tap_ok(last_ones(gp, last, functions), "what is set last is what the next launch has");
}

static void run(void)
{
	struct gpupart *gp;
	P module, s;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) ||
	    cuModuleLoadData(&module, text) ||
	    cuModuleGetFunction(&function, module, "gpupart_empty") ||
	    cuModuleGetFunction(&own_function, module, "gpupart_own") || gpupart_open(&gp) ||
	    gpupart_attach(gp, NULL, NULL, &gpu) || watch()) {
		tap_ok(0, "attached, under our eyes");
		return;
	}
	topo = gpupart_gpu_topology(gpu);
	families();
	/* A process's first attach makes a launch. */
	if (gpupart_next_set(gp, gpu, &family[OWN][0]) || gpupart_next_set(gp, gpu, NULL)) {
		tap_ok(0, "a next-launch set: %s", gpupart_error(gp));
		return;
	}
	cuStreamCreate(&s, 1);
	for (int i = 0; i <= BY_FUNCTION; i++)
		cuStreamCreate(&streams[i], 1);
	tap_ok(learn(gp, s), "the masks of %d sets", NR_FAMILIES * NR_SETS);
	/*
	 * To detect a torn set, the test needs at least this number of mixtures that differ from
	 * all sets.
	 */
	tap_ok(nr_recognised(PROCESS) >= 20 && nr_recognised(STREAM) >= 20 &&
	       nr_recognised(FUNCTION) >= 20, "of 56 mixtures of two sets %d, %d, %d are no set",
	       nr_recognised(PROCESS), nr_recognised(STREAM), nr_recognised(FUNCTION));
	stress(gp, false);
	stress(gp, true);
}

int main(int argc, char **argv)
{
	const char *build = getenv("BUILD"), *number = getenv("GPUPART_STRESS");
	char path[4096];
	void *lib;

	(void)argc;
	if (!getenv("STRESS_CHILD")) {
		/* The dynamic loader reads its search path only once, at the start. */
		snprintf(path, sizeof(path), "%s/lib/gpupart/sim", build ? build : "build");
		setenv("LD_LIBRARY_PATH", path, 1);
		setenv("GPUPART_SIM", "tests/data/gh100-h200-b/capture.txt", 1);
		setenv("GPUPART_SIM_FAULTS", "subscribers=2", 1);
		/* The cache path is a file, so the library can store nothing there. */
		setenv("XDG_CACHE_HOME", "/dev/null", 1);
		setenv("STRESS_CHILD", "1", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	if (number && atol(number) > 0)
		nr_each = atol(number);
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		tap_ok(0, "the simulated driver: %s", dlerror());
		return tap_done();
	}
#define FIND(name, args) *(void **)&name = dlsym(lib, #name);
	CALLS(FIND)
	run();
	return tap_done();
}
