// SPDX-License-Identifier: MIT
/*
 * Tests all kinds of launches of a process, all forms of graphs, and each scope. The blocks of a
 * kernel record their SMs. The program runs on a real GPU and on the simulated driver. If a
 * feature does not exist, its tests are skipped. Every grid fits.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <gpupart_manage.h>
#include "lib/driver/cuda.h"
#include "tests/tap.h"

typedef int CUresult;
typedef void *handle;

#define INSTANTIATE_UPLOAD 2

/* CUDA_GRAPH_INSTANTIATE_PARAMS */
struct instantiate_params {
	uint64_t flags;
	handle stream, bad_node;
	int result;
};

#define U unsigned int
#define NODE_ARGS handle *, handle, const handle *, size_t

#define FUNCTIONS(F) \
	F(cuInit, (U)) F(cuDeviceGetCount, (int *)) F(cuDevicePrimaryCtxRetain, (handle *, int)) \
	F(cuCtxSetCurrent, (handle)) F(cuCtxSynchronize, (void)) \
	F(cuCtxCreate_v2, (handle *, U, int)) F(cuCtxDestroy_v2, (handle)) \
	F(cuStreamCreate, (handle *, U)) F(cuStreamDestroy_v2, (handle)) \
	F(cuStreamBeginCapture_v2, (handle, int)) F(cuStreamEndCapture, (handle, handle *)) \
	F(cuModuleLoadData, (handle *, const void *)) F(cuModuleUnload, (handle)) \
	F(cuModuleGetFunction, (handle *, handle, const char *)) \
	F(cuFuncSetAttribute, (handle, int, int)) \
	F(cuMemAlloc_v2, (cuda_ptr *, size_t)) F(cuMemcpyDtoH_v2, (void *, cuda_ptr, size_t)) \
	F(cuMemcpyDtoDAsync_v2, (cuda_ptr, cuda_ptr, size_t, handle)) \
	F(cuMemsetD8Async, (cuda_ptr, unsigned char, size_t, handle)) \
	F(cuLaunchKernel, (handle, U, U, U, U, U, U, U, handle, void **, void **)) \
	F(cuGraphCreate, (handle *, U)) F(cuGraphDestroy, (handle)) \
	F(cuGraphAddKernelNode_v2, (NODE_ARGS, const struct cuda_kernel_node *)) \
	F(cuGraphAddMemsetNode, (NODE_ARGS, const struct cuda_memset_node *, handle)) \
	F(cuGraphAddMemcpyNode, (NODE_ARGS, const struct cuda_memcpy_node *, handle)) \
	F(cuGraphAddChildGraphNode, (NODE_ARGS, handle)) \
	F(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long)) \
	F(cuGraphInstantiateWithParams, (handle *, handle, struct instantiate_params *)) \
	F(cuGraphExecDestroy, (handle)) F(cuGraphUpload, (handle, handle)) \
	F(cuGraphLaunch, (handle, handle)) \
	F(cuGraphExecKernelNodeSetParams_v2, (handle, handle, const struct cuda_kernel_node *)) \
	F(cuGraphExecUpdate_v2, (handle, handle, struct cuda_graph_update *)) \
	F(cuGraphNodeSetEnabled, (handle, handle, U))

#define REAL_ONLY(F) \
	F(cuGraphLaunch_ptsz, (handle, handle)) \
	F(cuLibraryLoadData, (handle *, const void *, void *, void *, U, void *, void *, U)) \
	F(cuLibraryGetKernel, (handle *, handle, const char *)) \
	F(cuKernelGetFunction, (handle *, handle)) \
	F(cuGraphConditionalHandleCreate, (unsigned long long *, handle, handle, U, U)) \
	F(cuGraphAddNode, (NODE_ARGS, void *)) \
	F(cuGraphAddMemAllocNode, (NODE_ARGS, void *)) \
	F(cuGraphAddMemFreeNode, (NODE_ARGS, cuda_ptr)) \
	F(cuDeviceGetDevResource, (int, void *, int)) \
	F(cuDevSmResourceSplitByCount, (void *, U *, const void *, void *, U, U)) \
	F(cuDevResourceGenerateDesc, (handle *, void *, U)) \
	F(cuGreenCtxCreate, (handle *, handle, int, U)) \
	F(cuGreenCtxStreamCreate, (handle *, handle, U, int))

#define DECLARE(name, args) static CUresult (*name) args;
FUNCTIONS(DECLARE)
REAL_ONLY(DECLARE)

#define RECORDS		264	/* blocks of a census: two for each SM of the largest tested GPU */
#define REGIONS		320
#define RECORD		24
#define SPIN_NS		30000

static struct gpupart *gp;
static struct gpupart_gpu *gpu;
static const struct gpupart_topology *topo;
static handle ctx, module, census;
static cuda_ptr out;
static unsigned char *host;
static struct gpupart_tpcset a, b, c, all;
static char *ptx;
static bool simulated;

