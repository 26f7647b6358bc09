// SPDX-License-Identifier: MIT
/*
 * Tests the number of SMs that the driver reports to a program, with and without sets. It uses
 * gpupart.h on the simulated driver. The tests do not depend on the way in which the library
 * computes an answer.
 */
#include "tests/lib/scenario.h"

#define SMS		16	/* cuDeviceGetAttribute's number */
#define BIG		200000	/* bytes of shared memory; one such block fits on an SM */
#define HALF		100000	/* bytes of shared memory; two such blocks fit on an SM */

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

struct resource {
	int type;
	char pad[92];
	U nr_sms, smallest, alignment, room[9];
};

struct affinity {
	int type;
	U nr_sms;
};

#define QUESTIONS(F)                                                                    \
	F(cuDeviceGetAttribute, (int *, int, int))                                      \
	F(cuDeviceGetDevResource, (int, struct resource *, int))                        \
	F(cuCtxGetDevResource, (P, struct resource *, int))                             \
	F(cuCtxGetExecAffinity, (struct affinity *, int))                               \
	F(cuOccupancyMaxPotentialBlockSize, (int *, int *, P, P, size_t, int))          \
	F(cuOccupancyMaxPotentialBlockSizeWithFlags, (int *, int *, P, P, size_t, int, U)) \
	F(cuOccupancyMaxActiveClusters, (int *, P, const struct config *))              \
	F(cuOccupancyMaxPotentialClusterSize, (int *, P, const struct config *))

#define DECLARE_QUESTION(call, args) static CU (*call) args;
QUESTIONS(DECLARE_QUESTION)

static struct program program;

/* Attaches to @selector, and creates a program on CUDA's device @device. */
static bool begin(const char *selector, int device)
{
	void *lib;

	if (!tap_ok(!attach(selector) && !program_start(&program, device), "attached, a program"))
		return false;
	lib = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND_QUESTION(call, args) *(void **)&call = dlsym(lib, #call);
	QUESTIONS(FIND_QUESTION)
	return true;
}

static int attribute(int which, int device)
{
	int value = -1;

	return cuDeviceGetAttribute(&value, which, device) ? -2 : value;
}

static int grid(void)
{
	int blocks = -1, plain = -1, size;

	if (cuOccupancyMaxPotentialBlockSize(&plain, &size, program.function, NULL, BIG, 0) ||
	    cuOccupancyMaxPotentialBlockSizeWithFlags(&blocks, &size, program.function, NULL, HALF,
						      0, 0))
		return -2;
	return blocks == 2 * plain ? plain : -3;
}

static int clusters(U size, U shared)
{
	struct attribute cluster = { .id = 4, .dim = { 1, size, 1 } };
	struct config config = { .grid = { size, 1, 1 }, .block = { 32, 1, 1 }, .shared = shared,
				 .attributes = &cluster, .nr = 1 };
	int nr = -1;

	return cuOccupancyMaxActiveClusters(&nr, program.function, &config) ? -2 : nr;
}

static int largest_cluster(void)
{
	struct config config = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .shared = BIG };
	int size = -1;

	return cuOccupancyMaxPotentialClusterSize(&size, program.function, &config) ? -2 : size;
}

static int part_of_ctx(P ctx)
{
	struct resource part = { 0 };

	return cuCtxGetDevResource(ctx, &part, 1) || part.type != 1 || part.alignment != 8 ?
		       -2 : (int)part.nr_sms;
}

static int part_of_device(int device)
{
	struct resource part = { 0 };

	return cuDeviceGetDevResource(device, &part, 1) ? -2 : (int)part.nr_sms;
}

/* Returns the number of SMs for the current context. */
static int affinity(void)
{
	struct affinity found = { 9, 0 };

	return cuCtxGetExecAffinity(&found, 0) || found.type ? -2 : (int)found.nr_sms;
}

static bool process(const char *tpcs)
{
	struct gpupart_tpcset set;

	if (tpcs)
		set = list(tpcs);
	return !gpupart_process_set(gp, gpu, tpcs ? &set : NULL);
}

