/* SPDX-License-Identifier: MIT */
/*
 * Computes bounds of the offset between the CPU's clock and the GPU's clock. It uses moments at
 * which a launch was known to have ended, or known not to have ended. Only one thread may use
 * these functions.
 */
#ifndef GPUPART_LIB_RECORDS_CLOCKS_H
#define GPUPART_LIB_RECORDS_CLOCKS_H

#include <stdint.h>

#define CLOCKS_MAX_POINTS	4096

/* Measures the rate of the CPU's counter, once per program; takes 10 ms. */
void clocks_measure(void);

/*
 * Returns the CLOCK_MONOTONIC time at the value @counter of the CPU's counter. The rate is not
 * exact: the error is up to one more drift.
 */
int64_t clocks_cpu_ns(uint64_t counter);

/* When the GPU's clock shows @end, it is ahead of the CPU's clock by at least @ahead ns. */
struct point {
	uint64_t end;
	int64_t ahead;
};

/*
 * A list of lower bounds. If @sign is -1, it is a list of upper bounds, which are stored
 * negated, so that they can be handled as lower bounds.
 */
struct points {
	struct point list[CLOCKS_MAX_POINTS], hull[CLOCKS_MAX_POINTS];
	unsigned int nr, nr_hull;
	int sign;
};

/*
 * When the GPU's clock showed @end, the CPU's clock showed @cpu_time or an earlier time. If
 * @points->sign is -1, it showed @cpu_time or a later time.
 */
void points_add(struct points *points, uint64_t end, int64_t cpu_time);

/*
 * Computes the hull. Both clocks run evenly, so the offset is nowhere below the line around all
 * points. @than: the points of the opposite bounds, or NULL. Points that contradict its hull
 * are dropped, because their records arrived late.
 */
void points_hull(struct points *points, const struct points *than);

/* Returns the bound when the GPU's clock shows @end. @points must have at least one point. */
int64_t points_hull_at(const struct points *points, uint64_t end);

/*
 * Drops points that are more than @age ns older than the newest. Call it after points_hull().
 */
void points_forget(struct points *points, uint64_t age);

#endif
