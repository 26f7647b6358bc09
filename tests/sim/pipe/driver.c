// SPDX-License-Identifier: MIT
/*
 * Tests the simulated driver on the pipeline. A program repeats launches that were traced on an
 * H200. Each case is a separate process. A scenario makes the same launches. In the program and
 * in the scenario, every block must run on the same SM at the same time. Also tests how kernels
 * slow each other down.
 */
#include "tests/sim/cuda/program.h"
#include "lib/core/hash.h"
#include "tests/sim/pipe/traces.h"

#define CLOCK_START	1000000000ull	/* %globaltimer at time 0 of the pipeline's clock */

/* The pipeline's reports of blocks, for up to six kernels. */
static struct record expected[MAX_KERNELS][MAX_BLOCKS];
static struct pipe_gpu gpu;
static struct trace trace;
static struct pipe_result result;

/* ----------------------------------------------------------------- a board with mask bits */

/*
 * The board of the traces was captured without mask bits. So this test can use any assignment of
 * mask bits.
 */
static bool write_capture(const char *from, const char *to)
{
	static char text[65536];
	FILE *file = fopen(from, "r");
	size_t len = file ? fread(text, 1, sizeof(text) - 8192, file) : 0;
	char *end, *sum;
	unsigned int sm;

	if (file)
		fclose(file);
	text[len] = '\0';
	sum = strstr(text, "checksum = ");
	if (!sum)
		return false;
	end = sum + sprintf(sum, "[measured-bits]\nsource = made up\ncolumns = sm bit\n");
	for (sm = 0; sm < gpu.map.nr_sms; sm++)
		end += sprintf(end, "%u\t%u\n", sm, gpu.map.sms[sm].tpc);
	end += sprintf(end, "\n");
	end += sprintf(end, "checksum = %016llx\n",
		       (unsigned long long)hash_bytes(HASH_INIT, text, end - text));
	file = fopen(to, "w");
	if (!file)
		return false;
	len = fwrite(text, 1, end - text, file);
	return !fclose(file) && len == (size_t)(end - text);
}

/* ------------------------------------------------------------------- expected results */

static void take_block(void *user, const struct pipe_block *block)
{
	struct record *record = &expected[block->launch][block->block];

	(void)user;
	*record = (struct record){
		block->smid, 0, CLOCK_START + block->start, CLOCK_START + block->end,
	};
}

/* In a program on the simulated driver, calls take no time. */
static int run_scenario(void)
{
	static const char *const process = "main";
	struct pipe_step steps[MAX_KERNELS] = { 0 };
	struct pipe_stream streams[MAX_KERNELS];
	struct pipe_program program = {
		.name = "main", .steps = steps, .nr_steps = trace.nr_kernels,
	};
	struct pipe_scenario scenario = {
		.host = { .ring = 1024 }, .gpus = &gpu, .nr_gpus = 1, .kernels = trace.kernels,
		.nr_kernels = trace.nr_kernels, .streams = streams,
		.nr_streams = trace.nr_kernels, .processes = &process, .nr_processes = 1,
		.programs = &program, .nr_programs = 1,
	};
	struct pipe_watch watch = { .block = take_block };
	unsigned int i, j;

	for (i = 0; i < trace.nr_kernels; i++) {
		streams[i] = trace.streams[i];
		streams[i].process = 0;
		for (j = 0; trace.streams[j].process != trace.streams[i].process; j++)
			;
		steps[i] = (struct pipe_step){
			.kind = PIPE_LAUNCH, .what = i, .stream = j, .set = streams[i].set,
		};
	}
	return pipe_run(&scenario, &watch, &result);
}

/* ------------------------------------------------------- the same with the driver */

static CUfunction function_with(unsigned int registers, unsigned int shared)
{
	char text[512];
	CUmodule image;
	CUfunction f;

	snprintf(text, sizeof(text), ".version 8.0\n.target sm_90\n.address_size 64\n"
		 ".visible .entry gpupart_census(.param .u64 out, .param .u32 spin)\n"
		 ".maxnreg %u\n{\n\tret;\n}\n", registers);
	TRY(cu.cuModuleLoadData(&image, text));
	TRY(cu.cuModuleGetFunction(&f, image, "gpupart_census"));
	TRY(cu.cuFuncSetAttribute(f, CU_FUNCTION_MAX_DYNAMIC_SHARED, shared));
	return f;
}

static void confine(const struct pipe_set *set)
{
	unsigned int tpc;

	hook.on = set;
	memset(hook.off, 0, sizeof(hook.off));
	for (tpc = 0; set && tpc < gpu.map.nr_tpcs; tpc++)
		if (!(set->allowed[tpc / 64] >> tpc % 64 & 1))
			off_bit(tpc);
}

/* The first use of a stream of the traces creates the stream. */
static CUstream stream_of(unsigned int k)
{
	static CUstream streams[MAX_KERNELS];
	CUstream *stream = &streams[trace.streams[k].process];

	if (!*stream)
		TRY(cu.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING,
						  -(int)trace.streams[k].priority));
	return *stream;
}

static void launch_kernel(unsigned int k, CUdeviceptr out)
{
	const struct pipe_kernel *kernel = &trace.kernels[k];
	const struct shape shape = {
		.blocks = kernel->blocks, .threads = kernel->threads, .shared = kernel->shared,
		.cluster = kernel->cluster, .stream = stream_of(k), .value = kernel->ns,
		.function = function_with(kernel->registers, kernel->shared),
	};

	confine(trace.streams[k].set);
	TRY(launch(&shape, out));
}

