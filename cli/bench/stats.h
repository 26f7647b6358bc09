/* SPDX-License-Identifier: MIT */
/* Statistics: medians, deviations, quantiles, unions of intervals, round steps for axes. */
#ifndef GPUPART_CLI_BENCH_STATS_H
#define GPUPART_CLI_BENCH_STATS_H

#include <stdint.h>

struct stats {
	unsigned int nr;
	double mean, sd, min, max, median, p99;
};

/* Of @nr values, which it sorts; all 0 if @nr is 0. */
struct stats stats_of(double *values, unsigned int nr);

/* The middle value, or the mean of the two middle ones. Sorts the values. */
double stats_median(double *values, unsigned int nr);

/* The smallest of @nr sorted values that @percent of 100 do not exceed; @percent 1 to 100. */
double stats_quantile(const double *sorted, unsigned int nr, unsigned int percent);

struct stats_span {
	uint64_t start, end;
};

/* Sorts @spans and merges those that touch. Returns how many remain. */
unsigned int stats_join(struct stats_span *spans, unsigned int nr);

/* The share of @span that the merged @spans cover, 0 to 1; 0 if it is empty. */
double stats_covered(const struct stats_span *spans, unsigned int nr,
		     const struct stats_span *span);

/*
 * The first index from which on all of @nr values are at most @factor times the last one; 0 if
 * @nr is 0.
 */
unsigned int stats_settled(const double *values, unsigned int nr, double factor);

/* A step of 1, 2 or 5 times a power of ten that divides @range into at most @max steps. */
double stats_step(double range, unsigned int max);

#endif
