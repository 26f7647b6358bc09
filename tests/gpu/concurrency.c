// SPDX-License-Identifier: MIT
/*
 * tests/gpu/concurrency.sh and mps_users.sh run this program under `gpupart run`. It measures the
 * time of a fixed number of multiply-adds on all SMs of its set. Other processes begin their work
 * at the same time. The amount of work does not depend on a clock. Usage: concurrency READY START
 * [LAUNCHES | fault]. After a warm-up, the program creates the file READY with its pid. It begins
 * its work when the file START exists. The measured time begins with the creation of START.
 * "fault" makes one launch, which reads an unmapped address.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define NR_LAUNCHES	40	/* about 40 ms each at 1.8 GHz */
#define NR_WARM		5
/* rounds of 8 multiply-adds per thread, which are exact in a float */
#define ITERATIONS	500000u
#define BLOCK		256
#define WAIT_SECONDS	120

typedef int CU;
typedef void *P;
typedef unsigned int U;

enum { ATTRIBUTE_THREADS_PER_SM = 39, ATTRIBUTE_MPS = 133 };

static const char ptx[] =
	".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry work(.param .u64 out, .param .u32 iterations, .param .f32 one)\n"
	"{\n"
	".reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %d<4>;\n"
	"ld.param.u64 %d0, [out];\n"
	"cvta.to.global.u64 %d0, %d0;\n"
	"ld.param.u32 %r0, [iterations];\n"
	"ld.param.f32 %f1, [one];\n"
	"mov.u32 %r1, %ctaid.x;\n"
	"mov.u32 %r2, %ntid.x;\n"
	"mov.u32 %r3, %tid.x;\n"
	"mad.lo.u32 %r4, %r1, %r2, %r3;\n"
	"mul.wide.u32 %d1, %r4, 4;\n"
	"add.u64 %d0, %d0, %d1;\n"
	"mov.f32 %f0, 0f00000000;\n"
	"again:\n"
	"fma.rn.f32 %f0, %f0, %f1, %f1;\n"
	"fma.rn.f32 %f0, %f0, %f1, %f1;\n"
	"fma.rn.f32 %f0, %f0, %f1, %f1;\n"
	"fma.rn.f32 %f0, %f0, %f1, %f1;\n"
	"fma.rn.f32 %f0, %f0, %f1, %f1;\n"
	"fma.rn.f32 %f0, %f0, %f1, %f1;\n"
	"fma.rn.f32 %f0, %f0, %f1, %f1;\n"
	"fma.rn.f32 %f0, %f0, %f1, %f1;\n"
	"sub.u32 %r0, %r0, 1;\n"
	"setp.ne.u32 %p0, %r0, 0;\n"
	"@%p0 bra again;\n"
	"cvt.rzi.u32.f32 %r5, %f0;\n"
	"ld.global.u32 %r6, [%d0];\n"
	"add.u32 %r6, %r6, %r5;\n"
	"st.global.u32 [%d0], %r6;\n"
	"ret;\n"
	"}\n";

#define FUNCTIONS(F) \
	F(cuInit, (U)) F(cuDevicePrimaryCtxRetain, (P *, int)) F(cuCtxSetCurrent, (P)) \
	F(cuCtxSynchronize, (void)) F(cuDeviceGetAttribute, (int *, int, int)) \
	F(cuModuleLoadData, (P *, const void *)) F(cuModuleGetFunction, (P *, P, const char *)) \
	F(cuMemAlloc_v2, (uint64_t *, size_t)) F(cuMemsetD8_v2, (uint64_t, unsigned char, size_t)) \
	F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t)) \
	F(cuLaunchKernel, (P, U, U, U, U, U, U, U, P, P *, P *))
#define DECLARE(name, args) static CU (*name) args;
FUNCTIONS(DECLARE)

static double seconds(struct timespec ts)
{
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return seconds(ts);
}

static int failed(const char *what, CU result)
{
	fprintf(stderr, "%s: %d at %.3f\n", what, result, now());
	return 1;
}

#define TRY(call) do { \
	CU r_ = (call); \
	if (r_) \
		return failed(#call, r_); \
} while (0)