/*
 * Checks all answers. @of2 to @of16 are for clusters of 2, 4, 8 and 16 blocks with one block per
 * SM. @of4_half is for clusters of 4 blocks with two blocks per SM.
 */
static void told(const char *words, int sms, int largest, int of2, int of4, int of8, int of16,
		 int of4_half)
{
	U nr = 0;
	bool on = gpupart_sm_count_get(gpu, &nr);

	tap_ok(attribute(SMS, 0) == sms, "%s: %d SMs, is %d", words, sms, attribute(SMS, 0));
	tap_ok(grid() == sms, "%s: a grid of %d blocks, is %d", words, sms, grid());
	/* The driver splits a GPU in units of 8. */
	int part = sms == 132 || sms < 8 ? sms : sms / 8 * 8;

	tap_ok(part_of_device(0) == part && part_of_ctx(program.ctx) == part && affinity() == sms,
	       "%s: as resources %d, %d, as affinity %d", words, part_of_device(0),
	       part_of_ctx(program.ctx), affinity());
	tap_ok(on ? (int)nr == sms : sms == 132, "%s: gpupart_sm_count_get() says %s, %u", words,
	       on ? "told" : "not told", nr);
	tap_ok(largest_cluster() == largest, "%s: clusters of up to %d, is %d", words, largest,
	       largest_cluster());
	tap_ok(clusters(2, BIG) == of2 && clusters(4, BIG) == of4 && clusters(8, BIG) == of8 &&
		       clusters(16, BIG) == of16 && clusters(4, HALF) == of4_half,
	       "%s: %d clusters of 2, %d of 4, %d of 8, %d of 16; %d of 4 of two blocks an SM",
	       words, clusters(2, BIG), clusters(4, BIG), clusters(8, BIG), clusters(16, BIG),
	       clusters(4, HALF));
}

#define WHOLE	132, 16, 66, 30, 15, 7, 62

/* A cluster of 16 blocks is above the portable maximum. */
static void allow_16(void)
{
	tap_ok(!cuFuncSetAttribute(program.function, 14, 1), "clusters of 16");
}

/*
 * On boards b and e, virtual GPC 0 has 4 TPCs (0,8,16,24). Virtual GPCs 1 to 5 have 8 TPCs each,
 * and virtual GPCs 6 and 7 have 9 TPCs each. TPCs 62 to 65 are singletons.
 */
static void sets(void)
{
	if (!begin(NULL, 0))
		return;
	allow_16();
	told("not asked for", WHOLE);
	tap_ok(process("0-7"), "a set");
	tap_ok(attribute(SMS, 0) == 132 && clusters(2, BIG) == 66, "not asked for, in a set: all");
	tap_ok(!gpupart_sm_count_tell(gp, gpu, true), "asked for");
	/*
	 * The set has one TPC of each of the 8 virtual GPCs. So no cluster can have more than 2
	 * blocks.
	 */
	told("TPCs 0-7", 16, 2, 8, 0, 0, 0, 0);
	process("1,9,17,25,32,39,46,53");
	told("a GPC", 16, 16, 8, 4, 2, 1, 8);
	process("0,8,16,24,62-65");
	told("4 TPCs and singletons", 16, 8, 8, 2, 1, 0, 4);
	process("62-65");
	told("singletons", 8, 2, 4, 0, 0, 0, 0);
	process("6,14,22,30,37,44,51,58,60,7,15,23,31,38,45,52,59,61");
	told("two GPCs of 9", 36, 16, 18, 8, 4, 2, 18);
	process("5");
	told("a TPC", 2, 2, 1, 0, 0, 0, 0);
	process("0-32");
	told("TPCs 0-32", 66, 8, 33, 16, 8, 0, 33);
	process("0-65");
	told("all of them", WHOLE);
	process(NULL);
	told("no set", WHOLE);
	process("5");
	tap_ok(attribute(39, 0) == 2048 && attribute(75, 0) == 9,
	       "other attributes are the driver's");
	tap_ok(attribute(SMS, 1) == -2, "a device that is not there is an error still");
	tap_ok(cuDeviceGetAttribute(NULL, SMS, 0) == 1 &&
		       cuOccupancyMaxActiveClusters(NULL, program.function, NULL) == 1 &&
		       cuOccupancyMaxPotentialBlockSize(NULL, NULL, program.function, NULL, 0, 0) &&
		       cuCtxGetDevResource(program.ctx, NULL, 1) && cuCtxGetExecAffinity(NULL, 0),
	       "and so is no place for an answer");
	tap_ok(!gpupart_sm_count_tell(gp, gpu, false), "no more");
	told("off again", WHOLE);
}

