// SPDX-License-Identifier: MIT
/*
 * Measures the cost of confinement on the host, and the cost of alternatives. Covers launches,
 * sets, changes by another process, green contexts and MPS. Some measurements cannot share a
 * process. They run in child processes, before this process uses CUDA.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/bench/bench.h"
#include "cli/util/alloc.h"

/* -------------------------------------------------------------------- launches */

#define NR_LAUNCHES	256
#define NR_WARM		128
#define MAX_BLOCKS	64
#define MAX_GROUPS	9

enum variant { NEVER, NEVER_AGAIN, NOTHING_SET, PROCESS_SET, STREAM_SET, NR_VARIANTS };

static const char *const variant_name[NR_VARIANTS] = {
	"never attached", "never attached, second process", "attached, no set",
	"a process set", "a stream set",
};

struct worker {
	pid_t pid;
	int fd;			/* this process's end of the socket to the child */
};

static int worker_ready(struct bench *b, enum variant variant, void **stream)
{
	struct gpupart_tpcset half;
	int err = (variant <= NEVER_AGAIN ? bench_start(b) : bench_attach(b)) ?:
		  CU(b, cuStreamCreateWithPriority, stream, DRIVER_STREAM_NON_BLOCKING, 0);

	if (err || variant <= NOTHING_SET)
		return err;
	half = sets_packed(b->topo, (gpupart_topology_nr_tpcs(b->topo) + 1) / 2);
	if (variant == STREAM_SET)
		return bench_stream_set(b, *stream, &half);
	return bench_library(b, gpupart_process_set(cmd_gp, b->gpu, &half));
}

/* Makes @nr empty launches. Stores the time of the host for all launches, in ns, in *@took. */
static int launch_empty(struct bench *b, void *stream, unsigned int nr, double *took)
{
	double start = bench_now_us();
	int err = 0;

	for (unsigned int i = 0; !err && i < nr; i++)
		err = b->cu.cuLaunchKernel(b->function[BENCH_EMPTY], 1, 1, 1, 32, 1, 1, 0, stream,
					   NULL, NULL);
	*took = (bench_now_us() - start) * 1e3;
	return err ? err : b->cu.cuStreamSynchronize(stream);
}

/*
 * Runs in a child. The child makes launches for each byte that it receives. Then the child sends
 * the time of these launches.
 */
static void __attribute__((noreturn))
be_worker(struct bench *b, enum variant variant, int cpu, int fd)
{
	double took, warm;
	cpu_set_t one;
	void *stream;
	char go;
	int err = worker_ready(b, variant, &stream);

	/*
	 * Run all children on one CPU. The children never run at the same time. So they have the
	 * same clock and cache.
	 */
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	/* If the time is negative, this child could not start. */
	took = err ? -1 : 0;
	if (write(fd, &took, sizeof(took)) != sizeof(took) || err)
		_exit(1);
	while (read(fd, &go, 1) == 1) {
		if (launch_empty(b, stream, NR_WARM, &warm) ||
		    launch_empty(b, stream, NR_LAUNCHES, &took) ||
		    write(fd, &took, sizeof(took)) != sizeof(took))
			_exit(1);
	}
	_exit(0);
}

static int worker_start(struct bench *b, enum variant variant, int cpu, struct worker *w,
			const struct worker *others)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return bench_fail(b, -errno, "cannot create a socket: %s", strerror(errno));
	fflush(NULL);
	w->pid = fork();
	if (w->pid < 0)
		return bench_fail(b, -errno, "cannot create a process: %s", strerror(errno));
	if (!w->pid) {
		/*
		 * Close the sockets of earlier children. Otherwise those children would not notice
		 * that the parent has closed its end.
		 */
		for (; others < w; others++)
			close(others->fd);
		close(ends[0]);
		be_worker(b, variant, cpu, ends[1]);
	}
	close(ends[1]);
	w->fd = ends[0];
	return 0;
}

static void workers_stop(struct worker *workers, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		close(workers[i].fd);
		waitpid(workers[i].pid, NULL, 0);
	}
}

