// SPDX-License-Identifier: MIT
/*
 * Tests a program on two GPUs. A thread launches on a stream, and the context of this stream is
 * not current. The sets of the stream's GPU must apply.
 */
#include "lib/private.h"
#include "tests/lib/scenario.h"

static struct gpupart_gpu *second;
static const struct gpupart_topology *topo;
static struct gpupart_tpcset some;

static bool attach_both(void)
{
	if (!tap_ok(!attach("cuda:0") && !gpupart_attach(gp, "cuda:1", NULL, &second),
	    "attaches both"))
		return false;
	topo = gpupart_gpu_topology(second);
	some = list("0-3");
	return true;
}

/* Makes @current current, and then launches. Reads the records in the context of the launch. */
static void runs_on(struct program *p, P stream, P current, const struct gpupart_tpcset *want,
		    const char *what)
{
	static struct { unsigned int smid, cluster; U64 start, end; } records[4096];
	unsigned int blocks = 2 * gpupart_topology_nr_sms(topo);
	struct gpupart_tpcset seen = { { 0 } };
	struct gpupart_counters before, after;
	char text[GPUPART_TPCSET_STRLEN];

	gpupart_counters_get(&before);
	if (!tap_ok(!cuCtxSetCurrent(current) && !program_launch(p, stream, blocks, 1000) &&
			    !cuCtxSetCurrent(p->ctx) && !cuStreamSynchronize(stream) &&
			    !cuMemcpyDtoH(records, p->out, blocks * sizeof(records[0])),
		    "%s: launches", what))
		return;
	gpupart_counters_get(&after);
	for (unsigned int b = 0; b < blocks; b++)
		gpupart_tpcset_add(&seen, gpupart_topology_sm_tpc(topo, records[b].smid));
	gpupart_tpcset_format_list(&seen, text, sizeof(text));
	tap_ok(gpupart_tpcset_equal(&seen, want) && after.confined == before.confined + 1 &&
		       after.unconfinable_gpu == before.unconfinable_gpu,
	       "%s: ran on TPCs %s", what, text);
}

/* While this context is current, the program makes no launch in it. */
static void child_made_after(void)
{
	struct program first, p;
	P stream;

	if (!attach_both() || !tap_ok(!program_start(&first, 0) && !program_start(&p, 1) &&
				      !cuStreamCreate(&stream, 1), "a context on each"))
		return;
	tap_ok(!gpupart_limit_set(gp, second, &some), "a limit on the second");
	runs_on(&p, stream, first.ctx, &some, "made after the attach");
}

static void child_stream_made_after(void)
{
	struct program first, p;
	P stream;

	if (!tap_ok(!driver_open() && !program_start(&first, 0) && !program_start(&p, 1) &&
			    !cuCtxSetCurrent(first.ctx), "a context on each") ||
	    !attach_both() ||
	    !tap_ok(!cuCtxSetCurrent(p.ctx) && !cuStreamCreate(&stream, 1), "a stream"))
		return;
	tap_ok(!gpupart_limit_set(gp, second, &some), "a limit on the second");
	runs_on(&p, stream, first.ctx, &some, "a stream made after the attach");
}

static void child_stream_set(void)
{
	struct program first, p;
	P stream;

	if (!tap_ok(!driver_open() && !program_start(&p, 1) && !cuStreamCreate(&stream, 1) &&
			    !program_start(&first, 0), "a context on each") ||
	    !attach_both())
		return;
	tap_ok(!gpupart_stream_set(gp, second, stream, &some), "a set on a stream of the second");
	runs_on(&p, stream, first.ctx, &some, "all made before the attach");
}

static void child_current_at_attach(void)
{
	struct program first, p;
	P stream;

	if (!tap_ok(!driver_open() && !program_start(&first, 0) && !program_start(&p, 1) &&
			    !cuStreamCreate(&stream, 1), "a context on each") ||
	    !attach_both())
		return;
	tap_ok(!gpupart_limit_set(gp, second, &some), "a limit on the second");
	runs_on(&p, stream, first.ctx, &some, "the one that was current");
}

/* The driver reuses the memory of a destroyed context of the first GPU. */
static void child_in_place(void)
{
	struct program first, gone, p;
	P stream;

	if (!attach_both() || !tap_ok(!program_start(&first, 0) && !program_start(&gone, 0) &&
				      !cuStreamCreate(&stream, 1), "two contexts on the first"))
		return;
	tap_ok(!cuCtxDestroy(gone.ctx) && !program_start(&p, 1) && !cuStreamCreate(&stream, 1) &&
		       p.ctx == gone.ctx, "one of the second stands where one of them did");
	tap_ok(!gpupart_limit_set(gp, second, &some), "a limit on the second");
	runs_on(&p, stream, first.ctx, &some, "it is the second's");
}

/*
 * Only the first GPU is attached. If the GPU of a launch is known, the first GPU stays idle.
 * Otherwise the launch may run on the first GPU, so this GPU is busy.
 */
static void child_unknown(void)
{
	struct gpupart_records_reader *reader;
	struct gpupart_counters counters;
	struct program first, p;
	P stream;

	if (!tap_ok(!driver_open() && !program_start(&first, 0) && !program_start(&p, 1) &&
			    !cuStreamCreate(&stream, 1) && !cuCtxSetCurrent(first.ctx),
		    "a context on each") ||
	    !tap_ok(!attach("cuda:0") &&
			    !gpupart_records_open(gp, getpid(), gpupart_topology_info(
					gpupart_gpu_topology(gpu))->pci, &reader) &&
			    !gpupart_records_busy(gp, reader), "attaches the first GPU: idle"))
		return;
	tap_ok(!cuCtxSetCurrent(p.ctx) && !program_launch(&p, stream, 1, 1000) &&
		       !cuCtxSetCurrent(first.ctx) && !gpupart_records_busy(gp, reader),
	       "a launch in a current context of the second: the first is idle");
	tap_ok(!program_launch(&p, stream, 1, 1000) && gpupart_records_busy(gp, reader) == 1,
	       "a launch in a context that is not current: the first is busy");
	gpupart_counters_get(&counters);
	tap_ok(counters.unconfinable_gpu == 2, "both are counted");
}

static const struct scenario scenarios[] = {
	{ "made-after", child_made_after, "@b:@e", { NULL }, NULL },
	{ "stream-made-after", child_stream_made_after, "@b:@e", { NULL }, NULL },
	{ "stream-set", child_stream_set, "@b:@e", { NULL }, NULL },
	{ "current-at-attach", child_current_at_attach, "@b:@e", { NULL }, NULL },
	{ "unknown", child_unknown, "@b:@e", { NULL }, NULL },
	{ "in-place", child_in_place, "@b:@e", { "GPUPART_SIM_FAULTS=reuse-contexts" }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