#define TRY(call) do { \
	CUresult r_ = (call); \
	if (r_) { \
		printf("# line %d: %s: %d\n", __LINE__, #call, r_); \
		tap_ok(false, "line %d: %s gives %d", __LINE__, #call, r_); \
	} \
} while (0)
#define MUST(call) do { \
	if (call) \
		tap_ok(false, "line %d: %s: %s", __LINE__, #call, gpupart_error(gp)); \
} while (0)

static int driver_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return -1;
#define FIND(name, args) \
	if (!(*(void **)&name = dlsym(lib, #name))) { \
		printf("# no %s\n", #name); \
		return -1; \
	}
	FUNCTIONS(FIND)
#define MAYBE(name, args) *(void **)&name = dlsym(lib, #name);
	REAL_ONLY(MAYBE)
	return 0;
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

static cuda_ptr region(unsigned int n)
{
	return out + (size_t)n * RECORDS * RECORD;
}

/*
 * Returns the arguments of a census into region @n. After 512 further calls, the arguments are no
 * longer valid.
 */
static void **arguments(unsigned int n)
{
	static struct { cuda_ptr at; unsigned int ns; void *list[2]; } ring[512], *r;
	static unsigned int next;

	r = &ring[next++ % 512];
	r->at = region(n);
	r->ns = SPIN_NS;
	r->list[0] = &r->at;
	r->list[1] = &r->ns;
	return r->list;
}

static void clear(void)
{
	TRY(cuCtxSynchronize());
	TRY(cuMemsetD8Async(out, 0xff, (size_t)REGIONS * RECORDS * RECORD, NULL));
	TRY(cuCtxSynchronize());
}

static void fetch(void)
{
	TRY(cuCtxSynchronize());
	TRY(cuMemcpyDtoH_v2(host, out, (size_t)REGIONS * RECORDS * RECORD));
}

/* Returns the TPCs of the blocks in region @n, and stores the number of blocks in @nr. */
static struct gpupart_tpcset seen(unsigned int n, unsigned int *nr)
{
	struct gpupart_tpcset set = { { 0 } };
	unsigned int count = 0;

	for (unsigned int i = 0; i < RECORDS; i++) {
		uint32_t smid;
		int tpc;

		memcpy(&smid, host + ((size_t)n * RECORDS + i) * RECORD, 4);
		tpc = smid == ~0u ? -1 : gpupart_topology_sm_tpc(topo, smid);
		if (tpc >= 0) {
			gpupart_tpcset_add(&set, tpc);
			count++;
		}
	}
	if (nr)
		*nr = count;
	return set;
}

/* Returns true if each launch into the regions @first to @last ran on exactly @want. */
static bool ran_in(unsigned int first, unsigned int last, const struct gpupart_tpcset *want)
{
	bool good = true;

	fetch();
	for (unsigned int n = first; n <= last; n++) {
		struct gpupart_tpcset set = seen(n, NULL);

		if (good && !gpupart_tpcset_equal(&set, want)) {
			char have[GPUPART_TPCSET_STRLEN], wanted[GPUPART_TPCSET_STRLEN];

			gpupart_tpcset_format_list(&set, have, sizeof(have));
			gpupart_tpcset_format_list(want, wanted, sizeof(wanted));
			printf("# region %u: TPCs %s, wanted %s\n", n, have, wanted);
			good = false;
		}
	}
	return good;
}

static struct cuda_kernel_node kernel_node(unsigned int n, unsigned int blocks)
{
	return (struct cuda_kernel_node){
		.function = census, .grid = { blocks, 1, 1 }, .block = { 1024, 1, 1 },
		.params = arguments(n),
	};
}

/* Adds a node that depends on @after and records into region @n. */
static handle add(handle graph, handle after, unsigned int n)
{
	struct cuda_kernel_node kernel = kernel_node(n, RECORDS);
	handle node = NULL;

	TRY(cuGraphAddKernelNode_v2(&node, graph, &after, after ? 1 : 0, &kernel));
	return node;
}

/* Creates a chain of @nr nodes. The nodes record into the regions from @first on. */
static handle chain(unsigned int first, unsigned int nr, handle *nodes)
{
	handle graph, last = NULL;

	TRY(cuGraphCreate(&graph, 0));
	for (unsigned int i = 0; i < nr; i++) {
		last = add(graph, last, first + i);
		if (nodes)
			nodes[i] = last;
	}
	return graph;
}

static handle instantiate(handle graph)
{
	handle exec = NULL;

	TRY(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static bool graph_in(handle exec, handle stream, unsigned int nr, const struct gpupart_tpcset *want)
{
	clear();
	TRY(cuGraphLaunch(exec, stream));
	return ran_in(0, nr - 1, want);
}

static void launch(handle function, handle stream, unsigned int n)
{
	TRY(cuLaunchKernel(function, RECORDS, 1, 1, 1024, 1, 1, 0, stream, arguments(n), NULL));
}

static bool launch_in(handle function, handle stream, const struct gpupart_tpcset *want)
{
	clear();
	launch(function, stream, 0);
	return ran_in(0, 0, want);
}

static struct gpupart_counters counted(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters;
}

/* ---------------------------------------------------------------------- graphs */

static void graph_by_hand(handle s, handle other)
{
	handle nodes[3], graph = chain(0, 3, nodes), exec = instantiate(graph);
	uint64_t before;

	MUST(gpupart_process_set(gp, gpu, &a));
	tap_ok(graph_in(exec, s, 3, &a) && graph_in(exec, s, 3, &a), "graph: the process's set");
	before = counted().graphs_reapplied;
	MUST(gpupart_process_set(gp, gpu, &b));
	tap_ok(graph_in(exec, s, 3, &b), "graph: the process's next set");
	tap_ok(counted().graphs_reapplied == before + 1, "graph: built again once");
	tap_ok(graph_in(exec, s, 3, &b) && counted().graphs_reapplied == before + 1,
	       "graph: and not again while nothing changes");
	TRY(cuGraphDestroy(graph));
	MUST(gpupart_limit_set(gp, gpu, &c));
	MUST(gpupart_process_set(gp, gpu, NULL));
	tap_ok(graph_in(exec, s, 3, &c), "graph: a limit, its source destroyed");
	MUST(gpupart_limit_set(gp, gpu, NULL));
	tap_ok(graph_in(exec, s, 3, &all), "graph: nothing left of it: all TPCs");
	MUST(gpupart_stream_set(gp, gpu, s, &a));
	tap_ok(graph_in(exec, s, 3, &a), "graph: the stream's set");
	tap_ok(graph_in(exec, other, 3, &all), "graph: on another stream: all TPCs");
	MUST(gpupart_stream_set(gp, gpu, other, &b));
	tap_ok(graph_in(exec, other, 3, &b) && graph_in(exec, s, 3, &a),
	       "graph: each stream's own, in turn");
	MUST(gpupart_next_set(gp, gpu, &c));
	tap_ok(graph_in(exec, s, 3, &c), "graph: a next-launch set reaches every node");
	tap_ok(graph_in(exec, s, 3, &a), "graph: once");
	MUST(gpupart_stream_set(gp, gpu, other, NULL));
	MUST(gpupart_thread_set(gp, gpu, &c));
	tap_ok(graph_in(exec, other, 3, &c), "graph: the thread's set");
	MUST(gpupart_thread_set(gp, gpu, NULL));
	MUST(gpupart_function_set(gp, gpu, census, &b));
	tap_ok(graph_in(exec, s, 3, &b), "graph: the function's set");
	MUST(gpupart_next_set(gp, gpu, &c));
	tap_ok(graph_in(exec, s, 3, &c), "graph: a next-launch set goes before the function's");
	tap_ok(graph_in(exec, s, 3, &b), "graph: which holds again after it");
	MUST(gpupart_function_set(gp, gpu, census, NULL));
	tap_ok(graph_in(exec, s, 3, &a), "graph: and the stream's again");
	MUST(gpupart_stream_set(gp, gpu, s, NULL));
	tap_ok(!counted().graphs_stale, "graph: none kept an earlier set");
	TRY(cuGraphExecDestroy(exec));
}

/* Tests an instantiation that also uploads the graph. So this instantiation builds the graph. */
static void graph_uploaded(handle s)
{
	struct instantiate_params params = { .flags = INSTANTIATE_UPLOAD, .stream = s };
	uint64_t before = counted().graphs_stale;
	handle graph = chain(0, 3, NULL), exec = NULL;

	TRY(cuGraphInstantiateWithParams(&exec, graph, &params));
	tap_ok(graph_in(exec, s, 3, &all) && counted().graphs_stale == before,
	       "uploaded: no set, and none that it kept");
	MUST(gpupart_process_set(gp, gpu, &a));
	tap_ok(graph_in(exec, s, 3, &a), "uploaded: then a set");
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphInstantiateWithParams(&exec, graph, &params));
	tap_ok(graph_in(exec, s, 3, &a), "uploaded: under a set");
	MUST(gpupart_stream_set(gp, gpu, s, &b));
	tap_ok(graph_in(exec, s, 3, &b), "uploaded: its stream's set");
	MUST(gpupart_stream_set(gp, gpu, s, NULL));
	MUST(gpupart_process_set(gp, gpu, NULL));
	tap_ok(graph_in(exec, s, 3, &all), "uploaded: and none again");
	tap_ok(counted().graphs_stale == before, "uploaded: none kept an earlier set");
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphDestroy(graph));
}

static void graph_captured(handle s, handle other)
{
	handle graph, exec, origin;

	TRY(cuStreamCreate(&origin, CUDA_STREAM_NON_BLOCKING));
	MUST(gpupart_stream_set(gp, gpu, origin, &a));
	TRY(cuStreamBeginCapture_v2(origin, CUDA_CAPTURE_MODE_RELAXED));
	launch(census, origin, 0);
	launch(census, origin, 1);
	TRY(cuStreamEndCapture(origin, &graph));
	exec = instantiate(graph);
	TRY(cuGraphDestroy(graph));
	tap_ok(graph_in(exec, origin, 2, &a), "captured: the stream's set");
	tap_ok(graph_in(exec, other, 2, &a), "captured: carried to another stream");
	MUST(gpupart_stream_set(gp, gpu, origin, &b));
	tap_ok(graph_in(exec, other, 2, &b), "captured: its next set too");
	MUST(gpupart_stream_set(gp, gpu, s, &c));
	tap_ok(graph_in(exec, s, 2, &c), "captured: the launch's stream goes first");
	MUST(gpupart_stream_set(gp, gpu, s, NULL));
	TRY(cuCtxSynchronize());
	TRY(cuStreamDestroy_v2(origin));
	tap_ok(graph_in(exec, other, 2, &b), "captured: the set stays when its stream goes");
	TRY(cuGraphExecDestroy(exec));
}

/* Captures a census on @stream. */
static handle capture_on(handle stream)
{
	handle graph = NULL;

	TRY(cuStreamBeginCapture_v2(stream, CUDA_CAPTURE_MODE_RELAXED));
	launch(census, stream, 0);
	TRY(cuStreamEndCapture(stream, &graph));
	return graph;
}

static handle exec_captured_on(handle stream)
{
	handle graph = capture_on(stream), exec = instantiate(graph);

	TRY(cuGraphDestroy(graph));
	return exec;
}

/*
 * Tests that a captured graph has the set of its capture stream. It must not matter when this
 * stream got or lost its set.
 */
static void graph_origins(handle other)
{
	struct cuda_graph_update info;
	handle first, second, exec, by_hand, graph;

	TRY(cuStreamCreate(&first, CUDA_STREAM_NON_BLOCKING));
	exec = exec_captured_on(first);
	tap_ok(graph_in(exec, other, 1, &all), "origin: a stream without a set");
	MUST(gpupart_stream_set(gp, gpu, first, &a));
	tap_ok(graph_in(exec, other, 1, &a), "origin: which gets one later");
	MUST(gpupart_stream_set(gp, gpu, first, &b));
	TRY(cuStreamDestroy_v2(first));
	tap_ok(graph_in(exec, other, 1, &b), "origin: the set that it had when it went");
	TRY(cuStreamCreate(&first, CUDA_STREAM_NON_BLOCKING));
	MUST(gpupart_stream_set(gp, gpu, first, &c));
	tap_ok(graph_in(exec, other, 1, &b), "origin: not that of one in its place");
	TRY(cuGraphExecDestroy(exec));

	exec = exec_captured_on(first);
	tap_ok(graph_in(exec, other, 1, &c), "origin: a set");
	MUST(gpupart_stream_set(gp, gpu, first, NULL));
	TRY(cuStreamDestroy_v2(first));
	tap_ok(graph_in(exec, other, 1, &all), "origin: taken away before the stream went");
	TRY(cuGraphExecDestroy(exec));

	TRY(cuStreamCreate(&first, CUDA_STREAM_NON_BLOCKING));
	TRY(cuStreamCreate(&second, CUDA_STREAM_NON_BLOCKING));
	MUST(gpupart_stream_set(gp, gpu, first, &a));
	MUST(gpupart_stream_set(gp, gpu, second, &b));
	exec = exec_captured_on(first);
	by_hand = instantiate(chain(0, 1, NULL));
	tap_ok(graph_in(exec, other, 1, &a) && graph_in(by_hand, other, 1, &all),
	       "origin: one of a graph, and none");
	graph = capture_on(second);
	TRY(cuGraphExecUpdate_v2(exec, graph, &info));
	TRY(cuGraphExecUpdate_v2(by_hand, graph, &info));
	TRY(cuGraphDestroy(graph));
	tap_ok(graph_in(exec, other, 1, &b) && graph_in(by_hand, other, 1, &b),
	       "origin: of the graph that both were updated to");
	graph = chain(0, 1, NULL);
	TRY(cuGraphExecUpdate_v2(exec, graph, &info));
	TRY(cuGraphDestroy(graph));
	tap_ok(graph_in(exec, other, 1, &all), "origin: none of one that was built by hand");
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphExecDestroy(by_hand));
	TRY(cuStreamDestroy_v2(first));
	TRY(cuStreamDestroy_v2(second));
}

struct on_own_stream {
	const struct gpupart_tpcset *set;	/* NULL: none */
	handle captured;	/* NULL: capture the graph; otherwise launch it on @other */
	handle other;
	const struct gpupart_tpcset *want;
	bool good;
};

static void *use_own_stream(void *given)
{
	struct on_own_stream *own = given;

	TRY(cuCtxSetCurrent(ctx));
	if (own->set)
		MUST(gpupart_stream_set(gp, gpu, CUDA_STREAM_PER_THREAD, own->set));
	if (own->captured)
		own->good = graph_in(own->captured, own->other, 1, own->want);
	else
		own->captured = exec_captured_on(CUDA_STREAM_PER_THREAD);
	return NULL;
}

/*
 * The default streams of different threads have the same handle, and often the same address.
 */
static void graph_thread_origins(handle other)
{
	const struct gpupart_tpcset *const sets[2] = { &a, NULL };

	for (int i = 0; i < 2; i++) {
		struct on_own_stream own = { .set = sets[i], .other = other };
		pthread_t thread;

		pthread_create(&thread, NULL, use_own_stream, &own);
		pthread_join(thread, NULL);
		own.set = &b;
		own.want = sets[i] ? sets[i] : &all;
		pthread_create(&thread, NULL, use_own_stream, &own);
		pthread_join(thread, NULL);
		tap_ok(own.good, "origin: of a thread that ended %s, not of the next one",
		       sets[i] ? "its last set" : "no set");
		TRY(cuGraphExecDestroy(own.captured));
	}
}

static void graph_changed(handle s)
{
	handle nodes[3], graph = chain(0, 3, nodes), exec = instantiate(graph);
	struct cuda_graph_update info;
	struct cuda_kernel_node kernel = kernel_node(5, RECORDS / 2);
	unsigned int nr;
	struct gpupart_tpcset set;

	MUST(gpupart_process_set(gp, gpu, &a));
	tap_ok(graph_in(exec, s, 3, &a), "changed: first");
	TRY(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &kernel));
	clear();
	TRY(cuGraphLaunch(exec, s));
	tap_ok(ran_in(0, 0, &a) && ran_in(2, 2, &a) && ran_in(5, 5, &a),
	       "changed: a node with another grid and other arguments");
	MUST(gpupart_process_set(gp, gpu, &b));
	clear();
	TRY(cuGraphLaunch(exec, s));
	tap_ok(ran_in(0, 0, &b) && ran_in(2, 2, &b) && ran_in(5, 5, &b),
	       "changed: another set leaves the program's change as it is");
	set = seen(5, &nr);
	tap_ok(nr == RECORDS / 2, "changed: %u blocks, as the program wanted", nr);
	set = seen(1, &nr);
	tap_ok(gpupart_tpcset_empty(&set), "changed: and nothing where it ran before");
	TRY(cuGraphExecUpdate_v2(exec, graph, &info));
	tap_ok(graph_in(exec, s, 3, &b), "changed: updated to its source again");
	MUST(gpupart_process_set(gp, gpu, &a));
	TRY(cuGraphUpload(exec, s));
	tap_ok(graph_in(exec, s, 3, &a), "changed: another set, uploaded, launched");
	TRY(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	MUST(gpupart_process_set(gp, gpu, &b));
	clear();
	TRY(cuGraphLaunch(exec, s));
	tap_ok(ran_in(0, 0, &b) && ran_in(2, 2, &b), "changed: a node that is off");
	set = seen(1, NULL);
	tap_ok(gpupart_tpcset_empty(&set), "changed: stays off");
	TRY(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	tap_ok(graph_in(exec, s, 3, &b), "changed: on again, in the set of now");
	MUST(gpupart_process_set(gp, gpu, NULL));
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphDestroy(graph));
}

static void graph_mixed(handle s)
{
	const size_t bytes = 1 << 20;
	cuda_ptr from, to;
	handle child = chain(1, 2, NULL), graph, exec, first, inner, fill, copy;
	struct cuda_memset_node memset_node = { .value = 0x5a5a5a5a, .element_size = 4,
						.width = bytes / 4, .height = 1 };
	struct cuda_memcpy_node memcpy_node = { .width = bytes, .height = 1, .depth = 1 };
	unsigned char *have = malloc(bytes);
	size_t right = 0;

	TRY(cuMemAlloc_v2(&from, bytes));
	TRY(cuMemAlloc_v2(&to, bytes));
	memset_node.dst = from;
	memcpy_node.src.type = memcpy_node.dst.type = CUDA_MEMORY_DEVICE;
	memcpy_node.src.device = from;
	memcpy_node.dst.device = to;
	TRY(cuGraphCreate(&graph, 0));
	first = add(graph, NULL, 0);
	TRY(cuGraphAddChildGraphNode(&inner, graph, &first, 1, child));
	TRY(cuGraphAddMemsetNode(&fill, graph, &inner, 1, &memset_node, ctx));
	TRY(cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &memcpy_node, ctx));
	exec = instantiate(graph);
	MUST(gpupart_process_set(gp, gpu, &a));
	tap_ok(graph_in(exec, s, 3, &a), "mixed: kernel, child graph, fill and copy");
	MUST(gpupart_process_set(gp, gpu, &b));
	TRY(cuMemsetD8Async(from, 0, bytes, s));
	TRY(cuMemsetD8Async(to, 0, bytes, s));
	tap_ok(graph_in(exec, s, 3, &b), "mixed: another set");
	TRY(cuMemcpyDtoH_v2(have, to, bytes));
	while (right < bytes && have[right] == 0x5a)
		right++;
	tap_ok(right == bytes, "mixed: filled and copied whole, %zu bytes", right);
	tap_ok(!counted().graphs_stale, "mixed: none kept an earlier set");
	MUST(gpupart_process_set(gp, gpu, NULL));
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphDestroy(graph));
	free(have);
}

/*
 * Tests nodes with the maximum shared memory of their function, and a node that may use more. The
 * test changes the maximum of a function, and this change stays. So the functions are in a
 * separate module.
 */
static void graph_shared(handle s)
{
	static const U most[] = { 200000, 8192, 1024, 0 };
	uint64_t before = counted().graphs_stale;
	handle own, function;

	TRY(cuModuleLoadData(&own, ptx));
	TRY(cuModuleGetFunction(&function, own, "gpupart_census"));
	for (unsigned int i = 0; i < 4; i++) {
		struct cuda_kernel_node kernel = kernel_node(0, RECORDS);
		handle graph, node, exec;

		TRY(cuFuncSetAttribute(function, CUDA_FUNC_ATTR_DYNAMIC_SHARED, most[i]));
		kernel.function = function;
		kernel.shared = most[i];
		TRY(cuGraphCreate(&graph, 0));
		TRY(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel));
		add(graph, node, 1);
		exec = instantiate(graph);
		MUST(gpupart_process_set(gp, gpu, &a));
		tap_ok(graph_in(exec, s, 2, &a), "graph: all the shared memory there is, %u bytes",
		       most[i]);
		MUST(gpupart_process_set(gp, gpu, &b));
		tap_ok(graph_in(exec, s, 2, &b), "graph: and another set");
		MUST(gpupart_process_set(gp, gpu, NULL));
		TRY(cuGraphExecDestroy(exec));
		TRY(cuGraphDestroy(graph));
	}
	tap_ok(counted().graphs_stale == before, "graph: none of them kept an earlier set");
	TRY(cuModuleUnload(own));
}

