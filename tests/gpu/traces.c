// SPDX-License-Identifier: MIT
/*
 * Makes about a hundred launches on an H200. Records the SM and the time of each block. The
 * output is text. A test compares this text with the model in sim/pipe. traces FOLDER writes
 * FOLDER/traces.txt and FOLDER/board.capture. Every kernel has a bounded number of rounds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define MAX_KERNELS	6	/* per case */
#define MAX_BLOCKS	2048	/* per kernel */
/* after the tenth repetition, the program writes the SMs of only this number of blocks */
#define MAX_ORDER	264
#define NR_STREAMS	6
#define NR_REPS		10
#define NR_MORE		200
#define FOOTPRINT	(1ull << 30)
#define SECONDS		55	/* the program ends after this time */

typedef int CU;
typedef void *P;
typedef unsigned int U;

struct launch_config {
	U grid[3], block[3], shared;
	P stream, attributes;
	U nr_attributes;
};

struct launch_attribute {
	int id;
	char pad[4];
	union { U cluster[3]; char room[64]; } value;
};

enum { ATTRIBUTE_CLUSTER = 4, FUNCTION_REGISTERS = 4, FUNCTION_SHARED = 8 };

#define FUNCTIONS(F) \
	F(cuInit, (U)) F(cuDevicePrimaryCtxRetain, (P *, int)) F(cuCtxSetCurrent, (P)) \
	F(cuCtxSynchronize, (void)) F(cuModuleLoadData, (P *, const void *)) \
	F(cuModuleGetFunction, (P *, P, const char *)) F(cuMemAlloc_v2, (uint64_t *, size_t)) \
	F(cuMemsetD8_v2, (uint64_t, unsigned char, size_t)) \
	F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t)) \
	F(cuStreamCreateWithPriority, (P *, U, int)) F(cuFuncSetAttribute, (P, int, int)) \
	F(cuFuncGetAttribute, (int *, int, P)) \
	F(cuLaunchKernelEx, (const struct launch_config *, P, P *, P *))
#define DECLARE(name, args) static CU (*name) args;
FUNCTIONS(DECLARE)

#define HEAD(name) \
	".visible .entry " name "(.param .u64 out, .param .u32 work, .param .u64 data,\n" \
	"	.param .u64 mask)\n{\n" \
	".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .f32 %f<8>;\n" \
	"mov.u64 %d2, %globaltimer; mov.u64 %d3, %clock64; mov.u32 %r3, %smid;\n" \
	"mov.u32 %r4, %clusterid.x;\n" \
	"ld.param.u64 %d0, [out]; cvta.to.global.u64 %d0, %d0; ld.param.u32 %r0, [work];\n" \
	"mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n" \
	"mul.wide.u32 %d1, %r2, 40; add.u64 %d0, %d0, %d1;\n" \
	"setp.ne.u32 %p0, %r1, 0;\n" \
	"cvt.rn.f32.u32 %f0, %r1; mov.f32 %f4, 0f3F7FFFF0; mov.f32 %f5, 0f3A83126F;\n" \
	"add.f32 %f1, %f0, %f4; add.f32 %f2, %f1, %f4; add.f32 %f3, %f2, %f4;\n"
/* A block ends after all its threads have ended. */
#define TAIL \
	"bar.sync 0;\n" \
	"mov.u64 %d6, %globaltimer; mov.u64 %d7, %clock64;\n" \
	"setp.eq.f32 %p2, %f0, 0fFF800000; @%p2 st.global.f32 [%d0], %f0;\n" \
	"@%p0 bra done;\n" \
	"st.global.u32 [%d0], %r3; st.global.u32 [%d0+4], %r4;\n" \
	"st.global.u64 [%d0+8], %d2; st.global.u64 [%d0+16], %d6;\n" \
	"st.global.u64 [%d0+24], %d3; st.global.u64 [%d0+32], %d7;\n" \
	"done: ret;\n}\n"
#define FMA(f) "fma.rn.f32 " f ", " f ", %f4, %f5;\n"
#define FMA4(f) FMA(f) FMA(f) FMA(f) FMA(f)

