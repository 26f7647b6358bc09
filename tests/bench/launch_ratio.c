// SPDX-License-Identifier: MIT
/*
 * What a launch costs with the callback against without. Processes of their own, made
 * before any of them touches CUDA: one never subscribes, the others do; they take
 * turns in short blocks on an otherwise idle GPU, so that drifts of the machine meet
 * all alike. Only the launch calls are timed, not the wait for the GPU. A process
 * with a known delay planted in front of each launch shows what the method can see.
 *
 * Prints a line a variant: the median of the ratios to the never-subscribed process's
 * neighbouring blocks, and a 95% interval of that median (binomial, no distribution
 * assumed).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <gpupart.h>

#define NR_LAUNCHES	256
#define PLANTED_NS	100

typedef int CU;
typedef void *P;

static const char ptx[] =
	".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_empty()\n{ ret; }\n";

enum variant {
	NEVER,
	NEVER_AGAIN,
	NOTHING_SET,
	PROCESS_SET,
	STREAM_SET,
	LIMIT_AND_STREAM,
	PLANTED,
	NR_VARIANTS
};

static const char *const variant_name[NR_VARIANTS] = {
	"never subscribed",
	"never subscribed, a second process",
	"subscribed, nothing set",
	"a process set",
	"a stream set",
	"a limit and a stream set",
	"never subscribed, 100 ns planted",
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* In the child: waits for a byte, launches, answers with the nanoseconds that took. */
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
	if (variant >= NOTHING_SET && variant <= LIMIT_AND_STREAM) {
		if (gpupart_attach(gp, "cuda:0", &gpu)) {
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
		/* The ends of those started before too: else nobody would see the other side close. */
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

int main(int argc, char **argv)
{
	unsigned int nr_blocks = argc > 1 ? atoi(argv[1]) : 40, nr_turns = 0;
	struct worker workers[NR_VARIANTS];
	double (*ratio)[NR_VARIANTS];
	int status, worst = 0;

	ratio = calloc(nr_blocks, sizeof(*ratio));
	if (!ratio || nr_blocks < 10)
		return 2;
	for (int v = 0; v < NR_VARIANTS; v++)
		if (start(&workers[v], v))
			return 1;
	for (unsigned int b = 0; b < nr_blocks + 4; b++) {
		uint64_t took[NR_VARIANTS], before, after;

		for (int v = 1; v < NR_VARIANTS; v++) {
			/* Between two blocks of the plain process: its mean is the measure. */
			before = turn(&workers[NEVER]);
			took[v] = turn(&workers[v]);
			after = turn(&workers[NEVER]);
			if (!before || !took[v] || !after)
				goto reap;
			if (b >= 4)	/* the first four warm up */
				ratio[b - 4][v] = took[v] * 2.0 / (before + after);
		}
		took[NEVER] = before;
		if (b == nr_blocks + 3)
			printf("never subscribed: %.0f ns a launch (last block)\n",
			       (double)before / NR_LAUNCHES);
		nr_turns++;
	}
	for (int v = 1; v < NR_VARIANTS; v++) {
		double *sorted = malloc(nr_blocks * sizeof(*sorted));
		unsigned int low = 0, high;
		double tail = 0, p = 1;

		for (unsigned int b = 0; b < nr_blocks; b++)
			sorted[b] = ratio[b][v];
		qsort(sorted, nr_blocks, sizeof(*sorted), by_value);
		/* The largest rank whose binomial(n, 1/2) lower tail stays below 2.5%. */
		for (unsigned int i = 0; i < nr_blocks; i++)
			p /= 2;
		while (tail + p < 0.025) {
			tail += p;
			p = p * (nr_blocks - low) / (low + 1);
			low++;
		}
		low = low ? low - 1 : 0;
		high = nr_blocks - 1 - low;
		printf("%-36s median %.4f  95%% interval %.4f .. %.4f\n", variant_name[v],
		       (sorted[(nr_blocks - 1) / 2] + sorted[nr_blocks / 2]) / 2, sorted[low],
		       sorted[high]);
		free(sorted);
	}
	fflush(stdout);
reap:
	for (int v = 0; v < NR_VARIANTS; v++) {
		close(workers[v].in);
		waitpid(workers[v].pid, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) > worst)
			worst = WEXITSTATUS(status);
	}
	if (!nr_turns && !worst)
		worst = 1;
	return worst;
}
