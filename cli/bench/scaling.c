// SPDX-License-Identifier: MIT
/*
 * Measures the same work on sets of different sizes, from one TPC to all TPCs. A set is packed into
 * few GPCs, or spread over all GPCs.
 */
#include <errno.h>
#include <stdio.h>
#include "cli/bench/bench.h"

#define ALL_US	150	/* duration of a launch on all TPCs in us */

static const enum work works[] = { WORK_FMA, WORK_L2, WORK_DRAM };
#define NR_WORKS (sizeof(works) / sizeof(works[0]))

static const char *const form_name[2] = { "packed", "spread" };

struct scaling {
	struct bench *b;
	struct meter meter;
	unsigned int nr_tpcs, sizes[GPUPART_MAX_TPCS], nr_sizes;
	double us[NR_WORKS][2][GPUPART_MAX_TPCS]; /* medians; the last index is the set's size */
};

/*
 * The blocks are small, and there are many more blocks than the SMs can hold. So the time depends
 * on the number of SMs. The effect of an incomplete last wave is small.
 */
static int size_kernel(struct scaling *s, enum work work, struct kernel *kernel)
{
	struct gpupart_tpcset all = gpupart_topology_all(s->b->topo);
	unsigned int nr_sms = topology_nr_sms(s->b->topo, &all);
	int err;

	err = bench_stream_set(s->b, s->meter.victim, NULL) ?:
	      workload_victim(&s->meter.work, work, nr_sms, s->meter.victim, ALL_US, kernel);
	if (err || s->b->simulated)
		return err;
	kernel->threads = 256;
	kernel->blocks = nr_sms * 64;
	err = bench_calibrate(s->b, s->meter.victim, kernel, ALL_US);
	if (kernel->step)
		kernel->step = kernel->blocks * kernel->threads * 4 * kernel->n;
	return err;
}

static int measure(struct scaling *s, unsigned int w)
{
	struct kernel kernel;
	struct stats stats;
	int err = size_kernel(s, works[w], &kernel);

	for (unsigned int i = 0; !err && i < s->nr_sizes; i++)
		for (int spread = 0; !err && spread < 2; spread++) {
			struct gpupart_tpcset set = spread ?
				sets_spread(s->b->topo, s->sizes[i]) :
				sets_packed(s->b->topo, s->sizes[i]);

			err = meter_alone(&s->meter, &kernel, &set, &stats, NULL);
			s->us[w][spread][i] = stats.median;
		}
	return err;
}

static void tell_work(struct scaling *s, json_t *report, unsigned int w)
{
	char file[64], title[96];
	unsigned int nr_worse = 0;
	json_t *chart, *series;
	double best[2] = { 0 };

	snprintf(file, sizeof(file), "scaling-%s.svg", w == 0 ? "compute" : w == 1 ? "l2" : "dram");
	snprintf(title, sizeof(title), "Time of the same work by number of TPCs: %s",
		 work_name[works[w]]);
	chart = report_chart(report, file, REPORT_LINES, title, "TPCs", "us for the work",
			     true);
	for (int spread = 0; spread < 2; spread++) {
		series = report_series(chart, form_name[spread]);
		for (unsigned int i = 0; i < s->nr_sizes; i++) {
			double us = s->us[w][spread][i];

			report_point(series, s->sizes[i], us);
			/* The variation between launches is smaller than this difference. */
			nr_worse += i && us > best[spread] * 1.02;
			if (!i || us < best[spread])
				best[spread] = us;
		}
	}
	report_note(report,
		    "%s: with %u of %u larger sets, the kernel took more than 2%% longer "
		    "than with a smaller set.",
		    work_name[works[w]], nr_worse, 2 * (s->nr_sizes - 1));
}

/*
 * Compares a packed set and a spread set that have a quarter of the TPCs. Also reports the smallest
 * number of TPCs that is enough.
 */
static void explain_all(struct scaling *s, json_t *report)
{
	unsigned int some = 0, enough[NR_WORKS] = { 0 };

	while (some + 1 < s->nr_sizes && s->sizes[some] < s->nr_tpcs / 4)
		some++;
	for (unsigned int w = 0; w < NR_WORKS; w++)
		enough[w] = stats_settled(s->us[w][1], s->nr_sizes, 1.05);
	report_mean(report,
		    "With %u of %u TPCs, the time in a packed set, divided by the time in a spread "
		    "set, is %.3f for compute, %.3f for L2 reads, and %.3f for a DRAM stream.",
		    s->sizes[some], s->nr_tpcs, s->us[0][0][some] / s->us[0][1][some],
		    s->us[1][0][some] / s->us[1][1][some], s->us[2][0][some] / s->us[2][1][some]);
	report_mean(report,
		    "To come within 5%% of the time on all TPCs, a spread set needs %u TPCs "
		    "for compute, %u TPCs for L2 reads, and %u TPCs for a DRAM stream.",
		    s->sizes[enough[0]], s->sizes[enough[1]], s->sizes[enough[2]]);
}

static void tell(struct scaling *s, json_t *report)
{
	json_t *table = report_table(report, "Medians, us",
				     "TPCs|compute packed|compute spread|L2 reads packed|"
				     "L2 reads spread|DRAM packed|DRAM spread");

	for (unsigned int i = 0; i < s->nr_sizes; i++)
		report_row(table, "[i,f,f,f,f,f,f]", s->sizes[i], s->us[0][0][i], s->us[0][1][i],
			   s->us[1][0][i], s->us[1][1][i], s->us[2][0][i], s->us[2][1][i]);
	for (unsigned int w = 0; w < NR_WORKS; w++)
		tell_work(s, report, w);
	explain_all(s, report);
	report_note(report, "Figures 13 and 14 of \"Hardware Compute Partitioning on NVIDIA GPUs\" "
		    "(RTAS 2023). The same grid of small blocks is launched %u times in each set.",
		    s->meter.nr);
}

/*
 * Chooses the sizes of the sets. With --quick or on the simulated GPU, chooses some sizes.
 * Otherwise chooses all sizes.
 */
static void choose_sizes(struct scaling *s)
{
	unsigned int step = s->b->simulated ? s->nr_tpcs / 4 + 1 : s->b->quick ? 8 : 1;

	for (unsigned int nr = 1; nr < s->nr_tpcs; nr = nr < 4 && step > 1 ? nr + 1 : nr + step)
		s->sizes[s->nr_sizes++] = nr;
	s->sizes[s->nr_sizes++] = s->nr_tpcs;
}

int bench_scaling(struct bench *b, json_t *report)
{
	static struct scaling s;
	struct gpupart_check check;
	int err;

	s.b = b;
	s.nr_tpcs = gpupart_topology_nr_tpcs(b->topo);
	/*
	 * Check the mask bits before a launch on one TPC. If a mask bit belonged to an unexpected
	 * TPC, the set could be empty on the GPU. A launch in an empty set never ends.
	 */
	gpupart_gpu_check(b->gpu, &check);
	if (check.nr_proven != s.nr_tpcs)
		return bench_fail(b, -EOPNOTSUPP, "only %u of %u mask bits are proven, but "
				  "this benchmark needs the mask bits of all TPCs",
				  check.nr_proven, s.nr_tpcs);
	err = meter_open(b, &s.meter, bench_count(b, 9, 5));
	if (err)
		return err;
	choose_sizes(&s);
	for (unsigned int w = 0; !err && w < NR_WORKS; w++)
		err = measure(&s, w);
	if (!err)
		tell(&s, report);
	return err;
}
