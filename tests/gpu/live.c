// SPDX-License-Identifier: MIT
/*
 * On a GPU, tests a limit that another process sets. Measures the time until a launch uses a new
 * limit, on an idle queue. In the same run, it measures the time to create a green context. It
 * also kills 1000 processes that set limits, and some processes that launch. After these kills,
 * limits and launches must still be correct. The blocks of a kernel record their SMs. For
 * scripts, `live launch FILE` launches until FILE is removed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "tests/tap.h"

typedef int CUresult;
typedef void *handle;
typedef unsigned long long cuda_ptr;

#define U unsigned int
#define FUNCTIONS(F) \
	F(cuInit, (U)) F(cuDevicePrimaryCtxRetain, (handle *, int)) F(cuCtxSetCurrent, (handle)) \
	F(cuCtxSynchronize, (void)) F(cuModuleLoadData, (handle *, const void *)) \
	F(cuModuleGetFunction, (handle *, handle, const char *)) \
	F(cuMemAllocHost_v2, (void **, size_t)) \
	F(cuLaunchKernel, (handle, U, U, U, U, U, U, U, handle, void **, void **)) \
	F(cuDeviceGetDevResource, (int, void *, int)) \
	F(cuDevSmResourceSplitByCount, (void *, U *, const void *, void *, U, U)) \
	F(cuDevResourceGenerateDesc, (handle *, void *, U)) \
	F(cuGreenCtxCreate, (handle *, handle, int, U)) F(cuGreenCtxDestroy, (handle))

#define DECLARE(name, args) static CUresult (*name) args;
FUNCTIONS(DECLARE)

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry where(.param .u64 out)\n{\n"
	".reg .u64 at; .reg .u32 sm, block;\n"
	"ld.param.u64 at, [out]; mov.u32 sm, %smid; mov.u32 block, %ctaid.x;\n"
	"mad.wide.u32 at, block, 4, at; st.global.u32 [at], sm;\nret;\n}\n";

#define BLOCKS	64
#define ROUNDS	400
#define KILLS	1000

static struct gpupart *gp;
static handle where;
static U *smids;

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

static int driver_start(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	handle ctx, module;

	if (!lib)
		return -1;
#define FIND(name, args) *(void **)&name = dlsym(lib, #name);
	FUNCTIONS(FIND)
	return cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) ||
	       cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&where, module, "where") ||
	       cuMemAllocHost_v2((void **)&smids, BLOCKS * sizeof(*smids));
}

/*
 * Makes one launch. Stores the time when the driver's function returned in *called. Stores the
 * TPCs that ran the launch.
 */
static int launch(const struct gpupart_topology *topo, struct gpupart_tpcset *seen, double *called)
{
	void *params[] = { &smids };

	if (cuLaunchKernel(where, BLOCKS, 1, 1, 32, 1, 1, 0, NULL, params, NULL))
		return -1;
	*called = now_us();
	if (cuCtxSynchronize())
		return -1;
	memset(seen, 0, sizeof(*seen));
	for (int i = 0; i < BLOCKS; i++)
		gpupart_tpcset_add(seen, gpupart_topology_sm_tpc(topo, smids[i]));
	return 0;
}

/* Shared memory of the two processes. */
struct shared {
	char pci[20];
	struct gpupart_tpcset a, b;
	atomic_int ready, go, done, stop;
	struct gpupart_tpcset seen;
	double called;
	atomic_ulong nr_launches, nr_wrong;
	struct gpupart_tpcset wrong;	/* the set of the first wrong launch */
};

static struct shared *shared;

static bool in_either(const struct gpupart_tpcset *seen)
{
	return gpupart_tpcset_subset(seen, &shared->a) || gpupart_tpcset_subset(seen, &shared->b);
}

/*
 * The launching process. When @go changes, the process makes one launch. If @all_the_time is
 * true, the process launches all the time. After a change of @go, each launch must be completely
 * in one of the two sets.
 */