static void graph_large(handle s)
{
	const unsigned int nr = 300;
	handle graph = chain(0, nr, NULL), exec = instantiate(graph);
	struct timespec t[3];

	MUST(gpupart_process_set(gp, gpu, &a));
	tap_ok(graph_in(exec, s, nr, &a), "%u nodes", nr);
	MUST(gpupart_process_set(gp, gpu, &b));
	clear();
	clock_gettime(CLOCK_MONOTONIC, &t[0]);
	TRY(cuGraphLaunch(exec, s));
	clock_gettime(CLOCK_MONOTONIC, &t[1]);
	tap_ok(ran_in(0, nr - 1, &b), "%u nodes, another set", nr);
	printf("# the launch of %u nodes with another set took %.0f us", nr,
	       (t[1].tv_sec - t[0].tv_sec) * 1e6 + (t[1].tv_nsec - t[0].tv_nsec) / 1e3);
	clock_gettime(CLOCK_MONOTONIC, &t[0]);
	TRY(cuGraphLaunch(exec, s));
	clock_gettime(CLOCK_MONOTONIC, &t[1]);
	printf(", the next %.0f us\n",
	       (t[1].tv_sec - t[0].tv_sec) * 1e6 + (t[1].tv_nsec - t[0].tv_nsec) / 1e3);
	MUST(gpupart_process_set(gp, gpu, NULL));
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphDestroy(graph));
}

