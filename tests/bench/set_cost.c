// SPDX-License-Identifier: MIT
/*
 * Measures the time of each kind of change of a set, in nanoseconds. Also measures the time to
 * open a GPU, in milliseconds. The results are medians of blocks.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <gpupart_manage.h>

#define NR_BLOCKS	41
#define NR_CALLS	20000

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double blocks[NR_BLOCKS];

static void say(const char *what, const char *unit)
{
	qsort(blocks, NR_BLOCKS, sizeof(blocks[0]), by_value);
	printf("%-46s median %8.2f %s  (least %.2f, most %.2f)\n", what, blocks[NR_BLOCKS / 2],
	       unit, blocks[0], blocks[NR_BLOCKS - 1]);
}

#define TIME(what, call) do { \
	for (int b = 0; b < NR_BLOCKS; b++) { \
		uint64_t begin = now_ns(); \
		for (int i = 0; i < NR_CALLS; i++) \
			bad += (call) != 0; \
		blocks[b] = (double)(now_ns() - begin) / NR_CALLS; \
	} \
	say(what, "ns"); \
} while (0)

int main(void)
{
	struct gpupart_tpcset set[2];
	struct gpupart_topology *topo;
	int (*create)(void **, unsigned int), (*retain)(void **, int), (*current)(void *);
	struct gpupart_gpu *gpu;
	int (*load)(void **, const void *), (*get)(void **, void *, const char *);
	void *lib, *stream, *ctx, *module, *function = NULL;
	struct gpupart *gp;
	unsigned long bad = 0;

	if (gpupart_open(&gp))
		return 1;
	if (gpupart_attach(gp, "cuda:0", NULL, &gpu)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 77;
	}
	printf("%s%s, driver %s\n", gpupart_topology_info(gpupart_gpu_topology(gpu))->name,
	       gpupart_topology_info(gpupart_gpu_topology(gpu))->simulated ? " (simulated)" : "",
	       gpupart_topology_info(gpupart_gpu_topology(gpu))->driver);
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&create = dlsym(lib, "cuStreamCreate");
	*(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&current = dlsym(lib, "cuCtxSetCurrent");
	*(void **)&load = dlsym(lib, "cuModuleLoadData");
	*(void **)&get = dlsym(lib, "cuModuleGetFunction");
	if (retain(&ctx, 0) || current(ctx) || create(&stream, 1) ||
	    load(&module, ".version 4.2\n.target sm_30\n.address_size 64\n"
			  ".visible .entry gpupart_empty()\n{ ret; }\n") ||
	    get(&function, module, "gpupart_empty"))
		return 1;
	set[0] = gpupart_topology_all(gpupart_gpu_topology(gpu));
	set[1] = gpupart_topology_gpc(gpupart_gpu_topology(gpu), 0)->tpcs;
	TIME("gpupart_process_set, whole GPU and GPC 0 in turn",
	     gpupart_process_set(gp, gpu, &set[i & 1]));
	TIME("gpupart_stream_set, a created stream",
	     gpupart_stream_set(gp, gpu, stream, &set[i & 1]));
	TIME("gpupart_stream_set, the legacy default stream",
	     gpupart_stream_set(gp, gpu, NULL, &set[i & 1]));
	TIME("gpupart_thread_set", gpupart_thread_set(gp, gpu, &set[i & 1]));
	bad += gpupart_thread_set(gp, gpu, NULL) != 0;
	if (function)
		TIME("gpupart_function_set",
		     gpupart_function_set(gp, gpu, function, &set[i & 1]));
	TIME("gpupart_next_set", gpupart_next_set(gp, gpu, &set[i & 1]));
	TIME("gpupart_limit_set", gpupart_limit_set(gp, gpu, &set[i & 1]));
	gpupart_next_set(gp, gpu, NULL);
	for (int b = 0; b < NR_BLOCKS; b++) {
		uint64_t begin = now_ns();

		if (gpupart_topology_open(gp, NULL, NULL, &topo))
			break;
		blocks[b] = (now_ns() - begin) / 1e6;
		gpupart_topology_close(topo);
		if (b == NR_BLOCKS - 1)
			say("gpupart_topology_open from NVIDIA's driver", "ms");
	}
	gpupart_close(gp);
	return bad ? 1 : 0;
}
