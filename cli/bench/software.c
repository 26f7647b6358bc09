// SPDX-License-Identifier: MIT
/*
 * Compares two ways to limit a program to a share of the GPU: a mask and a software limit. With a
 * software limit, the program launches fewer blocks, and each block does more work. Measures times,
 * and finds out which SMs run blocks.
 */
#include <errno.h>
#include "cli/bench/bench.h"

#define VICTIM_US	400
#define NEIGHBOUR_US	2000
#define WAVES		8
#define BLOCKS_PER_SM	2

struct software {
	struct bench *b;
	struct meter meter;
	struct kernel plain, loops; /* kernels of the victim: original, and with loops */
	json_t *table, *chart;
	json_t *alone, *beside;
};

struct row {
	const char *name;
	const struct kernel *kernel;
	const struct gpupart_tpcset *set;	/* set of the victim; NULL: no mask */
	bool neighbour_masked;
};

struct outcome {
	double alone, slowdown;
	double tail;	/* next to a neighbour: 99% quantile divided by the median */
};

/*
 * Counts the SMs that ran blocks of the victim in the last series. Counts the SMs that ran blocks
 * of both programs.
 */
static void count_sms(const struct software *s, unsigned int *nr, unsigned int *nr_common)
{
	struct slot mine = { 0 }, theirs = { 0 };

	for (unsigned int i = 0; i < s->meter.nr; i++)
		for (int w = 0; w < SLOT_SM_WORDS; w++)
			mine.sms[w] |= s->meter.slots.host[i].sms[w];
	for (unsigned int i = 0; i < s->meter.neighbour.slots.nr; i++)
		for (int w = 0; w < SLOT_SM_WORDS; w++)
			theirs.sms[w] |= s->meter.neighbour.slots.host[i].sms[w];
	*nr = slot_nr_sms(&mine);
	for (int w = 0; w < SLOT_SM_WORDS; w++)
		mine.sms[w] &= theirs.sms[w];
	*nr_common = slot_nr_sms(&mine);
}

/*
 * Limits the neighbour to the other share of the GPU. Uses either a mask or the number of blocks.
 * This share can hold all blocks of the neighbour.
 */
static int size_neighbour(struct software *s, const struct row *row, struct gpupart_tpcset *set,
			  struct kernel *kernel)
{
	struct gpupart_tpcset all = gpupart_topology_all(s->b->topo);
	void *stream = s->meter.neighbour.streams[0];
	unsigned int nr_sms;
	int err;

	*set = s->b->sets.of[SETS_REST].neighbour;
	nr_sms = topology_nr_sms(s->b->topo, set);
	err = bench_stream_set(s->b, stream, row->neighbour_masked ? set : NULL) ?:
	      workload_neighbour(&s->meter.work, WORK_FMA, nr_sms, stream, NEIGHBOUR_US, kernel);
	if (err || row->neighbour_masked)
		return err;
	kernel->code = BENCH_VIRTUAL;
	kernel->mask = kernel->blocks;
	kernel->blocks = nr_sms * BLOCKS_PER_SM;
	*set = all;
	return 0;
}

static int measure(struct software *s, const struct row *row, struct outcome *outcome)
{
	struct gpupart_tpcset neighbour_set, all = gpupart_topology_all(s->b->topo);
	unsigned int nr_sms_alone, nr_sms, nr_common, none;
	struct kernel neighbour;
	struct cell cell;
	int err, stopped;

	err = meter_alone(&s->meter, row->kernel, row->set, &cell.alone, NULL);
	count_sms(s, &nr_sms_alone, &none);
	if (!err)
		err = size_neighbour(s, row, &neighbour_set, &neighbour) ?:
		      bench_stream_set(s->b, s->meter.victim, row->set) ?:
		      neighbour_start(&s->meter.neighbour, &neighbour,
				      row->neighbour_masked ? &neighbour_set : NULL);
	if (err)
		return err;
	err = bench_series(s->b, s->meter.victim, row->kernel, &s->meter.slots, s->meter.nr,
			   s->meter.us);
	stopped = neighbour_stop(&s->meter.neighbour);
	if (err || stopped)
		return err ? err : stopped;
	cell.beside = stats_of(s->meter.us, s->meter.nr);
	count_sms(s, &nr_sms, &nr_common);
	outcome->alone = cell.alone.median;
	outcome->slowdown = cell.alone.median > 0 ? cell.beside.median / cell.alone.median : 0;
	outcome->tail = cell.beside.median > 0 ? cell.beside.p99 / cell.beside.median : 0;
	report_row(s->table, "[s,i,f,f,f,f,i,i,i]", row->name,
		   topology_nr_sms(s->b->topo, row->set ? row->set : &all),
		   cell.alone.median, cell.beside.median, cell.beside.p99, outcome->slowdown,
		   nr_sms_alone, nr_sms, nr_common);
	report_bar(s->alone, row->name, cell.alone.median);
	report_bar(s->beside, row->name, cell.beside.median);
	return 0;
}