static void both(void)
{
	struct gpupart_tpcset limit;
	U nr;

	if (!begin(NULL, 0))
		return;
	limit = list("0-9");
	tap_ok(!gpupart_sm_count_tell(gp, gpu, true) && !gpupart_limit_set(gp, gpu, &limit),
	       "a limit");
	tap_ok(attribute(SMS, 0) == 20, "its SMs: %d", attribute(SMS, 0));
	process("6-19");
	tap_ok(attribute(SMS, 0) == 8 && grid() == 8 && clusters(2, BIG) == 4,
	       "with a set: what both leave, %d", attribute(SMS, 0));
	process("40-50");
	tap_ok(attribute(SMS, 0) == 20 && grid() == 20, "nothing in common: the limit's, %d",
	       attribute(SMS, 0));
	tap_ok(!gpupart_limit_set(gp, gpu, NULL) && attribute(SMS, 0) == 22, "the set alone: %d",
	       attribute(SMS, 0));
	process(NULL);
	tap_ok(attribute(SMS, 0) == 132, "nothing");
	tap_ok(gpupart_sm_count_get(gpu, &nr) && nr == 132, "it is on");
}

/*
 * Launches a cooperative grid of the maximum size that the driver reports. Returns the number of
 * widened launches.
 */
static int cooperative(void)
{
	CU (*launch)(P, U, U, U, U, U, U, U, P, P *) =
		(CU (*)(P, U, U, U, U, U, U, U, P, P *))dlsym(dlopen("libcuda.so.1", RTLD_NOW),
							      "cuLaunchCooperativeKernel");
	struct gpupart_counters before, after;
	int blocks, size;
	U ns = 1000;
	P args[] = { &program.out, &ns };

	gpupart_counters_get(&before);
	if (cuOccupancyMaxPotentialBlockSize(&blocks, &size, program.function, NULL, BIG, 0) ||
	    launch(program.function, blocks, 1, 1, size, 1, 1, BIG, NULL, args) ||
	    cuStreamSynchronize(NULL))
		return -1;
	gpupart_counters_get(&after);
	return after.launches != before.launches + 1 ? -2 :
	       (int)(after.widened_cooperative - before.widened_cooperative);
}

static void cooperatives(void)
{
	int nr;

	if (!begin(NULL, 0))
		return;
	process("0-7");
	nr = cooperative();
	tap_ok(nr == 1, "a cooperative grid for the whole GPU is widened: %d", nr);
	gpupart_sm_count_tell(gp, gpu, true);
	nr = cooperative();
	tap_ok(nr == 0, "one for the set is not: %d", nr);
}

/* Even with the smallest set, the library's own calls of the driver must get the true answer. */
static void own_questions(void)
{
	struct gpupart_tpcset limit, seen;
	U nr;

	if (!tap_ok(!attach(NULL), "attached"))
		return;
	limit = list("3");
	tap_ok(!gpupart_sm_count_tell(gp, gpu, true) && !gpupart_limit_set(gp, gpu, &limit),
	       "one TPC, told");
	tap_ok(!program_start(&program, 0) && !gpupart_census(gp, gpu, NULL, &seen) &&
		       gpupart_tpcset_equal(&seen, &limit), "a census in another context");
	tap_ok(gpupart_sm_count_get(gpu, &nr) && nr == 2, "it is on still");
}

static unsigned int nr_rows, nr_failed, nr_skipped;

