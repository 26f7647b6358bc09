// SPDX-License-Identifier: MIT
/*
 * Tests green contexts together with sets on the simulated driver. Like a program, it creates
 * green contexts. Then it tests where launches in these contexts run. The tests do not depend on
 * the library's choice of a part.
 */
#include <pthread.h>
#include "tests/lib/scenario.h"

struct resource {
	int type;
	char pad[92];
	U nr_sms, smallest, alignment, room[9];
};

#define GREEN_CALLS(F)                                                             \
	F(cuDeviceGetDevResource, (int, struct resource *, int))                   \
	F(cuDevSmResourceSplitByCount,                                             \
	  (struct resource *, U *, const struct resource *, struct resource *, U, U)) \
	F(cuDevResourceGenerateDesc, (P *, struct resource *, U))                  \
	F(cuGreenCtxDestroy, (P))                                                  \
	F(cuGreenCtxStreamCreate, (P *, P, U, int))                                \
	F(cuGreenCtxGetDevResource, (P, struct resource *, int))                   \
	F(cuCtxFromGreenCtx, (P *, P))                                             \
	F(cuDevicePrimaryCtxRetain, (P *, int))                                    \
	F(cuStreamDestroy_v2, (P))                                                 \
	F(cuStreamBeginCapture_v2, (P, int))                                       \
	F(cuStreamEndCapture, (P, P *))                                            \
	F(cuGraphInstantiateWithFlags, (P *, P, U64))                              \
	F(cuGraphLaunch, (P, P))                                                   \
	F(cuGraphExecDestroy, (P))                                                 \
	F(cuGraphDestroy, (P))                                                     \
	F(cuLaunchCooperativeKernel, (P, U, U, U, U, U, U, U, P, P *))             \
	F(cuLaunchKernelEx, (const struct config *, P, P *, P *))

struct attribute {
	int id, pad;
	union {
		U dim[3];
		char bytes[64];
	};
};

struct config {
	U grid[3], block[3], shared;
	P stream;
	struct attribute *attributes;
	U nr;
};

#define DECLARE_GREEN(call, args) static CU (*call) args;
GREEN_CALLS(DECLARE_GREEN)

#define MOST 66
#define NR_SMS 132
#define NON_BLOCKING 1

static struct program program;

struct green {
	P handle, stream;
	struct gpupart_tpcset seen;
};

struct pool {
	U nr;
	struct green green[MOST];
};

/* Loads the module into the primary context. Green contexts are parts of the primary context. */
static bool begin(const char *limit)
{
	struct gpupart_tpcset set;
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	P module, ctx;
	static const char ptx[] =
		".version 4.2\n.target sm_30\n.address_size 64\n"
		".visible .entry gpupart_census(.param .u64 out, .param .u32 spin_ns)\n{ ret; }\n";

	if (!tap_ok(!attach("cuda:0"), "attached: %s", gpupart_error(gp)))
		return false;
#define FIND_GREEN(call, args) *(void **)&call = dlsym(lib, #call);
	GREEN_CALLS(FIND_GREEN)
	if (!tap_ok(!cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxSetCurrent(ctx) &&
			    !cuModuleLoadData(&module, ptx) &&
			    !cuModuleGetFunction(&program.function, module, "gpupart_census") &&
			    !cuFuncSetAttribute(program.function, 8, 200000) &&
			    !cuMemAlloc(&program.out, 24 * 4096),
		    "a program in the primary context"))
		return false;
	program.ctx = ctx;
	if (limit) {
		set = list(limit);
		return tap_ok(!gpupart_limit_set(gp, gpu, &set), "the limit %s", limit);
	}
	return true;
}

static bool make(struct green *green, struct resource *part)
{
	P desc;

	return !cuDevResourceGenerateDesc(&desc, part, 1) &&
	       !cuGreenCtxCreate(&green->handle, desc, 0, 1) &&
	       !cuGreenCtxStreamCreate(&green->stream, green->handle, NON_BLOCKING, 0);
}

/*
 * Creates all groups of at least @sms SMs. Each group gets a context and a stream. On request,
 * the remainder becomes one more group.
 */
