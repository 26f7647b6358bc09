// SPDX-License-Identifier: MIT
/*
 * Tests records of programs on the simulated GPU. It tests the complete path from the launch
 * callback to a reader.
 */
#include <pthread.h>
#include <signal.h>
#include "lib/private.h"
#include "tests/lib/scenario.h"

#define NR_THREADS	4
#define NR_LAUNCHES	300

static struct program p;
static P streams[NR_THREADS];

static const char *pci(void)
{
	return gpupart_topology_info(gpupart_gpu_topology(gpu))->pci;
}

static bool read_of(int pid, struct gpupart_records *r, int *busy)
{
	struct gpupart_records_reader *reader;
	bool good = !gpupart_records_open(gp, pid, pci(), &reader);

	memset(r, 0, sizeof(*r));
	if (!good) {
		printf("# %s\n", gpupart_error(gp));
		return false;
	}
	good = !gpupart_records_read(gp, reader, r, sizeof(*r));
	*busy = r->on ? gpupart_records_busy(gp, reader) : -1;
	gpupart_records_close(reader);
	return good;
}

/* If the read values are wrong, prints the values. */
static bool reads(int pid, uint64_t issued, uint64_t outstanding, uint64_t unknown)
{
	struct gpupart_records r;
	int busy;
	bool same = read_of(pid, &r, &busy) && r.on && r.issued == issued &&
		    r.outstanding == outstanding && r.ended + outstanding == issued &&
		    r.unknown == unknown && busy == (outstanding || unknown);

	if (!same)
		printf("# on %d issued %llu ended %llu outstanding %llu unknown %llu\n",
		       r.on, (U64)r.issued, (U64)r.ended, (U64)r.outstanding,
		       (U64)r.unknown);
	return same;
}

static const char *lack(void)
{
	static char why[256];

	gpupart_records_lack(gpu, why, sizeof(why));
	return why;
}

static void *launch_some(void *arg)
{
	long bad = cuCtxSetCurrent(p.ctx);

	for (int i = 0; i < NR_LAUNCHES; i++)
		bad |= program_launch(&p, *(P *)arg, 1 + i % 7, 100);
	return (void *)bad;
}

static bool launch_all(void)
{
	pthread_t threads[NR_THREADS];
	void *bad, *any = NULL;

	for (int t = 0; t < NR_THREADS; t++)
		pthread_create(&threads[t], NULL, launch_some, &streams[t]);
	for (int t = 0; t < NR_THREADS; t++) {
		pthread_join(threads[t], &bad);
		any = any ? any : bad;
	}
	for (int t = 0; t < NR_THREADS; t++)
		any = any ? any : (void *)(long)cuStreamSynchronize(streams[t]);
	return !any;
}

static bool begin(void)
{
	bool good = !gpupart_open(&gp) && !gpupart_process_publish(gp, "records") &&
		    !attach("cuda:0") && !program_start(&p, 0);

	for (int t = 0; t < NR_THREADS; t++)
		good = good && !cuStreamCreate(&streams[t], 1);
	return tap_ok(good, "a program");
}

/* The child of a fork has no separate records. It can read its parent's records. */
static bool child_reads(uint64_t issued)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct gpupart_records r;
		bool bad;
		int busy;

		bad = !reads(getppid(), issued, 0, 0) || (read_of(0, &r, &busy) && r.on);
		fflush(stdout);
		_exit(bad);
	}
	waitpid(pid, &status, 0);
	if (status)
		printf("# the child: status %#x\n", status);
	return !status;
}