static void take_row(const struct gpupart_verify_row *row, void *user)
{
	(void)user;
	nr_rows++;
	nr_failed += row->result == GPUPART_VERIFY_FAIL;
	nr_skipped += row->result == GPUPART_VERIFY_SKIP;
	if (row->result == GPUPART_VERIFY_FAIL)
		printf("# %s: %s\n", row->name, row->detail);
}

/* The program has a limit from outside. verify must not change this limit. */
static void verified(void)
{
	unsigned int failed, skipped;

	if (!begin(NULL, 0))
		return;
	gpupart_verify(gp, gpu, 0, take_row, NULL);
	failed = nr_failed;
	skipped = nr_skipped;
	tap_ok(nr_rows > 10, "verify, not told: %u rows, %u failed, %u skipped", nr_rows, failed,
	       skipped);
	nr_failed = nr_skipped = 0;
	gpupart_sm_count_tell(gp, gpu, true);
	tap_ok(attribute(SMS, 0) == 4, "told");
	gpupart_verify(gp, gpu, 0, take_row, NULL);
	tap_ok(nr_failed == failed && nr_skipped == skipped,
	       "verify, told: %u failed, %u skipped", nr_failed, nr_skipped);
}

/* Device 0 is board b, and device 1 is board e. */
static void several(void)
{
	struct gpupart_gpu *first;
	struct program second;

	if (!begin("cuda:0", 0))
		return;
	first = gpu;
	tap_ok(!gpupart_attach(gp, "cuda:1", NULL, &gpu) && gpu != first, "another GPU");
	process("0-9");
	tap_ok(!gpupart_sm_count_tell(gp, gpu, true), "told of the second alone");
	tap_ok(attribute(SMS, 0) == 132 && attribute(SMS, 1) == 20, "by device: %d, %d",
	       attribute(SMS, 0), attribute(SMS, 1));
	tap_ok(part_of_device(0) == 132 && part_of_device(1) == 16, "their resources too");
	tap_ok(grid() == 132 && part_of_ctx(program.ctx) == 132 && affinity() == 132,
	       "the first's context: all");
	tap_ok(!program_start(&second, 1), "a program on the second");
	tap_ok(!cuCtxSetCurrent(program.ctx) && part_of_ctx(second.ctx) == 16 &&
		       affinity() == 132, "a context that never was current in a question");
	tap_ok(!cuCtxSetCurrent(second.ctx) && part_of_ctx(program.ctx) == 132 &&
		       part_of_ctx(second.ctx) == 16, "a context's part, whichever is current");
	program.function = second.function;
	tap_ok(grid() == 20 && clusters(2, BIG) == 10 && affinity() == 20, "the second's context");
	tap_ok(!gpupart_sm_count_tell(gp, first, true) && attribute(SMS, 0) == 132,
	       "the first too: it has no set");
	gpu = first;
	process("1");
	tap_ok(attribute(SMS, 0) == 2 && attribute(SMS, 1) == 20, "a set on each");
	tap_ok(!gpupart_sm_count_tell(gp, first, false) && attribute(SMS, 0) == 132 &&
		       attribute(SMS, 1) == 20, "off for one is not off for the other");
}

/* In this driver, the callback number of cuDeviceGetAttribute belongs to a different function. */
static void renamed(void)
{
	if (!begin(NULL, 0))
		return;
	process("0-7");
	tap_ok(!gpupart_sm_count_tell(gp, gpu, true), "asked for");
	tap_ok(attribute(SMS, 0) == 132, "a function by another name is let alone");
	tap_ok(grid() == 16 && clusters(2, BIG) == 8, "the others are not");
}

/* In this test the driver keeps 6 of 66 places free. */
static void fewer_clusters(void)
{
	if (!begin(NULL, 0))
		return;
	tap_ok(!gpupart_sm_count_tell(gp, gpu, true) && clusters(2, BIG) == 60, "the driver: 60");
	process("1,9,17,25,32,39,46,53");
	tap_ok(clusters(2, BIG) == 7, "a GPC of 8: 60 * 8 / 66, is %d", clusters(2, BIG));
	process("0-32");
	tap_ok(clusters(2, BIG) == 30, "half of it: 30, is %d", clusters(2, BIG));
}