static bool pool_make(struct pool *pool, U sms, U flags, bool with_rest)
{
	struct resource all, groups[MOST], rest;

	pool->nr = MOST - 1;
	if (cuDeviceGetDevResource(0, &all, 1) ||
	    cuDevSmResourceSplitByCount(groups, &pool->nr, &all, &rest, flags, sms))
		return false;
	for (U i = 0; i < pool->nr; i++)
		if (!make(&pool->green[i], &groups[i]))
			return false;
	return !with_rest || make(&pool->green[pool->nr++], &rest);
}

static bool pool_end(struct pool *pool)
{
	bool good = true;

	for (U i = 0; i < pool->nr; i++)
		good &= !cuStreamDestroy_v2(pool->green[i].stream) &&
			!cuGreenCtxDestroy(pool->green[i].handle);
	return good;
}

static bool pool_look(struct pool *pool)
{
	const struct gpupart_topology *topo = gpupart_gpu_topology(gpu);

	for (U i = 0; i < pool->nr; i++)
		if (program_census(&program, topo, pool->green[i].stream, &pool->green[i].seen))
			return false;
	return true;
}

static bool within(const struct pool *pool, const struct gpupart_tpcset *limit)
{
	for (U i = 0; i < pool->nr; i++) {
		struct gpupart_tpcset both = gpupart_tpcset_and(&pool->green[i].seen, limit);

		if (!gpupart_tpcset_equal(&both, &pool->green[i].seen))
			return false;
	}
	return true;
}

/* Returns the number of TPCs that belong to two contexts. */
static U shared(const struct pool *pool)
{
	struct gpupart_tpcset any = { 0 };
	U nr = 0;

	for (U i = 0; i < pool->nr; i++) {
		struct gpupart_tpcset both = gpupart_tpcset_and(&any, &pool->green[i].seen);

		nr += gpupart_tpcset_count(&both);
		for (int w = 0; w < GPUPART_TPCSET_WORDS; w++)
			any.allowed[w] |= pool->green[i].seen.allowed[w];
	}
	return nr;
}

static U sms_of(const struct green *green)
{
	struct resource its;

	return cuGreenCtxGetDevResource(green->handle, &its, 1) ? 0 : its.nr_sms;
}

/*
 * Returns true if each context has its share of the limit. A share is rounded down, but has at
 * least one TPC.
 */
static bool shares(const struct pool *pool, U limit)
{
	for (U i = 0; i < pool->nr; i++) {
		U want = sms_of(&pool->green[i]) / 2 * limit / 66;

		if ((U)gpupart_tpcset_count(&pool->green[i].seen) != (want ? want : 1))
			return false;
	}
	return true;
}

static void counted(U widened)
{
	struct gpupart_counters now;

	gpupart_counters_get(&now);
	tap_ok(now.widened_driver + now.widened_cluster + now.widened_cooperative +
			       now.widened_empty == widened && !now.unconfinable_version,
	       "%u launches widened", widened);
}

/* ------------------------------------------------------------------------ scenarios */

static void child_no_limit(void)
{
	struct pool pool;
	struct gpupart_tpcset all;

	if (!begin(NULL))
		return;
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	tap_ok(pool_make(&pool, 8, 0, true) && pool.nr == 16, "without a limit: %u made", pool.nr);
	tap_ok(pool_look(&pool) && !shared(&pool) && shares(&pool, 66),
	       "each on its own TPCs, as the driver chose them");
	tap_ok(ran_on(&program, NULL, &all), "the primary context on all");
	tap_ok(pool_end(&pool), "destroyed");
	counted(0);
}

