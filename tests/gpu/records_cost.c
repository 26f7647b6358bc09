// SPDX-License-Identifier: MIT
/*
 * A CUDA program for tests/gpu/records.sh. It executes its arguments in order, in one context.
 * For each argument, it prints one line. It also runs on the simulated driver.
 *
 * "launch N ROUNDS" launches an empty kernel N times, then waits, and prints the ns per launch.
 * "graph NODES LAUNCHES ROUNDS" launches a graph and prints the ns per node. The records of this
 * graph count only the last kernel. "counted NODES LAUNCHES ROUNDS" does the same with a graph
 * whose records count every kernel. "counts" prints the numbers of launches and their records.
 * "hold SECONDS" prints "holding PID". Then it launches kernels of 1 ms until the program is
 * killed. "steady SECONDS" prints "steady PID PCI", and then launches short kernels until
 * SIGTERM. "busy PID PCI N" calls gpupart_records_busy() N times for the process PID, and prints
 * the ns per call. "order N" makes N launches while a thread watches the records. It prints
 * whether the thread ever saw the payload of a record before the time of the record.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "lib/records/records.h"

/*
 * On the simulated driver, this kernel takes the given number of ns. On a GPU, the kernel is a
 * bounded loop of this duration.
 */
static const char ptx[] =
	".version 6.0\n.target sm_60\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 ns)\n{\n"
	"	.reg .u64 %a, %b, %d;\n	.reg .u32 %n, %i;\n	.reg .pred %p, %q;\n"
	"	mov.u64 %a, %globaltimer;\n	ld.param.u32 %n, [ns];\n	cvt.u64.u32 %d, %n;\n"
	"	mov.u32 %i, 0;\n"
	"again:\n	mov.u64 %b, %globaltimer;\n	sub.u64 %b, %b, %a;\n"
	"	setp.ge.u64 %p, %b, %d;\n	@%p bra done;\n	add.u32 %i, %i, 1;\n"
	"	setp.lt.u32 %q, %i, 1000000;\n	@%q bra again;\n"
	"done:\n	ret;\n}\n"
	".visible .entry gpupart_empty()\n{\n	ret;\n}\n";

#define CALLS(F)                                                             \
	F(cuInit, "cuInit", (unsigned int))                                  \
	F(cuCtxCreate, "cuCtxCreate_v2", (void **, unsigned int, int))       \
	F(cuModuleLoadData, "cuModuleLoadData", (void **, const void *))     \
	F(cuModuleGetFunction, "cuModuleGetFunction", (void **, void *, const char *)) \
	F(cuMemAlloc, "cuMemAlloc_v2", (unsigned long long *, size_t))       \
	F(cuStreamCreate, "cuStreamCreate", (void **, unsigned int))         \
	F(cuStreamSynchronize, "cuStreamSynchronize", (void *))              \
	F(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (void *, int))    \
	F(cuStreamEndCapture, "cuStreamEndCapture", (void *, void **))       \
	F(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                 \
	  (void **, void *, unsigned long long))                             \
	F(cuGraphLaunch, "cuGraphLaunch", (void *, void *))                  \
	F(cuLaunchKernel, "cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int, \
	  unsigned int, unsigned int, unsigned int, unsigned int, void *, void **, void **))

#define DECLARE(call, symbol, args) static int (*call) args;
CALLS(DECLARE)
#undef DECLARE

static void *stream, *spin_kernel, *empty_kernel;
static unsigned long long out, nr_launched;
static volatile sig_atomic_t stop;

#define DO(call) do { \
	int result_ = (call); \
	if (result_) { \
		fprintf(stderr, "records_cost: line %d: %d\n", __LINE__, result_); \
		exit(100); \
	} \
} while (0)