/* The driver reports more room than the library. */
static void more_clusters(void)
{
	if (!begin(NULL, 0))
		return;
	tap_ok(!gpupart_sm_count_tell(gp, gpu, true) && clusters(2, BIG) == 132, "the driver: 132");
	process("1,9,17,25,32,39,46,53");
	tap_ok(clusters(2, BIG) == 8, "a GPC of 8: what fits, 8, is %d", clusters(2, BIG));
}

static void not_told(void)
{
	U nr;

	if (!begin(NULL, 0))
		return;
	process("0-7");
	tap_ok(gpupart_sm_count_tell(gp, gpu, true) == -EOPNOTSUPP &&
		       strstr(gpupart_error(gp), "does not report calls"), "refused: %s",
	       gpupart_error(gp));
	tap_ok(!gpupart_sm_count_get(gpu, &nr) && nr == 16 && attribute(SMS, 0) == 132, "and off");
	tap_ok(!gpupart_sm_count_tell(gp, gpu, false), "off can always be");
}

/* Runs a program that does not use gpupart. GPUPART_SET has its limit. */
static void unaware(int want, int other)
{
	if (!tap_ok(!driver_open() && !program_start(&program, 0), "a program"))
		return;
	*(void **)&cuDeviceGetAttribute = dlsym(dlopen("libcuda.so.1", RTLD_NOW),
						"cuDeviceGetAttribute");
	tap_ok(attribute(SMS, 0) == want, "it sees %d SMs", attribute(SMS, 0));
	if (other)
		tap_ok(attribute(SMS, 1) == other, "of the other GPU %d", attribute(SMS, 1));
}

static void injected(void)
{
	unaware(16, 0);
}

static void injected_off(void)
{
	unaware(132, 0);
}

static void injected_second(void)
{
	unaware(132, 16);
}

/*
 * The map was not checked before. So launches are not confined, and the driver reports the true
 * number.
 */
static void injected_failed(void)
{
	unaware(132, 0);
}

static void check(void)
{
	tap_ok(!attach("cuda:0") && (!strchr(getenv("GPUPART_SIM"), ':') || !attach("cuda:1")),
	       "checked");
}

static void check_first(const struct scenario *s)
{
	const struct scenario first = { "check", check, s->sim, { NULL }, NULL };

	tap_ok(!child_quiet(&first), "%s: checked before", s->name);
}

#define RUN(told) \
	{ "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=0-7", "GPUPART_SM_COUNT=" told }

static const struct scenario scenarios[] = {
	{ "sets on b", sets, "@b", { NULL }, NULL },
	{ "sets on e", sets, "@e", { NULL }, NULL },
	{ "limit and set", both, "@e", { NULL }, NULL },
	{ "cooperative grids", cooperatives, "@e", { NULL }, NULL },
	{ "own questions", own_questions, "@b", { NULL }, NULL },
	{ "verified", verified, "@b", { "GPUPART_SET=62,63" }, NULL },
	{ "several GPUs", several, "@b:@e", { NULL }, NULL },
	{ "another name", renamed, "@e", { "GPUPART_SIM_FAULTS=renamed=9" }, NULL },
	{ "fewer clusters", fewer_clusters, "@e", { "GPUPART_SIM_FAULTS=clusters=60" }, NULL },
	{ "more clusters", more_clusters, "@e", { "GPUPART_SIM_FAULTS=clusters=132" }, NULL },
	{ "a silent driver", not_told, "@e", { "GPUPART_SIM_FAULTS=no-api" }, NULL },
	{ "injected", injected, "@e", RUN("1"), check_first },
	{ "injected, off", injected_off, "@e", RUN("0"), check_first },
	{ "injected, the second", injected_second, "@b:@e",
	  { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=0-7", "GPUPART_SM_COUNT=1",
	    "GPUPART_GPU=@pci1" }, check_first },
	{ "injected, not checked", injected_failed, "@e", RUN("1"), NULL },
	{ "check", check, "@e", { NULL }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