static void pools(const char *text, U sms, U flags, U want_nr, bool room)
{
	struct gpupart_tpcset limit;
	struct pool pool;

	limit = list(text);
	if (!tap_ok(pool_make(&pool, sms, flags, false) && pool.nr == want_nr,
		    "limit %s, parts of %u SMs, flags %u: %u", text, sms, flags, pool.nr) ||
	    !tap_ok(pool_look(&pool), "launched"))
		return;
	tap_ok(within(&pool, &limit), "none leaves the limit");
	tap_ok(shares(&pool, gpupart_tpcset_count(&limit)), "each has its share of it");
	if (room)
		tap_ok(!shared(&pool), "none shares a TPC: %u", shared(&pool));
	tap_ok(ran_on(&program, NULL, &limit), "the primary context has all of the limit");
	tap_ok(pool_end(&pool), "destroyed");
}

static void child_limit(void)
{
	if (!begin("0-15"))
		return;
	pools("0-15", 8, 0, 15, true);
	pools("0-15", 16, 0, 8, true);
	pools("0-15", 32, 0, 4, true);
	pools("0-15", 64, 0, 2, true);
	pools("0-15", 8, 1, 16, true);
	counted(0);
}

static void child_small_limit(void)
{
	if (!begin("3,40"))
		return;
	pools("3,40", 64, 0, 2, true);
	pools("3,40", 8, 0, 15, false);
	counted(0);
}

static void child_large_limit(void)
{
	if (!begin("0-32"))
		return;
	pools("0-32", 8, 0, 15, true);
	pools("0-32", 16, 0, 8, true);
	pools("0-32", 16, 1, 8, true);
	counted(0);
}

/*
 * The limit changes while the contexts exist. The contexts must stay disjoint and inside the limit.
 */
static void child_changes(void)
{
	static const char *const limits[] = { "0-32", "40-60", "0-15", "0-65" };
	struct gpupart_tpcset limit;
	struct pool pool, before;

	if (!begin("0-15"))
		return;
	tap_ok(pool_make(&pool, 16, 0, true) && pool.nr == 9, "%u", pool.nr);
	tap_ok(pool_look(&pool), "launched");
	before = pool;
	for (int i = 0; i < 4; i++) {
		limit = list(limits[i]);
		tap_ok(!gpupart_limit_set(gp, gpu, &limit) && pool_look(&pool) &&
			       within(&pool, &limit) && !shared(&pool) &&
			       shares(&pool, gpupart_tpcset_count(&limit)),
		       "the limit becomes %s", limits[i]);
		if (i == 2)
			tap_ok(!memcmp(&pool, &before, sizeof(pool)), "as before: the same parts");
	}
	counted(0);
}

/*
 * Contexts are created and destroyed repeatedly, in a different way each time. Destroyed contexts
 * must use no room. The test destroys more contexts than the table has entries. It also destroys
 * contexts in the middle of a pool.
 */
static void child_again(void)
{
	static const U sizes[2][5] = { { 8, 16, 32, 8, 64 }, { 8, 16, 32, 64 } };
	struct gpupart_tpcset limit;
	bool good = true;
	struct pool pool;

	if (!begin("8-23"))
		return;
	limit = list("8-23");
	for (U i = 0; i < 200 && good; i++) {
		U way = i / 100, size = sizes[way][i % (way ? 4 : 5)];

		good = pool_make(&pool, size, way ? i % 8 >= 4 : i % 5 == 3, way) &&
		       pool_look(&pool) && within(&pool, &limit) && shares(&pool, 16) &&
		       shared(&pool) <= (pool.nr > 16 ? pool.nr - 16 : 0);
		if (!good)
			printf("# round %u: %u of %u SMs, %u shared\n", i, pool.nr, size,
			       shared(&pool));
		good &= pool_end(&pool);
	}
	tap_ok(good, "made and destroyed 200 times");
	counted(0);
}

/*
 * Contexts in one half of the GPU keep their TPCs while contexts in the other half are created and
 * destroyed.
 */
