// SPDX-License-Identifier: MIT
/*
 * gpu-green LIMIT [count|told|apart SECONDS]: tests green contexts in a confined program. The
 * output is TAP. The program is confined to the TPCs LIMIT. If LIMIT is "all", the program is not
 * confined. It creates green contexts like other programs. The blocks of each launch record their
 * SMs. The program does not attach itself, because tests/gpu/green.sh runs it under `gpupart
 * run`. "count" is for MPS. MPS renumbers %smid, so the program then compares only the number of
 * SMs. "told" is for --sm-count. "apart" shows for SECONDS that contexts share no SM. It does not
 * use %smid, but blocks that each need a whole SM.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <gpupart_manage.h>
#include "tests/tap.h"

typedef void *handle;
typedef uint64_t pointer;

#define U unsigned int

/* CUdevResource, 144 bytes. */
struct resource {
	int type;
	char pad[92];
	U nr_sms, smallest, alignment, room[9];
};

struct attribute {
	int id, pad;
	union {
		U dim[3];
		int on;
		char bytes[64];
	};
};

struct config {
	U grid[3], block[3], shared;
	handle stream;
	struct attribute *attributes;
	U nr;
};

#define FUNCTIONS(F) \
	F(cuInit, (U)) F(cuDevicePrimaryCtxRetain, (handle *, int)) \
	F(cuCtxSetCurrent, (handle)) F(cuStreamCreate, (handle *, U)) \
	F(cuStreamDestroy_v2, (handle)) F(cuStreamSynchronize, (handle)) \
	F(cuStreamBeginCapture_v2, (handle, int)) F(cuStreamEndCapture, (handle, handle *)) \
	F(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long)) \
	F(cuGraphLaunch, (handle, handle)) F(cuGraphExecDestroy, (handle)) \
	F(cuGraphDestroy, (handle)) F(cuModuleLoadData, (handle *, const void *)) \
	F(cuModuleGetFunction, (handle *, handle, const char *)) \
	F(cuMemAlloc_v2, (pointer *, size_t)) F(cuMemcpyDtoH_v2, (void *, pointer, size_t)) \
	F(cuLaunchKernelEx, (const struct config *, handle, void **, void **)) \
	F(cuFuncSetAttribute, (handle, int, int)) \
	F(cuDeviceGetDevResource, (int, struct resource *, int)) \
	F(cuDevSmResourceSplitByCount, \
	  (struct resource *, U *, const struct resource *, struct resource *, U, U)) \
	F(cuDevResourceGenerateDesc, (handle *, struct resource *, U)) \
	F(cuGreenCtxCreate, (handle *, handle, int, U)) F(cuGreenCtxDestroy, (handle)) \
	F(cuGreenCtxStreamCreate, (handle *, handle, U, int)) \
	F(cuCtxFromGreenCtx, (handle *, handle))

#define DECLARE(name, args) static int (*name) args;
FUNCTIONS(DECLARE)

#define BLOCKS	528	/* four blocks for each SM of the largest tested GPU */
#define THREADS	1024
#define SPIN_NS	30000
#define HOLD_NS	5000000	/* run time of a block that needs a whole SM */
#define WHOLE_SM	200000	/* bytes of shared memory; only one such block fits on an SM */
#define MAX_SHARED	8	/* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define MOST	80
#define NON_BLOCKING 1
#define LAUNCH_COOPERATIVE 2
#define LAUNCH_CLUSTER 4

static const struct gpupart_topology *topo;
static struct gpupart_tpcset limit;
static unsigned int nr_limit, nr_all, per_tpc;
static bool counting, told;
static handle primary, census;
static pointer out;

struct green {
	handle handle, stream;
	unsigned int nr_sms, want;	/* number of SMs at the creation; expected number of TPCs */
	struct gpupart_tpcset seen;
	unsigned int seen_sms;
};

/* The record of a block of gpupart_census. */
struct record {
	uint32_t smid, other;
	uint64_t start, end;
};

struct pool {
	U nr;
	struct green green[MOST];
};

/*
 * Makes a launch with @attribute. If @attribute is NULL, the launch has no attribute. Does not
 * wait.
 */
static int start(handle stream, U blocks, struct attribute *attribute)
{
	static U spin = SPIN_NS;
	void *args[] = { &out, &spin };
	struct config config = {
		.grid = { blocks, 1, 1 }, .block = { THREADS, 1, 1 }, .stream = stream,
		.attributes = attribute, .nr = attribute ? 1 : 0,
	};

	return cuLaunchKernelEx(&config, census, args, NULL);
}

