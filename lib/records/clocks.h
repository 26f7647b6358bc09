/* SPDX-License-Identifier: MIT */
/*
 * Bounds of the offset between the clocks of CPU and GPU, computed from moments at which a
 * launch was known to have ended, or not. For one thread.
 */
#ifndef GPUPART_LIB_RECORDS_CLOCKS_H
#define GPUPART_LIB_RECORDS_CLOCKS_H

#include <stdint.h>

#define CLOCKS_MAX_POINTS	4096

/* Measures the rate of the CPU's counter, once per program; takes 10 ms. */
void clocks_measure(void);

/*
 * The CLOCK_MONOTONIC time at the CPU's @counter. The rate is not exact: the error is up to one
 * more drift.
 */
int64_t clocks_cpu_ns(uint64_t counter);

/* At the GPU's time @end, the GPU's clock is ahead by @ahead or more. */
struct point {
	uint64_t end;
	int64_t ahead;
};

/* Lower bounds or, with @sign -1, upper bounds, which are stored negated, as lower ones. */
struct points {
	struct point list[CLOCKS_MAX_POINTS], hull[CLOCKS_MAX_POINTS];
	unsigned int nr, nr_hull;
	int sign;
};

/* At the GPU's time @end, the CPU's time was @cpu_time or earlier; with @sign -1: or later. */
void points_add(struct points *points, uint64_t end, int64_t cpu_time);

/*
 * Computes the hull. Both clocks run evenly, so the offset is nowhere below the line around all
 * points. Points that contradict the hull of @than (may be NULL), which has the other bounds,
 * are dropped: their records came late.
 */
void points_hull(struct points *points, const struct points *than);

/* The bound at the GPU's time @end. There must be a point. */
int64_t points_hull_at(const struct points *points, uint64_t end);

/*
 * Drops points that are more than @age ns older than the newest. Call it after points_hull().
 */
void points_forget(struct points *points, uint64_t age);

#endif