static void child_stay(void)
{
	struct resource all, halves[2], groups[MOST], rest;
	struct pool stays = { .nr = 4 }, goes = { .nr = 2 }, both;
	struct green half[2];
	bool good = true;
	U nr = 2;

	if (!begin("8-40"))
		return;
	tap_ok(!cuDeviceGetDevResource(0, &all, 1) &&
		       !cuDevSmResourceSplitByCount(halves, &nr, &all, &rest, 0, 64) && nr == 2 &&
		       make(&half[0], &halves[0]) && make(&half[1], &halves[1]) &&
		       !cuGreenCtxGetDevResource(half[0].handle, &halves[0], 1) &&
		       !cuGreenCtxGetDevResource(half[1].handle, &halves[1], 1) &&
		       !cuDevSmResourceSplitByCount(groups, &stays.nr, &halves[0], &rest, 0, 16) &&
		       stays.nr == 4,
	       "two halves, one of four parts");
	for (U i = 0; i < stays.nr; i++)
		good &= make(&stays.green[i], &groups[i]);
	tap_ok(good && pool_look(&stays) && !shared(&stays) && shares(&stays, 33), "they launched");
	memcpy(goes.green, stays.green, 2 * sizeof(struct green));
	memmove(stays.green, &stays.green[2], 2 * sizeof(struct green));
	stays.nr = 2;
	tap_ok(pool_end(&goes), "two of the four stay");
	for (U i = 0; i < 60 && good; i++) {
		struct pool others = { .nr = MOST - 5 };

		good = !cuDevSmResourceSplitByCount(groups, &others.nr, &halves[1], &rest,
						    i / 13 % 2, 8 + 2 * (i % 13));
		if (rest.nr_sms)
			groups[others.nr++] = rest;
		for (U n = 0; n < others.nr; n++)
			good &= make(&others.green[n], &groups[n]);
		both = stays;
		memcpy(&both.green[both.nr], others.green, others.nr * sizeof(struct green));
		both.nr += others.nr;
		for (U n = stays.nr; n--; )
			good &= !program_launch(&program, stays.green[(i + n) % 2].stream, 4, 10);
		good = good && pool_look(&both) && !shared(&both) && shares(&both, 33) &&
		       !memcmp(both.green, stays.green, stays.nr * sizeof(struct green));
		if (!good)
			printf("# round %u: %u others, %u shared\n", i, others.nr, shared(&both));
		good &= pool_end(&others);
	}
	tap_ok(good && pool_end(&stays), "they stay where they are");
	counted(0);
}

/* A program splits a part again. Each smaller part must be inside the larger part. */
static void child_parts_of_parts(void)
{
	struct resource all, groups[2], its, halves[4], rest;
	struct green whole = { 0 }, half = { 0 };
	const struct gpupart_topology *topo;
	struct gpupart_tpcset both;
	U nr = 2;

	if (!begin("0-32"))
		return;
	topo = gpupart_gpu_topology(gpu);
	tap_ok(!cuDeviceGetDevResource(0, &all, 1) &&
		       !cuDevSmResourceSplitByCount(groups, &nr, &all, &rest, 0, 64) && nr == 2 &&
		       make(&whole, &groups[1]),
	       "a half of the GPU");
	nr = 4;
	tap_ok(cuDevSmResourceSplitByCount(halves, &nr, &groups[1], &rest, 0, 32) == 915,
	       "a part cannot be parted");
	nr = 4;
	tap_ok(!cuGreenCtxGetDevResource(whole.handle, &its, 1) &&
		       !cuDevSmResourceSplitByCount(halves, &nr, &its, &rest, 0, 32) && nr == 2 &&
		       make(&half, &halves[0]),
	       "but what its context has: a half of that");
	tap_ok(!program_census(&program, topo, whole.stream, &whole.seen) &&
		       !program_census(&program, topo, half.stream, &half.seen),
	       "launched");
	both = gpupart_tpcset_and(&whole.seen, &half.seen);
	tap_ok(gpupart_tpcset_count(&whole.seen) == 16 && gpupart_tpcset_count(&half.seen) == 8 &&
		       gpupart_tpcset_equal(&both, &half.seen),
	       "%d TPCs in the %d", gpupart_tpcset_count(&half.seen),
	       gpupart_tpcset_count(&whole.seen));
}

/*
 * A launch needs all its blocks at the same time. If they do not fit into the context's part, the
 * launch gets the whole limit and is counted.
 */
