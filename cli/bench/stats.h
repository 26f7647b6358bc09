/* SPDX-License-Identifier: MIT */
/* Numbers of many: medians, deviations, what intervals cover, round steps. */
#ifndef GPUPART_CLI_BENCH_STATS_H
#define GPUPART_CLI_BENCH_STATS_H

#include <stdint.h>

struct stats {
	unsigned int nr;
	double mean, sd, min, max, median, p99;
};

/* Of @nr values, which are sorted; all 0 where there are none. */
struct stats stats_of(double *values, unsigned int nr);

/* The middle one, or the mean of the two in the middle; sorts. */
double stats_median(double *values, unsigned int nr);

/* Of @nr sorted values the smallest that @percent of 100 do not exceed; @percent 1 to 100. */
double stats_quantile(const double *sorted, unsigned int nr, unsigned int percent);

struct stats_span {
	uint64_t start, end;
};

/* Sorts @spans and joins those that touch: how many are left. */
unsigned int stats_join(struct stats_span *spans, unsigned int nr);

/* Which part of @span the joined @spans cover, 0 to 1; 0 where it is empty. */
double stats_covered(const struct stats_span *spans, unsigned int nr,
		     const struct stats_span *span);

/* From which on all of the @nr values are at most @factor times the last; of none 0. */
unsigned int stats_settled(const double *values, unsigned int nr, double factor);

/* A step of 1, 2 or 5 times a power of ten that makes at most @max steps of @range. */
double stats_step(double range, unsigned int max);

#endif