static void counts(void)
{
	const uint64_t all = NR_THREADS * NR_LAUNCHES;
	struct gpupart_records r;
	int busy;

	if (!begin() || !tap_ok(!*lack(), "records are on: %s", lack()))
		return;
	tap_ok(reads(0, 0, 0, 0), "nothing was launched");
	tap_ok(launch_all(), "it launches on %d streams", NR_THREADS);
	tap_ok(reads(0, all, 0, 0), "each launch has a record, and has ended");
	tap_ok(read_of(0, &r, &busy) && r.nr_functions == 1 &&
	       !strcmp(r.functions[0].name, "gpupart_census") &&
	       r.functions[0].count + r.untimed == all && r.busy_ns && r.last_end_ns &&
	       r.busy_ns <= r.kernels_ns, "%llu of %s, busy for %llu ns",
	       (U64)r.functions[0].count, r.functions[0].name, (U64)r.busy_ns);
	for (int t = 0; t < NR_THREADS; t++)
		tap_ok(!gpupart_records_stream(gp, gpu, streams[t], &r, sizeof(r)) && r.on &&
		       r.issued == NR_LAUNCHES && r.ended == NR_LAUNCHES && r.busy_ns &&
		       r.busy_ns == r.kernels_ns, "stream %d had a quarter of them, %llu ns", t,
		       (U64)r.busy_ns);
	tap_ok(gpupart_records_stream(gp, gpu, NULL, &r, sizeof(r)) == -EINVAL,
	       "no default stream: %s", gpupart_error(gp));
	tap_ok(child_reads(all), "another process reads the same");
	tap_ok(launch_all() && reads(0, 2 * all, 0, 0), "and it goes on");
}

#define GRAPH_CALLS(F)                                                       \
	F(begin_capture, "cuStreamBeginCapture_v2", (P, int))                \
	F(end_capture, "cuStreamEndCapture", (P, P *))                       \
	F(instantiate, "cuGraphInstantiateWithFlags", (P *, P, U64))         \
	F(graph_launch, "cuGraphLaunch", (P, P))

#define DECLARE(call, symbol, args) static CU (*call) args;
GRAPH_CALLS(DECLARE)

static void graphs(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	struct gpupart_records r;
	P graph, exec;
	int busy;

#define FIND_GRAPH(call, symbol, args) *(void **)&call = dlsym(lib, symbol);
	GRAPH_CALLS(FIND_GRAPH)
	if (!begin())
		return;
	tap_ok(!begin_capture(streams[0], 2) && !program_launch(&p, streams[0], 1, 100) &&
	       !program_launch(&p, streams[0], 1, 100) && !end_capture(streams[0], &graph) &&
	       !instantiate(&exec, graph, 0), "a graph of two kernels");
	tap_ok(reads(0, 0, 0, 0), "which is no launch");
	for (int i = 0; i < 5; i++)
		if (graph_launch(exec, streams[0]) || cuStreamSynchronize(streams[0]))
			tap_ok(false, "launch %d", i);
	tap_ok(read_of(0, &r, &busy) && r.issued == 5 && r.ended == 5 && !r.graphs && !r.unknown &&
	       r.all_known && !busy, "is launched 5 times, which have ended");
	tap_ok(!program_launch(&p, streams[0], 1, 100) && !cuStreamSynchronize(streams[0]) &&
	       reads(0, 6, 0, 0), "and a launch beside it");
}

/* With a limit and without a limit, the result must be the same. */
static void sets(void)
{
	struct gpupart_tpcset set;

	if (!begin())
		return;
	set = list("0-3");
	tap_ok(!gpupart_limit_set(gp, gpu, &set) && ran_on(&p, streams[0], &set), "a limit");
	tap_ok(reads(0, 1, 0, 0), "the launch in it has a record");
	set = list("2");
	tap_ok(!gpupart_next_set(gp, gpu, &set) && ran_on(&p, streams[0], &set) &&
	       reads(0, 2, 0, 0), "so has one with a next-launch set");
	tap_ok(!gpupart_thread_set(gp, gpu, &set) && ran_on(&p, streams[1], &set) &&
	       reads(0, 3, 0, 0), "and one of a thread with a set of its own");
}

static void contexts(void)
{
	P stream, ctx[2];
	int dev;

	if (!begin())
		return;
	tap_ok(!program_launch(&p, streams[0], 1, 100) && !cuStreamSynchronize(streams[0]) &&
	       reads(0, 1, 0, 0), "a launch");
	tap_ok(!cuCtxDestroy(p.ctx) && reads(0, 1, 0, 0), "its context goes");
	for (int i = 0; i < 40; i++)
		if (program_start(&p, 0) || cuStreamCreate(&stream, 1) ||
		    program_launch(&p, stream, 1, 100) || cuStreamSynchronize(stream) ||
		    cuCtxDestroy(p.ctx))
			tap_ok(false, "context %d", i);
	tap_ok(reads(0, 41, 0, 0), "40 more, one after the other");
	tap_ok(!cuDeviceGet(&dev, 0) && !cuCtxCreate(&ctx[0], 0, dev) &&
	       !cuCtxCreate(&ctx[1], 0, dev) && !cuCtxDestroy(ctx[1]), "two at once");
}

