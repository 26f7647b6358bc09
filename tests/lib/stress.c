// SPDX-License-Identifier: MIT
/*
 * Sets are changed by some threads while others launch: each launch has exactly one of
 * the sets that were in force, whole, and none is lost. On the simulated driver, with a
 * second subscriber that reads each TMD after libgpupart has had it. GPUPART_STRESS=N is
 * the number of changes and launches of each thread.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <gpupart.h>
#include "tap.h"

#define NR_SETS		8	/* of each family */
#define MASK_BYTE	304
#define NR_LAUNCHERS	5
#define NR_SETTERS	3

typedef int CU;
typedef void *P;

static const unsigned char table_id[16] = {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
};

#define CALLS(F) \
	F(cuInit, (unsigned int)) F(cuDevicePrimaryCtxRetain, (P *, int)) F(cuCtxSetCurrent, (P)) \
	F(cuStreamCreate, (P *, unsigned int)) F(cuStreamSynchronize, (P)) \
	F(cuModuleLoadData, (P *, const void *)) F(cuModuleGetFunction, (P *, P, const char *)) \
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
static P ctx, function;
static unsigned long nr_each = 250000;

/* The families: what a limit, the process, a stream and a thread may have. */
enum { LIMITS, PROCESS, STREAM, OWN, NR_FAMILIES };
static struct gpupart_tpcset family[NR_FAMILIES][NR_SETS];
static uint64_t off[NR_FAMILIES][NR_SETS][2];	/* as a TMD has them */

/* What this thread's next TMD may be: a limit and one of a family, or this one of it. */
static _Thread_local struct {
	int family, exactly;	/* -1: any */
	bool watched;
	unsigned long seen, bad;
	uint64_t last[2];
} expected = { .family = -1 };

static atomic_ulong nr_seen, nr_bad;

static bool matches(const uint64_t mask[2])
{
	for (int l = 0; l < NR_SETS; l++)
		for (int s = 0; s < NR_SETS; s++) {
			if (expected.exactly >= 0 && s != expected.exactly)
				continue;
			if (mask[0] == (off[LIMITS][l][0] | off[expected.family][s][0]) &&
			    mask[1] == (off[LIMITS][l][1] | off[expected.family][s][1]))
				return true;
		}
	return false;
}

/* Called after libgpupart's own, with the TMD as it is going to be. */
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

static int launch(P stream)
{
	return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

/* The mask of each set of each family, as a launch shows it. */
static bool learn(struct gpupart *gp, P stream)
{
	for (int f = 0; f < NR_FAMILIES; f++)
		for (int s = 0; s < NR_SETS; s++) {
			if (gpupart_process_set(gp, gpu, &family[f][s]) || launch(stream))
				return false;
			memcpy(off[f][s], expected.last, sizeof(off[f][s]));
		}
	return !gpupart_process_set(gp, gpu, NULL) && !cuStreamSynchronize(stream);
}

static void families(void)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo);
	unsigned int nr = gpupart_topology_nr_gpcs(topo);

	for (int s = 0; s < NR_SETS; s++) {
		/* All but one TPC of GPC s: it has something in common with every other set. */
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
	}
}

/* ---------------------------------------------------------------------- threads */

enum { BY_PROCESS, BY_STREAM = STREAM, BY_NEXT, BY_THREAD, BY_GRAPH };

static P streams[BY_GRAPH + 1];	/* by what they are for */
static pthread_barrier_t start;
static atomic_int nr_launching;
static atomic_ulong nr_changes;

struct worker {
	int what;
	unsigned long launches, failed;
};

static void *set_away(void *given)
{
	struct worker *w = given;
	struct gpupart *gp;
	unsigned int seed = 1 + w->what;

	if (gpupart_open(&gp))
		return NULL;
	pthread_barrier_wait(&start);
	/* Till the last launch, but so many at least. */
	for (unsigned long n = 0; n < nr_each || atomic_load(&nr_launching); n++) {
		int s = rand_r(&seed) % NR_SETS, err;

		if (w->what == LIMITS)
			err = gpupart_limit_set(gp, gpu, &family[LIMITS][s]);
		else if (w->what == PROCESS)
			err = gpupart_process_set(gp, gpu, &family[PROCESS][s]);
		else
			err = gpupart_stream_set(gp, gpu, streams[STREAM], &family[STREAM][s]);
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
				  [BY_THREAD] = OWN, [BY_GRAPH] = PROCESS };
	struct worker *w = given;
	unsigned int seed = 77 + w->what;
	struct gpupart *gp;
	P exec = NULL;

	if (gpupart_open(&gp) || cuCtxSetCurrent(ctx))
		return NULL;
	if (w->what == BY_GRAPH) {
		exec = graph_of_two();
		w->failed += !exec;
	}
	expected.family = of[w->what];
	expected.exactly = -1;
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
			err |= launch(streams[w->what]);
		w->failed += err != 0;
		/* What is queued takes memory. */
		if (n % 512 == 511)
			w->failed += cuStreamSynchronize(streams[w->what]) != 0;
	}
	w->failed += cuStreamSynchronize(streams[w->what]) != 0;
	w->launches = expected.seen;
	atomic_fetch_add(&nr_seen, expected.seen);
	atomic_fetch_add(&nr_bad, expected.bad);
	atomic_fetch_sub(&nr_launching, 1);
	gpupart_close(gp);
	return NULL;
}

