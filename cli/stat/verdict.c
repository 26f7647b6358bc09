// SPDX-License-Identifier: MIT
/*
 * Computes counts and shares of time from samples of records. Decides whether a program is
 * CPU-bound or GPU-bound.
 */
#include "cli/stat/stat.h"

/*
 * A program is GPU-bound if its busy share is above the first value. It is CPU-bound if its busy
 * share is below the second value.
 */
#define BUSY_GPU_BOUND	0.90
#define BUSY_CPU_BOUND	0.50
/*
 * If a program copies more bytes per second, its kernels may have waited for copies. This value is
 * a twentieth of the speed of PCIe.
 */
#define MANY_BYTES	2.5e9

/*
 * Returns the increase of a counter. If the counter decreased, returns 0, because a process may
 * write any value to the counter.
 */
static uint64_t increase(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

bool stat_count(const struct stat_sample *from, const struct stat_sample *to,
		struct stat_counts *c)
{
	const struct gpupart_records *a = &from->records, *b = &to->records;
	const double watched = to->watched.ns - from->watched.ns;
	const double passed = (to->at_ns - from->at_ns) / 1e9;

	if (!watched || !b->on)
		return false;
	/* If a sample saw the first launch, count from this launch. */
	c->seconds = a->on ? passed : watched / 1e9;
	c->graphs = increase(b->graphs, a->graphs);
	c->unrecorded = increase(b->unrecorded, a->unrecorded);
	c->launches = increase(b->issued, a->issued) + c->unrecorded + c->graphs;
	c->ended = increase(b->ended, a->ended);
	c->cpus = increase(to->cpu_ns, from->cpu_ns) / 1e9 / passed;
	c->least = (to->watched.least_ns - from->watched.least_ns) / watched;
	c->most = (to->watched.most_ns - from->watched.most_ns) / watched;
	return true;
}

const char *stat_range(char text[48], double least, double most, const char *to,
		       const char *unit)
{
	if (most - least <= 0.02 * most)
		snprintf(text, 48, "%.1f%s", (least + most) / 2, unit);
	else
		snprintf(text, 48, "%.1f%s%.1f%s", least, to, most, unit);
	return text;
}

const char *stat_share(char text[48], double least, double most)
{
	return stat_range(text, 100 * least, 100 * most, " to ", "%");
}

/* Sets the busy share of all rows with records. Returns the number of these rows. */
static unsigned int add_up(const struct stat_report *report, struct stat_verdict *v,
			   unsigned long long *nr_unknown, double *seconds)
{
	unsigned int nr = 0;
	double all = 0;

	v->least = v->most = 0;
	*nr_unknown = 0;
	for (unsigned int i = 0; i < report->nr_rows; i++) {
		const struct stat_row *row = &report->rows[i];
		const double watched = row->last.watched.ns;
		struct stat_counts c;

		if (!stat_count(&row->first, &row->last, &c))
			continue;
		v->least += c.least * watched;
		v->most += c.most * watched;
		*nr_unknown += row->last.records.unknown;
		all += watched;
		nr++;
	}
	*seconds = all / 1e9;
	if (nr) {
		v->least /= all;
		v->most /= all;
	}
	return nr;
}

static void judge_busy(const struct stat_report *report, struct stat_verdict *v,
		       unsigned int nr_rows, unsigned long long nr_unknown, double seconds)
{
	const struct stat_program *p = report->program;
	unsigned long long copies = 0;
	double bytes = 0;
	char busy[48];

	v->verdict = v->least >= BUSY_GPU_BOUND ? "GPU-bound" :
		     v->most <= BUSY_CPU_BOUND ? "CPU-bound" : "neither";
	if (v->least >= BUSY_GPU_BOUND)
		v->advice =
			"a smaller partition makes it slower; memory-bound kernels suffer less";
	else if (v->most <= BUSY_CPU_BOUND)
		v->advice =
			"the GPU waits for the CPU: submit more work before each wait, or use a "
			"graph, to keep both busy";
	for (int i = 0; i < GPUPART_STAT_NR_DIRECTIONS; i++) {
		copies += p->sum.copies[i];
		bytes += p->sum.bytes[i];
	}
	snprintf(v->why, sizeof(v->why), "launches were outstanding %s of the time",
		 stat_share(busy, v->least, v->most));
	if (nr_rows > 1)
		out_append(v->why, sizeof(v->why), " (sum of %u processes)", nr_rows);
	if (nr_unknown)
		out_append(v->why, sizeof(v->why), "; it is not known when %llu of them ended",
			   nr_unknown);
	if (copies && v->least < BUSY_GPU_BOUND)
		out_append(v->why, sizeof(v->why),
			   "; the rest may be copies (%llu), which are not timed", copies);
	else if (bytes > MANY_BYTES * seconds)
		out_append(v->why, sizeof(v->why),
			   "; kernels may have waited for copies (%llu), which are not timed",
			   copies);
}

void stat_judge(const struct stat_report *report, struct stat_verdict *v)
{
	const struct stat_program *p = report->program;
	unsigned long long nr_unknown;
	double seconds;
	unsigned int nr_rows = add_up(report, v, &nr_unknown, &seconds);

	v->advice = NULL;
	if (nr_rows) {
		judge_busy(report, v, nr_rows, nr_unknown, seconds);
		return;
	}
	v->verdict = p->nr_lost ? "not measured" : p->nr_processes ? "no work" : "no CUDA call";
	snprintf(v->why, sizeof(v->why), "%s",
		 p->nr_lost ? "it called CUDA but could not be measured: see its message" :
		 p->nr_processes ? "the program called CUDA, but none of its launches was "
			 "recorded" :
				   "the program made no CUDA call");
}