static void child_widened(void)
{
	struct attribute cluster = { .id = 4, .dim = { 8, 1, 1 } };
	struct config config = { .grid = { 8, 1, 1 }, .block = { 32, 1, 1 }, .shared = 200000,
				 .attributes = &cluster, .nr = 1 };
	U spin = 1000;
	P args[] = { &program.out, &spin };
	struct gpupart_tpcset limit, seen;
	struct pool pool;

	if (!begin("0-32"))
		return;
	limit = list("0-32");
	tap_ok(pool_make(&pool, 16, 0, false) && pool_look(&pool), "parts of 4 TPCs");
	config.stream = pool.green[1].stream;
	tap_ok(!cuLaunchKernelEx(&config, program.function, args, NULL) &&
		       !cuStreamSynchronize(config.stream),
	       "a cluster of 8 fits into one");
	counted(0);
	config.grid[0] = cluster.dim[0] = 4;
	tap_ok(!cuLaunchKernelEx(&config, program.function, args, NULL) &&
		       !cuStreamSynchronize(config.stream),
	       "a cluster of 4");
	counted(0);
	tap_ok(!cuLaunchCooperativeKernel(program.function, 40, 1, 1, 32, 1, 1, 200000,
					  config.stream, args) &&
		       !cuStreamSynchronize(config.stream),
	       "a cooperative grid of 40 blocks is too large");
	counted(1);
	tap_ok(!program_census(&program, gpupart_gpu_topology(gpu), config.stream, &seen) &&
		       gpupart_tpcset_equal(&seen, &pool.green[1].seen),
	       "the next launch is in its part");
	tap_ok(ran_on(&program, NULL, &limit), "the primary context in the limit");
}

/*
 * Tests the legacy default stream of a green context, and a stream that is created while the green
 * context is current.
 */
static void child_current(void)
{
	struct gpupart_tpcset limit, seen[3];
	struct pool pool;
	P ctx, stream;

	if (!begin("0-32"))
		return;
	limit = list("0-32");
	tap_ok(pool_make(&pool, 16, 0, false) && pool_look(&pool), "parts");
	tap_ok(!cuCtxFromGreenCtx(&ctx, pool.green[2].handle) && !cuCtxSetCurrent(ctx) &&
		       !cuStreamCreate(&stream, NON_BLOCKING) &&
		       !program_census(&program, gpupart_gpu_topology(gpu), NULL, &seen[0]) &&
		       !program_census(&program, gpupart_gpu_topology(gpu), (P)2, &seen[1]) &&
		       !program_census(&program, gpupart_gpu_topology(gpu), stream, &seen[2]),
	       "current on this thread");
	for (int i = 0; i < 3; i++)
		tap_ok(gpupart_tpcset_equal(&seen[i], &pool.green[2].seen), "in its part");
	tap_ok(!cuCtxSetCurrent(program.ctx) && ran_on(&program, NULL, &limit),
	       "the primary context again");
	counted(0);
}

/*
 * Launches that are captured in a context must stay in the context's part. The graph may be
 * launched into any stream.
 */
static void child_graphs(void)
{
	struct gpupart_tpcset limit;
	struct pool pool;
	P graph, exec;
	struct { unsigned int smid, cluster; U64 start, end; } records[2 * NR_SMS];

	if (!begin("0-32"))
		return;
	tap_ok(pool_make(&pool, 16, 0, false) && pool_look(&pool), "parts");
	tap_ok(!cuStreamBeginCapture_v2(pool.green[3].stream, 0) &&
		       !program_launch(&program, pool.green[3].stream, 2 * NR_SMS, 1000) &&
		       !cuStreamEndCapture(pool.green[3].stream, &graph) &&
		       !cuGraphInstantiateWithFlags(&exec, graph, 0),
	       "captured");
	for (int round = 0; round < 3; round++) {
		struct gpupart_tpcset seen = { 0 };

		limit = list(round == 2 ? "33-65" : "0-32");
		tap_ok(!gpupart_limit_set(gp, gpu, &limit) && pool_look(&pool) &&
			       !cuGraphLaunch(exec, pool.green[3].stream) &&
			       !cuStreamSynchronize(pool.green[3].stream) &&
			       !cuMemcpyDtoH(records, program.out, sizeof(records)),
		       "launched");
		for (int b = 0; b < 2 * NR_SMS; b++)
			gpupart_tpcset_add(&seen, gpupart_topology_sm_tpc(gpupart_gpu_topology(gpu),
									  records[b].smid));
		tap_ok(gpupart_tpcset_equal(&seen, &pool.green[3].seen), "in its part");
	}
	tap_ok(!cuGraphExecDestroy(exec) && !cuGraphDestroy(graph) && pool_end(&pool), "destroyed");
	counted(0);
}

