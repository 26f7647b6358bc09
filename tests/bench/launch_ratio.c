// SPDX-License-Identifier: MIT
/*
 * Measures the cost of a launch with the callback, relative to a launch without the callback. It
 * creates two processes before they use CUDA. The first process never subscribes, and the second
 * process subscribes. The two processes take turns in short blocks on an otherwise idle GPU. So
 * drifts of the machine affect both processes equally. Each block begins with launches that are
 * not timed, so that both processes are equally warm. Only the launch calls are timed, not the
 * wait for the GPU. A third process also never subscribes. It shows the difference between two
 * equal processes. A fourth process waits for a known time before each launch. It shows the
 * smallest difference that the method can detect.
 *
 * Equal processes differ by a few percent for their whole lifetime, because their memory
 * addresses differ. So each variant is measured with several pairs of processes, on one CPU. For
 * each block, the program computes the ratio to the neighbouring blocks of the first process. The
 * figure of a pair is the median of these ratios. The output is the median over all pairs, and
 * the 95 % interval of this median. The interval is binomial and assumes no distribution.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define NR_LAUNCHES	256
#define NR_WARM		128
#define PLANTED_NS	100

typedef int CU;
typedef void *P;

static const char ptx[] =
	".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_empty()\n{ ret; }\n";

enum variant {
	NEVER,
	NEVER_AGAIN,
	BY_HAND,
	BY_HAND_TOLD,
	NOTHING_SET,
	PROCESS_SET,
	STREAM_SET,
	LIMIT_AND_STREAM,
	PLANTED,
	REGISTERED,
	ALLOCATED,
	NR_VARIANTS
};

static const char *const variant_name[NR_VARIANTS] = {
	"never subscribed",
	"never subscribed, a second process",
	"a callback that returns at once",
	"the same, told of streams too",
	"subscribed, nothing set",
	"a process set",
	"a stream set",
	"a limit and a stream set",
	"never subscribed, 100 ns planted",
	"never subscribed, memory registered",
	"never subscribed, pinned memory",
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void nothing(void *user, int domain, int cbid, const void *params)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)params;
}

/*
 * The driver's own time to call any subscriber: Documentation/internals/hardware.md, "Functions".
 */
static int subscribe_by_hand(P lib, bool told)
{
	static const unsigned char uuid[16] = {
		0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
		0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
	};
	CU (*get_table)(const void **, const void *), (*subscribe)(uint32_t *, void *, void *);
	CU (*enable)(uint32_t, uint32_t, int, int);
	const void *const *table;
	const void *found;
	uint32_t handle;

	*(void **)&get_table = dlsym(lib, "cuGetExportTable");
	if (!get_table || get_table(&found, uuid))
		return -1;
	table = found;
	memcpy(&subscribe, &table[3], sizeof(subscribe));
	memcpy(&enable, &table[6], sizeof(enable));
	if (subscribe(&handle, (void *)nothing, NULL) || enable(1, handle, 0xb, 1))
		return -1;
	/*
	 * Like the library, also enable the callbacks for the end of a stream and for the end of
	 * a context.
	 */
	return told && (enable(1, handle, 2, 5) || enable(1, handle, 2, 2)) ? -1 : 0;
}

/*
 * Allocates host memory in the context, with the size of the records' memory. A process with
 * records also has this memory, even if its launches have no records.
 */
static int map_host_memory(P lib, bool registered)
{
	const size_t bytes = 512 << 10;
	CU (*make)(P *, size_t, unsigned int), (*add)(P, size_t, unsigned int);
	P memory;

	*(void **)&make = dlsym(lib, "cuMemHostAlloc");
	*(void **)&add = dlsym(lib, "cuMemHostRegister_v2");
	if (!make || !add)
		return 1;
	if (!registered)
		return make(&memory, bytes, 2);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED || add(memory, bytes, 2);
}

/*
 * Runs in the child. Waits for a byte, makes launches, and answers with the time of these
 * launches in ns.
 */
