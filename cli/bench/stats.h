/* SPDX-License-Identifier: MIT */
/* Statistics: medians, deviations, quantiles, unions of intervals, and round steps for axes. */
#ifndef GPUPART_CLI_BENCH_STATS_H
#define GPUPART_CLI_BENCH_STATS_H

#include <stdint.h>

struct stats {
	unsigned int nr;
	double mean, sd, min, max, median, p99;
};

/* Computes the statistics of @nr values. Sorts the values. If @nr is 0, all results are 0. */
struct stats stats_of(double *values, unsigned int nr);

/* Returns the median. Sorts the values. */
double stats_median(double *values, unsigned int nr);

/*
 * Returns a quantile of @nr sorted values. At least @percent percent of all values are less than or
 * equal to the quantile. The quantile is the smallest such value. The minimum of @percent is 1, and
 * the maximum is 100.
 */
double stats_quantile(const double *sorted, unsigned int nr, unsigned int percent);

struct stats_span {
	uint64_t start, end;
};

/* Sorts @spans, and merges spans that overlap or touch. Returns the number of remaining spans. */
unsigned int stats_join(struct stats_span *spans, unsigned int nr);

/*
 * Returns which share of @span the merged @spans cover. The share is from 0 to 1. If @span is
 * empty, returns 0.
 */
double stats_covered(const struct stats_span *spans, unsigned int nr,
		     const struct stats_span *span);

/*
 * Returns the lowest index from which on all values are at most @factor times the final value. If
 * @nr is 0, returns 0.
 */
unsigned int stats_settled(const double *values, unsigned int nr, double factor);

/*
 * Returns the size of a step. The range @range contains at most @max steps. The size is 1, 2 or 5
 * times a power of ten.
 */
double stats_step(double range, unsigned int max);

#endif