static int driver_open(void)
{
	P lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return failed("libcuda.so.1", 0);
#define FIND(name, args) \
	if (!(*(void **)&name = dlsym(lib, #name))) \
		return failed(#name, 0);
	FUNCTIONS(FIND)
	return 0;
}

/* Returns the number of SMs in this process's limit. Makes no call of CUDA. */
static U sms_of_set(void)
{
	const char *words = getenv("GPUPART_SET");
	struct gpupart_topology *topo;
	struct gpupart_tpcset set;
	struct gpupart *gp;
	U nr = 0;

	if (!words || gpupart_open(&gp))
		return 0;
	if (gpupart_topology_open(gp, NULL, getenv("GPUPART_GPU"), &topo)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
	} else {
		if (!gpupart_set_parse(gp, topo, words, &set))
			for (U tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++)
				if (gpupart_tpcset_has(&set, tpc))
					nr += gpupart_topology_tpc(topo, tpc)->nr_sms;
		gpupart_topology_close(topo);
	}
	gpupart_close(gp);
	return nr;
}

/* Counts this process's confined launches and its other launches. */
static void count_launches(uint64_t *confined, uint64_t *others)
{
	struct gpupart_process *list = calloc(64, sizeof(*list));
	struct gpupart *gp;
	int nr = 0;

	*confined = *others = 0;
	if (list && !gpupart_open(&gp)) {
		nr = gpupart_process_list(gp, list, 64, sizeof(struct gpupart_process));
		gpupart_close(gp);
	}
	for (int i = 0; i < nr && i < 64; i++)
		if (list[i].pid == getpid()) {
			*confined = list[i].counters.confined;
			*others = list[i].counters.launches - *confined;
		}
	free(list);
}

/*
 * Waits for the file @path. Returns the time of the file. If the file does not appear, returns 0.
 */
static double wait_for(const char *path)
{
	struct stat st;

	for (int i = 0; i < WAIT_SECONDS * 1000; i++) {
		if (!stat(path, &st))
			return seconds(st.st_mtim);
		usleep(1000);
	}
	return 0;
}

static int launch(P work, U nr, U blocks, uint64_t out)
{
	U iterations = ITERATIONS;
	float one = 1;
	P args[] = { &out, &iterations, &one };

	for (U i = 0; i < nr; i++)
		TRY(cuLaunchKernel(work, blocks, 1, 1, BLOCK, 1, 1, 0, NULL, args, NULL));
	TRY(cuCtxSynchronize());
	return 0;
}

/* Checks that every thread has done all its multiply-adds. */
static int check(uint64_t out, U threads, U launches)
{
	uint32_t *done = calloc(threads, sizeof(*done));
	U wrong = 0;

	if (!done)
		return failed("no memory", 0);
	TRY(cuMemcpyDtoH_v2(done, out, threads * sizeof(*done)));
	for (U i = 0; i < threads; i++)
		wrong += done[i] != (NR_WARM + launches) * 8 * ITERATIONS;
	free(done);
	return wrong ? failed("threads that did not do their work", wrong) : 0;
}

/* Writes either the complete file or no file. */
static int say_ready(const char *path)
{
	char fresh[4096];
	FILE *file;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	file = fopen(fresh, "we");
	if (!file || fprintf(file, "%d\n", getpid()) < 0 || fclose(file) || rename(fresh, path))
		return failed(path, 0);
	return 0;
}

int main(int argc, char **argv)
{
	U sms = sms_of_set(), blocks, launches = argc > 3 ? atoi(argv[3]) : NR_LAUNCHES;
	bool fault = argc > 3 && !strcmp(argv[3], "fault");
	int threads = 0, mps = -1;
	uint64_t out, confined, others;
	P ctx, module, work;
	double start, begin, end;

	if (argc < 3 || argc > 4 || !sms || (!launches && !fault)) {
		fprintf(stderr,
			"usage: gpupart run SET -- concurrency READY START [LAUNCHES | fault]\n");
		return 2;
	}
	if (driver_open())
		return 1;
	TRY(cuInit(0));
	TRY(cuDevicePrimaryCtxRetain(&ctx, 0));
	TRY(cuCtxSetCurrent(ctx));
	TRY(cuDeviceGetAttribute(&threads, ATTRIBUTE_THREADS_PER_SM, 0));
	/* Older drivers do not report this attribute. */
	if (cuDeviceGetAttribute(&mps, ATTRIBUTE_MPS, 0))
		mps = -1;
	/*
	 * Launch the maximum number of blocks that fit on the SMs at the same time. So each SM
	 * has the same number of blocks.
	 */
	blocks = sms * (threads / BLOCK);
	TRY(cuModuleLoadData(&module, ptx));
	TRY(cuModuleGetFunction(&work, module, "work"));
	TRY(cuMemAlloc_v2(&out, blocks * BLOCK * sizeof(uint32_t)));
	TRY(cuMemsetD8_v2(out, 0, blocks * BLOCK * sizeof(uint32_t)));
	if (launch(work, NR_WARM, blocks, out))
		return 1;
	if (say_ready(argv[1]))
		return 1;
	start = wait_for(argv[2]);
	if (!start)
		return failed("no start", 0);
	begin = now();
	if (fault)
		return launch(work, 1, blocks, 0) ? 1 : failed("no fault", 0);
	if (launch(work, launches, blocks, out))
		return 1;
	end = now();
	if (check(out, blocks * BLOCK, launches))
		return 1;
	count_launches(&confined, &others);
	printf("seconds %.3f sms %u launches %u mps %d confined %llu others %llu ", end - start,
	       sms, launches, mps, (unsigned long long)confined, (unsigned long long)others);
	printf("begin %.3f end %.3f\n", begin, end);
	return 0;
}