static int child(enum variant variant, int in, int out)
{
	CU (*init)
	(unsigned int), (*device)(int *, int), (*retain)(P *, int), (*set)(P),
		(*load)(P *, const void *);
	CU (*get)(P *, P, const char *), (*create)(P *, unsigned int), (*sync)(P);
	CU (*launch)
	(P, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
	 unsigned int, P, P *, P *);
	P lib = dlopen("libcuda.so.1", RTLD_NOW), ctx, module, function, stream;
	struct gpupart_tpcset half;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	uint64_t took;
	char go;
	int dev;

	if (!lib)
		return 77;
#define SYM(var, name) do { *(void **)&(var) = dlsym(lib, name); if (!(var)) return 1; } while (0)
	SYM(init, "cuInit"); SYM(device, "cuDeviceGet"); SYM(retain, "cuDevicePrimaryCtxRetain");
	SYM(set, "cuCtxSetCurrent"); SYM(load, "cuModuleLoadData"); SYM(get, "cuModuleGetFunction");
	SYM(create, "cuStreamCreate");
	SYM(sync, "cuStreamSynchronize");
	SYM(launch, "cuLaunchKernel");
	if (init(0))
		return 77;
	if (device(&dev, 0) || retain(&ctx, dev) || set(ctx) || load(&module, ptx) ||
	    get(&function, module, "gpupart_empty") || create(&stream, 1) || gpupart_open(&gp))
		return 1;
	if ((variant == BY_HAND || variant == BY_HAND_TOLD) &&
	    subscribe_by_hand(lib, variant == BY_HAND_TOLD))
		return 1;
	if (variant >= REGISTERED && map_host_memory(lib, variant == REGISTERED))
		return 1;
	if (variant >= NOTHING_SET && variant <= LIMIT_AND_STREAM) {
		if (gpupart_attach(gp, "cuda:0", NULL, &gpu)) {
			fprintf(stderr, "%s\n", gpupart_error(gp));
			return 1;
		}
		half = gpupart_tpcset_first(gpupart_topology_nr_tpcs(gpupart_gpu_topology(gpu)) /
					    2);
		if ((variant == PROCESS_SET && gpupart_process_set(gp, gpu, &half)) ||
		    (variant >= STREAM_SET && gpupart_stream_set(gp, gpu, stream, &half)) ||
		    (variant == LIMIT_AND_STREAM && gpupart_limit_set(gp, gpu, &half)))
			return 1;
	}
	while (read(in, &go, 1) == 1) {
		uint64_t begin, until = 0;

		for (int i = 0; i < NR_WARM; i++)
			if (launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL))
				return 1;
		if (sync(stream))
			return 1;
		begin = now_ns();
		for (int i = 0; i < NR_LAUNCHES; i++) {
			if (variant == PLANTED)
				for (until = now_ns() + PLANTED_NS; now_ns() < until; )
					;
			if (launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL))
				return 1;
		}
		took = now_ns() - begin;
		if (sync(stream) || write(out, &took, sizeof(took)) != sizeof(took))
			return 1;
	}
	return 0;
}

struct worker {
	pid_t pid;
	int in, out;
};

static int start(struct worker *w, enum variant variant)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		return -errno;
	w->pid = fork();
	if (w->pid < 0)
		return -errno;
	if (!w->pid) {
		/*
		 * Also close the pipe ends of the other workers. Otherwise no process can detect
		 * the end of a pipe.
		 */
		for (int fd = 3; fd < 256; fd++)
			if (fd != to[0] && fd != from[1])
				close(fd);
		_exit(child(variant, to[0], from[1]));
	}
	close(to[0]);
	close(from[1]);
	w->in = to[1];
	w->out = from[0];
	return 0;
}