static void setup(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module;

	if (stream)
		return;
#define FIND(call, symbol, args) \
	if (!lib || !(*(void **)&call = dlsym(lib, symbol))) { \
		fprintf(stderr, "records_cost: no %s: %s\n", symbol, dlerror()); \
		exit(100); \
	}
	CALLS(FIND)
	DO(cuInit(0));
	DO(cuCtxCreate(&ctx, 0, 0));
	DO(cuModuleLoadData(&module, ptx));
	DO(cuModuleGetFunction(&spin_kernel, module, "gpupart_census"));
	DO(cuModuleGetFunction(&empty_kernel, module, "gpupart_empty"));
	DO(cuMemAlloc(&out, 4096));
	DO(cuStreamCreate(&stream, 1));
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void launch_empty(void)
{
	DO(cuLaunchKernel(empty_kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

static void launch_spin(unsigned int ns)
{
	void *params[] = { &out, &ns };

	DO(cuLaunchKernel(spin_kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

/* In the first round, the clock frequencies of the GPU rise, so this round does not count. */
static void launches(unsigned int nr, unsigned int rounds)
{
	setup();
	for (unsigned int round = 0; round <= rounds; round++) {
		double start = now();

		for (unsigned int i = 0; i < nr; i++)
			launch_empty();
		DO(cuStreamSynchronize(stream));
		if (round)
			printf("launch %.3f\n", (now() - start) * 1e9 / nr);
	}
	nr_launched += (rounds + 1ull) * nr;
}

/* The records count only the kernels with the same function as the graph's last kernel. */
static void graphs(const char *name, unsigned int nodes, unsigned int nr, unsigned int rounds)
{
	void *graph, *exec;

	setup();
	DO(cuStreamBeginCapture(stream, 2));
	for (unsigned int i = 0; i + 1 < nodes; i++)
		launch_empty();
	if (strcmp(name, "counted"))
		launch_spin(0);
	else
		launch_empty();
	DO(cuStreamEndCapture(stream, &graph));
	DO(cuGraphInstantiate(&exec, graph, 0));
	for (unsigned int round = 0; round <= rounds; round++) {
		double start = now();

		for (unsigned int i = 0; i < nr; i++)
			DO(cuGraphLaunch(exec, stream));
		DO(cuStreamSynchronize(stream));
		if (round)
			printf("%s %.3f\n", name, (now() - start) * 1e9 / nr / nodes);
	}
	nr_launched += (rounds + 1ull) * nr;
}

/* Finds the GPU of this process in its state page. */
static const char *own_pci(struct gpupart *gp)
{
	static struct gpupart_process list[256];
	int nr = gpupart_process_list(gp, list, 256, sizeof(list[0]));

	for (int i = 0; i < nr && i < 256; i++)
		if (list[i].pid == getpid() && *list[i].pci)
			return list[i].pci;
	return "-";
}

/* Reads the records of the process, if it has records. */
static void counts(void)
{
	struct gpupart_records_reader *reader;
	struct gpupart_records r = { .on = false };
	struct gpupart *gp;

	if (gpupart_open(&gp))
		exit(101);
	if (!gpupart_records_open(gp, 0, own_pci(gp), &reader)) {
		gpupart_records_read(gp, reader, &r, sizeof(r));
		gpupart_records_close(reader);
	}
	printf("counts launched %llu on %d issued %" PRIu64 " ended %" PRIu64
	       " outstanding %" PRIu64 " unrecorded %" PRIu64 " unknown %" PRIu64
	       " graphs %" PRIu64 "\n", nr_launched, r.on, r.issued, r.ended, r.outstanding,
	       r.unrecorded, r.unknown, r.graphs);
	gpupart_close(gp);
}

/* At most 64 kernels are queued, and a kernel is running at the time of the kill. */
static void hold(double seconds)
{
	double start = now();
	bool told = false;

	setup();
	launch_spin(1000000);
	DO(cuStreamSynchronize(stream));
	while (now() - start < seconds) {
		for (int i = 0; i < 64; i++)
			launch_spin(1000000);
		if (!told)
			printf("holding %d\n", getpid());
		told = true;
		DO(cuStreamSynchronize(stream));
	}
}

static void stop_now(int signal)
{
	(void)signal;
	stop = 1;
}

static void steady(double seconds)
{
	double start = now();
	struct gpupart *gp;

	setup();
	launch_empty();
	DO(cuStreamSynchronize(stream));
	nr_launched++;
	if (gpupart_open(&gp))
		exit(101);
	signal(SIGTERM, stop_now);
	printf("steady %d %s\n", getpid(), own_pci(gp));
	gpupart_close(gp);
	while (!stop && now() - start < seconds) {
		for (int i = 0; i < 100; i++)
			launch_spin(5000);
		DO(cuStreamSynchronize(stream));
		nr_launched += 100;
	}
}

static void busy(int pid, const char *pci, unsigned int nr)
{
	struct gpupart_records_reader *reader;
	unsigned int nr_busy = 0;
	struct gpupart *gp;
	double start;
	int seen = 0;

	if (gpupart_open(&gp))
		exit(101);
	if (gpupart_records_open(gp, pid, pci, &reader) ||
	    (seen = gpupart_records_busy(gp, reader)) < 0) {
		fprintf(stderr, "records_cost: %s\n", gpupart_error(gp));
		exit(102);
	}
	start = now();
	for (unsigned int i = 0; i < nr && seen >= 0; i++) {
		seen = gpupart_records_busy(gp, reader);
		nr_busy += seen > 0;
	}
	printf("busy %.1f ns, %u of %u\n", (now() - start) * 1e9 / nr, nr_busy, nr);
	gpupart_records_close(reader);
	gpupart_close(gp);
	if (seen < 0)
		exit(102);
}

/* ------------------------------------------------------------------- order */

/*
 * Returns the cells of this process's first stream. This stream has made one launch. If there are
 * no cells, returns NULL.
 */
static const struct records_cell *first_cells(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	const struct records_cell *found = NULL;
	unsigned long begin, end, offset;
	char line[512], mode[8];

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %lx", &begin, &end, mode, &offset) != 4 ||
		    mode[3] != 's' || offset != RECORDS_HEAD || end - begin < RECORDS_REGISTERED ||
		    !strstr(line, "gpupart"))
			continue;
		for (unsigned int ring = 0; ring < RECORDS_NR_LONG && !found; ring++) {
			const struct records_cell *cells = (void *)begin;

			cells += records_first(ring);
			if (records_has(cells, RECORDS_LONG))
				found = cells;
		}
	}
	if (maps)
		fclose(maps);
	return found;
}

static struct {
	const struct records_cell *cells;
	atomic_bool launched;			/* all launches were made and have ended */
	unsigned long long seen, awaited, wrong;
} order;

/* The end times of one stream ascend. So a time that is too early is the old value of the cell. */
static void *order_watch(void *arg)
{
	uint64_t before = atomic_load(&order.cells[0].time);

	(void)arg;
	for (uint64_t seq = RECORDS_LONG + 1;; seq++) {
		const struct records_cell *cell = &order.cells[seq & (RECORDS_LONG - 1)];
		bool awaited = false;
		uint64_t time;

		while (!records_reached(cell, seq)) {
			bool last = atomic_load(&order.launched);

			if (last && !records_reached(cell, seq))
				return NULL;
			awaited = true;
		}
		time = atomic_load_explicit(&cell->time, memory_order_relaxed);
		order.wrong += time < before;
		order.awaited += awaited;
		order.seen++;
		before = time;
	}
}

static void order_launch(unsigned long long nr)
{
	pthread_t watcher;

	setup();
	launch_empty();
	DO(cuStreamSynchronize(stream));
	order.cells = first_cells();
	if (!order.cells) {
		fprintf(stderr, "records_cost: no records here\n");
		exit(101);
	}
	DO(pthread_create(&watcher, NULL, order_watch, NULL));
	for (unsigned long long i = 0; i < nr; i++)
		launch_empty();
	DO(cuStreamSynchronize(stream));
	atomic_store(&order.launched, true);
	pthread_join(watcher, NULL);
	nr_launched += nr + 1;
	printf("order launched %llu seen %llu awaited %llu wrong %llu\n", nr, order.seen,
	       order.awaited, order.wrong);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		const char *a = i + 1 < argc ? argv[i + 1] : "1";
		const char *b = i + 2 < argc ? argv[i + 2] : "1";
		const char *c = i + 3 < argc ? argv[i + 3] : "1";

		if (!strcmp(word, "launch")) {
			launches(atoi(a), atoi(b));
			i += 2;
		} else if (!strcmp(word, "graph") || !strcmp(word, "counted")) {
			graphs(word, atoi(a), atoi(b), atoi(c));
			i += 3;
		} else if (!strcmp(word, "counts")) {
			counts();
		} else if (!strcmp(word, "hold")) {
			hold(atof(a));
			i++;
		} else if (!strcmp(word, "steady")) {
			steady(atof(a));
			i++;
		} else if (!strcmp(word, "order")) {
			order_launch(strtoull(a, NULL, 10));
			i++;
		} else if (!strcmp(word, "busy")) {
			busy(atoi(a), b, atoi(c));
			i += 3;
		} else {
			fprintf(stderr, "records_cost: '%s'?\n", word);
			return 2;
		}
	}
	return 0;
}