static const char ptx[] =
	".version 7.8\n.target sm_90\n.address_size 64\n"
	/* The kernel runs for @work clocks. */
	HEAD("spin")
	"@%p0 bra join; cvt.u64.u32 %d4, %r0; mov.u32 %r5, 0;\n"
	"wait: mov.u64 %d5, %clock64; sub.u64 %d5, %d5, %d3; add.u32 %r5, %r5, 1;\n"
	"setp.lt.u64 %p1, %d5, %d4; setp.lt.and.u32 %p1, %r5, 10000000, %p1;\n"
	"@%p1 bra wait;\njoin:\n" TAIL
	/*
	 * The kernel makes @work times 16 multiply-adds. Each multiply-add depends on the
	 * previous multiply-add.
	 */
	HEAD("chain")
	"loop:\n" FMA4("%f0") FMA4("%f0") FMA4("%f0") FMA4("%f0")
	"sub.u32 %r0, %r0, 1; setp.ne.u32 %p1, %r0, 0; @%p1 bra loop;\n" TAIL
	/*
	 * The kernel makes @work times 16 multiply-adds in four chains of dependent
	 * multiply-adds.
	 */
	HEAD("wide")
	"loop:\n"
	FMA("%f0") FMA("%f1") FMA("%f2") FMA("%f3") FMA("%f0") FMA("%f1") FMA("%f2") FMA("%f3")
	FMA("%f0") FMA("%f1") FMA("%f2") FMA("%f3") FMA("%f0") FMA("%f1") FMA("%f2") FMA("%f3")
	"sub.u32 %r0, %r0, 1; setp.ne.u32 %p1, %r0, 0; @%p1 bra loop;\n"
	"add.f32 %f0, %f0, %f1; add.f32 %f2, %f2, %f3; add.f32 %f0, %f0, %f2;\n" TAIL
	/*
	 * Each thread of the kernel makes @work times 4 reads of 16 bytes. The reads bypass the
	 * L1 cache.
	 */
	HEAD("read")
	"ld.param.u64 %d8, [data]; cvta.to.global.u64 %d8, %d8; ld.param.u64 %d9, [mask];\n"
	"mov.u32 %r5, %ntid.x; mul.wide.u32 %d10, %r5, 16; mul.wide.u32 %d11, %r1, 16;\n"
	"cvt.u64.u32 %d12, %r2; cvt.u64.u32 %d13, %r0; mul.lo.u64 %d12, %d12, %d13;\n"
	"shl.b64 %d12, %d12, 2; mul.lo.u64 %d12, %d12, %d10; add.u64 %d11, %d11, %d12;\n"
	"mov.u32 %r6, 0;\n"
	"loop:\n"
#define READ \
	"and.b64 %d14, %d11, %d9; add.u64 %d14, %d14, %d8; add.u64 %d11, %d11, %d10;\n" \
	"ld.global.cg.v4.u32 {%r8, %r9, %r10, %r11}, [%d14]; xor.b32 %r6, %r6, %r8;\n"
	READ READ READ READ
	"sub.u32 %r0, %r0, 1; setp.ne.u32 %p1, %r0, 0; @%p1 bra loop;\n"
	"cvt.rn.f32.u32 %f0, %r6;\n" TAIL;

enum entry { SPIN, CHAIN, WIDE, READ_DATA, NR_ENTRIES };
static const char *const entry_names[] = { "spin", "chain", "wide", "read" };

struct kernel {
	enum entry entry;
	U blocks, threads, shared, cluster, work;
	U stream;		/* streams 3 and above have high priority */
	const char *set;	/* NULL: all */
	uint64_t footprint;
};

struct record {
	uint32_t smid, cluster;
	uint64_t start, end, clock_start, clock_end;
};

static struct gpupart *gp;
static struct gpupart_gpu *gpu;
static P functions[NR_ENTRIES], streams[NR_STREAMS];
static int registers[NR_ENTRIES];
static uint64_t out, data;
static struct record *records;
static FILE *file;
/* option -n: no fills between repetitions, so the traces contain every launch on the GPU */
static bool no_fills;

static int failed(const char *what, CU result)
{
	fprintf(stderr, "traces: %s: %d\n", what, result);
	return -1;
}

