// SPDX-License-Identifier: MIT
/*
 * Tests the simulated driver without the library. It tests the driver's objects, time, errors and
 * faults.
 */
#include "lib/topo/topology.h"
#include "tests/sim/cuda/program.h"

/* ---------------------------------------------------------------------- streams */

#define NR_STREAMS 300

/*
 * Searches for the byte offset at which every stream's object has the address of the stream's
 * TMD. If there is no such offset, returns -1. If there are several such offsets, returns -2.
 */
static int find_offset(CUstream *streams, void **tmds, unsigned int nr)
{
	int offset, found = -1;
	unsigned int i;

	for (offset = 0; offset < 0x1400; offset += 8) {
		for (i = 0; i < nr; i++)
			if (*(void **)((char *)*streams[i] + offset) != tmds[i])
				break;
		if (i < nr)
			continue;
		found = found == -1 ? offset : -2;
	}
	return found;
}

static void *tmd_of(CUstream stream)
{
	TRY(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
	return (void *)(uintptr_t)hook.params[4];
}

static void *thread_tmd(void *unused)
{
	(void)unused;
	TRY(cu.cuCtxSetCurrent(ctx));
	return tmd_of(CU_STREAM_PER_THREAD);
}

static void streams(const char *arg)
{
	static CUstream stream[NR_STREAMS];
	static void *tmd[NR_STREAMS];
	unsigned int i, j, same = 0, moved = 0, odd = 0, handles = 0, tmds = 0, pairs = 0,
			   stale = 0;
	CUstream again[8];
	void *mine, *theirs;
	CUcontext of;
	pthread_t thread;
	int offset;

	hook_start();
	begin_on(0);
	for (i = 0; i < NR_STREAMS; i++) {
		TRY(cu.cuStreamCreateWithPriority(&stream[i], i % 2, -(int)(i % 3)));
		tmd[i] = tmd_of(stream[i]);
		odd += (uintptr_t)tmd[i] % 16 != 0;
		for (j = 0; j < i; j++)
			same += tmd[i] == tmd[j];
	}
	for (i = 0; i < NR_STREAMS; i++)
		moved += tmd_of(stream[i]) != tmd[i];
	check(!same && !moved && !odd, "%d TMDs of their own, stable, 16-aligned", NR_STREAMS);
	offset = find_offset(stream, tmd, NR_STREAMS);
	if (!strcmp(arg, "no pointer")) {
		check(offset == -1, "no offset in S leads to the TMD");
		for (i = 0; i < NR_STREAMS; i++)
			for (offset = 0; offset < 0x1400; offset += 8)
				for (j = 0; j < NR_STREAMS; j++)
					stale += *(void **)((char *)*stream[i] + offset) == tmd[j];
		check(!stale, "nor to another stream's");
		return;
	}
	check(offset >= 0x100 && offset <= 0x1000, "one offset in S leads to the TMD: %#x", offset);
	if (!strcmp(arg, "seed 1"))
		check(offset == 0x390, "the seed fixes it");
	for (i = 0; i < NR_STREAMS; i++)
		for (j = 0; j < 0x1400; j += 8)
			if ((int)j != offset) {
				mine = *(void **)((char *)*stream[i] + j);
				for (same = 0; same < NR_STREAMS; same++)
					stale += mine == tmd[same] && same != i;
			}
	check(stale > 0, "some objects hold other streams' TMDs in other places (%u)", stale);

	for (i = 0; i < 8; i++)
		TRY(cu.cuStreamDestroy_v2(stream[i]));
	check(cu.cuStreamSynchronize(stream[3]) == CUDA_ERROR_INVALID_HANDLE,
	      "a destroyed one: 400");
	for (i = 0; i < 8; i++) {
		TRY(cu.cuStreamCreate(&again[i], 0));
		mine = tmd_of(again[i]);
		for (j = 0; j < 8; j++) {
			handles += again[i] == stream[j];
			tmds += mine == tmd[j];
			pairs += again[i] == stream[j] && mine == tmd[j];
		}
	}
	check(handles == 8 && tmds == 8 && pairs < 8,
	      "memory comes back: %u handles, %u TMDs, %u pairs", handles, tmds, pairs);

	mine = tmd_of(NULL);
	check(mine == tmd_of(CU_STREAM_LEGACY), "handles 0 and 1 are one stream");
	check(mine != tmd_of(CU_STREAM_PER_THREAD) && thread_tmd(NULL) == thread_tmd(NULL),
	      "2 is another");
	theirs = thread_tmd(NULL);
	pthread_create(&thread, NULL, thread_tmd, NULL);
	pthread_join(thread, &mine);
	check(mine != theirs, "and each thread has its own");
	TRY(cu.cuStreamGetCtx(again[0], &of));
	check(of == ctx, "a stream knows its context");
	check(cu.cuStreamDestroy_v2(NULL) == CUDA_ERROR_INVALID_HANDLE,
	      "no end of the default one");
}

static void stream_events(const char *arg)
{
	CUstream stream;
	CUcontext other;
	void *object;

	(void)arg;
	hook_start();
	check(enable(1, subscriber, 2, 4) == 0 && enable(1, subscriber, 2, 5) == 0 &&
		enable(1, subscriber, 2, 6) == 0 && enable(1, subscriber, 2, 2) == 0 &&
		enable(1, subscriber, 2, 24) == 0, "domain 2 can be enabled");
	check(enable(1, subscriber, 0xb, 0) == 0 && enable(1, subscriber, 0xb, 3) == 0 &&
		enable(1, subscriber, 0xb, 4) == 1 && enable(1, 99, 0xb, 1) == 1,
	      "cbids 0-3 of 0xB and no more");
	begin_on(0);
	check(seen_resources.nr == 1 && seen_resources.cbid[0] == 24 &&
		seen_resources.ctx[0] == ctx, "a context is made");
	TRY(cu.cuStreamCreate(&stream, 0));
	object = *stream;
	TRY(cu.cuStreamDestroy_v2(stream));
	check(seen_resources.nr == 4 && seen_resources.cbid[1] == 4 &&
		seen_resources.cbid[2] == 5 && seen_resources.cbid[3] == 6, "4, 5, 6");
	check(seen_resources.object[1] == object && seen_resources.object[2] == object &&
		seen_resources.ctx[1] == ctx, "with the context and S");
	TRY(cu.cuCtxCreate_v2(&other, 0, 0));
	TRY(cu.cuCtxDestroy_v2(other));
	check(seen_resources.nr == 6 && seen_resources.cbid[5] == 2, "a context ends");
	enable(0, subscriber, 2, 4);
	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuStreamCreate(&stream, 0));
	check(seen_resources.nr == 6, "what is disabled again does not come");
}

/* ------------------------------------------------------------------------- time */