static bool turn(const struct worker *w, double *took)
{
	return send(w->fd, "g", 1, MSG_NOSIGNAL) == 1 &&
	       read(w->fd, took, sizeof(*took)) == sizeof(*took);
}

/*
 * Measures one process for each variant. The processes take turns. In each turn, a variant's time
 * is divided by the first variant's time. The result is the median of these ratios.
 */
static int measure_group(struct bench *b, double ratio[NR_VARIANTS], double ns[NR_VARIANTS])
{
	double took[NR_VARIANTS][MAX_BLOCKS], ratios[NR_VARIANTS][MAX_BLOCKS], ready;
	unsigned int nr_blocks = bench_count(b, 40, 12), nr = 0, done = 0;
	struct worker workers[NR_VARIANTS];
	int err = 0, cpu = sched_getcpu();

	while (!err && nr < NR_VARIANTS) {
		err = worker_start(b, nr, cpu, &workers[nr], workers);
		nr += !err;
	}
	for (unsigned int v = 0; !err && v < nr; v++)
		if (read(workers[v].fd, &ready, sizeof(ready)) != sizeof(ready) || ready < 0)
			err = bench_fail(b, -ECHILD, "the benchmark's process '%s' did not start",
					 variant_name[v]);
	/* The first two turns warm up the GPU. */
	for (unsigned int block = 0; !err && block < nr_blocks + 2; block++) {
		for (unsigned int v = 0; !err && v < NR_VARIANTS; v++)
			if (!turn(&workers[v], &took[v][done]))
				err = bench_fail(b, -ECHILD, "the process '%s' died",
						 variant_name[v]);
		done += !err && block >= 2;
	}
	workers_stop(workers, nr);
	for (int v = 0; !err && v < NR_VARIANTS; v++) {
		for (unsigned int block = 0; block < done; block++)
			ratios[v][block] = took[v][block] / took[NEVER][block];
		ratio[v] = stats_median(ratios[v], done);
	}
	for (int v = 0; !err && v < NR_VARIANTS; v++)
		ns[v] = stats_median(took[v], done) / NR_LAUNCHES;
	return err;
}

static int measure_launches(struct bench *b, json_t *report)
{
	double ratio[NR_VARIANTS][MAX_GROUPS], ns[NR_VARIANTS][MAX_GROUPS], r[NR_VARIANTS],
		t[NR_VARIANTS];
	unsigned int nr_groups = bench_count(b, 5, 2);
	json_t *table;
	int err = 0;

	if (b->simulated)
		nr_groups = 1;
	for (unsigned int g = 0; !err && g < nr_groups; g++) {
		err = measure_group(b, r, t);
		for (int v = 0; !err && v < NR_VARIANTS; v++) {
			ratio[v][g] = r[v];
			ns[v][g] = t[v];
		}
	}
	if (err)
		return err;
	table = report_table(report, "One launch (host time)",
			     "process|ns|ratio to never attached|lowest|highest");
	for (int v = 0; v < NR_VARIANTS; v++) {
		struct stats s = stats_of(ratio[v], nr_groups);

		report_row(table, "[s,f,f,f,f]", variant_name[v], stats_median(ns[v], nr_groups),
			   s.median, s.min, s.max);
		if (v == STREAM_SET)
			report_mean(report, "A launch with a set takes %.3f times the host time "
				    "of a launch in a process that was never attached.", s.median);
	}
	report_note(report,
		    "There are %u groups of processes. Each process makes %d launches, and the "
		    "processes of a group take turns on one CPU. Two processes of each group "
		    "were never attached: they show how much the times of equal processes differ.",
		    nr_groups, NR_LAUNCHES);
	return 0;
}

/* ----------------------------------------------------------- changes from outside */

struct shared {
	struct gpupart_tpcset sets[2];
	char pci[20];
	atomic_int ready, go, done, nr_wrong;
	double called;
	int err;		/* If the launching process cannot start, it sets this member. */
	char why[512];
};