static uint64_t turn(const struct worker *w)
{
	uint64_t took;

	if (write(w->in, "g", 1) != 1 || read(w->out, &took, sizeof(took)) != sizeof(took))
		return 0;
	return took;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void stop(struct worker *w, int *worst)
{
	int status;

	close(w->in);
	close(w->out);
	waitpid(w->pid, &status, 0);
	if (!WIFEXITED(status))
		*worst = 1;
	else if (WEXITSTATUS(status) > *worst)
		*worst = WEXITSTATUS(status);
}

static double median(double *values, unsigned int nr)
{
	qsort(values, nr, sizeof(*values), by_value);
	return (values[(nr - 1) / 2] + values[nr / 2]) / 2;
}

/* Prints the median of the pairs and its interval. */
static void say(enum variant variant, double *ratio, unsigned int nr, double plain_ns)
{
	unsigned int low = 0;
	double tail = 0, p = 1, middle = median(ratio, nr);

	/* Find the largest rank at which the lower tail of binomial(n, 1/2) is below 2.5 %. */
	for (unsigned int i = 0; i < nr; i++)
		p /= 2;
	while (tail + p < 0.025) {
		tail += p;
		p = p * (nr - low) / (low + 1);
		low++;
	}
	low = low ? low - 1 : 0;
	printf("%-34s median %.4f  95%% interval %.4f .. %.4f  (of %.0f ns a launch)\n",
	       variant_name[variant], middle, ratio[low], ratio[nr - 1 - low], plain_ns);
	fflush(stdout);
}

/*
 * Measures one pair of processes and stores the ratio in *figure. Returns 0, or the exit status of
 * a child.
 */
static int compare(enum variant variant, unsigned int nr_blocks, double *figure, double *plain_ns)
{
	struct worker plain, other;
	double *ratio = calloc(nr_blocks, sizeof(*ratio));
	uint64_t before, took, after = 0;
	unsigned int done = 0;
	int worst = 0;

	if (!ratio || start(&plain, NEVER) || start(&other, variant))
		return 1;
	before = turn(&plain);
	/* The first four blocks are for warming up. */
	for (unsigned int b = 0; b < nr_blocks + 4 && before; b++, before = after) {
		took = turn(&other);
		after = turn(&plain);
		if (!took || !after)
			break;
		if (b >= 4) {
			ratio[done++] = took * 2.0 / (before + after);
			*plain_ns += (double)after / NR_LAUNCHES / nr_blocks;
		}
	}
	stop(&plain, &worst);
	stop(&other, &worst);
	if (done == nr_blocks)
		*figure = median(ratio, nr_blocks);
	else if (!worst)
		worst = 1;
	free(ratio);
	return worst;
}

/*
 * The arguments after the two numbers name the variants to compare. Without such arguments, all
 * variants are compared.
 */
static bool is_wanted(const char *name, char **argv, int argc)
{
	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc <= 3;
}

int main(int argc, char **argv)
{
	unsigned int nr_blocks = argc > 1 ? atoi(argv[1]) : 40,
		     nr_pairs = argc > 2 ? atoi(argv[2]) : 9;
	double figures[100];
	cpu_set_t cpu;

	if (nr_blocks < 10 || nr_blocks > 1000 || nr_pairs < 6 || nr_pairs > 100) {
		fprintf(stderr, "usage: launch_ratio [BLOCKS [PAIRS [NAME ...]]], "
			"10-1000 blocks, 6-100 pairs\n");
		return 2;
	}
	/*
	 * The processes never run at the same time. All use one CPU, so that they have the same
	 * clock frequency and the same cache.
	 */
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	printf("%u pairs of processes, %u blocks of %d launches\n", nr_pairs, nr_blocks,
	       NR_LAUNCHES);
	for (int v = NEVER_AGAIN; v < NR_VARIANTS; v++) {
		double plain_ns = 0;

		if (!is_wanted(variant_name[v], argv, argc))
			continue;
		for (unsigned int pair = 0; pair < nr_pairs; pair++) {
			int failed = compare(v, nr_blocks, &figures[pair], &plain_ns);

			if (failed)
				return failed;
		}
		say(v, figures, nr_pairs, plain_ns / nr_pairs);
	}
	return 0;
}