/* The library must read and write no records, and launches must run like before. */
static bool is_off(const char *why)
{
	struct gpupart_tpcset all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	struct gpupart_records r;
	int busy;

	if (!strstr(lack(), why))
		printf("# %s\n", lack());
	return strstr(lack(), why) && launch_all() && ran_on(&p, streams[0], &all) &&
	       read_of(0, &r, &busy) && !r.on && !r.issued && !r.unrecorded;
}

static void switched_off(void)
{
	char path[128];

	if (!begin())
		return;
	tap_ok(is_off("GPUPART_RECORDS=0"), "GPUPART_RECORDS=0: launches run, and have none");
	snprintf(path, sizeof(path), "ls /dev/shm/gpupart-%u | grep -q '^%d[.].*records'",
		 geteuid(), getpid());
	tap_ok(system(path), "and there is no file of them");
}

static void slots_busy(void)
{
	if (begin())
		tap_ok(is_off("that should be free is in use"), "slots in use: off");
}

static void wrong(void)
{
	if (begin())
		tap_ok(is_off("the GPU wrote no record"), "the row's places do not hold: off");
}

/* Proves the records before the faults begin. So the faults do no harm. */
static void proves(void)
{
	if (begin())
		tap_ok(!*lack(), "records are on");
}

static void prepare(const struct scenario *scenario)
{
	struct scenario before = { "proves", proves, scenario->sim, { NULL }, NULL };

	tap_ok(!child_quiet(&before), "%s: proven before", scenario->name);
}

static void busy_later(void)
{
	const uint64_t all = NR_THREADS * NR_LAUNCHES;
	struct gpupart_records r;
	int busy;

	if (!begin() || !tap_ok(!*lack(), "records are on"))
		return;
	tap_ok(launch_all() && read_of(0, &r, &busy) && !r.issued && r.unrecorded == all &&
	       r.unknown == all && busy == 1, "slots in use: unrecorded, and unknown is busy");
}

static void lost(void)
{
	const uint64_t all = NR_THREADS * NR_LAUNCHES;
	struct gpupart_records r;
	int busy;

	if (!begin() || !tap_ok(!*lack(), "records are on"))
		return;
	tap_ok(launch_all() && read_of(0, &r, &busy) && r.issued + r.unrecorded == all &&
	       r.outstanding == r.issued && r.issued && busy == 1,
	       "records that never come: busy, for %llu launches", (U64)r.outstanding);
}

/* A program that does not use gpupart. */
static void injected(void)
{
	static struct gpupart_process list[256];
	int i = 0, nr;
	struct gpupart_records_reader *reader;
	struct gpupart_records r;
	P stream;

	gpupart_open(&gp);
	if (!tap_ok(!driver_open() && !program_start(&p, 0) && !cuStreamCreate(&stream, 1),
		    "a program"))
		return;
	for (int n = 0; n < 100; n++)
		program_launch(&p, stream, 1, 100);
	cuStreamSynchronize(stream);
	nr = gpupart_process_list(gp, list, 256, sizeof(list[0]));
	while (i < nr && i < 256 && list[i].pid != getpid())
		i++;
	tap_ok(i < nr && i < 256 && !gpupart_records_open(gp, 0, list[i].pci, &reader) &&
	       !gpupart_records_read(gp, reader, &r, sizeof(r)), "it is read");
	tap_ok(r.on && r.issued == 100 && r.ended == 100 && !r.unknown,
	       "on %d: its launches have records, %llu of %llu ended, %llu unrecorded", r.on,
	       (U64)r.ended, (U64)r.issued, (U64)r.unrecorded);
}