/* Finds the SMs on which the @blocks blocks of the last launch ran. */
static int look(handle stream, U blocks, struct green *into)
{
	static struct record records[BLOCKS];
	bool on[4096] = { false };
	int result = cuStreamSynchronize(stream);

	if (!result)
		result = cuMemcpyDtoH_v2(records, out, blocks * sizeof(records[0]));
	memset(&into->seen, 0, sizeof(into->seen));
	into->seen_sms = 0;
	for (U b = 0; !result && b < blocks; b++) {
		int tpc = counting ? -1 : gpupart_topology_sm_tpc(topo, records[b].smid);

		if (tpc >= 0)
			gpupart_tpcset_add(&into->seen, tpc);
		into->seen_sms += records[b].smid < 4096 && !on[records[b].smid];
		if (records[b].smid < 4096)
			on[records[b].smid] = true;
	}
	return result;
}

static int ran(handle stream, struct green *into)
{
	int result = start(stream, BLOCKS, NULL);

	return result ? result : look(stream, BLOCKS, into);
}

static bool in_limit(const struct green *green)
{
	struct gpupart_tpcset beyond = gpupart_tpcset_andnot(&green->seen, &limit);

	return green->seen_sms && green->seen_sms <= nr_limit * per_tpc &&
	       gpupart_tpcset_empty(&beyond);
}

static bool is_limit(const struct green *green)
{
	return in_limit(green) && green->seen_sms == nr_limit * per_tpc;
}

static int make(struct green *green, struct resource *part)
{
	handle desc;
	int result = cuDevResourceGenerateDesc(&desc, part, 1);

	green->nr_sms = part->nr_sms;
	green->want = part->nr_sms / per_tpc * nr_limit /
		      (told ? nr_limit * per_tpc / 8 * 8 / per_tpc : nr_all);
	green->want = green->want ? green->want : 1;
	if (!result)
		result = cuGreenCtxCreate(&green->handle, desc, 0, 1);
	if (!result)
		result = cuGreenCtxStreamCreate(&green->stream, green->handle, NON_BLOCKING, 0);
	return result;
}

static int pool_make(struct pool *pool, U sms, U flags)
{
	struct resource all, groups[MOST], rest;
	int result;
	U nr = MOST - 1;

	pool->nr = 0;
	result = cuDeviceGetDevResource(0, &all, 1);
	if (!result)
		result = cuDevSmResourceSplitByCount(groups, &nr, &all, &rest, flags, sms);
	while (!result && pool->nr < nr) {
		result = make(&pool->green[pool->nr], &groups[pool->nr]);
		pool->nr += !result;
	}
	if (!result && rest.nr_sms)
		pool->nr += !make(&pool->green[pool->nr], &rest);
	return result;
}

static int pool_end(struct pool *pool)
{
	int result = 0;

	while (pool->nr && !result) {
		struct green *green = &pool->green[--pool->nr];

		result = cuStreamDestroy_v2(green->stream);
		if (!result)
			result = cuGreenCtxDestroy(green->handle);
	}
	return result;
}

static int pool_look(struct pool *pool)
{
	int result = 0;

	for (U i = 0; i < pool->nr && !result; i++)
		result = ran(pool->green[i].stream, &pool->green[i]);
	return result;
}

/*
 * Returns true if the contexts are inside the limit and have the right sizes. If the limit is
 * large enough, the contexts must also be disjoint. Reports violations.
 */
static bool pool_good(const struct pool *pool, bool print)
{
	struct gpupart_tpcset any = { { 0 } };
	unsigned int shared = 0, sum = 0;
	char text[GPUPART_TPCSET_STRLEN];
	bool good = true;

	for (U i = 0; i < pool->nr; i++) {
		const struct green *green = &pool->green[i];
		struct gpupart_tpcset both = gpupart_tpcset_and(&any, &green->seen);

		good &= in_limit(green) && green->seen_sms == green->want * per_tpc;
		sum += green->want;
		shared += gpupart_tpcset_count(&both);
		for (int tpc = gpupart_tpcset_next(&green->seen, 0); tpc >= 0;
		     tpc = gpupart_tpcset_next(&green->seen, tpc + 1))
			gpupart_tpcset_add(&any, tpc);
		gpupart_tpcset_format_list(&green->seen, text, sizeof(text));
		if (print)
			printf("# %u SMs: on %u SMs, wanted %u: TPCs %s\n", green->nr_sms,
			       green->seen_sms, green->want * per_tpc, text);
	}
	if (print)
		printf("# %u TPCs shared, %u asked of %u\n", shared, sum, nr_limit);
	return good && (sum > nr_limit || !shared);
}