static void be_launcher(bool all_the_time)
{
	const struct gpupart_topology *topo;
	struct gpupart_gpu *gpu;
	double called;
	int asked = 0;

	if (gpupart_open(&gp) || driver_start() || gpupart_attach(gp, "cuda:0", NULL, &gpu) ||
	    gpupart_process_publish(gp, "live")) {
		printf("# the launching process: %s\n", gp ? gpupart_error(gp) : "");
		fflush(stdout);
		_exit(1);
	}
	topo = gpupart_gpu_topology(gpu);
	if (!shared->pci[0]) {
		snprintf(shared->pci, sizeof(shared->pci), "%s", gpupart_topology_info(topo)->pci);
		shared->a = gpupart_topology_gpc(topo, 0)->tpcs;
		shared->b = gpupart_topology_gpc(topo, 2)->tpcs;
	}
	if (gpupart_limit_set(gp, gpu, NULL) || launch(topo, &shared->seen, &called))
		_exit(2);
	atomic_store(&shared->ready, 1);
	while (!atomic_load_explicit(&shared->stop, memory_order_acquire)) {
		int go = atomic_load_explicit(&shared->go, memory_order_acquire);

		if (go == asked && !all_the_time)
			continue;
		if (launch(topo, &shared->seen, &shared->called))
			_exit(3);
		atomic_fetch_add(&shared->nr_launches, 1);
		if (all_the_time && go && !in_either(&shared->seen) &&
		    !atomic_fetch_add(&shared->nr_wrong, 1))
			shared->wrong = shared->seen;
		if (go != asked)
			atomic_store_explicit(&shared->done, go, memory_order_release);
		asked = go;
	}
	exit(0);
}

