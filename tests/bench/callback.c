// SPDX-License-Identifier: MIT
/*
 * Makes NR launches of a kernel or of a graph, or NR allocations from a pool, on the simulated
 * driver. So callgrind can count instructions. argv[1] names the situation.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gpupart_manage.h>
#include "lib/confine/report.h"
#include "lib/driver/cuda.h"
#include "lib/private.h"

/* Most allocations need no check of the pool. */
static int pool_hits(void *lib, void *stream, size_t bytes, int nr)
{
	int (*alloc)(uint64_t *, size_t, void *), (*release)(uint64_t, void *);
	uint64_t address;

	*(void **)&alloc = dlsym(lib, "cuMemAllocAsync");
	*(void **)&release = dlsym(lib, "cuMemFreeAsync");
	for (int i = 0; i < nr; i++)
		if (alloc(&address, bytes, stream) || release(address, stream))
			return 1;
	return 0;
}

/*
 * Launches a graph of two kernels. If @gpu is not NULL, the launches use two sets in turns, so the
 * graph has two builds. The number of instructions does not depend on the number of kernels.
 */
static int graph_launches(void *lib, void *function, void *stream, struct gpupart *gp,
			  struct gpupart_gpu *gpu, int nr)
{
	const struct cuda_kernel_node kernel = {
		.function = function, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 },
	};
	int (*create)(void **, unsigned int), (*instantiate)(void **, void *, uint64_t),
		(*add)(void **, void *, void **, size_t, const struct cuda_kernel_node *),
		(*launch)(void *, void *), (*sync)(void *);
	void *graph, *nodes[2], *exec;

	*(void **)&create = dlsym(lib, "cuGraphCreate");
	*(void **)&add = dlsym(lib, "cuGraphAddKernelNode_v2");
	*(void **)&instantiate = dlsym(lib, "cuGraphInstantiateWithFlags");
	*(void **)&launch = dlsym(lib, "cuGraphLaunch");
	*(void **)&sync = dlsym(lib, "cuStreamSynchronize");
	if (create(&graph, 0) || add(&nodes[0], graph, NULL, 0, &kernel) ||
	    add(&nodes[1], graph, nodes, 1, &kernel) || instantiate(&exec, graph, 0))
		return 1;
	for (int i = 0; i < nr; i++)
		if ((gpu && gpupart_process_set(gp, gpu, &gpupart_topology_gpc(
						gpupart_gpu_topology(gpu), i % 2)->tpcs)) ||
		    launch(exec, stream))
			return 1;
	return sync(stream);
}

/* Sets up a run that may borrow TPCs from another run. Called before the attach. */
static struct lend_memory *borrow_begin(struct gpupart *gp, const char **lender)
{
	struct gpupart_report *own, *other;
	const char *id;

	if (gpupart_report_open(gp, &own, &id) || gpupart_report_open(gp, &other, lender))
		return NULL;
	gpupart_lend_bound(own, 1000000000, 1000000000);
	/* Launches of a program never leave the limit that the program set itself. */
	setenv("GPUPART_SET", "0-15", 1);
	if (gpupart_report_start(gp, id))
		return NULL;
	return &((struct report_memory *)((struct memfd *)own)->head)->lend;
}

/* Makes the other run idle. If @busy is true, the other run is never idle. */
static void borrow(struct lend_memory *own, const char *lender, struct gpupart_gpu *gpu, bool busy)
{
	snprintf(own->lender.report, sizeof(own->lender.report), "%s", lender);
	snprintf(own->lender.pci, sizeof(own->lender.pci), "%s",
		 gpupart_topology_info(gpupart_gpu_topology(gpu))->pci);
	own->lender.tpcs = gpupart_topology_gpc(gpupart_gpu_topology(gpu), 2)->tpcs;
	own->number = 2;
	own->lease = busy ? 0 : UINT64_MAX;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int (*current)(void *), (*retain)(void **, int), (*create)(void **, unsigned int),
		(*sync)(void *);
	int (*load)(void **, const void *), (*get)(void **, void *, const char *);
	int (*launch)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
		      unsigned int, unsigned int, void *, void **, void **);
	void *lib, *ctx, *module, *function, *stream;
	struct gpupart_tpcset set;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	int nr = argc > 2 ? atoi(argv[2]) : 1000;
	struct lend_memory *lend = NULL;
	const char *lender = NULL;

	/* Makes the calls in the same order as `gpupart run`. */
	if (gpupart_open(&gp) || ((!strncmp(what, "pool", 4) || !strcmp(what, "quota")) &&
				  gpupart_memory_start(gp, "bench-pool", 20ull << 30)) ||
	    (strstr(what, "lend") && !(lend = borrow_begin(gp, &lender))) ||
	    gpupart_attach(gp, "cuda:0", NULL, &gpu)) {
		fprintf(stderr, "%s\n", gp ? gpupart_error(gp) : "no memory");
		return 77;
	}
	lib = dlopen("libcuda.so.1", RTLD_NOW);
#define SYM(var, name) do { *(void **)&(var) = dlsym(lib, name); if (!(var)) return 1; } while (0)
	SYM(retain, "cuDevicePrimaryCtxRetain"); SYM(current, "cuCtxSetCurrent");
	SYM(create, "cuStreamCreate");
	SYM(sync, "cuStreamSynchronize");
	SYM(launch, "cuLaunchKernel");
	SYM(load, "cuModuleLoadData"); SYM(get, "cuModuleGetFunction");
	if (retain(&ctx, 0) || current(ctx) || create(&stream, 1) ||
	    load(&module,
		 ".version 4.2\n.target sm_30\n.address_size 64\n"
		 ".visible .entry gpupart_empty()\n{ ret; }\n") ||
	    get(&function, module, "gpupart_empty"))
		return 1;
	if (!strncmp(what, "pool", 4))
		return pool_hits(lib, stream, strcmp(what, "pool") ? 1 << 20 : 1 << 10, nr);
	set = gpupart_topology_gpc(gpupart_gpu_topology(gpu), 1)->tpcs;
	if ((strstr(what, "process") && gpupart_process_set(gp, gpu, &set)) ||
	    (strstr(what, "stream") && gpupart_stream_set(gp, gpu, stream, &set)) ||
	    (strstr(what, "function") && gpupart_function_set(gp, gpu, function, &set)) ||
	    (strstr(what, "rule") && gpupart_rule_set(gp, gpu, "gpupart_empt[xy]", &set)) ||
	    (strstr(what, "limit") && gpupart_limit_set(gp, gpu, &set)))
		return 1;
	if (strstr(what, "graph"))
		return graph_launches(lib, function, stream, gp,
				      strstr(what, "builds") ? gpu : NULL, nr);
	if (lend)
		borrow(lend, lender, gpu, strstr(what, "busy"));
	for (int i = 0; i < nr; i++) {
		if (strstr(what, "next") && gpupart_next_set(gp, gpu, &set))
			return 1;
		if (launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL))
			return 1;
		/* On the simulated GPU, records arrive only while a thread waits. */
		if (lend && i % 2 && sync(stream))
			return 1;
	}
	if (lend)
		fprintf(stderr, "lent: %llu of %d\n", (unsigned long long)lend->lent, nr);
	return sync(stream) != 0;
}
