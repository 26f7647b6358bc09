// SPDX-License-Identifier: MIT
/*
 * CUDA programs for the tests of `gpupart stat`. The bottleneck of each program is known. This
 * program does not use gpupart. It also runs on the simulated driver, except for functions that
 * this driver does not support.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * On the simulated driver, the kernel gpupart_census takes a given number of ns. On a GPU, it is
 * a loop of this duration, with at most 10 million rounds. The kernel "move" copies memory in
 * steps of 16 bytes.
 */
static const char ptx[] =
	".version 6.0\n.target sm_60\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 ns)\n{\n"
	"	.reg .u64 %a, %b, %d;\n	.reg .u32 %n, %i;\n	.reg .pred %p, %q;\n"
	"	mov.u64 %a, %globaltimer;\n	ld.param.u32 %n, [ns];\n	cvt.u64.u32 %d, %n;\n"
	"	mov.u32 %i, 0;\n"
	"again:\n	mov.u64 %b, %globaltimer;\n	sub.u64 %b, %b, %a;\n"
	"	setp.ge.u64 %p, %b, %d;\n	@%p bra done;\n	add.u32 %i, %i, 1;\n"
	"	setp.lt.u32 %q, %i, 10000000;\n	@%q bra again;\n"
	"done:\n	ret;\n}\n"
	".visible .entry gpupart_empty()\n{\n	ret;\n}\n"
	".visible .entry move(.param .u64 from, .param .u64 to, .param .u32 nr)\n{\n"
	"	.reg .u64 %f, %t, %o;\n	.reg .u32 %i, %n, %s, %c, %v<5>;\n	.reg .pred %p;\n"
	"	ld.param.u64 %f, [from];\n	ld.param.u64 %t, [to];\n	ld.param.u32 %n, [nr];\n"
	"	mov.u32 %i, %ctaid.x;\n	mov.u32 %s, %ntid.x;\n	mov.u32 %c, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %s, %c;\n	mov.u32 %c, %nctaid.x;\n"
	"	mul.lo.u32 %s, %s, %c;\n"
	"again:\n	setp.ge.u32 %p, %i, %n;\n	@%p bra done;\n"
	"	mul.wide.u32 %o, %i, 16;\n	add.u64 %o, %o, %f;\n"
	"	ld.global.v4.u32 {%v1, %v2, %v3, %v4}, [%o];\n"
	"	mul.wide.u32 %o, %i, 16;\n	add.u64 %o, %o, %t;\n"
	"	st.global.v4.u32 [%o], {%v1, %v2, %v3, %v4};\n"
	"	add.u32 %i, %i, %s;\n	bra again;\n"
	"done:\n	ret;\n}\n";

#define MOVED	(512u << 20)	/* bytes per kernel */
#define COPIED	(64u << 20)
#define BLOCKS	132

typedef unsigned long long ptr;

static int (*cuInit)(unsigned int), (*cuCtxCreate)(void **, unsigned int, int);
static int (*cuCtxSetCurrent)(void *), (*cuCtxDestroy)(void *);
static int (*cuModuleLoadData)(void **, const void *);
static int (*cuModuleGetFunction)(void **, void *, const char *);
static int (*cuMemAlloc)(ptr *, size_t), (*cuMemAllocHost)(void **, size_t);
static int (*cuMemcpyHtoDAsync)(ptr, const void *, size_t, void *);
static int (*cuMemcpyDtoH)(void *, ptr, size_t);
static int (*cuStreamCreate)(void **, unsigned int), (*cuStreamSynchronize)(void *);
static int (*cuStreamQuery)(void *), (*cuCtxSynchronize)(void);
static int (*cuStreamBeginCapture)(void *, int), (*cuStreamEndCapture)(void *, void **);
static int (*cuGraphInstantiate)(void **, void *, unsigned long long);
static int (*cuGraphLaunch)(void *, void *);
static int (*cuLaunchKernel)(void *, unsigned int, unsigned int, unsigned int, unsigned int,
			     unsigned int, unsigned int, unsigned int, void *, void **, void **);