static void pools(U sms, U flags)
{
	struct pool pool;
	struct green whole = { 0 };
	int result = pool_make(&pool, sms, flags);

	if (!tap_ok(!result && pool.nr, "parts of %u SMs, flags %u: %u contexts, error %d", sms,
		    flags, pool.nr, result))
		return;
	result = pool_look(&pool);
	tap_ok(!result && pool_good(&pool, true), "each on its share of the limit, apart: error %d",
	       result);
	result = ran(NULL, &whole);
	tap_ok(!result && is_limit(&whole), "the primary context: all of the limit, %u SMs",
	       whole.seen_sms);
	result = pool_end(&pool);
	tap_ok(!result, "destroyed: error %d", result);
}

/*
 * Tests that the program can split the reported resource. It must not be able to split a larger
 * resource.
 */
static void parts_of_told(void)
{
	struct resource all, groups[MOST], rest;
	int result = cuDeviceGetDevResource(0, &all, 1);

	tap_ok(!result && all.nr_sms == nr_limit * per_tpc / 8 * 8, "%u SMs shown", all.nr_sms);
	for (U sms = 8; sms <= all.nr_sms; sms *= 2) {
		U nr = MOST, sum = 0;

		result = cuDevSmResourceSplitByCount(groups, &nr, &all, &rest, 0, sms);
		for (U i = 0; !result && i < nr; i++)
			sum += groups[i].nr_sms;
		tap_ok(!result && nr && sum + rest.nr_sms <= all.nr_sms,
		       "parts of %u SMs: %u, %u SMs left: error %d", sms, nr, rest.nr_sms, result);
		if (!result)
			pools(sms, 0);
	}
}

static bool like(const struct green *seen, const struct green *part)
{
	return seen->seen_sms == part->seen_sms &&
	       gpupart_tpcset_equal(&seen->seen, &part->seen);
}

/* Tests the default stream, a created stream and a graph in one of the contexts. */
static void inside_one(void)
{
	handle ctx, stream, graph = NULL, exec = NULL;
	struct green seen, *green;
	struct pool pool;
	int result = pool_make(&pool, 32, 0);

	if (!result)
		result = pool_look(&pool);
	if (!tap_ok(!result && pool.nr > 1, "parts of 32 SMs"))
		return;
	green = &pool.green[1];
	result = cuCtxFromGreenCtx(&ctx, green->handle);
	if (!result)
		result = cuCtxSetCurrent(ctx);
	tap_ok(!result, "current: error %d", result);
	result = ran(NULL, &seen);
	tap_ok(!result && like(&seen, green), "its default stream: error %d", result);
	result = cuStreamCreate(&stream, NON_BLOCKING);
	if (!result)
		result = ran(stream, &seen);
	tap_ok(!result && like(&seen, green), "a stream made there: error %d", result);
	cuStreamDestroy_v2(stream);
	tap_ok(!cuCtxSetCurrent(primary) && !ran(NULL, &seen) && is_limit(&seen),
	       "the primary context again");
	result = cuStreamBeginCapture_v2(green->stream, 0);
	if (!result)
		result = start(green->stream, BLOCKS, NULL);
	if (!result)
		result = cuStreamEndCapture(green->stream, &graph);
	if (!result)
		result = cuGraphInstantiateWithFlags(&exec, graph, 0);
	tap_ok(!result, "a graph captured: error %d", result);
	for (int i = 0; !result && i < 3; i++) {
		result = cuGraphLaunch(exec, green->stream);
		if (!result)
			result = look(green->stream, BLOCKS, &seen);
		tap_ok(!result && like(&seen, green), "launched: error %d, %u SMs", result,
		       seen.seen_sms);
	}
	if (exec)
		cuGraphExecDestroy(exec);
	if (graph)
		cuGraphDestroy(graph);
	tap_ok(!pool_end(&pool), "destroyed");
}

/*
 * Returns true if one virtual GPC has @blocks SMs of the limit. If no virtual GPC has @blocks
 * SMs, a cluster of this size leaves the limit.
 */
static bool limit_holds(U blocks)
{
	U nr[256] = { 0 };

	for (int tpc = gpupart_tpcset_next(&limit, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&limit, tpc + 1)) {
		int vgpc = gpupart_topology_tpc(topo, tpc)->vgpc;

		if (vgpc >= 0 && vgpc < 256 && (nr[vgpc] += per_tpc) >= blocks)
			return true;
	}
	return false;
}