/* Tests an IF node. Its condition is always true, and its body is kernel 1. */
static void conditional(handle s)
{
	/* CUgraphNodeParams with CUDA_CONDITIONAL_NODE_PARAMS: 256 bytes in all. */
	union {
		struct {
			int type, reserved[3];
			unsigned long long condition;
			int kind;
			U size;
			handle *bodies, ctx;
		};
		char room[256];
	} params = { .type = 13, .kind = 0, .size = 1, .ctx = ctx };
	uint64_t before = counted().graphs_stale;
	handle graph, first, node, exec;

	TRY(cuGraphCreate(&graph, 0));
	TRY(cuGraphConditionalHandleCreate(&params.condition, graph, ctx, 1, 1));
	first = add(graph, NULL, 0);
	TRY(cuGraphAddNode(&node, graph, &first, 1, &params));
	add(params.bodies[0], NULL, 1);
	exec = instantiate(graph);
	tap_ok(graph_in(exec, s, 2, &b), "kept: conditional nodes, first: the body too");
	MUST(gpupart_process_set(gp, gpu, &a));
	tap_ok(graph_in(exec, s, 2, &b) && counted().graphs_stale == before + 1,
	       "kept: conditional nodes keep the set, which is counted");
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphDestroy(graph));
}

/*
 * A graph that cannot be rebuilt must keep its set and must be counted. @exec existed before the
 * attach.
 */
