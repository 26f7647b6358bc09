// SPDX-License-Identifier: MIT
/*
 * Tests gpupart_verify() during a stream capture of the program. All sets and the capture must
 * stay unchanged.
 */
#include "tests/lib/scenario.h"

#define PER_THREAD ((P)2)

static CU (*cuStreamBeginCapture)(P stream, int mode);
static CU (*cuStreamEndCapture)(P stream, P *graph);

static struct gpupart_tpcset process, thread, stream_set, limit, next;
static struct program p;
static P stream, begin_in_row;
static int nr_rows;

static void on_row(const struct gpupart_verify_row *row, void *user)
{
	(void)user;
	nr_rows++;
	if (begin_in_row && !strcmp(row->name, "concurrent"))
		cuStreamBeginCapture(begin_in_row, 2);
}

/* Sets a set in each scope that gpupart_verify() changes. */
static bool start(void)
{
	void *lib;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) && !cuStreamCreate(&stream, 1),
		    "attaches"))
		return false;
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&cuStreamBeginCapture = dlsym(lib, "cuStreamBeginCapture_v2");
	*(void **)&cuStreamEndCapture = dlsym(lib, "cuStreamEndCapture");
	limit = list("0-19");
	process = list("0-3");
	thread = list("4-7");
	stream_set = list("8-11");
	next = list("12-15");
	return tap_ok(!gpupart_limit_set(gp, gpu, &limit) &&
			      !gpupart_process_set(gp, gpu, &process) &&
			      !gpupart_thread_set(gp, gpu, &thread) &&
			      !gpupart_stream_set(gp, gpu, PER_THREAD, &stream_set) &&
			      !gpupart_next_set(gp, gpu, &next),
		      "a set for everything");
}

/* Checks that all sets are unchanged. If @with_stream is true, also checks the stream's set. */
static void all_there(bool with_stream)
{
	struct gpupart_tpcset set;

	tap_ok(gpupart_limit_get(gpu, &set) && gpupart_tpcset_equal(&set, &limit),
	       "the limit is there");
	tap_ok(gpupart_process_get(gpu, &set) && gpupart_tpcset_equal(&set, &process),
	       "the process's set");
	tap_ok(gpupart_thread_get(gpu, &set) && gpupart_tpcset_equal(&set, &thread),
	       "the thread's");
	tap_ok(gpupart_stream_get(gpu, PER_THREAD, &set) == with_stream &&
		       (!with_stream || gpupart_tpcset_equal(&set, &stream_set)),
	       "the default stream's %s", with_stream ? "" : "alone is not");
	tap_ok(ran_on(&p, stream, &next), "the next launch's holds");
	tap_ok(ran_on(&p, stream, &thread), "and then the thread's");
	tap_ok(ran_on(&p, PER_THREAD, with_stream ? &stream_set : &thread),
	       "and on the default stream %s", with_stream ? "its own" : "too");
}

static void refused(P captured)
{
	P graph = NULL;
	int err;

	tap_ok(!cuStreamBeginCapture(captured, 2), "a capture begins");
	err = gpupart_verify(gp, gpu, GPUPART_VERIFY_QUICK, on_row, NULL);
	tap_ok(err == -EBUSY && strstr(gpupart_error(gp), "is being captured") && !nr_rows,
	       "verify refuses, without a row: %d %s", err, gpupart_error(gp));
	tap_ok(!cuStreamEndCapture(captured, &graph) && graph, "the capture is whole");
	all_there(true);
}

static void child_default(void)
{
	if (start())
		refused(PER_THREAD);
}

static void child_blocking(void)
{
	P blocking;

	if (start() && tap_ok(!cuStreamCreate(&blocking, 0), "a stream"))
		refused(blocking);
}

/* The captured stream never waits for a default stream. So verify must not refuse to run. */
static void child_non_blocking(void)
{
	P other, graph = NULL;
	int err;

	if (!start() || !tap_ok(!cuStreamCreate(&other, 1), "a stream"))
		return;
	tap_ok(!cuStreamBeginCapture(other, 2), "a capture begins");
	err = gpupart_verify(gp, gpu, GPUPART_VERIFY_QUICK, on_row, NULL);
	tap_ok(!err && nr_rows > 15, "verify runs beside it: %d %s", err, gpupart_error(gp));
	tap_ok(!cuStreamEndCapture(other, &graph) && graph, "the capture is whole");
	all_there(true);
}

/*
 * The callback begins a capture. It is too late to refuse the call, so all other sets must be
 * restored.
 */
static void child_in_row(void)
{
	P graph = NULL;
	int err;

	if (!start())
		return;
	begin_in_row = PER_THREAD;
	err = gpupart_verify(gp, gpu, GPUPART_VERIFY_QUICK, on_row, NULL);
	tap_ok(err == -EBUSY && strstr(gpupart_error(gp), "could not be restored") && nr_rows > 15,
	       "a capture that begins in the last row: %d %s", err, gpupart_error(gp));
	tap_ok(!cuStreamEndCapture(PER_THREAD, &graph) && graph, "the capture is whole");
	all_there(false);
}

static const struct scenario scenarios[] = {
	{ "default", child_default, "@b", { NULL }, NULL },
	{ "blocking", child_blocking, "@b", { NULL }, NULL },
	{ "non-blocking", child_non_blocking, "@b", { NULL }, NULL },
	{ "in-row", child_in_row, "@b", { NULL }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