/* Tests sets of the program in addition to its green contexts. */
static void child_sets(void)
{
	struct gpupart_tpcset set, seen, both;
	struct pool pool;

	if (!begin("0-32"))
		return;
	tap_ok(pool_make(&pool, 32, 0, false) && pool_look(&pool), "parts of 8 TPCs");
	set = (struct gpupart_tpcset){ 0 };
	gpupart_tpcset_add(&set, gpupart_tpcset_next(&pool.green[1].seen, 0));
	tap_ok(!gpupart_stream_set(gp, gpu, pool.green[1].stream, &set) &&
		       ran_on(&program, pool.green[1].stream, &set),
	       "a stream's set inside the part");
	counted(0);
	tap_ok(!gpupart_stream_set(gp, gpu, pool.green[2].stream, &set) &&
		       !program_census(&program, gpupart_gpu_topology(gpu), pool.green[2].stream,
				       &seen) &&
		       gpupart_tpcset_equal(&seen, &pool.green[2].seen),
	       "one that has nothing in common with it: the part");
	counted(1);
	both = gpupart_tpcset_and(&seen, &set);
	tap_ok(gpupart_tpcset_empty(&both), "which is another");
}

#define NR_THREADS 8

static struct pool racing;
static pthread_barrier_t start_line;

static void *race(void *arg)
{
	struct green *green = arg;

	pthread_barrier_wait(&start_line);
	if (cuCtxSetCurrent(program.ctx))
		return NULL;
	for (int i = 0; i < 200; i++)
		if (program_launch(&program, green->stream, 4, 10) ||
		    cuStreamSynchronize(green->stream))
			return NULL;
	return green;
}

/*
 * All contexts make their first launch at the same time. Afterwards, the contexts must be
 * disjoint. No launch may have run outside its part.
 */
static void child_threads(void)
{
	struct gpupart_tpcset limit;
	pthread_t thread[NR_THREADS];
	void *good;
	U nr = 0;

	if (!begin("0-32"))
		return;
	limit = list("0-32");
	tap_ok(pool_make(&racing, 16, 0, false) && racing.nr == NR_THREADS, "parts");
	pthread_barrier_init(&start_line, NULL, NR_THREADS);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_create(&thread[i], NULL, race, &racing.green[i]);
	for (int i = 0; i < NR_THREADS; i++)
		nr += !pthread_join(thread[i], &good) && good;
	tap_ok(nr == NR_THREADS && pool_look(&racing) && within(&racing, &limit) &&
		       !shared(&racing) && shares(&racing, 33),
	       "%u threads", nr);
	counted(0);
}