static void graph_stale(handle s, handle exec)
{
	uint64_t before = counted().graphs_stale;

	MUST(gpupart_process_set(gp, gpu, &a));
	TRY(cuGraphLaunch(exec, s));
	tap_ok(counted().graphs_stale == before + 1,
	       "kept: instantiated before the attach, which is counted");
	if (!cuGraphAddMemAllocNode || simulated) {
		tap_skip("memory nodes");
		tap_skip("conditional nodes");
	} else {
		/* CUDA_MEM_ALLOC_NODE_PARAMS_v1: properties of a pool, then ... */
		struct {
			int alloc_type, handle_type, location_type, location_id;
			void *security;
			size_t max_size;
			unsigned short usage;
			unsigned char reserved[54];
			const void *access;
			size_t nr_access, bytes;
			cuda_ptr at;
		} alloc = { .alloc_type = 1, .location_type = 1, .bytes = 1 << 20 };
		handle graph, first, middle, last, made;

		TRY(cuGraphCreate(&graph, 0));
		TRY(cuGraphAddMemAllocNode(&first, graph, NULL, 0, &alloc));
		middle = add(graph, first, 0);
		TRY(cuGraphAddMemFreeNode(&last, graph, &middle, 1, alloc.at));
		made = instantiate(graph);
		before = counted().graphs_stale;
		tap_ok(graph_in(made, s, 1, &a) && counted().graphs_stale == before,
		       "kept: memory nodes, first");
		MUST(gpupart_process_set(gp, gpu, &b));
		tap_ok(graph_in(made, s, 1, &a) && counted().graphs_stale == before + 1,
		       "kept: memory nodes keep the set, which is counted");
		TRY(cuGraphExecDestroy(made));
		conditional(s);
	}
	MUST(gpupart_process_set(gp, gpu, NULL));
}

/* --------------------------------------------------------------- green contexts */

#define SM_RESOURCE	1	/* CU_DEV_RESOURCE_TYPE_SM */
#define GREEN_STREAM	1	/* CU_GREEN_CTX_DEFAULT_STREAM */

/* Creates a green context of 16 SMs. Returns 0 or CUDA's error. */
static CUresult green_create(handle *green)
{
	static char all_sms[256], some[256];	/* CUdevResource, 144 bytes */
	U groups = 1;
	handle words;
	CUresult result = cuDeviceGetDevResource(0, all_sms, SM_RESOURCE);

	if (!result)
		result = cuDevSmResourceSplitByCount(some, &groups, all_sms, NULL, 0, 16);
	if (!result)
		result = cuDevResourceGenerateDesc(&words, some, 1);
	return result ? result : cuGreenCtxCreate(green, words, 0, GREEN_STREAM);
}

/* @green was created before the attach. */
static void green_contexts(handle green)
{
	struct gpupart_tpcset its, half = { { 0 } }, rest;
	handle s, second;

	if (!green) {
		tap_skip("green contexts");
		return;
	}
	TRY(cuGreenCtxStreamCreate(&s, green, CUDA_STREAM_NON_BLOCKING, 0));
	clear();
	launch(census, s, 0);
	fetch();
	its = seen(0, NULL);
	tap_ok(gpupart_tpcset_count(&its) == 8, "green context: made before the attach, %u TPCs",
	       gpupart_tpcset_count(&its));
	for (int t = gpupart_tpcset_next(&its, 0); gpupart_tpcset_count(&half) < 4;
	     t = gpupart_tpcset_next(&its, t + 1))
		gpupart_tpcset_add(&half, t);
	rest = gpupart_tpcset_andnot(&all, &its);
	MUST(gpupart_process_set(gp, gpu, &half));
	tap_ok(launch_in(census, s, &half), "green context: what both allow");
	MUST(gpupart_process_set(gp, gpu, &rest));
	tap_ok(launch_in(census, s, &its), "green context: nothing in common: the context's");
	tap_ok(launch_in(census, NULL, &rest), "green context: and nothing else is widened");
	MUST(gpupart_process_set(gp, gpu, NULL));
	tap_ok(!green_create(&second), "green context: others can be made after the attach");
}

/* ---------------------------------------------------------------------- scopes */