static int measure_all(struct software *s, json_t *report)
{
	const struct gpupart_tpcset *set = &s->b->sets.of[SETS_REST].victim;
	unsigned int nr_sms = topology_nr_sms(s->b->topo, set);
	const struct row rows[] = {
		{ "mask", &s->plain, set, true },
		{ "loops inside the mask", &s->loops, set, true },
		{ "loops, no mask", &s->loops, NULL, false },
		{ "unchanged, no mask", &s->plain, NULL, false },
	};
	struct outcome outcome[4];
	int err;

	/* The kernel has several waves of blocks on the set. */
	s->plain = (struct kernel){ .code = BENCH_FMA, .threads = 1024,
				    .blocks = nr_sms * BLOCKS_PER_SM * WAVES };
	err = bench_stream_set(s->b, s->meter.victim, set) ?:
	      bench_calibrate(s->b, s->meter.victim, &s->plain, VICTIM_US);
	s->loops = s->plain;
	s->loops.code = BENCH_VIRTUAL;
	s->loops.mask = s->plain.blocks;
	s->loops.blocks = nr_sms * BLOCKS_PER_SM;
	for (int i = 0; !err && i < 4; i++)
		err = measure(s, &rows[i], &outcome[i]);
	if (err)
		return err;
	report_mean(report, "On the same SMs, blocks that loop take %.3f times as long as the "
		    "unchanged kernel with a mask. The kernel must be rewritten to loop. "
		    "Without a mask, blocks run on any SM that has free resources. Next to a "
		    "second such program, the median time of the blocks is %.2f times their solo "
		    "median, and the slowest 1%% take %.1f times the median. With a mask, the "
		    "same two figures are %.3f and %.3f.",
		    outcome[0].alone > 0 ? outcome[1].alone / outcome[0].alone : 0,
		    outcome[2].slowdown, outcome[2].tail, outcome[1].slowdown,
		    outcome[1].tail);
	report_note(report, "The share is %u TPCs with %u SMs: %u blocks of 1024 threads do the "
		    "work of %u blocks. The neighbour gets the other share in the same way: by a "
		    "mask, or by as many blocks as the other SMs can hold. The columns 'SMs "
		    "alone' and 'SMs next to neighbour' count the SMs that ran a block in any of "
		    "the %u launches. The column 'shared SMs' counts the SMs that also ran "
		    "blocks of the neighbour.",
		    s->b->sets.nr_tpcs, nr_sms, s->loops.blocks, s->plain.blocks, s->meter.nr);
	return 0;
}

int bench_software(struct bench *b, json_t *report)
{
	static struct software s;
	int err;

	s.b = b;
	if (*b->sets.of[SETS_REST].why_not)
		return bench_fail(b, -EOPNOTSUPP, "%s", b->sets.of[SETS_REST].why_not);
	s.table = report_table(report, "A share by a mask and by software (us)",
			       "means|SMs allowed|alone|shared|shared 99%|slowdown|"
			       "SMs alone|SMs next to neighbour|shared SMs");
	s.chart = report_chart(report, "software.svg", REPORT_BARS,
			       "The same share by a mask and by software", "",
			       "us for the same work", false);
	s.alone = report_series(s.chart, "alone");
	s.beside = report_series(s.chart, "next to a neighbour");
	err = meter_open(b, &s.meter, bench_count(b, 60, 20));
	if (err)
		return err;
	/* A program with a software limit makes one launch at a time. */
	s.meter.neighbour.nr_streams = 1;
	return measure_all(&s, report);
}
