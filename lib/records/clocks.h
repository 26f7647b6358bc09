/* SPDX-License-Identifier: MIT */
/*
 * Bounds of the offset between the CPU's clock and the GPU's, from moments of which it is known
 * that a launch had ended, or had not. One thread.
 */
#ifndef GPUPART_LIB_RECORDS_CLOCKS_H
#define GPUPART_LIB_RECORDS_CLOCKS_H

#include <stdint.h>

#define CLOCKS_MAX_POINTS	4096

/* Measures the rate of the CPU's counter, once for this program; takes 10 ms. */
void clocks_measure(void);

/* CLOCK_MONOTONIC at the CPU's @counter, but for a rate that is not exact: one more drift. */
int64_t clocks_cpu_ns(uint64_t counter);

/* By how much the GPU's clock is ahead, at its time @end: @ahead or more. */
struct point {
	uint64_t end;
	int64_t ahead;
};

/* Lower bounds; with @sign -1 upper bounds, which are kept negated, as lower ones. */
struct points {
	struct point list[CLOCKS_MAX_POINTS], hull[CLOCKS_MAX_POINTS];
	unsigned int nr, nr_hull;
	int sign;
};

/* At the GPU's @end the CPU's time was @cpu_time or earlier; with @sign -1: or later. */
void points_add(struct points *points, uint64_t end, int64_t cpu_time);

/*
 * Makes the hull: both clocks run evenly, so the offset is nowhere below the line around all
 * points. Points that contradict the hull of @than (may be NULL), which has the other bounds, are
 * left out: their records came late.
 */
void points_hull(struct points *points, const struct points *than);

/* The bound at the GPU's @end. There is a point. */
int64_t points_hull_at(const struct points *points, uint64_t end);

/* What is older than the newest point by more than @age, ns. After points_hull(). */
void points_forget(struct points *points, uint64_t age);

#endif