static void next_never_leaks(handle s)
{
	uint64_t before = counted().next_dropped;
	handle graph, exec, gone;
	cuda_ptr big;
	CUresult result;

	TRY(cuMemAlloc_v2(&big, 8 << 20));
	TRY(cuStreamCreate(&gone, CUDA_STREAM_NON_BLOCKING));
	TRY(cuStreamDestroy_v2(gone));
	clear();
	MUST(gpupart_next_set(gp, gpu, &b));
	TRY(cuMemsetD8Async(big, 0, 4 << 20, s));
	TRY(cuMemcpyDtoDAsync_v2(big + (4 << 20), big, 4 << 20, s));
	launch(census, s, 0);
	tap_ok(ran_in(0, 0, &b), "next: kernels of the driver's own do not use it up");
	tap_ok(launch_in(census, s, &all), "next: the launch after it has none");
	MUST(gpupart_next_set(gp, gpu, &a));
	result = cuLaunchKernel(census, 1, 1, 1, 4096, 1, 1, 0, s, arguments(0), NULL);
	tap_ok(result && launch_in(census, s, &all), "next: a launch that fails uses it up");
	MUST(gpupart_next_set(gp, gpu, &a));
	TRY(cuStreamBeginCapture_v2(s, CUDA_CAPTURE_MODE_RELAXED));
	launch(census, s, 0);
	TRY(cuStreamEndCapture(s, &graph));
	tap_ok(launch_in(census, s, &all), "next: so does one that is captured");
	TRY(cuGraphDestroy(graph));
	tap_ok(counted().next_dropped == before + 2, "next: both are counted");
	graph = chain(0, 1, NULL);
	exec = instantiate(graph);
	TRY(cuGraphDestroy(graph));
	tap_ok(graph_in(exec, s, 1, &all), "next: a graph");
	MUST(gpupart_next_set(gp, gpu, &a));
	TRY(cuStreamBeginCapture_v2(s, CUDA_CAPTURE_MODE_RELAXED));
	/* The simulated driver refuses this launch, and a real driver captures a child graph. */
	cuGraphLaunch(exec, s);
	graph = NULL;
	cuStreamEndCapture(s, &graph);
	tap_ok(counted().next_dropped == before + 3,
	       "next: a graph's launch that is captured is counted");
	MUST(gpupart_next_set(gp, gpu, &a));
	/* A real driver would dereference the invalid address. */
	result = simulated ? cuGraphLaunch(exec, gone) : cuGraphLaunch(NULL, s);
	tap_ok(result && counted().next_dropped == before + 4,
	       "next: so is one that fails: %d", result);
	tap_ok(launch_in(census, s, &all) && graph_in(exec, s, 1, &all),
	       "next: and what is launched after them has none");
	TRY(cuGraphExecDestroy(exec));
	if (graph)
		TRY(cuGraphDestroy(graph));
	MUST(gpupart_next_set(gp, gpu, &a));
	MUST(gpupart_next_set(gp, gpu, NULL));
	tap_ok(launch_in(census, s, &all), "next: taken away");
	/* When a default stream gets its first set, the library makes an empty launch. */
	before = counted().next_dropped;
	clear();
	MUST(gpupart_next_set(gp, gpu, &a));
	MUST(gpupart_stream_set(gp, gpu, NULL, &b));
	launch(census, NULL, 0);
	tap_ok(ran_in(0, 0, &a) && launch_in(census, NULL, &b),
	       "next: a launch of the library's own does not use it up");
	tap_ok(counted().next_dropped == before, "next: nor is it counted as dropped");
	MUST(gpupart_stream_set(gp, gpu, NULL, NULL));
}