static void __attribute__((noreturn)) be_launcher(struct bench *b, struct shared *shared)
{
	struct kernel kernel = { .code = BENCH_HOLD, .blocks = 64, .threads = 32, .n = 1 };
	struct slots slots;
	int asked = 0, err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = bench_attach(b);
	if (!err && !b->sets.nr_tpcs)
		err = bench_fail(b, -EOPNOTSUPP, "this GPU has only one TPC");
	if (!err)
		err = bench_library(b, gpupart_process_publish(cmd_gp, "bench")) ?:
		      slots_open(b, &slots, 1);
	if (!err) {
		shared->sets[0] = sets_packed(b->topo, b->sets.nr_tpcs);
		shared->sets[1] = sets_packed(b->topo, b->sets.nr_tpcs * 2);
		shared->sets[1] = gpupart_tpcset_andnot(&shared->sets[1], &shared->sets[0]);
		snprintf(shared->pci, sizeof(shared->pci), "%s", b->pci);
	}
	shared->err = err;
	snprintf(shared->why, sizeof(shared->why), "%s", err ? b->why : "");
	atomic_store(&shared->ready, err ? -1 : 1);
	while (!err) {
		int go = atomic_load_explicit(&shared->go, memory_order_acquire);
		struct gpupart_tpcset seen;

		if (go == asked)
			continue;
		err = kernel_launch(b, NULL, &kernel, &slots, 0);
		shared->called = bench_now_us();
		if (!err)
			err = CU(b, cuCtxSynchronize) ?: slots_fetch(&slots);
		seen = slot_tpcs(b, &slots.host[0]);
		if (err || !gpupart_tpcset_subset(&seen, &shared->sets[go % 2]))
			atomic_fetch_add(&shared->nr_wrong, 1);
		if (!err)
			err = slots_clear(&slots);
		asked = go;
		atomic_store_explicit(&shared->done, go, memory_order_release);
	}
	_exit(0);
}

/* Does not reap an ended process. So no other process gets its pid. */
static bool is_running(pid_t pid)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

static int change_often(struct bench *b, struct shared *shared, pid_t pid, json_t *report)
{
	enum { MAX_ROUNDS = 400 };
	double write_us[MAX_ROUNDS], total_us[MAX_ROUNDS];
	unsigned int nr = bench_count(b, MAX_ROUNDS, 100);
	struct gpupart_remote *remote;
	struct stats s;
	int err = bench_library(b, gpupart_remote_open(cmd_gp, pid, shared->pci, &remote));

	if (err)
		return err;
	for (unsigned int i = 0; !err && i < nr; i++) {
		int go = i + 1;
		double start;

		usleep(500);
		start = bench_now_us();
		err = bench_library(b, gpupart_remote_set(cmd_gp, remote, &shared->sets[go % 2],
							  NULL));
		write_us[i] = bench_now_us() - start;
		atomic_store_explicit(&shared->go, go, memory_order_release);
		while (atomic_load_explicit(&shared->done, memory_order_acquire) != go)
			if (sched_yield() || !is_running(pid)) {
				gpupart_remote_close(remote);
				return bench_fail(b, -ECHILD, "the launching process died");
			}
		total_us[i] = shared->called - start;
	}
	gpupart_remote_close(remote);
	if (err)
		return err;
	s = stats_of(total_us, nr);
	report_figure(report, OVERHEAD_TABLE, "change from outside: time of the write",
		      stats_median(write_us, nr), "us");
	report_figure(report, OVERHEAD_TABLE, OUTSIDE_ROW, s.median, "us");
	report_figure(report, OVERHEAD_TABLE, "the same, 99%", s.p99, "us");
	report_check(report, true, "launches after a change from outside that used the old set",
		     atomic_load(&shared->nr_wrong), REPORT_AT_MOST, 0);
	return 0;
}

static int measure_outside(struct bench *b, json_t *report)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int err;

	if (shared == MAP_FAILED)
		return bench_fail(b, -errno, "cannot allocate shared memory: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid)
		be_launcher(b, shared);
	if (pid < 0) {
		err = bench_fail(b, -errno, "cannot create a process: %s", strerror(errno));
		goto unmap_shared;
	}
	for (int i = 0; i < 60000 && !atomic_load(&shared->ready) && is_running(pid); i++)
		usleep(1000);
	if (atomic_load(&shared->ready) == 1)
		err = change_often(b, shared, pid, report);
	else
		err = bench_fail(b, shared->err ? shared->err : -ECHILD,
				 "the launching process: %s",
				 *shared->why ? shared->why : "it did not start");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
unmap_shared:
	munmap(shared, sizeof(*shared));
	return err;
}

