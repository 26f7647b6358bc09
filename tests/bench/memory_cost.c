// SPDX-License-Identifier: MIT
/*
 * Measures the cost of an allocation with a memory quota, relative to an allocation without a
 * quota. Two processes take turns in short blocks on an otherwise idle GPU. So drifts of the
 * machine affect both processes equally. Each block begins with calls that are not timed. The
 * figure of a pair is the median of the ratios of neighbouring blocks. The output is the median
 * over several pairs. The output also has the median for two processes without a quota, which
 * shows the error of the method.
 *
 *         bench-memory_cost [PART OF A NAME, TO SELECT WORKLOADS]
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define NR_BLOCKS	60
#define NR_PAIRS	7
#define LIMIT		1.05
#define QUOTA		(20ull << 30)

typedef int CU;
typedef void *P;

static CU (*alloc)(uint64_t *, size_t);
static CU (*release)(uint64_t);
static CU (*alloc_async)(uint64_t *, size_t, P);
static CU (*free_async)(uint64_t, P);
static CU (*stream_sync)(P);
static CU (*pool_of)(P *, int);
static CU (*pool_set)(P, int, void *);

static P stream;
static uint64_t keep;

struct kind {
	const char *name;
	size_t bytes;
	unsigned int calls;
	bool async;
};

/* In each workload, a call pair is an allocation and the free of this allocation. */
static const struct kind kinds[] = {
	{ "cuMemAlloc, 1 KiB out of a slab", 1 << 10, 2000, false },
	{ "cuMemAlloc, 256 KiB out of a slab", 256 << 10, 2000, false },
	{ "cuMemAlloc, 2 MiB", 2 << 20, 200, false },
	{ "cuMemAlloc, 64 MiB", 64 << 20, 50, false },
	{ "cuMemAllocAsync, 1 KiB out of a pool", 1 << 10, 2000, true },
	{ "cuMemAllocAsync, 1 MiB out of a pool", 1 << 20, 2000, true },
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int begin(bool quota)
{
	CU (*init)(unsigned int), (*get)(int *, int), (*ctx_create)(P *, unsigned int, int);
	CU (*stream_create)(P *, unsigned int);
	uint64_t keep_all = UINT64_MAX;
	struct gpupart *gp;
	int device;
	P ctx, pool;
	void *lib;

	if (quota && (gpupart_open(&gp) || gpupart_memory_start(gp, NULL, QUOTA))) {
		fprintf(stderr, "no quota: %s\n", gpupart_error(gp));
		return -1;
	}
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib)
		return -1;
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&get = dlsym(lib, "cuDeviceGet");
	*(void **)&ctx_create = dlsym(lib, "cuCtxCreate_v2");
	*(void **)&stream_create = dlsym(lib, "cuStreamCreate");
	*(void **)&stream_sync = dlsym(lib, "cuStreamSynchronize");
	*(void **)&alloc = dlsym(lib, "cuMemAlloc_v2");
	*(void **)&release = dlsym(lib, "cuMemFree_v2");
	*(void **)&alloc_async = dlsym(lib, "cuMemAllocAsync");
	*(void **)&free_async = dlsym(lib, "cuMemFreeAsync");
	*(void **)&pool_of = dlsym(lib, "cuDeviceGetDefaultMemPool");
	*(void **)&pool_set = dlsym(lib, "cuMemPoolSetAttribute");
	if (init(0) || get(&device, 0) || ctx_create(&ctx, 0, device) ||
	    stream_create(&stream, 1) || pool_of(&pool, device) || pool_set(pool, 4, &keep_all) ||
	    alloc(&keep, 1 << 10))
		return -1;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Returns the time for a pair of calls, in ns. If a call failed, returns 0. */
static double block(const struct kind *kind, unsigned int calls)
{
	uint64_t address, start = now_ns();

	for (unsigned int i = 0; i < calls; i++)
		if (kind->async ? alloc_async(&address, kind->bytes, stream) ||
					  free_async(address, stream) :
				  alloc(&address, kind->bytes) || release(address))
			return 0;
	return (double)(now_ns() - start) / calls;
}

static void serve(bool quota, int from, int to)
{
	uint32_t kind;
	double ns = begin(quota) ? 0 : 1;

	if (write(to, &ns, sizeof(ns)) < 0)
		_exit(1);
	while (read(from, &kind, sizeof(kind)) == sizeof(kind)) {
		ns = block(&kinds[kind], kinds[kind].calls / 4);
		if (ns)
			ns = block(&kinds[kind], kinds[kind].calls);
		stream_sync(stream);
		if (write(to, &ns, sizeof(ns)) < 0)
			_exit(1);
	}
	_exit(0);
}

struct server {
	pid_t pid;
	int to, from;
};

static double answer(struct server *server)
{
	double ns = 0;

	return read(server->from, &ns, sizeof(ns)) == sizeof(ns) ? ns : 0;
}

static bool server_start(struct server *server, bool quota)
{
	int down[2], up[2];

	*server = (struct server){ -1, -1, -1 };
	if (pipe(down) || pipe(up))
		return false;
	server->pid = fork();
	if (!server->pid) {
		close(down[1]);
		close(up[0]);
		serve(quota, down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	server->to = down[1];
	server->from = up[0];
	return answer(server);
}

static void server_end(struct server *server)
{
	close(server->to);
	close(server->from);
	waitpid(server->pid, NULL, 0);
}

static double ask(struct server *server, uint32_t kind)
{
	return write(server->to, &kind, sizeof(kind)) == sizeof(kind) ? answer(server) : 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned int nr)
{
	qsort(values, nr, sizeof(*values), by_size);
	return values[nr / 2];
}

/*
 * Returns the ratio of the second process's time to the first process's time. If a call failed,
 * returns 0.
 */
static double ratio(struct server *plain, struct server *other, uint32_t kind, double *ns)
{
	double ratios[NR_BLOCKS], plains[NR_BLOCKS];

	for (int i = 0; i < NR_BLOCKS; i++) {
		double before = ask(plain, kind), is = ask(other, kind), after = ask(plain, kind);

		if (!before || !is || !after)
			return 0;
		plains[i] = (before + after) / 2;
		ratios[i] = is / plains[i];
	}
	*ns = median(plains, NR_BLOCKS);
	return median(ratios, NR_BLOCKS);
}

static bool pairs(uint32_t kind, bool quota, double *found, double *ns)
{
	double ratios[NR_PAIRS];

	for (int i = 0; i < NR_PAIRS; i++) {
		struct server plain, other;
		bool good = server_start(&plain, false) && server_start(&other, quota);

		ratios[i] = good ? ratio(&plain, &other, kind, ns) : 0;
		/*
		 * End the second process first, because it has inherited the pipes of the first
		 * process.
		 */
		server_end(&other);
		server_end(&plain);
		if (!ratios[i])
			return false;
	}
	*found = median(ratios, NR_PAIRS);
	return true;
}

int main(int argc, char **argv)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%-42s %10s %10s %10s\n", "an allocation and its free", "ns", "ratio", "of equals");
	for (uint32_t kind = 0; kind < NR_KINDS; kind++) {
		double with, equal, ns;

		if (argc > 1 && !strstr(kinds[kind].name, argv[1]))
			continue;
		if (!pairs(kind, true, &with, &ns) || !pairs(kind, false, &equal, &ns)) {
			printf("%-42s a call failed\n", kinds[kind].name);
			failed = 1;
			continue;
		}
		printf("%-42s %10.0f %10.4f %10.4f  %s\n", kinds[kind].name, ns, with, equal,
		       with <= LIMIT ? "ok" : "above 1.05");
		failed |= with > LIMIT;
	}
	return failed;
}