static const struct {
	const char *name;
	void *to;
} symbols[] = {
	{ "cuInit", &cuInit }, { "cuCtxCreate_v2", &cuCtxCreate },
	{ "cuCtxSetCurrent", &cuCtxSetCurrent }, { "cuCtxDestroy_v2", &cuCtxDestroy },
	{ "cuModuleLoadData", &cuModuleLoadData }, { "cuModuleGetFunction", &cuModuleGetFunction },
	{ "cuMemAlloc_v2", &cuMemAlloc }, { "cuMemAllocHost_v2", &cuMemAllocHost },
	{ "cuMemcpyHtoDAsync_v2", &cuMemcpyHtoDAsync }, { "cuMemcpyDtoH_v2", &cuMemcpyDtoH },
	{ "cuStreamCreate", &cuStreamCreate }, { "cuStreamSynchronize", &cuStreamSynchronize },
	{ "cuStreamQuery", &cuStreamQuery }, { "cuCtxSynchronize", &cuCtxSynchronize },
	{ "cuStreamBeginCapture_v2", &cuStreamBeginCapture },
	{ "cuStreamEndCapture", &cuStreamEndCapture },
	{ "cuGraphInstantiateWithFlags", &cuGraphInstantiate },
	{ "cuGraphLaunch", &cuGraphLaunch }, { "cuLaunchKernel", &cuLaunchKernel },
};

static void *ctx, *spin_kernel, *empty_kernel, *move_kernel;
static ptr out;

#define DO(call) do { \
	int result_ = (call); \
	if (result_) { \
		fprintf(stderr, "stat_prog: line %d: %d\n", __LINE__, result_); \
		exit(100); \
	} \
} while (0)

static void setup(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *module;

	for (size_t i = 0; lib && i < sizeof(symbols) / sizeof(symbols[0]); i++)
		*(void **)symbols[i].to = dlsym(lib, symbols[i].name);
	if (!lib || !cuInit) {
		fprintf(stderr, "stat_prog: no libcuda.so.1: %s\n", dlerror());
		exit(100);
	}
	DO(cuInit(0));
	DO(cuCtxCreate(&ctx, 0, 0));
	DO(cuModuleLoadData(&module, ptx));
	DO(cuModuleGetFunction(&spin_kernel, module, "gpupart_census"));
	DO(cuModuleGetFunction(&empty_kernel, module, "gpupart_empty"));
	DO(cuModuleGetFunction(&move_kernel, module, "move"));
	DO(cuMemAlloc(&out, 24 * BLOCKS));
}