/*
 * Tests launches that fit into a part, and larger launches. A larger launch must stay in the
 * limit. Without a limit, the driver would let a launch that is too large for its context wait
 * forever. So without a limit, the test makes no such launch.
 */
static void together(void)
{
	struct attribute cluster = { .id = LAUNCH_CLUSTER, .dim = { 8, 1, 1 } };
	struct attribute cooperative = { .id = LAUNCH_COOPERATIVE, .on = 1 };
	struct green seen;
	struct pool pool;
	int result = pool_make(&pool, 16, 0);

	if (!result)
		result = pool_look(&pool);
	if (!tap_ok(!result && pool.nr > 1, "parts of 16 SMs"))
		return;
	for (U i = 0; i < pool.nr; i++) {
		const struct green *green = &pool.green[i];

		if (green->nr_sms < 16)
			continue;
		for (U size = 2; size <= 8; size *= 2) {
			cluster.dim[0] = size;
			result = start(green->stream, 8 * size, &cluster);
			if (!result)
				result = look(green->stream, 8 * size, &seen);
			printf("# part of %u SMs, clusters of %u: error %d, %u SMs\n",
			       green->seen_sms, size, result, seen.seen_sms);
			tap_ok(!result && (!limit_holds(size) || in_limit(&seen)),
			       "clusters of %u", size);
		}
	}
	/*
	 * Launch too many blocks for a part of a small limit. These blocks fit into the whole
	 * limit.
	 */
	if (nr_limit == nr_all) {
		tap_ok(!pool_end(&pool), "destroyed");
		return;
	}
	memset(&seen, 0, sizeof(seen));
	result = start(pool.green[0].stream, nr_limit * per_tpc, &cooperative);
	if (!result)
		result = look(pool.green[0].stream, nr_limit * per_tpc, &seen);
	/*
	 * The driver considers only the size of the context, and may therefore refuse the launch.
	 */
	tap_ok(result == 0 || result == 720 ? !result || !seen.seen_sms : 0,
	       "a cooperative grid of %u blocks: error %d, on %u SMs", nr_limit * per_tpc, result,
	       seen.seen_sms);
	tap_ok(result || in_limit(&seen), "in the limit");
	tap_ok(!pool_end(&pool), "destroyed");
}

static void again(void)
{
	static const U sizes[] = { 8, 16, 32, 64 };
	struct pool pool;
	int result = 0;
	U i;

	for (i = 0; i < 100 && !result; i++) {
		result = pool_make(&pool, sizes[i % 4], i % 8 >= 4);
		if (!result)
			result = pool_look(&pool);
		if (!result && !pool_good(&pool, false)) {
			pool_good(&pool, true);
			break;
		}
		if (!result)
			result = pool_end(&pool);
	}
	tap_ok(i == 100 && !result, "made, looked at and destroyed: %u times, error %d", i, result);
}

/*
 * Starts @blocks blocks. Each block occupies a whole SM. The records of the blocks begin with
 * number @first.
 */
static int hold(handle stream, U first, U blocks)
{
	static U spin = HOLD_NS;
	pointer at = out + first * sizeof(struct record);
	void *args[] = { &at, &spin };
	struct config config = {
		.grid = { blocks, 1, 1 }, .block = { 32, 1, 1 }, .shared = WHOLE_SM,
		.stream = stream,
	};

	return cuLaunchKernelEx(&config, census, args, NULL);
}

/*
 * Call this function after all launches have ended. Stores the maximum number of blocks that ran
 * at the same time in @most. If all @blocks blocks ran at the same time, stores this time in
 * @from and @to.
 */
static int held(const struct pool *pool, U blocks, U *most, uint64_t *from, uint64_t *to)
{
	static struct record records[BLOCKS];
	int result = 0;

	for (U i = 0; i < pool->nr && !result; i++)
		result = cuStreamSynchronize(pool->green[i].stream);
	if (!result)
		result = cuMemcpyDtoH_v2(records, out, blocks * sizeof(records[0]));
	*most = 0;
	*from = 0;
	*to = ~0ull;
	for (U b = 0; !result && b < blocks; b++) {
		U nr = 0;

		for (U i = 0; i < blocks; i++)
			nr += records[i].start <= records[b].start &&
			      records[b].start < records[i].end;
		*most = nr > *most ? nr : *most;
		*from = records[b].start > *from ? records[b].start : *from;
		*to = records[b].end < *to ? records[b].end : *to;
	}
	return result;
}