/* The process is killed while kernels run. */
static void killed(void)
{
	char byte, left[1024] = "ls /dev/shm/gpupart-$(id -u) | grep -qE '";
	size_t len = strlen(left);
	unsigned int nr = 0;
	int ready[2];

	gpupart_open(&gp);
	for (int i = 0; i < 30; i++) {
		pid_t pid;

		if (pipe(ready))
			break;
		fflush(stdout);
		pid = fork();
		if (!pid) {
			tap_count = 1;
			if (freopen("/dev/null", "w", stdout) && begin() && !*lack() &&
			    write(ready[1], "", 1) == 1)
				for (;;)
					launch_all();
			_exit(1);
		}
		close(ready[1]);
		nr += read(ready[0], &byte, 1) == 1;
		close(ready[0]);
		usleep(i * 300);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		len += snprintf(left + len, sizeof(left) - len, "%s%d[.]", i ? "|^" : "^", pid);
	}
	snprintf(left + len, sizeof(left) - len, "'");
	tap_ok(nr == 30, "%u programs are killed while they launch", nr);
	gpupart_process_list(gp, NULL, 0, sizeof(struct gpupart_process));
	tap_ok(nr == 30 && system(left) == 1 << 8,
	       "and nothing is left of them");
}

/*
 * A separate process checks the map. Gets the map's key from this process, so that the cache of
 * this test stays empty.
 */
static bool learn_key(char found[20])
{
	struct gpupart_check check;
	int ends[2], status = 1;
	bool got;
	pid_t pid;

	if (pipe(ends))
		return false;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (attach(NULL))
			_exit(1);
		gpupart_gpu_check(gpu, &check);
		_exit(write(ends[1], check.key, 20) != 20);
	}
	close(ends[1]);
	got = read(ends[0], found, 20) == 20;
	close(ends[0]);
	return got && waitpid(pid, &status, 0) == pid && !status;
}

/* Like in a container, there is no cache. The process gets the proof from its parent. */
static void told(void)
{
	static const struct {
		const char *behind, *lacks;
	} rows[] = {
		{ "", "completion records were not checked yet on this GPU and driver" },
		{ "0", "completion records were not checked yet on this GPU and driver" },
		{ GPUPART_KEY_RECORDS, "no context was seen yet" },
	};
	char found[20] = "", whole[24], why[256];

	if (!tap_ok(learn_key(found) && strlen(found) == GPUPART_KEY_LEN,
		    "the key is %s", found))
		return;
	setenv("XDG_CACHE_HOME", "/nonexistent", 1);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int status;

		snprintf(whole, sizeof(whole), "%s%s", found, rows[i].behind);
		fflush(stdout);
		if (!fork()) {
			if (gpupart_open(&gp) || driver_open() || cuInit(0) ||
			    gpupart_attach_early(gp, NULL, whole, &gpu))
				_exit(1);
			gpupart_records_lack(gpu, why, sizeof(why));
			_exit(strcmp(why, rows[i].lacks) ? 2 : 0);
		}
		wait(&status);
		tap_ok(!status, "key '%s': %s", whole, rows[i].lacks);
	}
}

static const struct scenario scenarios[] = {
	{ "proves", proves, "@b", { NULL }, NULL },
	{ "counts", counts, "@b", { NULL }, NULL },
	{ "graphs", graphs, "@b", { NULL }, NULL },
	{ "sets", sets, "@b", { NULL }, NULL },
	{ "contexts", contexts, "@b", { NULL }, NULL },
	{ "contexts-again", contexts, "@b", { "GPUPART_SIM_FAULTS=reuse-contexts" }, NULL },
	{ "off", switched_off, "@b", { "GPUPART_RECORDS=0" }, NULL },
	{ "slots-busy", slots_busy, "@b", { "GPUPART_SIM_FAULTS=release-busy" }, NULL },
	{ "wrong", wrong, "@b", { "GPUPART_SIM_FAULTS=release-wrong=0" }, NULL },
	{ "busy-later", busy_later, "@b", { "GPUPART_SIM_FAULTS=release-busy" }, prepare },
	{ "lost", lost, "@b", { "GPUPART_SIM_FAULTS=release-lost" }, prepare },
	{ "late", counts, "@b", { "GPUPART_SIM_FAULTS=release-torn=1,host-clock" }, NULL },
	{ "injected", injected, "@b", { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=0-3" },
	  prepare },
	{ "killed", killed, "@b", { NULL }, NULL },
	{ "told", told, "@b", { NULL }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