static bool last_ones(struct gpupart *gp)
{
	bool good = true;

	expected.watched = true;
	for (int s = 0; s < NR_SETS; s++) {
		expected.family = PROCESS;
		expected.exactly = s;
		good = good && !gpupart_process_set(gp, gpu, &family[PROCESS][s]) &&
		       !launch(streams[BY_PROCESS]);
		expected.family = STREAM;
		good = good && !gpupart_stream_set(gp, gpu, streams[STREAM], &family[STREAM][s]) &&
		       !launch(streams[STREAM]);
	}
	return good && !expected.bad;
}

static void stress(void)
{
	static const int setters[NR_SETTERS] = { LIMITS, PROCESS, STREAM };
	static const int launchers[NR_LAUNCHERS] = { BY_PROCESS, BY_STREAM, BY_NEXT, BY_THREAD,
						     BY_GRAPH };
	static struct worker work[NR_SETTERS + NR_LAUNCHERS];
	pthread_t thread[NR_SETTERS + NR_LAUNCHERS];
	struct gpupart_counters before, after;
	unsigned long failed = 0;
	struct gpupart *gp;
	P module, s;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) ||
	    cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n"
				      ".visible .entry gpupart_empty()\n{ ret; }\n") ||
	    cuModuleGetFunction(&function, module, "gpupart_empty") || gpupart_open(&gp) ||
	    gpupart_attach(gp, NULL, &gpu) || watch()) {
		tap_ok(0, "attached, under our eyes");
		return;
	}
	topo = gpupart_gpu_topology(gpu);
	families();
	cuStreamCreate(&s, 1);
	for (int i = 0; i <= BY_GRAPH; i++)
		cuStreamCreate(&streams[i], 1);
	tap_ok(learn(gp, s), "the masks of %d sets", NR_FAMILIES * NR_SETS);
	tap_ok(!gpupart_limit_set(gp, gpu, &family[LIMITS][0]) &&
	       !gpupart_process_set(gp, gpu, &family[PROCESS][0]) &&
	       !gpupart_stream_set(gp, gpu, streams[STREAM], &family[STREAM][0]), "the first sets");
	gpupart_counters_get(&before);
	pthread_barrier_init(&start, NULL, NR_SETTERS + NR_LAUNCHERS);
	atomic_store(&nr_launching, NR_LAUNCHERS);
	for (int i = 0; i < NR_SETTERS + NR_LAUNCHERS; i++) {
		work[i].what = i < NR_SETTERS ? setters[i] : launchers[i - NR_SETTERS];
		if (pthread_create(&thread[i], NULL, i < NR_SETTERS ? set_away : launch_away,
				   &work[i]))
			exit(1);
	}
	for (int i = 0; i < NR_SETTERS + NR_LAUNCHERS; i++) {
		pthread_join(thread[i], NULL);
		failed += work[i].failed;
	}
	gpupart_counters_get(&after);
	tap_ok(!failed, "%lu changes by %d threads: %lu calls failed", atomic_load(&nr_changes),
	       NR_SETTERS, failed);
	tap_ok(!atomic_load(&nr_bad), "%lu launches by %d threads: %lu with a set that never was",
	       atomic_load(&nr_seen), NR_LAUNCHERS, atomic_load(&nr_bad));
	tap_ok(atomic_load(&nr_seen) >= 4 * nr_each &&
	       after.launches - before.launches == atomic_load(&nr_seen) &&
	       after.confined - before.confined == atomic_load(&nr_seen),
	       "each counted, and confined: %lu, %lu",
	       (unsigned long)(after.launches - before.launches),
	       (unsigned long)(after.confined - before.confined));
	tap_ok(after.graphs_reapplied > before.graphs_reapplied &&
	       after.graphs_stale == before.graphs_stale, "graphs were built again %lu times",
	       (unsigned long)(after.graphs_reapplied - before.graphs_reapplied));
	tap_ok(last_ones(gp), "what is set last is what the next launch has");
}

int main(int argc, char **argv)
{
	const char *build = getenv("BUILD"), *number = getenv("GPUPART_STRESS");
	char path[4096];
	void *lib;

	(void)argc;
	if (!getenv("STRESS_CHILD")) {
		/* The loader looks at its path once, at the start. */
		snprintf(path, sizeof(path), "%s/lib/gpupart/sim", build ? build : "build");
		setenv("LD_LIBRARY_PATH", path, 1);
		setenv("GPUPART_SIM", "tests/data/gh100-h200-b/capture.txt", 1);
		setenv("GPUPART_SIM_SUBSCRIBERS", "2", 1);
		/* A file: nothing is remembered there. */
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
	stress();
	return tap_done();
}