static void functions(handle s)
{
	handle other_module, other;
	struct gpupart_tpcset set;

	TRY(cuModuleLoadData(&other_module, ptx));
	TRY(cuModuleGetFunction(&other, other_module, "gpupart_census"));
	MUST(gpupart_function_set(gp, gpu, other, &a));
	MUST(gpupart_stream_set(gp, gpu, s, &b));
	tap_ok(launch_in(other, s, &a) && launch_in(census, s, &b),
	       "function: goes before the stream's; another function has the stream's");
	tap_ok(launch_in(other, (handle)2, &a) && launch_in(other, NULL, &a),
	       "function: on default streams");
	tap_ok(gpupart_function_get(gpu, other, &set) && gpupart_tpcset_equal(&set, &a),
	       "function: its set reads back");
	MUST(gpupart_function_set(gp, gpu, other, NULL));
	tap_ok(launch_in(other, s, &b), "function: taken away");
	MUST(gpupart_function_set(gp, gpu, other, &a));
	TRY(cuModuleUnload(other_module));
	TRY(cuModuleLoadData(&other_module, ptx));
	TRY(cuModuleGetFunction(&other, other_module, "gpupart_census"));
	tap_ok(!gpupart_function_get(gpu, other, &set) && launch_in(other, s, &b),
	       "function: goes with its module");
	tap_ok(gpupart_function_set(gp, gpu, (handle)0x1234, &a) == -22,
	       "function: what is none is refused: %s", gpupart_error(gp));
	if (cuLibraryLoadData && !simulated) {
		handle library, kernel, function;

		TRY(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
		TRY(cuLibraryGetKernel(&kernel, library, "gpupart_census"));
		TRY(cuKernelGetFunction(&function, kernel));
		MUST(gpupart_function_set(gp, gpu, kernel, &a));
		tap_ok(launch_in(kernel, s, &a) && launch_in(function, s, &a),
		       "function: of a CUkernel");
		MUST(gpupart_function_set(gp, gpu, function, NULL));
		tap_ok(launch_in(kernel, s, &b), "function: the same one by its CUfunction");
	} else {
		tap_skip("kernels of libraries");
		tap_skip("kernels of libraries");
	}
	MUST(gpupart_stream_set(gp, gpu, s, NULL));
}

static void *in_thread(void *stream)
{
	static bool good;
	struct gpupart *own;
	struct gpupart_tpcset set;

	TRY(cuCtxSetCurrent(ctx));
	good = !gpupart_thread_get(gpu, &set) && launch_in(census, stream, &all);
	if (gpupart_open(&own) || gpupart_thread_set(own, gpu, &b))
		good = false;
	good = good && launch_in(census, stream, &b);
	gpupart_close(own);
	return &good;
}

/* Runs in a thread that has no current context. */
static void *without_context(void *stream)
{
	static char why[512];
	struct gpupart *own;

	if (cuCtxSetCurrent(NULL) || gpupart_open(&own))
		return "cannot begin";
	if (gpupart_stream_set(own, gpu, stream, &a) || gpupart_function_set(own, gpu, census, &b))
		snprintf(why, sizeof(why), "%s", gpupart_error(own));
	gpupart_close(own);
	return why;
}

static void threads(handle s)
{
	struct gpupart_tpcset set;
	handle fresh;
	char *why;
	pthread_t thread;
	void *good;

	MUST(gpupart_thread_set(gp, gpu, &a));
	tap_ok(launch_in(census, s, &a) && launch_in(census, s, &a), "thread: every launch of it");
	tap_ok(gpupart_thread_get(gpu, &set) && gpupart_tpcset_equal(&set, &a),
	       "thread: its set reads back");
	TRY(cuStreamCreate(&fresh, 1));
	pthread_create(&thread, NULL, without_context, fresh);
	pthread_join(thread, (void **)&why);
	tap_ok(!*why && launch_in(census, fresh, &b),
	       "thread: without a context it sets a function: %s", why);
	MUST(gpupart_function_set(gp, gpu, census, NULL));
	tap_ok(launch_in(census, fresh, &a), "thread: and a stream");
	TRY(cuStreamDestroy_v2(fresh));
	for (int i = 0; i < 2; i++) {
		pthread_create(&thread, NULL, in_thread, s);
		pthread_join(thread, &good);
		tap_ok(*(bool *)good, "thread: another has none, and then its own, %d", i);
	}
	MUST(gpupart_process_set(gp, gpu, &b));
	tap_ok(launch_in(census, s, &a), "thread: goes before the process's");
	MUST(gpupart_stream_set(gp, gpu, s, &c));
	tap_ok(launch_in(census, s, &c), "thread: a stream's goes before it");
	MUST(gpupart_stream_set(gp, gpu, s, NULL));
	MUST(gpupart_thread_set(gp, gpu, NULL));
	tap_ok(launch_in(census, s, &b), "thread: taken away");
	MUST(gpupart_process_set(gp, gpu, NULL));
}

/*
 * The TPCs of a launch are limit AND (next, else function, else stream, else thread, else
 * process, else all).
 */
static void precedence(handle s)
{
	struct gpupart_tpcset limit = all, given[5];
	unsigned int wrong = 0;

	gpupart_tpcset_del(&limit, gpupart_tpcset_next(&a, 0));
	gpupart_tpcset_del(&limit, gpupart_tpcset_next(&c, 0));
	given[0] = a;
	given[1] = b;
	given[2] = c;
	given[3] = gpupart_tpcset_or(&a, &b);
	given[4] = gpupart_tpcset_or(&b, &c);
	for (unsigned int which = 0; which < 64; which++) {
		struct gpupart_tpcset want = all;

		for (int scope = 4; scope >= 0; scope--)
			if (which >> scope & 1)
				want = given[scope];
		if (which & 32)
			want = gpupart_tpcset_and(&want, &limit);
		MUST(gpupart_limit_set(gp, gpu, which & 32 ? &limit : NULL));
		MUST(gpupart_process_set(gp, gpu, which & 16 ? &given[4] : NULL));
		MUST(gpupart_thread_set(gp, gpu, which & 8 ? &given[3] : NULL));
		MUST(gpupart_stream_set(gp, gpu, s, which & 4 ? &given[2] : NULL));
		MUST(gpupart_function_set(gp, gpu, census, which & 2 ? &given[1] : NULL));
		MUST(gpupart_next_set(gp, gpu, which & 1 ? &given[0] : NULL));
		wrong += !launch_in(census, s, &want);
	}
	tap_ok(!wrong, "who goes before whom: %u of 64 ways wrong", wrong);
	MUST(gpupart_limit_set(gp, gpu, NULL));
	MUST(gpupart_process_set(gp, gpu, NULL));
	MUST(gpupart_thread_set(gp, gpu, NULL));
	MUST(gpupart_stream_set(gp, gpu, s, NULL));
	MUST(gpupart_function_set(gp, gpu, census, NULL));
	MUST(gpupart_next_set(gp, gpu, NULL));
}

static atomic_bool storm_over;

static void *change_away(void *given)
{
	unsigned long *nr = given;
	struct gpupart *own;

	if (gpupart_open(&own))
		return NULL;
	for (; !atomic_load(&storm_over); ++*nr)
		if (gpupart_process_set(own, gpu, *nr & 1 ? &a : &b))
			break;
	gpupart_close(own);
	return NULL;
}

/*
 * Another thread alternates between two sets. Tests that each launch gets exactly one of these
 * sets.
 */
static void storm(handle s)
{
	const unsigned int rounds = simulated ? 2 : 20;
	unsigned int of_a = 0, of_b = 0, other = 0;
	struct gpupart_counters before = counted(), after;
	unsigned long changes = 0;
	pthread_t thread;

	MUST(gpupart_process_set(gp, gpu, &a));
	pthread_create(&thread, NULL, change_away, &changes);
	for (unsigned int round = 0; round < rounds; round++) {
		clear();
		for (unsigned int n = 0; n < REGIONS; n++)
			launch(census, s, n);
		fetch();
		for (unsigned int n = 0; n < REGIONS; n++) {
			struct gpupart_tpcset set = seen(n, NULL);

			of_a += gpupart_tpcset_equal(&set, &a);
			of_b += gpupart_tpcset_equal(&set, &b);
			other += !gpupart_tpcset_equal(&set, &a) && !gpupart_tpcset_equal(&set, &b);
		}
	}
	atomic_store(&storm_over, true);
	pthread_join(thread, NULL);
	after = counted();
	printf("# %lu changes against %u launches: %u in the one set, %u in the other\n", changes,
	       rounds * REGIONS, of_a, of_b);
	tap_ok(!other && of_a + of_b == rounds * REGIONS,
	       "sets changed by another thread meanwhile: %u launches in neither", other);
	tap_ok(after.confined - before.confined >= rounds * REGIONS &&
	       after.confined - before.confined == after.launches - before.launches,
	       "each of them counted as confined");
	MUST(gpupart_process_set(gp, gpu, NULL));
}

static void contexts(void)
{
	handle other, s, graph, exec, other_module, kept = census;

	TRY(cuCtxCreate_v2(&other, 0, 0));
	TRY(cuModuleLoadData(&other_module, ptx));
	TRY(cuModuleGetFunction(&census, other_module, "gpupart_census"));
	TRY(cuStreamCreate(&s, CUDA_STREAM_NON_BLOCKING));
	MUST(gpupart_stream_set(gp, gpu, s, &a));
	tap_ok(launch_in(census, s, &a), "context: another than the primary one");
	graph = chain(0, 2, NULL);
	exec = instantiate(graph);
	tap_ok(graph_in(exec, s, 2, &a), "context: a graph in it");
	MUST(gpupart_stream_set(gp, gpu, s, &b));
	tap_ok(graph_in(exec, s, 2, &b), "context: another set");
	MUST(gpupart_function_set(gp, gpu, census, &c));
	tap_ok(launch_in(census, s, &c), "context: a function in it");
	TRY(cuCtxSynchronize());
	TRY(cuCtxDestroy_v2(other));
	census = kept;
	TRY(cuCtxSetCurrent(ctx));
	tap_ok(launch_in(census, NULL, &all), "context: gone with all that had sets in it");
}

static void default_streams(void)
{
	handle graph = chain(0, 2, NULL), exec = instantiate(graph);

	MUST(gpupart_stream_set(gp, gpu, NULL, &a));
	MUST(gpupart_stream_set(gp, gpu, (handle)2, &b));
	tap_ok(graph_in(exec, NULL, 2, &a), "default stream: a graph on the legacy one");
	tap_ok(graph_in(exec, (handle)2, 2, &b), "default stream: on the thread's own");
	tap_ok(graph_in(exec, (handle)1, 2, &a), "default stream: the legacy one by its number");
	if (cuGraphLaunch_ptsz) {
		clear();
		TRY(cuGraphLaunch_ptsz(exec, NULL));
		tap_ok(ran_in(0, 1, &b), "default stream: NULL of a program built for its own");
	} else {
		tap_skip("cuGraphLaunch_ptsz");
	}
	MUST(gpupart_stream_set(gp, gpu, NULL, NULL));
	MUST(gpupart_stream_set(gp, gpu, (handle)2, NULL));
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphDestroy(graph));
}

/* ------------------------------------------------------------------ several GPUs */

/* The objects of the tests above, for one of several GPUs. */
struct side {
	struct gpupart_gpu *gpu;
	handle ctx, module, census, stream;
	cuda_ptr out;
	struct gpupart_tpcset a, b, c, all;
};

static void side_get(struct side *side)
{
	*side = (struct side){ gpu, ctx, module, census, side->stream, out, a, b, c, all };
}

static void side_become(const struct side *side)
{
	gpu = side->gpu;
	ctx = side->ctx;
	module = side->module;
	census = side->census;
	out = side->out;
	a = side->a;
	b = side->b;
	c = side->c;
	all = side->all;
	topo = gpupart_gpu_topology(gpu);
	TRY(cuCtxSetCurrent(ctx));
}