static void launched(const char *name)
{
	CUdeviceptr out[MAX_KERNELS];
	unsigned int k, bad = 0, nr = 0;
	uint64_t b;

	(void)name;
	hook_start();
	begin_on(0);
	for (k = 0; k < trace.nr_kernels; k++)
		TRY(cu.cuMemAlloc_v2(&out[k], trace.kernels[k].blocks * sizeof(struct record)));
	for (k = 0; k < trace.nr_kernels; k++)
		launch_kernel(k, out[k]);
	TRY(cu.cuCtxSynchronize());
	for (k = 0; k < trace.nr_kernels; k++)
		for (b = 0; b < trace.kernels[k].blocks; b++, nr++)
			bad += memcmp((struct record *)(uintptr_t)out[k] + b, &expected[k][b],
				      sizeof(struct record)) != 0;
	check(!bad, "%u of %u blocks elsewhere or at another time", bad, nr);
}

/* --------------------------------------------------------------- two kernels at once */

#define ROUNDS	40000	/* rounds of four multiply-adds */

/*
 * Makes a kernel like gpupart_work, with @rounds rounds. In the traces, this kernel has the name
 * "wide".
 */
static void make_work(unsigned int k, unsigned int threads, unsigned int rounds,
		      const struct pipe_set *set)
{
	trace.kernels[k] = (struct pipe_kernel){
		.name = "work", .blocks = 36, .threads = threads, .registers = 16,
	};
	make_kernel(&trace.kernels[k], "wide", rounds / 4);
	trace.streams[k] = (struct pipe_stream){ .name = "s", .process = k, .set = set };
}

static uint64_t time_of(const struct record *records, unsigned int nr)
{
	uint64_t first = UINT64_MAX, last = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		first = records[i].start < first ? records[i].start : first;
		last = records[i].end > last ? records[i].end : last;
	}
	return last - first;
}

static bool near(uint64_t a, uint64_t b)
{
	return a > b - b / 500 && a < b + b / 500;
}

/* Runs two kernels with work at the same time. Compares their times with the pipeline's times. */
static void beside(const char *which)
{
	CUdeviceptr out[2];
	uint64_t time[2], alone;
	unsigned int k;

	hook_start();
	begin_on(0);
	for (k = 0; k < 2; k++)
		TRY(cu.cuMemAlloc_v2(&out[k], 36 * sizeof(struct record)));
	for (k = 0; k < 2; k++) {
		confine(trace.streams[k].set);
		TRY(launch(&(struct shape){ .blocks = 36, .threads = trace.kernels[k].threads,
					    .stream = stream_of(k), .function = f_work,
					    .value = k ? 2 * ROUNDS : ROUNDS }, out[k]));
	}
	TRY(cu.cuCtxSynchronize());
	for (k = 0; k < 2; k++) {
		time[k] = time_of((struct record *)(uintptr_t)out[k], 36);
		check(near(time[k], time_of(expected[k], 36)), "kernel %u: %lu ns; the model: %lu",
		      k, time[k], time_of(expected[k], 36));
	}
	TRY(launch(&(struct shape){ .blocks = 36, .threads = trace.kernels[1].threads,
				    .function = f_work, .value = 2 * ROUNDS }, out[1]));
	TRY(cu.cuCtxSynchronize());
	alone = time_of((struct record *)(uintptr_t)out[1], 36);
	if (!strcmp(which, "apart"))
		check(near(time[1], alone), "undisturbed: alone %lu ns", alone);
	else
		check(time[1] > alone * 5 / 4, "slower than alone: %lu ns", alone);
}

int main(void)
{
	struct pipe_set mine = { { 0 } }, other = { { 0 } };
	static char line[MAX_LINE], path[600], env_text[700];
	const char *const env[] = { env_text, NULL };
	const char *build = getenv("BUILD");
	FILE *file = fopen("tests/data/traces/h200.txt", "r");
	unsigned int nr = 0, i;

	snprintf(path, sizeof(path), "%s/tests/traced.capture", build ? build : "build");
	snprintf(env_text, sizeof(env_text), "GPUPART_SIM=%s", path);
	if (!file || gpupart_open(&gp) ||
	    gpupart_topology_open(gp, "tests/data/traces/h200.capture", NULL, &topo)) {
		printf("Bail out! no traces\n");
		return 1;
	}
	gpu.chip = *pipe_chip_find("h200");
	board_map(&gpu.map, topo);
	tap_ok(write_capture("tests/data/traces/h200.capture", path), "the board, with bits");

	for (; read_case(file, &trace, line); nr++) {
		/*
		 * The work of a block determines the end time of the block. It has no other
		 * effect on the placement of blocks.
		 */
		for (i = 0; i < trace.nr_kernels; i++)
			trace.kernels[i].work = trace.kernels[i].bytes = 0;
		tap_ok(!run_scenario(), "%s: a scenario", trace.name);
		scenario(trace.name, launched, trace.name, env, NULL);
	}
	tap_ok(nr > 100, "%u cases", nr);
	fclose(file);

	/* There are 18 SMs. Each SM gets two blocks of each of the two kernels. */
	for (i = 0; i < 9; i++) {
		mine.allowed[0] |= 1ull << i;
		other.allowed[0] |= 1ull << (i + 20);
	}
	trace.nr_kernels = 2;
	make_work(0, 512, ROUNDS, &mine);
	make_work(1, 256, 2 * ROUNDS, &mine);
	tap_ok(!run_scenario(), "two kernels in one set");
	scenario("in one set", beside, "together", env, NULL);
	trace.streams[1].set = &other;
	tap_ok(!run_scenario(), "two kernels in a set each");
	scenario("in a set each", beside, "apart", env, NULL);
	unlink(path);
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return tap_done();
}