/* --------------------------------------------------------------------------- sets */

static int call_sets(struct bench *b, int which, void *stream, const struct gpupart_tpcset *set,
		     unsigned int nr)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < nr; i++)
		err = which == 0 ? gpupart_process_set(cmd_gp, b->gpu, set) :
		      which == 1 ? gpupart_stream_set(cmd_gp, b->gpu, stream, set) :
		      which == 2 ? gpupart_thread_set(cmd_gp, b->gpu, set) :
				   gpupart_next_set(cmd_gp, b->gpu, set);
	return bench_library(b, err);
}

static int measure_sets(struct bench *b, json_t *report)
{
	static const char *const names[] = { "set of the process", "set of a stream",
					     "set of the thread", "set of the next launch" };
	enum { NR_BLOCKS = 21 };
	unsigned int nr = bench_count(b, 20000, 2000);
	struct gpupart_tpcset half = sets_packed(b->topo, (b->sets.nr_tpcs + 1));
	void *stream;
	int err = bench_stream(b, &half, &stream);

	for (int which = 0; !err && which < 4; which++) {
		double ns[NR_BLOCKS];

		for (int i = 0; !err && i < NR_BLOCKS; i++) {
			double start = bench_now_us();

			err = call_sets(b, which, stream, &half, nr);
			ns[i] = (bench_now_us() - start) * 1e3 / nr;
		}
		if (!err)
			report_figure(report, OVERHEAD_TABLE, names[which],
				      stats_median(ns, NR_BLOCKS), "ns");
	}
	return err;
}

/* ------------------------------------------------------------- the whole part */

static json_t *find_row(const json_t *report, const char *what)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report_find_table(report, OVERHEAD_TABLE),
					   "rows"), i, row)
		if (!strcmp(json_string_value(json_array_get(row, 0)), what))
			return row;
	return NULL;
}

/* Writes a sentence with the measured figures. */
static void explain_changes(json_t *report)
{
	static const struct {
		const char *row, *words;
	} all[] = {
		{ "set of a stream", "a set of a stream" },
		{ OUTSIDE_ROW, "a change from outside until a launch uses it" },
		{ GREEN_ROW, "a new green context" },
		{ PROCESS_ROW, "a new process" },
		{ MPS_ROW, "a restart of MPS" },
	};
	char text[512] = "";

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		json_t *row = find_row(report, all[i].row);
		char number[32];

		if (!row)
			continue;
		report_number(json_real_value(json_array_get(row, 1)), number);
		out_append(text, sizeof(text), "%s%s %s %s", *text ? "; " : "", all[i].words,
			   number, json_string_value(json_array_get(row, 2)));
	}
	if (*text)
		report_mean(report, "Times to change a partition: %s.", text);
}

/* Stores the first error. The measurements are independent, so later measurements still run. */
struct first {
	int err;
	char why[512];
};

static void measure_next(struct bench *b, json_t *report, const char *what, int err,
			 struct first *first)
{
	if (!err)
		return;
	report_note(report, "%s: %s: %s", what, err == -EOPNOTSUPP ? "skipped" : "failed", b->why);
	if (err == -EOPNOTSUPP || first->err)
		return;
	first->err = err;
	snprintf(first->why, sizeof(first->why), "%s", b->why);
}

int bench_overhead(struct bench *b, json_t *report)
{
	struct first first = { 0 };
	int err;

	report_table(report, OVERHEAD_TABLE, "what|median|unit");
	measure_next(b, report, "launches", measure_launches(b, report), &first);
	measure_next(b, report, "changes from outside", measure_outside(b, report), &first);
	measure_next(b, report, "green contexts", overhead_green(b, report), &first);
	measure_next(b, report, "MPS", overhead_mps(b, report), &first);
	err = bench_attach(b) ?: measure_sets(b, report);
	measure_next(b, report, "sets", err, &first);
	explain_changes(report);
	return first.err ? bench_fail(b, first.err, "%s", first.why) : 0;
}