static void sets_of_board(void)
{
	topo = gpupart_gpu_topology(gpu);
	all = gpupart_topology_all(topo);
	a = gpupart_topology_gpc(topo, 1)->tpcs;
	b = gpupart_topology_gpc(topo, 2)->tpcs;
	c = gpupart_tpcset_or(&gpupart_topology_gpc(topo, 3)->tpcs,
			      &gpupart_topology_gpc(topo, 4)->tpcs);
}

static bool on(const struct side *side, const struct gpupart_tpcset *want)
{
	side_become(side);
	return launch_in(census, side->stream, want);
}

static void several(handle s)
{
	struct side first = { .stream = s }, second = { 0 };
	handle graphs[2], execs[2];
	int count = 0;

	if (cuDeviceGetCount(&count) || count < 2) {
		for (int i = 0; i < 11; i++)
			tap_skip("a second GPU");
		return;
	}
	side_get(&first);
	TRY(cuDevicePrimaryCtxRetain(&ctx, 1));
	TRY(cuCtxSetCurrent(ctx));
	TRY(cuModuleLoadData(&module, ptx));
	TRY(cuModuleGetFunction(&census, module, "gpupart_census"));
	TRY(cuMemAlloc_v2(&out, (size_t)REGIONS * RECORDS * RECORD));
	TRY(cuStreamCreate(&second.stream, CUDA_STREAM_NON_BLOCKING));
	MUST(gpupart_attach(gp, "cuda:1", NULL, &gpu));
	sets_of_board();
	side_get(&second);
	tap_ok(second.gpu != first.gpu, "two GPUs: %s and %s",
	       gpupart_topology_info(gpupart_gpu_topology(first.gpu))->pci,
	       gpupart_topology_info(gpupart_gpu_topology(second.gpu))->pci);
	MUST(gpupart_process_set(gp, first.gpu, &first.a));
	MUST(gpupart_process_set(gp, second.gpu, &second.b));
	tap_ok(on(&first, &first.a) && on(&second, &second.b), "two GPUs: each its process set");
	MUST(gpupart_limit_set(gp, second.gpu, &second.c));
	MUST(gpupart_process_set(gp, second.gpu, NULL));
	tap_ok(on(&first, &first.a) && on(&second, &second.c), "two GPUs: each its limit");
	MUST(gpupart_limit_set(gp, second.gpu, NULL));
	MUST(gpupart_thread_set(gp, first.gpu, &first.b));
	MUST(gpupart_thread_set(gp, second.gpu, &second.a));
	tap_ok(on(&first, &first.b) && on(&second, &second.a), "two GPUs: the thread's on each");
	MUST(gpupart_thread_set(gp, first.gpu, NULL));
	MUST(gpupart_thread_set(gp, second.gpu, NULL));
	MUST(gpupart_next_set(gp, second.gpu, &second.c));
	tap_ok(on(&first, &first.a) && on(&second, &second.c) && on(&second, &second.all),
	       "two GPUs: a next-launch set waits for a launch on its own");
	side_become(&second);
	clear();
	MUST(gpupart_next_set(gp, second.gpu, &second.c));
	side_become(&first);
	launch(census, first.stream, 0);
	side_become(&second);
	launch(census, second.stream, 0);
	tap_ok(ran_in(0, 0, &second.c), "two GPUs: a launch on the other one does not use it up");
	MUST(gpupart_next_set(gp, first.gpu, &first.b));
	MUST(gpupart_next_set(gp, second.gpu, &second.c));
	tap_ok(on(&first, &first.b) && on(&second, &second.c) && on(&first, &first.a),
	       "two GPUs: a next-launch set waits on each");
	MUST(gpupart_next_set(gp, first.gpu, &first.b));
	MUST(gpupart_next_set(gp, second.gpu, &second.c));
	MUST(gpupart_next_set(gp, second.gpu, NULL));
	tap_ok(on(&second, &second.all) && on(&first, &first.b),
	       "two GPUs: one is taken away, and the other waits on");
	MUST(gpupart_stream_set(gp, second.gpu, second.stream, &second.b));
	tap_ok(gpupart_stream_set(gp, first.gpu, second.stream, &first.b) == -22,
	       "two GPUs: a stream of the other one is refused: %s", gpupart_error(gp));
	for (int i = 0; i < 2; i++) {
		side_become(i ? &second : &first);
		graphs[i] = chain(0, 2, NULL);
		execs[i] = instantiate(graphs[i]);
	}
	side_become(&first);
	tap_ok(graph_in(execs[0], first.stream, 2, &first.a), "two GPUs: a graph on the first");
	side_become(&second);
	tap_ok(graph_in(execs[1], second.stream, 2, &second.b), "two GPUs: and on the second");
	MUST(gpupart_process_set(gp, first.gpu, NULL));
	MUST(gpupart_stream_set(gp, second.gpu, second.stream, NULL));
	side_become(&first);
}

int main(void)
{
	struct gpupart_check check;
	handle early, s, other, green = NULL;
	size_t bytes = (size_t)REGIONS * RECORDS * RECORD;

	setvbuf(stdout, NULL, _IOLBF, 0);
	ptx = file("lib/confine/probe.ptx");
	host = malloc(bytes);
	if (driver_open() || cuInit(0) || gpupart_open(&gp) || !ptx || !host) {
		printf("1..0 # SKIP no GPU here\n");
		return 77;
	}
	simulated = dlsym(RTLD_DEFAULT, "gpupart_sim_capture") ||
		    dlsym(dlopen("libcuda.so.1", RTLD_NOW), "gpupart_sim_capture");
	TRY(cuDevicePrimaryCtxRetain(&ctx, 0));
	TRY(cuCtxSetCurrent(ctx));
	TRY(cuModuleLoadData(&module, ptx));
	TRY(cuModuleGetFunction(&census, module, "gpupart_census"));
	TRY(cuMemAlloc_v2(&out, bytes));
	early = instantiate(chain(0, 1, NULL));
	if (!cuGreenCtxCreate || green_create(&green))
		green = NULL;
	if (gpupart_attach(gp, "cuda:0", NULL, &gpu)) {
		tap_ok(false, "attach: %s", gpupart_error(gp));
		return tap_done();
	}
	sets_of_board();
	gpupart_gpu_check(gpu, &check);
	tap_ok(!*check.graphs, "graphs follow sets: %s", check.graphs);
	TRY(cuStreamCreate(&s, CUDA_STREAM_NON_BLOCKING));
	TRY(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING));
	graph_by_hand(s, other);
	graph_uploaded(s);
	graph_captured(s, other);
	graph_origins(other);
	graph_thread_origins(other);
	graph_changed(s);
	graph_mixed(s);
	graph_shared(s);
	graph_large(s);
	default_streams();
	next_never_leaks(s);
	functions(s);
	threads(s);
	precedence(s);
	storm(s);
	contexts();
	several(s);
	graph_stale(s, early);
	green_contexts(green);
	return tap_done();
}
