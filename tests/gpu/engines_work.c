// SPDX-License-Identifier: MIT
/*
 * engines_work ROUNDS SECONDS: keeps a GPU busy for SECONDS seconds with kernels of equal work.
 * Then it prints the number of completed kernels per second. Eight kernels are always queued. The
 * program loads libcuda at run time, so that it also runs on the simulated driver.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/*
 * There is more than one block for each SM. So no block of another program fits, and two programs
 * take turns.
 */
#define BLOCKS	1056
#define QUEUED	8

static const char ptx[] =
	".version 6.0\n.target sm_60\n.address_size 64\n"
	".visible .entry work(.param .u64 out, .param .u32 rounds)\n{\n"
	"	.reg .u64 %o;\n	.reg .u32 %i, %n, %v;\n	.reg .pred %p;\n"
	"	ld.param.u64 %o, [out];\n	ld.param.u32 %n, [rounds];\n"
	"	mov.u32 %i, 0;\n	mov.u32 %v, %tid.x;\n"
	"again:\n	mad.lo.u32 %v, %v, 1664525, %i;\n	add.u32 %i, %i, 1;\n"
	"	setp.lt.u32 %p, %i, %n;\n	@%p bra again;\n"
	"	setp.eq.u32 %p, %v, 12345;\n	@%p st.global.u32 [%o], %v;\n	ret;\n}\n";

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

#define CALL(name, types, args) do { \
	int (*f)types = (int (*)types)dlsym(lib, name); \
	int err = f ? f args : -1; \
	if (err) { \
		fprintf(stderr, "%s: error %d\n", name, err); \
		return 1; \
	} \
} while (0)

int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *work, *events[QUEUED];
	unsigned long long out;
	unsigned int rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	void *params[] = { &out, &rounds };
	double start, seconds = argc > 2 ? atof(argv[2]) : 0;
	unsigned long nr = 0;

	if (!lib || !rounds || seconds <= 0) {
		fprintf(stderr, "usage: engines_work ROUNDS SECONDS (%s)\n", lib ? "" : dlerror());
		return 2;
	}
	CALL("cuInit", (unsigned int), (0));
	CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0));
	CALL("cuModuleLoadData", (void **, const void *), (&module, ptx));
	CALL("cuModuleGetFunction", (void **, void *, const char *), (&work, module, "work"));
	CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, 64));
	for (int i = 0; i < QUEUED; i++)
		CALL("cuEventCreate", (void **, unsigned int), (&events[i], 2));
	start = now();
	while (now() - start < seconds) {
		if (nr >= QUEUED)
			CALL("cuEventSynchronize", (void *), (events[nr % QUEUED]));
		CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
		     unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
		     void **), (work, BLOCKS, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
		CALL("cuEventRecord", (void *, void *), (events[nr % QUEUED], NULL));
		nr++;
	}
	CALL("cuCtxSynchronize", (void), ());
	printf("%.3f\n", nr / (now() - start));
	return 0;
}