/* With --sm-count, the driver reports a smaller resource. A program splits this resource. */
static void told(const char *text, U sms, U part, U want_nr, U want_tpcs)
{
	struct gpupart_tpcset limit = list(text);
	struct resource all, groups[MOST], rest, its;
	struct pool pool = { .nr = MOST - 1 };
	U sum = 0;

	tap_ok(!gpupart_limit_set(gp, gpu, &limit) && !cuDeviceGetDevResource(0, &all, 1) &&
		       all.nr_sms == sms,
	       "limit %s: %u SMs are reported", text, all.nr_sms);
	tap_ok(!cuDevSmResourceSplitByCount(groups, &pool.nr, &all, &rest, 0, part) &&
		       pool.nr == want_nr,
	       "%u parts of %u", pool.nr, part);
	for (U i = 0; i < pool.nr; i++) {
		if (!make(&pool.green[i], &groups[i]) ||
		    cuGreenCtxGetDevResource(pool.green[i].handle, &its, 1) || its.nr_sms != part)
			tap_ok(false, "context %u: %u SMs", i, its.nr_sms);
		sum += its.nr_sms;
	}
	tap_ok(sum + rest.nr_sms <= sms, "together %u and %u left", sum, rest.nr_sms);
	tap_ok(pool_look(&pool) && within(&pool, &limit) && !shared(&pool), "apart in the limit");
	for (U i = 0; i < pool.nr; i++)
		if ((U)gpupart_tpcset_count(&pool.green[i].seen) != want_tpcs)
			tap_ok(false, "context %u: %d TPCs", i,
			       gpupart_tpcset_count(&pool.green[i].seen));
	tap_ok(pool_end(&pool), "destroyed");
}

static void child_told(void)
{
	struct gpupart_tpcset limit;
	struct resource all;

	if (!begin("0-15"))
		return;
	tap_ok(!gpupart_sm_count_tell(gp, gpu, true), "told: %s", gpupart_error(gp));
	told("0-15", 32, 8, 4, 4);
	told("0-15", 32, 16, 2, 8);
	told("0-15", 32, 32, 1, 16);
	told("0-32", 64, 8, 8, 4);
	told("0-32", 64, 16, 4, 8);
	told("0-32", 64, 32, 2, 16);
	told("0-65", 132, 32, 4, 16);
	tap_ok(!gpupart_sm_count_tell(gp, gpu, false) && !cuDeviceGetDevResource(0, &all, 1) &&
		       all.nr_sms == 132,
	       "no more told");
	limit = list("0-32");
	tap_ok(!gpupart_limit_set(gp, gpu, &limit), "0-32 again");
	pools("0-32", 16, 0, 8, true);
	counted(0);
}

static void refused(int want)
{
	struct resource all;
	struct green green;
	P desc;

	if (!begin("0-15"))
		return;
	tap_ok(!cuDeviceGetDevResource(0, &all, 1) && !cuDevResourceGenerateDesc(&desc, &all, 1) &&
		       cuGreenCtxCreate(&green.handle, desc, 0, 1) == want,
	       "a green context: %d", want);
}

static void child_refused(void) { refused(801); }
static void child_made(void) { refused(0); }

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
#define FEATURES(n) { "GPUPART_SIM_FAULTS=features=" n }
		{ "no limit", child_no_limit, "@e", { NULL }, NULL },
		{ "a limit", child_limit, "@e", { NULL }, NULL },
		{ "a small limit", child_small_limit, "@e", { NULL }, NULL },
		{ "a large limit", child_large_limit, "@e", { NULL }, NULL },
		{ "a limit on board b", child_limit, "@b", { NULL }, NULL },
		{ "the limit changes", child_changes, "@e", { NULL }, NULL },
		{ "again and again", child_again, "@e", { NULL }, NULL },
		{ "some stay", child_stay, "@e", { NULL }, NULL },
		{ "parts of parts", child_parts_of_parts, "@e", { NULL }, NULL },
		{ "too large", child_widened, "@e", { NULL }, NULL },
		{ "current", child_current, "@e", { NULL }, NULL },
		{ "graphs", child_graphs, "@e", { NULL }, NULL },
		{ "sets", child_sets, "@e", { NULL }, NULL },
		{ "threads", child_threads, "@e", { NULL }, NULL },
		{ "told", child_told, "@e", { NULL }, NULL },
		{ "11 features", child_made, "@e", FEATURES("11"), NULL },
		{ "8 features", child_made, "@e", FEATURES("8"), NULL },
		{ "7 features", child_refused, "@e", FEATURES("7"), NULL },
		{ "a table without slot 10", child_refused, "@e",
		  { "GPUPART_SIM_FAULTS=table-size=80" }, NULL },
		{ "a table without slot 9", child_refused, "@e",
		  { "GPUPART_SIM_FAULTS=table-size=72" }, NULL },	};

	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