static void spin(unsigned int ns, void *stream)
{
	void *params[] = { &out, &ns };

	DO(cuLaunchKernel(spin_kernel, BLOCKS, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void work_on_host(double seconds)
{
	const double end = seconds_now() + seconds;

	while (seconds_now() < end)
		;
}

static void *stream(void)
{
	void *made;

	DO(cuStreamCreate(&made, 1));
	return made;
}

/* --------------------------------------------------------------------- the kinds */

/* CPU-bound. The host works for 200 us, and the GPU works for 20 us. */
static void host(int nr)
{
	void *s = stream();

	for (int i = 0; i < nr; i++) {
		work_on_host(200e-6);
		spin(20000, s);
	}
	DO(cuStreamSynchronize(s));
}

/* CPU-bound. Each round is an empty kernel and a wait. */
static void wait_each(int nr)
{
	for (int i = 0; i < nr; i++) {
		DO(cuLaunchKernel(empty_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
		DO(cuCtxSynchronize());
	}
}

/* GPU-bound. Queues as many kernels as fit into the queue. */
static void queue(int nr, unsigned int ns)
{
	void *s = stream();

	for (int i = 0; i < nr; i++)
		spin(ns, s);
	DO(cuStreamSynchronize(s));
}

/* The program polls instead of waiting. */
static void queue_and_poll(int nr, unsigned int ns)
{
	void *s = stream();

	for (int i = 0; i < nr; i++)
		spin(ns, s);
	while (cuStreamQuery(s) == 600)
		;
}

static void poll(int nr)
{
	queue_and_poll(nr, 1000000);
}

static void long_poll(int nr)
{
	queue_and_poll(nr, 10000000);
}

/* GPU-bound, by memory. */
static void memory(int nr)
{
	unsigned int steps = MOVED / 16;
	ptr from, to;
	void *params[] = { &from, &to, &steps };

	DO(cuMemAlloc(&from, MOVED));
	DO(cuMemAlloc(&to, MOVED));
	for (int i = 0; i < nr; i++)
		DO(cuLaunchKernel(move_kernel, 8 * BLOCKS, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	DO(cuCtxSynchronize());
}

/*
 * Makes copies. If @beside is set, the copies are in a separate stream while kernels run.
 * Otherwise the copies are between kernels.
 */
static void copies(int nr, int beside)
{
	void *kernels = stream(), *s = beside ? stream() : kernels, *pinned;
	ptr to;

	DO(cuMemAlloc(&to, COPIED));
	DO(cuMemAllocHost(&pinned, COPIED));
	memset(pinned, 1, COPIED);
	for (int i = 0; i < nr; i++) {
		DO(cuMemcpyHtoDAsync(to, pinned, COPIED, s));
		spin(beside ? 3000000 : 300000, kernels);
	}
	DO(cuCtxSynchronize());
}

static void beside(int nr)
{
	copies(nr, 1);
}

static void serial(int nr)
{
	copies(nr, 0);
}

/* Launches a captured graph of four kernels. */
static void graph(int nr)
{
	void *s = stream(), *captured, *exec;

	DO(cuStreamBeginCapture(s, 0));
	for (int i = 0; i < 4; i++)
		spin(250000, s);
	DO(cuStreamEndCapture(s, &captured));
	DO(cuGraphInstantiate(&exec, captured, 0));
	for (int i = 0; i < nr; i++)
		DO(cuGraphLaunch(exec, s));
	DO(cuStreamSynchronize(s));
}

static void deep(int nr)
{
	queue(nr, 1000000);
}

/* Launches a few long kernels. So the program spends most of the time in one wait. */
static void long_wait(int nr)
{
	queue(nr, 10000000);
}

static void *deep_thread(void *nr)
{
	DO(cuCtxSetCurrent(ctx));
	deep(*(int *)nr);
	return NULL;
}

static void *long_thread(void *nr)
{
	DO(cuCtxSetCurrent(ctx));
	long_wait(*(int *)nr);
	return NULL;
}

/* Uses two threads. Each thread has a stream. */
static void both(void *(*thread)(void *), int nr)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, thread, &nr);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void threads(int nr)
{
	both(deep_thread, nr);
}

static void long_threads(int nr)
{
	both(long_thread, nr);
}

/* Creates and destroys a context. Then creates a second context in the same process. */
static void contexts(int nr)
{
	deep(nr);
	DO(cuCtxDestroy(ctx));
	setup();
	deep(nr);
}

/* The GPU works first, and then the host works for the same time. The last call is a wait. */
static void late_wait(int nr)
{
	void *s = stream();

	for (int i = 0; i < nr; i++)
		spin(1000000, s);
	DO(cuStreamSynchronize(s));
	work_on_host(nr * 1e-3);
	DO(cuStreamSynchronize(s));
}

/* Launches as fast as possible for 12 ms, and then launches a kernel of @ms. */
static void fast_then_long(int ms)
{
	const double end = seconds_now() + 12e-3;
	void *s = stream();

	do
		spin(1000, s);
	while (seconds_now() < end);
	for (; ms > 4000; ms -= 4000)	/* longest time of one kernel */
		spin(4000000000u, s);
	spin(ms * 1000000u, s);
	DO(cuStreamSynchronize(s));
}

/* The program ends without waiting for its work. */
static void leave(int nr)
{
	void *s = stream();

	for (int i = 0; i < nr; i++)
		spin(1000000, s);
}

/* Makes synchronous copies of 1 KiB each. */
static void fetch(int nr)
{
	char to[1024];

	for (int i = 0; i < nr; i++) {
		spin(1000, NULL);
		DO(cuMemcpyDtoH(to, out, sizeof(to)));
	}
}

static const struct {
	const char *name;
	void (*run)(int nr);
} kinds[] = {
	{ "host", host }, { "wait", wait_each }, { "deep", deep }, { "long", long_wait },
	{ "poll", poll }, { "long_poll", long_poll }, { "fast_then_long", fast_then_long },
	{ "memory", memory }, { "beside", beside }, { "serial", serial }, { "graph", graph },
	{ "threads", threads }, { "long_threads", long_threads },
	{ "contexts", contexts }, { "leave", leave },
	{ "late_wait", late_wait }, { "fetch", fetch },
};

static int run(const char *name, int nr)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name)) {
			kinds[i].run(nr);
			return 0;
		}
	return 99;
}

/* stat_prog KIND NR [STATUS | _exit | kill | two | nothing | time] */
int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[3] : "0";
	int status, nr;
	double start;

	if (argc < 3)
		return 99;
	nr = atoi(argv[2]);
	if (!strcmp(how, "nothing"))
		return 0;
	if (!strcmp(how, "two") && fork()) {
		setup();
		status = run(argv[1], nr);
		waitpid(-1, NULL, 0);
		return status;
	}
	setup();
	start = seconds_now();
	status = run(argv[1], nr);
	if (!strcmp(how, "time"))
		printf("%.6f\n", seconds_now() - start);
	if (!strcmp(how, "_exit"))
		_exit(status);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	return status ? status : atoi(how);
}
