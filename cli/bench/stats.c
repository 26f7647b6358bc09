// SPDX-License-Identifier: MIT
/* Computes statistics of values and intervals. */
#include <math.h>
#include <stdlib.h>
#include "cli/bench/stats.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_median(double *values, unsigned int nr)
{
	if (!nr)
		return 0;
	qsort(values, nr, sizeof(*values), by_value);
	return (values[(nr - 1) / 2] + values[nr / 2]) / 2;
}

double stats_quantile(const double *sorted, unsigned int nr, unsigned int percent)
{
	return nr ? sorted[(nr * percent + 99) / 100 - 1] : 0;
}

struct stats stats_of(double *values, unsigned int nr)
{
	struct stats stats = { .nr = nr };
	double sum = 0;

	if (!nr)
		return stats;
	stats.median = stats_median(values, nr);
	stats.min = values[0];
	stats.max = values[nr - 1];
	stats.p99 = stats_quantile(values, nr, 99);
	for (unsigned int i = 0; i < nr; i++)
		stats.mean += values[i] / nr;
	for (unsigned int i = 0; i < nr; i++)
		sum += (values[i] - stats.mean) * (values[i] - stats.mean);
	stats.sd = nr > 1 ? sqrt(sum / (nr - 1)) : 0;
	return stats;
}

static int by_start(const void *a, const void *b)
{
	const struct stats_span *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

unsigned int stats_join(struct stats_span *spans, unsigned int nr)
{
	unsigned int last = 0;

	if (!nr)
		return 0;
	qsort(spans, nr, sizeof(*spans), by_start);
	for (unsigned int i = 1; i < nr; i++) {
		if (spans[i].start > spans[last].end)
			spans[++last] = spans[i];
		else if (spans[i].end > spans[last].end)
			spans[last].end = spans[i].end;
	}
	return last + 1;
}

double stats_covered(const struct stats_span *spans, unsigned int nr,
		     const struct stats_span *span)
{
	double covered = 0;

	if (span->end <= span->start)
		return 0;
	for (unsigned int i = 0; i < nr; i++) {
		uint64_t start = spans[i].start > span->start ? spans[i].start : span->start,
			 end = spans[i].end < span->end ? spans[i].end : span->end;

		if (end > start)
			covered += end - start;
	}
	return covered / (span->end - span->start);
}

unsigned int stats_settled(const double *values, unsigned int nr, double factor)
{
	unsigned int from = nr ? nr - 1 : 0;

	while (from && values[from - 1] <= values[nr - 1] * factor)
		from--;
	return from;
}

double stats_step(double range, unsigned int max)
{
	static const double firsts[] = { 1, 2, 5, 10 };
	double power;

	if (!(range > 0) || !max)
		return 1;
	power = pow(10, floor(log10(range / max)));
	for (int i = 0; i < 4; i++)
		/* A rounding error must not add a step. So use a relative tolerance. */
		if (range / (power * firsts[i]) <= max * (1 + 1e-9))
			return power * firsts[i];
	return power * 20;
}