static pid_t start_launcher(bool all_the_time)
{
	pid_t pid;

	atomic_store(&shared->ready, 0);
	atomic_store(&shared->stop, 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		be_launcher(all_the_time);
	for (int i = 0; i < 30000 && !atomic_load(&shared->ready); i++) {
		usleep(1000);
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return -1;
	}
	return atomic_load(&shared->ready) ? pid : -1;
}

static void end_launcher(pid_t pid, int sig)
{
	atomic_store(&shared->stop, 1);
	if (sig)
		kill(pid, sig);
	waitpid(pid, NULL, 0);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, unsigned int nr)
{
	qsort(values, nr, sizeof(*values), by_value);
	return values[nr / 2];
}

/* ------------------------------------------------------------------- green contexts */

/*
 * In a process that confines launches, the driver refuses green contexts. So this test runs in a
 * child.
 */
static void test_green(double *shortest)
{
	double *took = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		unsigned char all[256] = { 0 }, part[256] = { 0 };
		handle desc, green;
		U nr = 1;

		if (driver_start() || !cuGreenCtxCreate || cuDeviceGetDevResource(0, all, 1) ||
		    cuDevSmResourceSplitByCount(part, &nr, all, NULL, 0, 16))
			_exit(1);
		for (int i = 0; i < 20; i++) {
			double start = now_us();

			if (cuDevResourceGenerateDesc(&desc, part, 1) ||
			    cuGreenCtxCreate(&green, desc, 0, 1))
				_exit(2);
			took[i] = now_us() - start;
			cuGreenCtxDestroy(green);
		}
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	*shortest = took[0] > 0 ? median(took, 20) : 0;
	munmap(took, 4096);
}

/* ---------------------------------------------------------------------------- latency */

static void test_latency(void)
{
	double total[ROUNDS], write[ROUNDS], green;
	struct gpupart_remote *remote;
	unsigned int wrong = 0;
	pid_t pid = start_launcher(false);
	int err;

	if (!tap_ok(pid > 0, "a process launches"))
		return;
	err = gpupart_remote_open(gp, pid, shared->pci, &remote);
	if (!tap_ok(!err, "its limit is found: %s", err ? gpupart_error(gp) : ""))
		return;
	for (int i = 0; i < ROUNDS; i++) {
		const struct gpupart_tpcset *set = i % 2 ? &shared->a : &shared->b;
		double start;

		usleep(500);
		start = now_us();
		err |= gpupart_remote_set(gp, remote, set, NULL);
		write[i] = now_us() - start;
		atomic_store_explicit(&shared->go, i + 1, memory_order_release);
		while (atomic_load_explicit(&shared->done, memory_order_acquire) != i + 1)
			;
		total[i] = shared->called - start;
		wrong += !gpupart_tpcset_subset(&shared->seen, set);
	}
	gpupart_remote_close(remote);
	tap_ok(!err && !wrong, "%d sets from outside: each next launch obeys", ROUNDS);
	test_green(&green);
	printf("# gpupart_remote_set: median %.2f us\n", median(write, ROUNDS));
	/*
	 * median() has sorted the times. Hosts have different absolute times, but nearly the same
	 * ratio.
	 */
	printf("# from before the write until a launch uses the new set: median %.2f us, ",
	       median(total, ROUNDS));
	printf("99%% %.2f us\n", total[ROUNDS * 99 / 100]);
	if (green > 0)
		tap_ok(green > 50 * total[ROUNDS / 2],
		       "a new green context takes more than 50 times as long: %.0f us", green);
	else
		tap_skip("no green contexts here");
	end_launcher(pid, 0);
}

/* ------------------------------------------------------------------------------ kills */

static pid_t start_setter(pid_t of, unsigned int seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		for (;;)
			if (gpupart_process_limit_set(gp, of, shared->pci,
						      rand_r(&seed) % 2 ? &shared->a : &shared->b,
						      NULL))
				_exit(1);
	return pid;
}

static bool is_listed(pid_t pid)
{
	static struct gpupart_process list[256];
	int nr = gpupart_process_list(gp, list, 256, sizeof(struct gpupart_process));
	bool listed = false;

	for (int i = 0; i < nr && i < 256; i++)
		listed |= list[i].pid == pid;
	return listed;
}

static void test_kills(void)
{
	unsigned int seed = 5, nr_left = 0, nr_unlisted = 0, nr_launchers = 0;
	char list[GPUPART_TPCSET_STRLEN];
	pid_t pid, setter;
	int err;

	atomic_store(&shared->go, 0);
	pid = start_launcher(true);
	if (!tap_ok(pid > 0, "a process launches all the time"))
		return;
	err = gpupart_process_limit_set(gp, pid, shared->pci, &shared->a, NULL);
	usleep(10000);
	atomic_store(&shared->go, 1);
	for (int n = 1; n <= KILLS; n++) {
		setter = start_setter(pid, n);
		usleep(rand_r(&seed) % 2000);
		kill(setter, SIGKILL);
		waitpid(setter, NULL, 0);
		if (n % 100)
			continue;
		nr_unlisted += !is_listed(pid);
		end_launcher(pid, SIGKILL);
		nr_launchers++;
		nr_left += is_listed(pid);
		atomic_store(&shared->go, 0);
		pid = start_launcher(true);
		if (pid < 0)
			break;
		err |= gpupart_process_limit_set(gp, pid, shared->pci, &shared->a, NULL);
		usleep(10000);
		atomic_store(&shared->go, 1);
	}
	tap_ok(pid > 0 && !err && !nr_unlisted && !nr_left,
	       "%d setters and %u launchers killed: %u not listed, %u left", KILLS, nr_launchers,
	       nr_unlisted, nr_left);
	gpupart_tpcset_format_list(&shared->wrong, list, sizeof(list));
	tap_ok(!atomic_load(&shared->nr_wrong), "%lu launches meanwhile, %lu in neither set%s%s",
	       atomic_load(&shared->nr_launches), atomic_load(&shared->nr_wrong),
	       *list ? ", the first on TPCs " : "", list);
	end_launcher(pid, 0);
}

/*
 * Launches repeatedly. If the TPCs of a launch differ from the TPCs of the previous launch,
 * prints the new TPCs.
 */
static int launch_until_gone(const char *file)
{
	struct gpupart_tpcset seen, last = { { 0 } };
	char list[GPUPART_TPCSET_STRLEN];
	struct gpupart_topology *topo;
	double called;

	if (gpupart_open(&gp) || driver_start() ||
	    gpupart_topology_open(gp, "rm", getenv("GPUPART_GPU"), &topo)) {
		fprintf(stderr, "live: cannot launch: %s\n", gp ? gpupart_error(gp) : "");
		return 1;
	}
	while (!access(file, F_OK)) {
		if (launch(topo, &seen, &called))
			return 2;
		if (!gpupart_tpcset_subset(&seen, &last)) {
			gpupart_tpcset_format_list(&seen, list, sizeof(list));
			printf("%s\n", list);
			fflush(stdout);
			last = seen;
		}
		usleep(1000);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "launch"))
		return launch_until_gone(argv[2]);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (access("/dev/nvidiactl", F_OK)) {
		printf("1..0 # SKIP no NVIDIA driver here\n");
		return 77;
	}
	if (shared == MAP_FAILED || gpupart_open(&gp))
		return 1;
	test_latency();
	test_kills();
	return tap_done();
}
