// SPDX-License-Identifier: MIT
/* This row proves that two streams with disjoint sets run at the same time. */
#include "lib/verify/verify.h"

struct span {
	uint64_t start, end;
};

/*
 * Starts counted work on @stream. The records of this work are stored in slot @slot, which is 0
 * or 1.
 */
static int work_start(struct verify *v, void *stream, unsigned int slot, unsigned int blocks,
		      uint32_t iterations)
{
	struct probe_launch launch = {
		.kernel = PROBE_WORK, .stream = stream, .blocks = blocks, .threads = 256,
		.shared = v->probe->shared, .argument = iterations,
		.records = v->probe->records +
			   slot * (v->probe->max_blocks / 2) * sizeof(struct probe_record),
	};

	return probe_start(v->gp, v->probe, &launch, NULL);
}

static int work_span(struct verify *v, void *stream, unsigned int slot, unsigned int blocks,
		     const struct gpupart_tpcset *set, struct span *span)
{
	const struct probe_record *r = v->probe->host + slot * (v->probe->max_blocks / 2);
	int err = probe_finish(v->gp, v->probe, stream, v->probe->max_blocks);

	if (err)
		return err;
	*span = (struct span){ ~0ull, 0 };
	for (unsigned int b = 0; b < blocks; b++, r++) {
		int tpc = gpupart_topology_sm_tpc(v->topo, r->smid);

		if (tpc < 0 || !gpupart_tpcset_has(set, tpc)) {
			verify_detail(v,
				"TPC %d (SM %u) ran a block of a launch, but the set of the launch's stream does not contain this TPC",
				tpc, r->smid);
			return 1;
		}
		if (r->start < span->start)
			span->start = r->start;
		if (r->end > span->end)
			span->end = r->end;
	}
	return 0;
}

/* Makes one launch on each stream, either one after the other or both at the same time. */
static int pair_ran(struct verify *v, void *const stream[2], const struct gpupart_tpcset set[2],
		    bool at_once, struct span span[2])
{
	enum { ITERATIONS = 400000 };
	int err = 0;

	for (int i = 0; !err && i < 2; i++) {
		err = work_start(v, stream[i], i, topo_sms_in(v->topo, &set[i]), ITERATIONS);
		if (!err && !at_once)
			err = work_span(v, stream[i], i, topo_sms_in(v->topo, &set[i]), &set[i],
					&span[i]);
	}
	for (int i = 0; !err && at_once && i < 2; i++)
		err = work_span(v, stream[i], i, topo_sms_in(v->topo, &set[i]), &set[i], &span[i]);
	return err;
}

static int row_concurrent(struct verify *v)
{
	void *const stream[2] = { v->stream[VERIFY_NON_BLOCKING], v->stream[VERIFY_PRIORITY] };
	const struct gpupart_tpcset set[2] = { verify_third(v, 0), verify_third(v, 1) };
	struct span alone[2], both[2];
	bool holds = false;
	int err = 0;

	for (int i = 0; !err && i < 2; i++)
		err = gpupart_stream_set(v->gp, v->gpu, stream[i], &set[i]);
	/* The first round warms up the GPU. The second round is the measurement. */
	for (int turn = 0; !err && turn < 2; turn++)
		err = pair_ran(v, stream, set, false, alone);
	for (int tries = 0; !err && !holds && tries < 5; tries++) {
		uint64_t start, end, shorter = ~0ull;
		double slower = 0, overlap;

		err = pair_ran(v, stream, set, true, both);
		if (err)
			break;
		start = both[0].start > both[1].start ? both[0].start : both[1].start;
		end = both[0].end < both[1].end ? both[0].end : both[1].end;
		for (int i = 0; i < 2; i++) {
			uint64_t took = both[i].end - both[i].start;
			double ratio = (double)took / (alone[i].end - alone[i].start);

			slower = ratio > slower ? ratio : slower;
			shorter = took < shorter ? took : shorter;
		}
		overlap = end > start ? (double)(end - start) / shorter : 0;
		verify_detail(v,
			"two kernels on %u and %u SMs overlapped for %.0f%% of the run time of the shorter kernel, and the slower kernel took %.3f times its solo time",
			topo_sms_in(v->topo, &set[0]), topo_sms_in(v->topo, &set[1]), overlap * 100,
			slower);
		holds = overlap >= 0.5 && slower <= 1.1;
	}
	for (int i = 0; i < 2; i++)
		gpupart_stream_set(v->gp, v->gpu, stream[i], NULL);
	return err < 0 ? err : holds;
}

const struct verify_row verify_rows_concurrent[] = {
	{ "concurrent", "two streams on disjoint sets run counted work at the same time",
	  row_concurrent, .flags = NEEDS_THREE | NEEDS_STREAMS | SLOW },
	{ 0 }
};