static void times(const char *arg)
{
	static struct record a[MAX_BLOCKS], b[MAX_BLOCKS];
	unsigned int nr, i, inside = 0;
	CUdeviceptr out_a, out_b;
	uint64_t alone;
	CUstream one, two, blocking;
	CUevent from, to;
	float ms;

	(void)arg;
	read_truth(BOARD_B);
	hook_start();
	begin_on(0);
	nr = truth.nr_sms / 2;
	TRY(cu.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	TRY(cu.cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	TRY(cu.cuStreamCreate(&blocking, 0));
	TRY(cu.cuEventCreate(&from, 0));
	TRY(cu.cuEventCreate(&to, 0));
	TRY(cu.cuMemAlloc_v2(&out_a, sizeof(a)));
	TRY(cu.cuMemAlloc_v2(&out_b, sizeof(b)));

	/*
	 * Two streams on the two halves of the GPU run at the same time, and do not slow each other
	 * down.
	 */
	struct shape shape = { .blocks = nr, .threads = 1024, .function = f_work, .value = 250 };

	off_unless(first_half);
	TRY(run(&shape, a));
	alone = a[0].end - a[0].start;
	shape.stream = one;
	TRY(launch(&shape, out_a));
	off_unless(second_half);
	shape.stream = two;
	TRY(cu.cuEventRecord(from, two));
	TRY(launch(&shape, out_b));
	TRY(cu.cuEventRecord(to, two));
	check(cu.cuEventElapsedTime_v2(&ms, from, to) == CUDA_ERROR_NOT_READY, "not done yet");
	TRY(cu.cuCtxSynchronize());
	TRY(cu.cuMemcpyDtoH_v2(a, out_a, nr * sizeof(*a)));
	TRY(cu.cuMemcpyDtoH_v2(b, out_b, nr * sizeof(*b)));
	for (i = 0; i < nr; i++)
		inside += first_half(a[i].smid) && second_half(b[i].smid) &&
			  a[i].start < b[i].end && b[i].start < a[i].end &&
			  a[i].end - a[i].start < alone * 21 / 20 &&
			  b[i].end - b[i].start < alone * 21 / 20;
	check(alone > 4000 && inside == nr, "disjoint halves run at once, undisturbed (%u of %u)",
	      inside, nr);
	/* The measured time begins before the doorbell and ends after the end of the kernel. */
	TRY(cu.cuEventElapsedTime_v2(&ms, from, to));
	check(ms * 1e6 > alone && ms * 1e6 < alone + 3000, "an event pair says %f ms", ms);

	/*
	 * On the same SMs, the two kernels share the issue slots. The older kernel has priority.
	 */
	off_unless(first_half);
	shape.stream = one;
	TRY(launch(&shape, out_a));
	shape.stream = two;
	TRY(launch(&shape, out_b));
	TRY(cu.cuCtxSynchronize());
	TRY(cu.cuMemcpyDtoH_v2(a, out_a, nr * sizeof(*a)));
	TRY(cu.cuMemcpyDtoH_v2(b, out_b, nr * sizeof(*b)));
	for (inside = 0, i = 0; i < nr; i++)
		inside += a[i].end - a[i].start < alone * 11 / 10 && b[i].end > a[i].end &&
			  b[i].end - a[i].start > alone * 19 / 10 &&
			  b[i].end - a[i].start < alone * 21 / 10;
	check(inside == nr, "on the same SMs twice as long for both (%u of %u)", inside, nr);

	/* Tests that work on one stream keeps its order. */
	hook.on = false;
	TRY(launch(&shape, out_a));
	TRY(launch(&shape, out_b));
	TRY(cu.cuStreamSynchronize(shape.stream));
	TRY(cu.cuMemcpyDtoH_v2(a, out_a, sizeof(*a)));
	TRY(cu.cuMemcpyDtoH_v2(b, out_b, sizeof(*b)));
	check(b[0].start >= a[0].end, "a stream keeps order");

	/*
	 * The legacy default stream and blocking streams wait for each other. Non-blocking
	 * streams do not wait.
	 */
	shape.stream = blocking;
	TRY(launch(&shape, out_a));
	shape.stream = NULL;
	TRY(launch(&shape, out_b));
	TRY(cu.cuCtxSynchronize());
	TRY(cu.cuMemcpyDtoH_v2(a, out_a, sizeof(*a)));
	TRY(cu.cuMemcpyDtoH_v2(b, out_b, sizeof(*b)));
	check(b[0].start >= a[0].end, "the legacy stream waits for blocking ones");
	TRY(launch(&shape, out_a));
	shape.stream = CU_STREAM_PER_THREAD;
	TRY(launch(&shape, out_b));
	TRY(cu.cuCtxSynchronize());
	TRY(cu.cuMemcpyDtoH_v2(a, out_a, sizeof(*a)));
	TRY(cu.cuMemcpyDtoH_v2(b, out_b, sizeof(*b)));
	check(b[0].start >= a[0].end, "and they for it");
	shape.stream = NULL;
	TRY(launch(&shape, out_a));
	shape.stream = one;
	TRY(launch(&shape, out_b));
	TRY(cu.cuCtxSynchronize());
	TRY(cu.cuMemcpyDtoH_v2(a, out_a, sizeof(*a)));
	TRY(cu.cuMemcpyDtoH_v2(b, out_b, sizeof(*b)));
	check(b[0].start < a[0].end, "a non-blocking one does not");

	/*
	 * Not all blocks of the launch fit on the GPU at the same time. When there is room, the
	 * remaining blocks must start.
	 */
	shape.function = f_census;
	shape.blocks = 5 * truth.nr_sms;
	TRY(launch(&shape, out_a));
	for (i = 0; cu.cuStreamQuery(one) == CUDA_ERROR_NOT_READY; i++)
		;
	check(i > 0, "a query says not ready at first, and time goes by");
	TRY(cu.cuMemcpyDtoH_v2(a, out_a, shape.blocks * sizeof(*a)));
	nr = at_once(a, shape.blocks, 1);
	check(nr == 4 * truth.nr_sms / 2, "2 blocks of 1024 threads an SM: %u at first", nr);
}

/* Returns the end time of a kernel's last block. */
static uint64_t last_end(CUdeviceptr out, unsigned int nr)
{
	const struct record *records = (const struct record *)(uintptr_t)out;
	uint64_t last = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		last = records[i].end > last ? records[i].end : last;
	return last;
}

static CUresult launch_urgent(const struct shape *shape, CUdeviceptr out, int priority)
{
	uint32_t value = shape->value;
	void *params[] = { &out, &value };
	struct cu_launch_attribute attribute = { .id = CU_LAUNCH_PRIORITY };
	struct cu_launch_config config = {
		shape->blocks, 1, 1, shape->threads, 1, 1, 0, shape->stream, &attribute, 1,
	};

	attribute.value.priority = priority;
	return cu.cuLaunchKernelEx(&config, f_census, params, NULL);
}

/*
 * Blocks of low priority fill the GPU. The test shows the later kernels that get SMs before the
 * remaining blocks of low priority.
 */
static void priorities(const char *arg)
{
	struct shape low = { .blocks = 2640, .threads = 1024, .value = 20000 };
	struct shape high = { .blocks = 264, .threads = 1024, .value = 20000 };
	CUdeviceptr out_low, out_high;
	CUgraphExec exec;
	CUgraph graph;
	CUstream stream;
	int least, greatest, value;
	bool first[5];
	unsigned int i;

	(void)arg;
	begin_on(0);
	TRY(cu.cuMemAlloc_v2(&out_low, low.blocks * sizeof(struct record)));
	TRY(cu.cuMemAlloc_v2(&out_high, high.blocks * sizeof(struct record)));
	check(cu.cuCtxGetStreamPriorityRange(&least, &greatest) == 0 && !least && greatest == -5,
	      "priorities are 0 to -5");
	TRY(cu.cuStreamCreateWithPriority(&low.stream, CU_STREAM_NON_BLOCKING, 7));
	TRY(cu.cuStreamCreateWithPriority(&high.stream, CU_STREAM_NON_BLOCKING, -9));
	check(cu.cuStreamGetPriority(low.stream, &value) == 0 && value == 0 &&
		      cu.cuStreamGetPriority(high.stream, &least) == 0 && least == -5,
	      "what is beyond is the last of them");
	TRY(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cu.cuStreamBeginCapture_v2(high.stream, CU_CAPTURE_RELAXED));
	TRY(launch(&high, out_high));
	TRY(cu.cuStreamEndCapture(high.stream, &graph));
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (i = 0; i < 5; i++) {
		TRY(launch(&low, out_low));
		if (i == 0)
			TRY(launch(&high, out_high));
		high.stream = i == 4 ? high.stream : stream;
		if (i == 1)
			TRY(launch(&high, out_high));
		if (i == 2)
			TRY(launch_urgent(&high, out_high, -3));
		if (i == 3)
			TRY(cu.cuGraphLaunch(exec, stream));
		if (i == 4) {
			TRY(cu.cuStreamCreateWithPriority(&high.stream, 1, -5));
			TRY(launch_urgent(&high, out_high, 0));
		}
		TRY(cu.cuCtxSynchronize());
		first[i] = last_end(out_high, high.blocks) <
			   last_end(out_low, low.blocks) - 100000;
	}
	check(first[0], "those of a stream with high priority");
	check(!first[1], "not those of another of low priority");
	check(first[2], "those of a launch with high priority, whatever its stream's is");
	check(first[3], "those of a graph captured from such a stream, wherever it is launched");
	check(!first[4], "not those of a launch that says low itself");
}

#define COPIED	(11u << 20)

/*
 * Tests that copies use copy engines and take the time of the link. Also tests that command
 * buffers are limited.
 */
static void command_buffers(const char *arg)
{
	struct shape shape = { .blocks = 132, .threads = 1024, .value = 100000 };
	struct shape tiny = { .blocks = 1, .threads = 32, .value = 100 };
	unsigned int i, bad = 0;
	CUdeviceptr out, tiny_out, big;
	CUstream streams[100];
	CUevent from, to;
	uint64_t before;
	void *host;
	float ms;

	(void)arg;
	begin_on(0);
	TRY(cu.cuMemAlloc_v2(&out, shape.blocks * sizeof(struct record)));
	TRY(cu.cuMemAlloc_v2(&tiny_out, 3000 * sizeof(struct record)));
	TRY(cu.cuMemAlloc_v2(&big, COPIED));
	TRY(cu.cuMemAllocHost_v2(&host, COPIED));
	TRY(cu.cuEventCreate(&from, 0));
	TRY(cu.cuEventCreate(&to, 0));
	TRY(cu.cuStreamCreate(&shape.stream, CU_STREAM_NON_BLOCKING));
	TRY(launch(&shape, out));
	TRY(cu.cuEventRecord(from, NULL));
	TRY(cu.cuMemcpyHtoD_v2(big, host, COPIED));
	check(cu.cuStreamQuery(shape.stream) == 0, "a copy takes longer than a kernel beside it");
	TRY(cu.cuEventRecord(to, NULL));
	TRY(cu.cuEventSynchronize(to));
	TRY(cu.cuEventElapsedTime_v2(&ms, from, to));
	/* At 55 GB/s the copy takes 210 us, plus the time of the host interface. */
	check(ms > 0.209 && ms < 0.216, "11 MiB to the GPU took %f ms", ms);

	/* The commands do not fit into a command buffer, so the CPU waits for the GPU. */
	tiny.stream = shape.stream;
	memset((void *)(uintptr_t)tiny_out, 0, 3000 * sizeof(struct record));
	for (i = 0; i < 3000; i++)
		TRY(launch(&tiny, tiny_out + i * sizeof(struct record)));
	check(last_end(tiny_out, 1) && !last_end(tiny_out + 2999 * sizeof(struct record), 1),
	      "a full command buffer makes the program wait, but not for all");
	TRY(cu.cuStreamSynchronize(tiny.stream));
	for (i = 1; i < 3000; i++)
		bad += last_end(tiny_out + i * sizeof(struct record), 1) <=
		       last_end(tiny_out + (i - 1) * sizeof(struct record), 1);
	check(!bad, "3000 launches without a wait: in order (%u are not)", bad);

	/* There are more streams than channels. Each stream waits for the previous stream. */
	for (i = 0; i < 100; i++) {
		TRY(cu.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		if (i)
			TRY(cu.cuStreamWaitEvent(streams[i], from, 0));
		tiny.stream = streams[i];
		TRY(launch(&tiny, tiny_out + i * sizeof(struct record)));
		TRY(cu.cuEventRecord(from, streams[i]));
	}
	TRY(cu.cuCtxSynchronize());
	for (bad = 0, i = 1; i < 100; i++) {
		before = last_end(tiny_out + (i - 1) * sizeof(struct record), 1);
		bad += ((struct record *)(uintptr_t)tiny_out)[i].start < before;
	}
	check(!bad, "100 streams in a chain: in order (%u are not)", bad);
	for (i = 0; i < 100; i++)
		TRY(cu.cuStreamDestroy_v2(streams[i]));
}

/* ----------------------------------------------------------------------- errors */

static void errors(const char *arg)
{
	struct shape shape = { .blocks = 1, .threads = 32 };
	CUdeviceptr memory, address;
	CUmodule bad;
	CUfunction f;
	CUcontext none;
	CUstream stream;
	const char *text;
	void *params[2];
	uint32_t value = 1;
	int number;

	(void)arg;
	check(cu.cuDeviceGetCount(&number) == 3 && cu.cuCtxGetCurrent(&none) == 3 &&
		cu.cuStreamCreate(&stream, 0) == 3, "before cuInit: 3");
	check(cu.cuInit(1) == 1, "cuInit wants flags 0");
	TRY(cu.cuInit(0));
	check(cu.cuStreamCreate(&stream, 0) == 201 && cu.cuCtxGetDevice(&number) == 201,
	      "no context: 201");
	check(cu.cuDevicePrimaryCtxRetain(&none, 1) == 101 && cu.cuDeviceGet(&number, -1) == 101,
	      "no such device: 101");
	begin_on(0);
	check(cu.cuModuleLoadData(&bad, "int main(void);") == 200, "no PTX: 200");
	check(cu.cuModuleGetFunction(&f, module, "gpupart_commented_out") == 500 &&
		cu.cuModuleGetFunction(&f, module, "gpupart_this_too") == 500 &&
		cu.cuModuleGetFunction(&f, module, "gpupart") == 500, "no such entry: 500");
	TRY(cu.cuModuleLoadData(&bad, "\177ELF"));
	check(cu.cuModuleGetFunction(&f, bad, "anything") == 0 &&
		cu.cuLaunchKernel(f, 3, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) == 0 &&
		cu.cuCtxSynchronize() == 0, "a binary's kernels run as nothing");
	TRY(cu.cuModuleUnload(bad));
	check(cu.cuLaunchKernel(f, 3, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) == 400, "unloaded: 400");

	TRY(cu.cuMemAlloc_v2(&memory, 24));
	shape.threads = 1025;
	check(launch(&shape, memory) == 1, "1025 threads: 1");
	shape.threads = 32;
	shape.blocks = 0;
	check(launch(&shape, memory) == 1, "no blocks: 1");
	shape.blocks = 1;
	shape.shared = 49153;
	check(launch(&shape, memory) == 1, "shared memory not opted in to: 1");
	check(cu.cuFuncSetAttribute(f_census, CU_FUNCTION_MAX_DYNAMIC_SHARED, 232449) == 1 &&
		cu.cuFuncSetAttribute(f_census, CU_FUNCTION_MAX_DYNAMIC_SHARED, 232448) == 0 &&
		launch(&shape, memory) == 0, "opted in");
	shape.shared = 0;
	check(cu.cuLaunchKernel(f_census, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) == 1,
	      "no parameters: 1");
	check(cu.cuLaunchKernel(f_census, 1, 1, 1, 32, 1, 1, 0, (CUstream)&stream, params, NULL) ==
		400, "no stream: 400");
	check(cu.cuMemFree_v2(memory + 8) == 1 && cu.cuMemFree_v2(0) == 0, "free what is none");
	check(cu.cuMemsetD8_v2(memory, 0, 25) == 1 &&
		      cu.cuMemcpyDtoH_v2(params, memory + 20, 8) == 1,
	      "past the end: 1");
	check(cu.cuGetErrorName(702, &text) == 0 && !strcmp(text, "CUDA_ERROR_LAUNCH_TIMEOUT") &&
		cu.cuGetErrorString(12345, &text) == 1 && !text, "names of errors");

	/* Tests the packed form of kernel parameters. */
	struct {
		CUdeviceptr out;
		uint32_t spin;
	} packed = { memory, 77 };
	size_t size = sizeof(packed);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &size, CU_LAUNCH_PARAM_END };
	struct record record;

	TRY(cu.cuLaunchKernel(f_census, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	TRY(cu.cuMemcpyDtoH_v2(&record, memory, sizeof(record)));
	check(record.end - record.start == 77 && record.cluster == 0, "packed parameters");

	address = memory + 8;
	params[0] = &address;
	params[1] = &value;
	check(cu.cuLaunchKernel(f_census, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) == 0 &&
		cu.cuCtxSynchronize() == 700 && cu.cuStreamQuery(NULL) == 700,
	      "a kernel that writes outside: 700, and it stays");
	check(cu.gpupart_sim_hung() == 0, "that is no hang");
}

static void contexts(const char *arg)
{
	CUcontext other, got;
	CUstream stream;
	CUdevice device = -1;
	unsigned int flags;
	int active, mode = 2;

	(void)arg;
	begin_on(0);
	TRY(cu.cuCtxCreate_v2(&other, 0, 1));
	TRY(cu.cuCtxGetDevice(&device));
	TRY(cu.cuCtxGetCurrent(&got));
	check(device == 1 && got == other, "a new context is current");
	TRY(cu.cuStreamCreate(&stream, 0));
	TRY(cu.cuCtxPushCurrent_v2(ctx));
	TRY(cu.cuCtxGetDevice(&device));
	check(device == 0, "push");
	TRY(cu.cuStreamGetCtx(stream, &got));
	check(got == other, "a stream of a context that is not current");
	check(cu.cuLaunchKernel(f_empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) == 400,
	      "a function of another context: 400");
	TRY(cu.cuCtxPopCurrent_v2(&got));
	check(got == ctx, "pop");
	TRY(cu.cuCtxDestroy_v2(other));
	check(cu.cuStreamSynchronize(stream) == 400 && cu.cuCtxSetCurrent(other) == 201 &&
		cu.cuCtxDestroy_v2(ctx) == 201, "gone with its streams");
	TRY(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	check(active == 1, "the primary one is in use");
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	TRY(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	check(active == 0 && cu.cuCtxSynchronize() == 709, "and released");
	TRY(cu.cuThreadExchangeStreamCaptureMode(&mode));
	check(mode == 0 && cu.cuThreadExchangeStreamCaptureMode(&mode) == 0 && mode == 2,
	      "the capture mode is exchanged");
}

static void memory(const char *arg)
{
	static uint32_t words[1 << 18];
	CUdeviceptr a, b;
	unsigned int i, bad = 0;
	void *host;

	(void)arg;
	begin_on(0);
	TRY(cu.cuMemAlloc_v2(&a, sizeof(words)));
	TRY(cu.cuMemAlloc_v2(&b, sizeof(words)));
	TRY(cu.cuMemsetD32Async(a, 0x12345678, 1 << 18, NULL));
	TRY(cu.cuMemsetD32Async(a + 40, 0x9abcdef0, 2, NULL));
	TRY(cu.cuMemcpyDtoDAsync_v2(b, a, sizeof(words), NULL));
	TRY(cu.cuMemsetD8Async(b + 4, 0x55, 4, NULL));
	TRY(cu.cuMemcpyDtoH_v2(words, b, sizeof(words)));
	for (i = 0; i < 1 << 18; i++)
		bad += words[i] != (i == 1 ? 0x55555555 :
				    i == 10 || i == 11 ? 0x9abcdef0 : 0x12345678);
	check(!bad, "fills and copies, large and small, in order (%u words wrong)", bad);
	TRY(cu.cuMemsetD8_v2(a, 7, 100001));
	TRY(cu.cuMemcpyDtoH_v2(words, a, sizeof(words)));
	check(((char *)words)[100000] == 7 && ((char *)words)[100001] != 7, "to the byte");
	words[0] = 42;
	TRY(cu.cuMemcpyHtoD_v2(a, words, 4));
	TRY(cu.cuMemcpyDtoH_v2(words + 1, a, 4));
	check(words[1] == 42, "there and back");
	TRY(cu.cuMemAllocHost_v2(&host, 100));
	check(cu.cuMemFree_v2((uintptr_t)host) == 1 && cu.cuMemFreeHost(host) == 0,
	      "host memory is freed as such");
	check(cu.cuMemFree_v2(a) == 0 && cu.cuMemFree_v2(a) == 1, "once");
}

/* ---------------------------------------------------------------------- devices */

static void devices(const char *expected)
{
	char text[64] = "", name[64] = "", pci[20], uuid[48], all[512] = "";
	int count, i, device, value;
	static struct gpupart_topology topo;
	struct cu_uuid id;

	TRY(cu.cuInit(0));
	TRY(cu.cuDeviceGetCount(&count));
	check(cu.gpupart_sim_topology(count, &topo, sizeof(topo)) == CUDA_ERROR_INVALID_DEVICE &&
	      cu.gpupart_sim_topology(0, &topo, sizeof(topo) - 1) == CUDA_ERROR_INVALID_VALUE &&
	      !topo.nr_sms, "a topology of no device, or for another version, is refused");
	for (i = 0; i < count; i++) {
		TRY(cu.gpupart_sim_topology(i, &topo, sizeof(topo)));
		TRY(cu.gpupart_sim_gpu_info(i, pci, uuid));
		TRY(cu.cuDeviceGetPCIBusId(text, sizeof(text), i));
		check(topo.nr_sms == 132 && topo.info.simulated && !strcmp(topo.info.pci, pci) &&
		      !strcmp(topo.info.uuid, uuid) &&
		      !strcmp(topo.info.source, cu.gpupart_sim_capture(i)),
		      "%s: its topology", pci);
		TRY(cu.cuDeviceGetByPCIBusId(&device, pci));
		TRY(cu.cuDeviceGetUuid_v2(&id, i));
		TRY(cu.cuDeviceGetName(name, sizeof(name), i));
		TRY(cu.cuDeviceGetAttribute(&value, CU_DEVICE_PCI_BUS, i));
		check(device == i && !strcasecmp(text, pci), "%s is device %d", pci, i);
		check(strstr(name, " (simulated)") != NULL, "%s says it is simulated", name);
		check(strlen(uuid) == 40 && !strncmp(uuid, "GPU-", 4) &&
			      strtoul(uuid + 4, NULL, 16) ==
				      (id.bytes[0] << 24 | id.bytes[1] << 16 | id.bytes[2] << 8 |
				       id.bytes[3]) %
					      (1ul << 32),
		      "UUID %s", uuid);
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%x:%c ", value,
			 strstr(cu.gpupart_sim_capture(i), "h200-")[5]);
	}
	check(!strcmp(all, expected), "devices are \"%s\", not \"%s\"", all, expected);
	check(!cu.gpupart_sim_capture(count), "and no more");
	TRY(cu.cuDeviceGetAttribute(&value, CU_DEVICE_NR_SMS, 0));
	check(value == 132, "132 SMs");
	check(cu.cuDeviceGetAttribute(&value, 9999, 0) == 1, "an attribute not known: 1");
}

/*
 * Tests GPUs with equal identities. Also tests a GPU with an invented address that another GPU
 * already has.
 */
static void alike(const char *arg)
{
	char pci[3][20], uuid[3][48];
	int i;

	(void)arg;
	TRY(cu.cuInit(0));
	for (i = 0; i < 3; i++)
		TRY(cu.gpupart_sim_gpu_info(i, pci[i], uuid[i]));
	check(!strcmp(pci[0], "0000:02:00.0"), "the first keeps its address %s", pci[0]);
	check(strcmp(pci[0], pci[1]) && strcmp(pci[0], pci[2]) && strcmp(pci[1], pci[2]),
	      "three addresses: %s, %s, %s", pci[0], pci[1], pci[2]);
	check(strcmp(uuid[0], uuid[1]) && strcmp(uuid[0], uuid[2]) && strcmp(uuid[1], uuid[2]),
	      "and three UUIDs");
}

static void no_devices(const char *arg)
{
	(void)arg;
	check(cu.cuInit(0) == 100, "none left: 100");
}

static void proc_address(const char *arg)
{
	void *f;
	int status;

	(void)arg;
	check(cu.cuGetProcAddress("cuMemAlloc", &f, 12000, 0) == 0 && f == (void *)cu.cuMemAlloc_v2,
	      "the newest of a name");
	check(cu.cuGetProcAddress("cuEventElapsedTime", &f, 12000, 0) == 0 &&
		f == (void *)cu.cuEventElapsedTime, "the one of that version");
	check(cu.cuGetProcAddress_v2("cuEventElapsedTime", &f, 12080, 0, &status) == 0 &&
		f == (void *)cu.cuEventElapsedTime_v2 && status == 0, "and of this one");
	check(cu.cuGetProcAddress_v2("cuMemFree_v2", &f, 12080, 0, &status) == 0 &&
		f == (void *)cu.cuMemFree_v2, "an exported name");
	check(cu.cuGetProcAddress_v2("cuNothing", &f, 12080, 0, &status) == 500 && status == 1 &&
		      !f,
	      "one that is none");
	check(cu.cuGetProcAddress_v2("cuGreenCtxCreate", &f, 1000, 0, &status) == 500 &&
		      status == 2,
	      "one too new");
#define THERE(name) if (!cu.name || (!strncmp(#name, "cu", 2) && \
		(cu.cuGetProcAddress(#name, &f, 13000, 0) || !f))) \
		check(false, #name " is not there");
	FUNCTIONS(THERE)
}

/* ----------------------------------------------------------------------- faults */

static void fault_table(const char *which)
{
	const void *const *table = NULL;
	CUresult error = cu.cuGetExportTable((const void **)&table, &table_id);
	struct cu_uuid wrong = table_id;
	int value = -1;

	if (!strcmp(which, "NO_TABLE")) {
		check(error == 500, "no table");
		return;
	}
	wrong.bytes[15]++;
	check(error == 0 && cu.cuGetExportTable((const void **)&table, &wrong) == 500,
	      "only by its id");
	check((uintptr_t)table[0] == (!strcmp(which, "TABLE_SIZE") ? 104 : 96), "its size");
	begin_on(0);
	if (!strcmp(which, "NO_STREAM_EVENTS")) {
		hook_start();
		check(enable(1, subscriber, 2, 4) == 1, "domain 2 is refused");
	}
	if (!strcmp(which, "CC")) {
		TRY(cu.cuDeviceGetAttribute(&value, CU_DEVICE_CC_MAJOR, 0));
		check(value == 10, "10");
		TRY(cu.cuDeviceGetAttribute(&value, CU_DEVICE_CC_MINOR, 0));
		check(value == 3, "3");
	}
}

/* Declares that this subscriber supports feature @nr of the driver. */
static CUresult declare(unsigned int nr)
{
	const void *const *table;
	int (*feature)(uint32_t on, uint32_t handle, uint32_t feature);

	TRY(cu.cuGetExportTable((const void **)&table, &table_id));
	memcpy(&feature, &table[9], sizeof(feature));
	return feature(1, subscriber, nr);
}

/*
 * Tests green contexts of groups, with the masks that were measured on an H200. Also tests the
 * subscribers for which the driver refuses green contexts.
 */
static void green(const char *unused)
{
	static const struct {
		unsigned int sms, flags, nr, at;
		uint32_t mask[4];
	} rows[] = {
		{ 8, 0, 15, 0, { 0xfffffff0, 0xffffffff, 0xffffffff, 0 } },
		{ 8, 0, 15, 1, { 0xffffe1ff, 0xffffffff, 0xffffffff, 0 } },
		{ 8, 0, 15, 2, { 0xffc3ffff, 0xffffffff, 0xffffffff, 0 } },
		{ 8, 0, 15, 8, { 0xfffe1fff, 0xffffffff, 0xffffffff, 0 } },
		{ 8, 1, 16, 0, { 0xf7fbfdfe, 0xffffffff, 0xffffffff, 0 } },
		{ 7, 0, 15, 0, { 0xfffffff0, 0xffffffff, 0xffffffff, 0 } },
	};
	struct cu_resource all, groups[16], rest, its;
	CUcontext primary, green, found;
	CUfunction function;
	CUmodule loaded;
	CUstream stream;
	unsigned int nr;
	void *desc;

	(void)unused;
	begin_on(0);
	hook_start();
	TRY(cu.cuDeviceGetDevResource(0, &all, 1));
	TRY(cu.cuDevResourceGenerateDesc(&desc, &all, 1));
	check(cu.cuGreenCtxCreate(&green, desc, 0, 1) == 801, "refused to who does not cope");
	check(declare(6) == 0 && cu.cuGreenCtxCreate(&green, desc, 0, 1) == 801, "with another");
	check(declare(11) == 1 && declare(7) == 0 && cu.cuGreenCtxCreate(&green, desc, 0, 0) == 1,
	      "not without its stream");
	TRY(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	TRY(cu.cuCtxSetCurrent(primary));
	TRY(cu.cuModuleLoadData(&loaded, ptx));
	TRY(cu.cuModuleGetFunction(&function, loaded, "gpupart_empty"));
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		nr = 0;
		TRY(cu.cuDevSmResourceSplitByCount(NULL, &nr, &all, NULL, rows[i].flags,
						   rows[i].sms));
		check(nr == rows[i].nr, "%u SMs, flags %u: %u groups", rows[i].sms, rows[i].flags,
		      nr);
		TRY(cu.cuDevSmResourceSplitByCount(groups, &nr, &all, &rest, rows[i].flags,
						   rows[i].sms));
		TRY(cu.cuDevResourceGenerateDesc(&desc, &groups[rows[i].at], 1));
		TRY(cu.cuGreenCtxCreate(&green, desc, 0, 1));
		TRY(cu.cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
		TRY(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
		check(!memcmp(hook.tmd + 304, rows[i].mask, 16) && hook.tmd[3] & 0x80,
		      "group %u's mask", rows[i].at);
		check(nr * 8 + rest.sm.nr_sms == 132 && groups[0].sm.nr_sms == 8, "all SMs");
		TRY(cu.cuGreenCtxGetDevResource(green, &its, 1));
		check(its.sm.nr_sms == 8, "its resource");
		TRY(cu.cuStreamGetCtx(stream, &found));
		check(found == green && cu.cuCtxDestroy_v2(green) == 201, "its stream's context");
		TRY(cu.cuGreenCtxDestroy(green));
		check(cu.cuStreamSynchronize(stream) && cu.cuCtxFromGreenCtx(&found, green) == 1,
		      "it is gone, and its stream");
	}
	check(cu.cuDevSmResourceSplitByCount(groups, &nr, &all, NULL, 0, 134) == 915,
	      "more than there are");
	TRY(unsubscribe(subscriber));
	TRY(cu.cuGreenCtxCreate(&green, desc, 0, 1));
	hook_start();
	TRY(unsubscribe(subscriber));
	check(cu.cuGreenCtxCreate(&green, desc, 0, 1) == 801, "refused for ever after another");
}

static void fault_launch(const char *which)
{
	static struct record records[MAX_BLOCKS];
	struct shape shape = { .blocks = 264, .threads = 1024 };
	unsigned int on_sm[MAX_SMS], sm, seen = 0, first = 0;
	int mps;

	read_truth(BOARD_B);
	hook_start();
	begin_on(0);
	the_tpc = 0;
	off_unless(not_the_tpc);
	TRY(run(&shape, records));
	check(count(records, shape.blocks, on_sm), "runs");
	for (sm = 0; sm < truth.nr_sms; sm++)
		seen += on_sm[sm] > 0;
	for (sm = 0; !on_sm[sm]; sm++)
		first++;
	TRY(cu.cuDeviceGetAttribute(&mps, CU_DEVICE_MPS_ENABLED, 0));
	check(mps == !strcmp(which, "MPS"), "MPS is reported as it is");
	if (!strcmp(which, "TMD_VERSION"))
		check(hook.tmd[72] == 0x41, "version 0x41");
	if (!strcmp(which, "PARAMS_SIZE"))
		check((uint32_t)hook.params[0] == 96, "params of 96 bytes");
	if (!strcmp(which, "DROP_CALLBACK"))
		check(hook.built == 0 && seen == 132, "the callback never comes");
	else if (!strcmp(which, "MPS"))
		check(seen == 130 && first == 0 && !on_sm[130] && !on_sm[131],
		      "%%smid counts allowed SMs from 0 (%u, from %u)", seen, first);
	else
		check(seen == 130 && first == 2, "%u SMs from %u", seen, first);
}

/* -------------------------------------------------------------------- injection */

static void injection(const char *which)
{
	int *calls, *inside;
	void *library;

	TRY(cu.cuInit(0));
	TRY(cu.cuInit(0));
	if (strcmp(which, "good"))
		return;
	library = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW | RTLD_NOLOAD);
	calls = library ? dlsym(library, "calls") : NULL;
	inside = library ? dlsym(library, "inside") : NULL;
	if (check(calls && inside, "is loaded"))
		check(*calls == 1 && *inside == 3,
		      "called once, before the driver is initialised (%d, %d)", *calls, *inside);
}

static void with_injection(void)
{
	char folder[] = "/tmp/gpupart-sim-XXXXXX", command[1024], env_text[512];
	const char *env[] = { "GPUPART_SIM=" BOARD_B, env_text, NULL };
	const char *missing[] = { env[0], "CUDA_INJECTION64_PATH=/no/such.so", NULL };
	const char *cc = getenv("CC"), *build = getenv("BUILD");

	scenario("no injection library", injection, "missing", missing, "/no/such.so");
	if (!mkdtemp(folder))
		return;
	snprintf(env_text, sizeof(env_text), "CUDA_INJECTION64_PATH=%s/i.so", folder);
	snprintf(command, sizeof(command),
		 "printf '%%s' 'int cuDeviceGetCount(int *); int calls, inside;"
		 "int InitializeInjection(void) { int n; calls++; inside = cuDeviceGetCount(&n);"
		 "return 1; }' | %s -shared -fPIC -x c -o %s/i.so - -x none -L%s/lib/gpupart/sim "
		 "-l:libcuda.so.1 -Wl,-rpath,%s/lib/gpupart/sim", cc ? cc : "cc", folder,
		 build ? build : "build", build ? build : "build");
	if (system(command))
		tap_skip("no compiler for an injection library");
	else
		scenario("injection", injection, "good", env, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	if (system(command))
		perror(folder);
}

/* ------------------------------------------------------------- the default stream */

/*
 * Counts the blocks that ran on @tpc, and the blocks with an unknown TPC. If @tpc is -1, counts
 * only the blocks with an unknown TPC.
 */
static unsigned int strayed(const struct record *records, unsigned int nr, int tpc)
{
	unsigned int i, bad = 0;

	for (i = 0; i < nr; i++)
		bad += records[i].smid >= truth.nr_sms || truth.tpc[records[i].smid] == tpc;
	return bad;
}

/*
 * A fill on the default stream waits for a long kernel on a blocking stream. A later launch on a
 * blocking stream waits for the fill. A launch on a non-blocking stream does not wait. So the
 * fill runs after this launch, and erases the launch's records.
 */
/*
 * A forked child makes several calls. Returns the number of the first call that does not return
 * 3. If all calls return 3, returns 0.
 */
static int calls_in_child(CUstream stream, CUevent event, CUfunction function, CUdeviceptr out,
			  CUgraph graph, CUgraphExec exec)
{
	char text[64];
	CUgraphExec other_exec;
	CUdeviceptr address;
	CUstream stream_2;
	CUcontext other;
	CUmodule module_2;
	CUevent event_2;
	CUgraph graph_2;
	void *params[] = { NULL };
	size_t bytes;
	int nr;
	const int results[] = {
		cu.cuInit(0),
		cu.cuDeviceGetCount(&nr),
		cu.cuDeviceGet(&nr, 0),
		cu.cuDeviceGetName(text, sizeof(text), 0),
		cu.cuDeviceTotalMem_v2(&bytes, 0),
		cu.cuDevicePrimaryCtxRetain(&other, 0),
		cu.cuCtxCreate_v2(&other, 0, 0),
		cu.cuCtxGetCurrent(&other),
		cu.cuCtxSetCurrent(ctx),
		cu.cuCtxSynchronize(),
		cu.cuCtxDestroy_v2(ctx),
		cu.cuStreamCreate(&stream_2, 0),
		cu.cuStreamSynchronize(stream),
		cu.cuStreamQuery(stream),
		cu.cuStreamDestroy_v2(stream),
		cu.cuModuleLoadData(&module_2, ptx),
		cu.cuModuleGetFunction(&function, module, "gpupart_census"),
		cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL),
		cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		cu.cuModuleUnload(module),
		cu.cuMemAlloc_v2(&address, 16),
		cu.cuMemcpyDtoH_v2(text, out, 16),
		cu.cuMemsetD8_v2(out, 0, 16),
		cu.cuMemFree_v2(out),
		cu.cuEventCreate(&event_2, 0),
		cu.cuEventRecord(event, stream),
		cu.cuEventSynchronize(event),
		cu.cuEventDestroy_v2(event),
		cu.cuGraphCreate(&graph_2, 0),
		cu.cuGraphInstantiateWithFlags(&other_exec, graph, 0),
		cu.cuGraphLaunch(exec, stream),
		cu.cuGraphExecDestroy(exec),
		cu.cuGraphDestroy(graph),
	};

	for (nr = 0; nr < (int)(sizeof(results) / sizeof(results[0])); nr++)
		if (results[nr] != 3)
			return nr + 1;
	return 0;
}

/* Like with NVIDIA's driver, the child of a fork cannot use objects of its parent. */
static void forked(const char *arg)
{
	CUfunction function;
	CUgraphExec exec;
	CUdeviceptr out;
	CUstream stream;
	CUevent event;
	CUgraph graph;
	int status;
	pid_t pid;

	(void)arg;
	begin_on(0);
	TRY(cu.cuStreamCreate(&stream, 0));
	TRY(cu.cuEventCreate(&event, 0));
	TRY(cu.cuModuleGetFunction(&function, module, "gpupart_census"));
	TRY(cu.cuMemAlloc_v2(&out, 4096));
	TRY(cu.cuGraphCreate(&graph, 0));
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	fflush(report);
	pid = fork();
	if (!pid)
		_exit(calls_in_child(stream, event, function, out, graph, exec));
	check(waitpid(pid, &status, 0) == pid && !status,
	      "each call in the child of a fork: 3 (%d)", WEXITSTATUS(status));
	check(!cu.cuStreamSynchronize(stream) && !cu.cuCtxSynchronize() &&
		      !cu.cuGraphLaunch(exec, stream),
	      "its parent goes on");
}

static void fills(const char *arg)
{
	struct shape first = { .blocks = 1, .threads = 32, .value = 100000 };
	struct shape after = { .blocks = 264, .threads = 32, .value = 1000 };
	static struct record records[264];
	unsigned int flags, i, taken;
	CUdeviceptr out, other;

	(void)arg;
	read_truth(BOARD_B);
	hook_start();
	begin_on(0);
	TRY(cu.cuMemAlloc_v2(&out, sizeof(records)));
	TRY(cu.cuMemAlloc_v2(&other, sizeof(records)));
	TRY(cu.cuStreamCreate(&first.stream, 0));
	for (flags = 0; flags <= CU_STREAM_NON_BLOCKING; flags++) {
		TRY(cu.cuStreamCreate(&after.stream, flags));
		TRY(launch(&first, other));
		TRY(cu.cuMemsetD8_v2(out, 0xff, sizeof(records)));
		TRY(launch(&after, out));
		TRY(cu.cuStreamSynchronize(after.stream));
		TRY(cu.cuMemcpyDtoH_v2(records, out, sizeof(records)));
		for (taken = i = 0; i < 264; i++)
			taken += records[i].smid == UINT32_MAX;
		check(taken == (flags ? 264 : 0), "a %s stream %s for a fill on the default one",
		      flags ? "non-blocking" : "blocking", flags ? "does not wait" : "waits");
		TRY(launch(&first, other));
		check(!run(&after, records) && !strayed(records, 264, -1),
		      "and who waits for the fill first keeps the records");
		TRY(cu.cuStreamDestroy_v2(after.stream));
	}
}

/* ---------------------------------------------------------------------- threads */

#define NR_THREADS 8

static CUstream one_for_all;

/*
 * Each thread has separate streams. The callback disables one TPC for each thread. At the same
 * time, streams are created and destroyed.
 */
static void *one_of_many(void *number)
{
	unsigned int tpc = (uintptr_t)number * 3, i, bad = 0;
	struct shape shape = { .blocks = 264, .threads = 1024 };
	struct record records[264];
	CUevent event;

	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuEventCreate(&event, 0));
	off_none();
	off_bit(truth.bit[2 * tpc]);
	for (i = 0; i < 12; i++) {
		if (i % 4 == 3)
			shape.stream = CU_STREAM_PER_THREAD;
		else
			TRY(cu.cuStreamCreate(&shape.stream, i % 2));
		bad += run(&shape, records) != CUDA_SUCCESS || strayed(records, 264, tpc);
		TRY(cu.cuEventRecord(event, shape.stream));
		TRY(cu.cuEventSynchronize(event));
		if (i % 4 != 3)
			TRY(cu.cuStreamDestroy_v2(shape.stream));
	}
	/* All threads use one stream, but each launch has a separate TMD. */
	shape.stream = one_for_all;
	for (i = 0; i < 40; i++)
		bad += run(&shape, records) != CUDA_SUCCESS || strayed(records, 264, tpc);
	bad += hook.built != 12 + 40;
	return (void *)(uintptr_t)bad;
}

static void threads(const char *arg)
{
	pthread_t thread[NR_THREADS];
	void *bad;
	uintptr_t i, sum = 0;

	(void)arg;
	read_truth(BOARD_B);
	hook_start();
	begin_on(0);
	TRY(cu.cuStreamCreate(&one_for_all, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < NR_THREADS; i++)
		pthread_create(&thread[i], NULL, one_of_many, (void *)i);
	for (i = 0; i < NR_THREADS; i++) {
		pthread_join(thread[i], &bad);
		sum += (uintptr_t)bad;
	}
	check(sum == 0, "%d threads, each its own mask: %lu wrong", NR_THREADS, (unsigned long)sum);
}

int main(void)
{
#define TWO "GPUPART_SIM=" BOARD_B ":" BOARD_E ":" BOARD_B
	const char *b[] = { "GPUPART_SIM=" BOARD_B, NULL, NULL };
	const char *three[] = { TWO, NULL, NULL };
	const char *one_seed[] = { b[0], "GPUPART_SIM_FAULTS=seed=1", NULL };
	const char *other_seed[] = { b[0], "GPUPART_SIM_FAULTS=seed=2", NULL };
	static const struct {
		const char *name, *env;
		void (*body)(const char *which);
	} fault[] = {
		{ "NO_TABLE", "GPUPART_SIM_FAULTS=no-table", fault_table },
		{ "TABLE_SIZE", "GPUPART_SIM_FAULTS=table-size=104", fault_table },
		{ "NO_STREAM_EVENTS", "GPUPART_SIM_FAULTS=no-stream-events", fault_table },
		{ "CC", "GPUPART_SIM_FAULTS=cc=10.3", fault_table },
		{ "green", NULL, green },
		{ "TMD_VERSION", "GPUPART_SIM_FAULTS=tmd-version=0x41", fault_launch },
		{ "PARAMS_SIZE", "GPUPART_SIM_FAULTS=params-size=96", fault_launch },
		{ "DROP_CALLBACK", "GPUPART_SIM_FAULTS=drop-callback", fault_launch },
		{ "MPS", "GPUPART_SIM_FAULTS=mps", fault_launch },
		{ "no fault", NULL, fault_launch },
	};
	const char *build = getenv("BUILD");
	char same[2048];
	unsigned int i;

	scenario("streams, seed 1", streams, "seed 1", one_seed, NULL);
	scenario("streams, seed 2", streams, "seed 2", other_seed, NULL);
	b[1] = "GPUPART_SIM_FAULTS=no-stream-pointer";
	scenario("no stream pointer", streams, "no pointer", b, NULL);
	b[1] = NULL;
	scenario("stream events", stream_events, "", b, NULL);
	scenario("time", times, "", b, NULL);
	scenario("priorities", priorities, "", b, NULL);
	scenario("command buffers", command_buffers, "", b, NULL);
	scenario("errors", errors, "", b, "writes outside any allocation");
	scenario("contexts", contexts, "", three, NULL);
	scenario("memory", memory, "", b, NULL);
	scenario("entry points by name", proc_address, "", b, NULL);

	scenario("three GPUs", devices, "1:b 2:e 3:b ", three, NULL);
	snprintf(same, sizeof(same), "GPUPART_SIM=%s/tests/generated/01.capture:" BOARD_B
		 ":%s/tests/generated/01.capture", build ? build : "build",
		 build ? build : "build");
	b[0] = same;
	scenario("three alike", alike, "", b, NULL);
	b[0] = one_seed[0];
	three[1] = "CUDA_VISIBLE_DEVICES=2,1";
	scenario("visible 2,1", devices, "3:b 2:e ", three, NULL);
	three[1] = "CUDA_VISIBLE_DEVICES=1,9,0";
	scenario("visible 1,9,0", devices, "2:e ", three, NULL);
	three[1] = "CUDA_VISIBLE_DEVICES=";
	scenario("visible none", no_devices, "", three, NULL);
	three[1] = "CUDA_VISIBLE_DEVICES=0,0";
	scenario("visible 0,0", no_devices, "", three, NULL);

	for (i = 0; i < sizeof(fault) / sizeof(fault[0]); i++) {
		b[1] = fault[i].env;
		scenario(fault[i].name, fault[i].body, fault[i].name, b, NULL);
	}
	b[1] = "GPUPART_SIM_FAULTS=cc=ten";
	scenario("an invalid setting", fault_table, "", b,
		 "GPUPART_SIM_FAULTS: ignoring cc=ten");
	b[1] = NULL;
	with_injection();
	scenario("default stream", fills, "", b, NULL);
	scenario("fork", forked, "", b, NULL);
	scenario("threads", threads, "", b, NULL);
	return tap_done();
}