/*
 * Each block needs a whole SM, so a full context has one block on each of its SMs. All contexts
 * are full at the same time, so no two contexts share an SM. The program prints the interval in
 * which all blocks ran, by the GPU's clock. If the intervals of two programs overlap, the
 * contexts of the two programs share no SM.
 */
static void apart(U sms, double seconds)
{
	U sum = 0, most, rounds = 0, full = 0;
	struct timespec begin, now;
	uint64_t from, to;
	struct pool pool;
	int result = cuFuncSetAttribute(census, MAX_SHARED, WHOLE_SM);

	if (!result)
		result = pool_make(&pool, sms, 0);
	if (!tap_ok(!result && pool.nr, "parts of %u SMs: error %d", sms, result))
		return;
	for (U i = 0; i < pool.nr; i++) {
		U nr = pool.green[i].want * per_tpc;

		result = hold(pool.green[i].stream, 0, 2 * nr);
		if (!result)
			result = held(&pool, 2 * nr, &most, &from, &to);
		tap_ok(!result && most == nr, "a context for %u SMs holds %u blocks: error %d", nr,
		       most, result);
		sum += nr;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		U first = 0;

		for (U i = 0; i < pool.nr && !result; i++) {
			U nr = pool.green[i].want * per_tpc;

			result = hold(pool.green[i].stream, first, nr);
			first += nr;
		}
		if (!result)
			result = held(&pool, sum, &most, &from, &to);
		rounds++;
		if (!result && most == sum) {
			full++;
			printf("all from %llu to %llu\n", (unsigned long long)from,
			       (unsigned long long)to);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!result && now.tv_sec - begin.tv_sec +
			    (now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
	tap_ok(full, "%u contexts hold %u blocks of %u at one time in %u of %u rounds: error %d",
	       pool.nr, most, sum, full, rounds, result);
	tap_ok(!pool_end(&pool), "destroyed");
}

static char *file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	if (!f || !text || !fread(text, 1, (1 << 20) - 1, f))
		return NULL;
	fclose(f);
	return text;
}

static const char *driver_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return "libcuda.so.1";
#define FIND(name, args) \
	if (!(*(void **)&name = dlsym(lib, #name))) \
		return #name;
	FUNCTIONS(FIND)
	return NULL;
}

int main(int argc, char **argv)
{
	struct gpupart_topology *found = NULL;
	struct gpupart_tpcset all;
	const char *missing = driver_open(), *ptx = file("lib/confine/probe.ptx");
	struct gpupart *gp = NULL;
	struct green seen;
	handle module;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2 || missing || !ptx || gpupart_open(&gp) ||
	    gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &found)) {
		printf("1..0 # SKIP no GPU here, or no %s%s\n", missing ? missing : "",
		       gp ? gpupart_error(gp) : "");
		return 77;
	}
	topo = found;
	counting = argc > 2 && strcmp(argv[2], "told");
	told = argc > 2 && !strcmp(argv[2], "told");
	all = limit = gpupart_topology_all(topo);
	nr_all = gpupart_tpcset_count(&all);
	per_tpc = gpupart_topology_nr_sms(topo) / nr_all;
	if (strcmp(argv[1], "all") && gpupart_tpcset_parse_list(gp, argv[1], &limit))
		return 2;
	nr_limit = gpupart_tpcset_count(&limit);
	if (!tap_ok(!cuInit(0) && !cuDevicePrimaryCtxRetain(&primary, 0) &&
			    !cuCtxSetCurrent(primary) && !cuModuleLoadData(&module, ptx) &&
			    !cuModuleGetFunction(&census, module, "gpupart_census") &&
			    !cuMemAlloc_v2(&out, BLOCKS * 24) && !ran(NULL, &seen),
		    "a program"))
		return tap_done();
	tap_ok(is_limit(&seen), "confined to %u SMs before any was made", seen.seen_sms);
	if (told) {
		parts_of_told();
		return tap_done();
	}
	if (argc > 3 && !strcmp(argv[2], "apart")) {
		apart(16, atof(argv[3]));
		apart(32, atof(argv[3]));
		return tap_done();
	}
	pools(8, 0);
	pools(16, 0);
	pools(32, 0);
	pools(64, 0);
	pools(8, 1);
	inside_one();
	together();
	again();
	return tap_done();
}
