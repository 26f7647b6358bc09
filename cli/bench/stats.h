/* SPDX-License-Identifier: MIT */
/* Statistics: medians, deviations, quantiles, unions of intervals, and round steps for axes. */
#ifndef GPUPART_CLI_BENCH_STATS_H
#define GPUPART_CLI_BENCH_STATS_H

#include <stdint.h>

struct stats {
	unsigned int nr;
	double mean, sd, min, max, median, p99;
};

/* Computes the statistics of @nr values. Sorts the values. All results are 0 if @nr is 0. */
struct stats stats_of(double *values, unsigned int nr);

/* Returns the middle value, or the mean of the two middle values. Sorts the values. */
double stats_median(double *values, unsigned int nr);

/*
 * Returns a quantile of @nr sorted values: the smallest value for which at least @percent
 * percent of all values are less than or equal to it. @percent is 1 to 100.
 */
double stats_quantile(const double *sorted, unsigned int nr, unsigned int percent);

struct stats_span {
	uint64_t start, end;
};

/* Sorts @spans and merges spans that touch each other. Returns the number of spans that remain. */
unsigned int stats_join(struct stats_span *spans, unsigned int nr);

/*
 * Returns the share of @span that the merged @spans cover, from 0 to 1. Returns 0 if @span is
 * empty.
 */
double stats_covered(const struct stats_span *spans, unsigned int nr,
		     const struct stats_span *span);

/*
 * Returns the lowest index for which all values from this index on are at most @factor times the
 * final value. Returns 0 if @nr is 0.
 */
unsigned int stats_settled(const double *values, unsigned int nr, double factor);

/*
 * Returns a step that divides @range into at most @max steps. The step is 1, 2 or 5 times a power
 * of ten.
 */
double stats_step(double range, unsigned int max);

#endif