#define TRY(call) do { \
	CU r_ = (call); \
	if (r_) \
		return failed(#call, r_); \
} while (0)

static int driver_open(void)
{
	P lib = dlopen("libcuda.so.1", RTLD_NOW), ctx, module;
	uint64_t bytes = (uint64_t)MAX_KERNELS * MAX_BLOCKS * sizeof(struct record);

	if (!lib)
		return failed("libcuda.so.1", 0);
#define FIND(name, args) \
	if (!(*(void **)&name = dlsym(lib, #name))) \
		return failed(#name, 0);
	FUNCTIONS(FIND)
	TRY(cuInit(0));
	TRY(cuDevicePrimaryCtxRetain(&ctx, 0));
	TRY(cuCtxSetCurrent(ctx));
	TRY(cuModuleLoadData(&module, ptx));
	for (U i = 0; i < NR_ENTRIES; i++) {
		TRY(cuModuleGetFunction(&functions[i], module, entry_names[i]));
		TRY(cuFuncSetAttribute(functions[i], FUNCTION_SHARED, 227 * 1024));
		TRY(cuFuncGetAttribute(&registers[i], FUNCTION_REGISTERS, functions[i]));
	}
	for (U i = 0; i < NR_STREAMS; i++)
		TRY(cuStreamCreateWithPriority(&streams[i], 1, i < 3 ? 0 : -5));
	TRY(cuMemAlloc_v2(&out, bytes));
	TRY(cuMemAlloc_v2(&data, FOOTPRINT));
	TRY(cuMemsetD8_v2(data, 1, FOOTPRINT));
	records = malloc(bytes);
	return records ? 0 : failed("memory", 0);
}

/* The set of a launch is the set of its stream at the time of the launch. */
static int set_stream(const struct kernel *k)
{
	struct gpupart_tpcset set;

	if (k->set && gpupart_set_parse(gp, gpupart_gpu_topology(gpu), k->set, &set)) {
		fprintf(stderr, "traces: %s\n", gpupart_error(gp));
		return -1;
	}
	if (gpupart_stream_set(gp, gpu, streams[k->stream], k->set ? &set : NULL)) {
		fprintf(stderr, "traces: %s\n", gpupart_error(gp));
		return -1;
	}
	return 0;
}

static int launch(const struct kernel *k, U nth)
{
	struct launch_attribute cluster = {
		.id = ATTRIBUTE_CLUSTER, .value.cluster = { k->cluster, 1, 1 },
	};
	struct launch_config config = {
		.grid = { k->blocks, 1, 1 }, .block = { k->threads, 1, 1 }, .shared = k->shared,
		.stream = streams[k->stream], .attributes = &cluster,
		.nr_attributes = k->cluster > 0,
	};
	uint64_t where = out + (uint64_t)nth * MAX_BLOCKS * sizeof(struct record);
	uint64_t mask = (k->footprint ? k->footprint : FOOTPRINT) - 1;
	U work = k->work;
	P args[] = { &where, &work, &data, &mask };

	if (set_stream(k))
		return -1;
	TRY(cuLaunchKernelEx(&config, functions[k->entry], args, NULL));
	return 0;
}

/* Runs all kernels of a case one time. The records of kernel i begin at i * MAX_BLOCKS. */
static int run_once(const struct kernel *k, U nr)
{
	uint64_t bytes = (uint64_t)nr * MAX_BLOCKS * sizeof(struct record);

	if (!no_fills)
		TRY(cuMemsetD8_v2(out, 0xff, bytes));
	TRY(cuCtxSynchronize());
	for (U i = 0; i < nr; i++)
		if (launch(&k[i], i))
			return -1;
	TRY(cuCtxSynchronize());
	TRY(cuMemcpyDtoH_v2(records, out, bytes));
	return 0;
}

static uint64_t first_start(const struct kernel *k, U nr)
{
	uint64_t first = UINT64_MAX;

	for (U i = 0; i < nr; i++)
		for (U b = 0; b < k[i].blocks; b++)
			if (records[i * MAX_BLOCKS + b].start < first)
				first = records[i * MAX_BLOCKS + b].start;
	return first;
}

/*
 * Writes "rep KERNEL START END MIN MAX". START and END are in ns after the start of the case's
 * first block. MIN and MAX are the smallest and the largest number of clocks of a block.
 */
static void write_rep(const struct record *r, const struct kernel *k, U nth, uint64_t first)
{
	uint64_t start = UINT64_MAX, end = 0, min = UINT64_MAX, max = 0;

	for (U b = 0; b < k->blocks; b++) {
		uint64_t clocks = r[b].clock_end - r[b].clock_start;

		start = r[b].start < start ? r[b].start : start;
		end = r[b].end > end ? r[b].end : end;
		min = clocks < min ? clocks : min;
		max = clocks > max ? clocks : max;
	}
	fprintf(file, "rep %u %llu %llu %llu %llu\n", nth, (unsigned long long)(start - first),
		(unsigned long long)(end - first), (unsigned long long)min,
		(unsigned long long)max);
}

/* "b BLOCK SM START END CLOCKS [CLUSTER]" */
static void write_blocks(const struct record *r, const struct kernel *k, uint64_t first)
{
	for (U b = 0; b < k->blocks; b++) {
		fprintf(file, "b %u %u %llu %llu %llu", b, r[b].smid,
			(unsigned long long)(r[b].start - first),
			(unsigned long long)(r[b].end - first),
			(unsigned long long)(r[b].clock_end - r[b].clock_start));
		fprintf(file, k->cluster ? " %u\n" : "\n", r[b].cluster);
	}
}

/* Writes "o SM SM ..": the SM of block 0, the SM of block 1, and so on. */
static void write_order(const struct record *r, U blocks)
{
	fputs("o", file);
	for (U b = 0; b < blocks; b++)
		fprintf(file, " %u", r[b].smid);
	fputs("\n", file);
}

static void write_case(const char *name, U number, const struct kernel *k, U nr)
{
	/* Cases alternate between the two halves. This order was fixed before the first run. */
	fprintf(file, "case %s %s\n", name, number % 2 ? "held" : "fit");
	for (U i = 0; i < nr; i++)
		fprintf(file, "kernel %u %s blocks %u threads %u registers %d shared %u cluster %u "
			"work %u stream %u priority %s set %s footprint %llu\n", i,
			entry_names[k[i].entry], k[i].blocks, k[i].threads,
			registers[k[i].entry], k[i].shared, k[i].cluster, k[i].work, k[i].stream,
			k[i].stream < 3 ? "low" : "high", k[i].set ? k[i].set : "all",
			(unsigned long long)k[i].footprint);
}

/*
 * Writes one repetition. Returns true if the blocks of this repetition ran on different SMs than
 * the blocks of the first repetition.
 */
static bool write_run(const struct kernel *k, U nr, U rep, bool full, uint32_t *smids)
{
	uint64_t first = first_start(k, nr);
	bool other = false;

	fprintf(file, "run %u\n", rep);
	for (U i = 0; i < nr; i++) {
		const struct record *r = records + i * MAX_BLOCKS;

		write_rep(r, &k[i], i, first);
		if (full && !rep)
			write_blocks(r, &k[i], first);
		else if (full)
			write_order(r, rep < NR_REPS || k[i].blocks < MAX_ORDER ?
				    k[i].blocks : MAX_ORDER);
		for (U b = 0; b < k[i].blocks; b++) {
			if (rep && b < MAX_ORDER && smids[i * MAX_BLOCKS + b] != r[b].smid)
				other = true;
			if (!rep)
				smids[i * MAX_BLOCKS + b] = r[b].smid;
		}
	}
	return other;
}

/*
 * Makes ten repetitions. If blocks ran on different SMs in one of these repetitions, makes 200
 * more repetitions.
 */
static int trace(const char *name, U number, const struct kernel *k, U nr, bool full)
{
	static uint32_t smids[MAX_KERNELS * MAX_BLOCKS];
	U reps = full ? NR_REPS : 3;
	bool other = false;

	write_case(name, number, k, nr);
	for (U rep = 0; rep < reps; rep++) {
		if (run_once(k, nr))
			return -1;
		other |= write_run(k, nr, rep, full, smids);
		if (full && rep == NR_REPS - 1 && other)
			reps += NR_MORE;
	}
	fflush(file);
	return 0;
}

/* ---------------------------------------------------------------------- the cases */

#define US50	90000	/* clocks: about 50 us */

static const struct {
	const char *name;
	struct kernel k[MAX_KERNELS];
} cases[] = {
	{ "one", { { SPIN, 1, 32, 0, 0, US50, 0, NULL, 0 } } },
	{ "b66", { { SPIN, 66, 128, 0, 0, US50, 0, NULL, 0 } } },
	{ "b132", { { SPIN, 132, 256, 0, 0, US50, 0, NULL, 0 } } },
	{ "b133", { { SPIN, 133, 1024, 0, 0, US50, 0, NULL, 0 } } },
	{ "b264", { { SPIN, 264, 1024, 0, 0, US50, 0, NULL, 0 } } },
	{ "b265", { { SPIN, 265, 1024, 0, 0, US50, 0, NULL, 0 } } },
	{ "b500", { { SPIN, 500, 128, 0, 0, US50, 0, NULL, 0 } } },
	{ "b600", { { SPIN, 600, 256, 0, 0, US50, 0, NULL, 0 } } },
	{ "b2000", { { SPIN, 2000, 256, 0, 0, US50, 0, NULL, 0 } } },
	{ "b1500-odd", { { SPIN, 1500, 96, 0, 0, US50, 0, NULL, 0 } } },
	{ "shared200", { { SPIN, 300, 128, 200 * 1024, 0, US50, 0, NULL, 0 } } },
	{ "shared100", { { SPIN, 400, 64, 100 * 1024, 0, US50, 0, NULL, 0 } } },
	{ "shared48", { { SPIN, 700, 96, 48 * 1024, 0, US50, 0, NULL, 0 } } },
	{ "shared20", { { SPIN, 1400, 320, 20 * 1024, 0, US50, 0, NULL, 0 } } },
	{ "tpc", { { SPIN, 40, 256, 0, 0, US50, 0, "5", 0 } } },
	{ "tpc-other", { { SPIN, 9, 1024, 0, 0, US50, 0, "40", 0 } } },
	{ "gpc", { { SPIN, 100, 512, 0, 0, US50, 0, "gpc:1", 0 } } },
	{ "gpc-other", { { SPIN, 60, 256, 0, 0, US50, 0, "gpc:4", 0 } } },
	{ "interleaved", { { SPIN, 200, 256, 0, 0, US50, 0, "0-64:2", 0 } } },
	{ "few", { { SPIN, 50, 256, 0, 0, US50, 0, "3,17,30-33,61", 0 } } },
	{ "two-gpcs", { { SPIN, 120, 128, 0, 0, US50, 0, "gpc:2,5", 0 } } },
	{ "thirds", { { SPIN, 120, 512, 0, 0, US50, 0, "1-64:3", 0 } } },
	{ "streams-halves", { { SPIN, 66, 1024, 0, 0, US50, 0, NULL, 0 },
			      { SPIN, 66, 1024, 0, 0, US50, 1, NULL, 0 } } },
	{ "streams-three", { { SPIN, 300, 256, 0, 0, US50, 0, NULL, 0 },
			     { SPIN, 200, 512, 0, 0, US50, 1, NULL, 0 },
			     { SPIN, 100, 1024, 0, 0, US50, 2, NULL, 0 } } },
	{ "streams-full", { { SPIN, 528, 1024, 0, 0, US50, 0, NULL, 0 },
			    { SPIN, 264, 1024, 0, 0, US50, 1, NULL, 0 } } },
	{ "sets-apart", { { SPIN, 100, 512, 0, 0, US50, 0, "gpc:0", 0 },
			  { SPIN, 100, 512, 0, 0, US50, 1, "gpc:3", 0 } } },
	{ "sets-overlap", { { SPIN, 200, 1024, 0, 0, US50, 0, "0-39", 0 },
			    { SPIN, 200, 1024, 0, 0, US50, 1, "30-65", 0 } } },
	{ "in-order", { { SPIN, 100, 512, 0, 0, US50, 0, "gpc:0", 0 },
			{ SPIN, 100, 512, 0, 0, US50, 0, "gpc:3", 0 } } },
	{ "in-order-4", { { SPIN, 132, 128, 0, 0, US50, 0, NULL, 0 },
			  { SPIN, 132, 128, 0, 0, US50, 0, NULL, 0 },
			  { SPIN, 132, 128, 0, 0, US50, 0, NULL, 0 },
			  { SPIN, 132, 128, 0, 0, US50, 0, NULL, 0 } } },
	{ "low-then-high", { { SPIN, 1000, 1024, 0, 0, US50, 0, NULL, 0 },
			     { SPIN, 200, 1024, 0, 0, US50, 3, NULL, 0 } } },
	{ "high-then-low", { { SPIN, 1000, 1024, 0, 0, US50, 3, NULL, 0 },
			     { SPIN, 200, 1024, 0, 0, US50, 0, NULL, 0 } } },
	{ "three-low-one-high", { { SPIN, 400, 1024, 0, 0, US50, 0, NULL, 0 },
				  { SPIN, 400, 1024, 0, 0, US50, 1, NULL, 0 },
				  { SPIN, 400, 1024, 0, 0, US50, 2, NULL, 0 },
				  { SPIN, 400, 1024, 0, 0, US50, 3, NULL, 0 } } },
	{ "three-levels-of-room", { { SPIN, 600, 1024, 120 * 1024, 0, US50, 0, NULL, 0 },
				    { SPIN, 600, 64, 0, 0, US50, 1, NULL, 0 },
				    { SPIN, 300, 512, 0, 0, US50, 3, NULL, 0 } } },
	/*
	 * The first kernel still has unassigned blocks. Some SMs have room for blocks of the
	 * second kernel. Does the second kernel use this room?
	 */
	{ "room-beside", { { SPIN, 400, 1024, 150 * 1024, 0, US50, 0, NULL, 0 },
			   { SPIN, 264, 128, 0, 0, US50, 1, NULL, 0 } } },
	{ "room-beside-none-left", { { SPIN, 132, 1024, 150 * 1024, 0, US50, 0, NULL, 0 },
				     { SPIN, 264, 128, 0, 0, US50, 1, NULL, 0 } } },
	{ "cluster2", { { SPIN, 132, 256, 0, 2, US50, 0, NULL, 0 } } },
	{ "cluster4", { { SPIN, 120, 256, 0, 4, US50, 0, NULL, 0 } } },
	{ "cluster8", { { SPIN, 96, 256, 0, 8, US50, 0, NULL, 0 } } },
	{ "cluster4-waves", { { SPIN, 600, 1024, 0, 4, US50, 0, NULL, 0 } } },
	{ "cluster2-gpc", { { SPIN, 48, 512, 0, 2, US50, 0, "gpc:1", 0 } } },
	{ "cluster4-gpc", { { SPIN, 48, 512, 0, 4, US50, 0, "gpc:4", 0 } } },
	{ "cluster2-full", { { SPIN, 264, 1024, 0, 2, US50, 0, NULL, 0 } } },
};

static U nr_kernels(const struct kernel *k)
{
	U nr = 0;

	while (nr < MAX_KERNELS && k[nr].blocks)
		nr++;
	return nr;
}

/*
 * Measures the time of a fixed amount of work for several numbers of blocks and threads, and
 * several sets.
 */
static int compute_cases(U *number)
{
	static const U blocks[] = { 1, 66, 132, 133, 200, 264, 528, 1000, 1056, 1500, 2000 };
	static const U threads[] = { 32, 64, 128, 192, 256, 384, 512, 640, 768, 1024 };
	static const U puzzle[] = { 1, 16, 132, 264, 528, 1056 };
	static const char *const sets[] = { "5", "0,1", "0-3", "0-7", "0-31", "gpc:1", "gpc:2,3" };
	struct kernel k = { WIDE, 0, 256, 0, 0, 4000, 0, NULL, 0 };
	char name[64];
	U i, t;

	for (i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		k.blocks = blocks[i];
		snprintf(name, sizeof(name), "wide-%ux256", k.blocks);
		if (trace(name, (*number)++, &k, 1, true))
			return -1;
	}
	for (i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		k.blocks = 300;
		k.set = sets[i];
		snprintf(name, sizeof(name), "wide-set-%u", i);
		if (trace(name, (*number)++, &k, 1, false))
			return -1;
	}
	for (i = 0; i < sizeof(puzzle) / sizeof(*puzzle); i++)
		for (t = 0; t < sizeof(threads) / sizeof(*threads); t++) {
			k = (struct kernel){ CHAIN, puzzle[i], threads[t], 0, 0, 2000, 0, NULL, 0 };
			snprintf(name, sizeof(name), "chain-%ux%u", k.blocks, k.threads);
			if (trace(name, (*number)++, &k, 1, false))
				return -1;
		}
	return 0;
}

/*
 * Measures the read bandwidth from L2 and from DRAM for one SM, one TPC, one GPC, half of the
 * GPCs and all GPCs.
 */
static int read_cases(U *number)
{
	static const struct { U blocks; const char *set; } where[] = {
		{ 1, "0" }, { 4, "0" }, { 16, "0" }, { 36, "gpc:1" }, { 72, "gpc:1" },
		{ 72, "gpc:1,2" }, { 132, NULL }, { 264, NULL },
	};
	struct kernel k = { READ_DATA, 0, 1024, 0, 0, 200, 0, NULL, 0 };
	char name[64];

	for (U big = 0; big < 2; big++)
		for (U i = 0; i < sizeof(where) / sizeof(*where); i++) {
			k.blocks = where[i].blocks;
			k.set = where[i].set;
			k.footprint = big ? FOOTPRINT : 8 << 20;
			snprintf(name, sizeof(name), "read-%s-%ub-%u", big ? "dram" : "l2",
				 k.blocks, i);
			if (trace(name, (*number)++, &k, 1, false))
				return -1;
		}
	return 0;
}

/*
 * These cases answer questions that the cases above left open
 * (Documentation/results/h200-traces.md). When do singletons get a separate remainder? Which SM
 * gets an indivisible remainder? How are clusters of 8 distributed if they do not divide evenly?
 * How is a second kernel distributed over SMs with uneven load? How fast are reads by fewer SMs
 * of a GPC?
 */
static int open_cases(U *number)
{
	static const struct {
		const char *name;
		struct kernel k[MAX_KERNELS];
	} open[] = {
		{ "rest-1", { { SPIN, 397, 256, 0, 0, US50, 0, NULL, 0 } } },
		{ "rest-2", { { SPIN, 398, 256, 0, 0, US50, 0, NULL, 0 } } },
		{ "rest-4", { { SPIN, 400, 256, 0, 0, US50, 0, NULL, 0 } } },
		{ "rest-6", { { SPIN, 402, 256, 0, 0, US50, 0, NULL, 0 } } },
		{ "rest-8", { { SPIN, 404, 256, 0, 0, US50, 0, NULL, 0 } } },
		{ "rest-9", { { SPIN, 405, 256, 0, 0, US50, 0, NULL, 0 } } },
		{ "rest-2-of-5", { { SPIN, 662, 256, 0, 0, US50, 0, NULL, 0 } } },
		{ "rest-4-of-5", { { SPIN, 664, 256, 0, 0, US50, 0, NULL, 0 } } },
		{ "odd-1", { { SPIN, 199, 256, 0, 0, US50, 0, "0-64:2", 0 } } },
		{ "odd-3", { { SPIN, 201, 256, 0, 0, US50, 0, "0-64:2", 0 } } },
		{ "one-over-a", { { SPIN, 8, 256, 0, 0, US50, 0, "3,17,30-33,61", 0 } } },
		{ "one-over-b", { { SPIN, 9, 256, 0, 0, US50, 0, "3,17,30-33,61", 0 } } },
		{ "one-over-c", { { SPIN, 7, 256, 0, 0, US50, 0, "1,2,9,18,27,36", 0 } } },
		{ "one-over-d", { { SPIN, 10, 256, 0, 0, US50, 0, "1,2,9,18,27,36", 0 } } },
		{ "cluster8-9", { { SPIN, 72, 256, 0, 8, US50, 0, NULL, 0 } } },
		{ "cluster8-10", { { SPIN, 80, 256, 0, 8, US50, 0, NULL, 0 } } },
		{ "cluster8-16", { { SPIN, 128, 256, 0, 8, US50, 0, NULL, 0 } } },
		{ "cluster8-20", { { SPIN, 160, 256, 0, 8, US50, 0, NULL, 0 } } },
		{ "uneven-a", { { SPIN, 100, 256, 0, 0, US50, 0, NULL, 0 },
				{ SPIN, 66, 512, 0, 0, US50, 1, NULL, 0 } } },
		{ "uneven-b", { { SPIN, 200, 256, 0, 0, US50, 0, NULL, 0 },
				{ SPIN, 50, 256, 0, 0, US50, 1, NULL, 0 } } },
	};
	static const char *const part[] = { "0", "0,8", "0,8,16,24", "gpc:1", "gpc:1,2,3,4" };
	struct kernel k = { READ_DATA, 0, 1024, 0, 0, 200, 0, NULL, 0 };
	char name[64];
	U i;

	for (i = 0; i < sizeof(open) / sizeof(*open); i++)
		if (trace(open[i].name, (*number)++, open[i].k, nr_kernels(open[i].k), true))
			return -1;
	for (i = 0; i < 2 * sizeof(part) / sizeof(*part); i++) {
		k.set = part[i / 2];
		k.blocks = 64;
		k.footprint = i % 2 ? FOOTPRINT : 8 << 20;
		snprintf(name, sizeof(name), "part-%s-%u", i % 2 ? "dram" : "l2", i / 2);
		if (trace(name, (*number)++, &k, 1, false))
			return -1;
	}
	return 0;
}

static int run_all(void)
{
	const struct kernel warm = { WIDE, 1056, 256, 0, 0, 4000, 0, NULL, 0 };
	U number = 0;

	/* Runs until the clock frequency of the GPU has settled. */
	for (U i = 0; i < 2000; i++)
		if (launch(&warm, 0))
			return -1;
	TRY(cuCtxSynchronize());
	for (U i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (trace(cases[i].name, number++, cases[i].k, nr_kernels(cases[i].k), true))
			return -1;
	return compute_cases(&number) || read_cases(&number) || open_cases(&number) ? -1 : 0;
}

static int write_board(const char *folder)
{
	const struct gpupart_topology *topo = gpupart_gpu_topology(gpu);
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	char path[4096], *text = NULL, when[32];
	time_t now = time(NULL);
	FILE *board;

	snprintf(path, sizeof(path), "%s/board.capture", folder);
	if (gpupart_topology_capture(gp, topo, NULL, &text))
		return failed(gpupart_error(gp), 0);
	board = fopen(path, "w");
	if (!board || fputs(text, board) < 0 || fclose(board))
		return failed(path, errno);
	free(text);
	strftime(when, sizeof(when), "%Y-%m-%d", gmtime(&now));
	fprintf(file, "# gpupart traces 1\n# %s%s, driver %s, %s\n", info->name,
		info->simulated ? ", simulated" : "", info->driver, when);
	return 0;
}

int main(int argc, char **argv)
{
	char path[4096];

	no_fills = argc > 1 && !strcmp(argv[1], "-n");
	argv += no_fills;
	argc -= no_fills;
	if (argc != 2) {
		fprintf(stderr, "usage: traces [-n] FOLDER\n");
		return 2;
	}
	alarm(SECONDS);
	mkdir(argv[1], 0755);
	snprintf(path, sizeof(path), "%s/traces.txt", argv[1]);
	file = fopen(path, "w");
	if (!file)
		return failed(path, errno) != 0;
	if (gpupart_open(&gp) || driver_open())
		return 1;
	if (gpupart_attach(gp, "cuda:0", NULL, &gpu)) {
		fprintf(stderr, "traces: %s\n", gpupart_error(gp));
		return 1;
	}
	if (write_board(argv[1]) || run_all())
		return 1;
	if (fclose(file))
		return failed(path, errno) != 0;
	return 0;
}
