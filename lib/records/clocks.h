/* SPDX-License-Identifier: MIT */
/*
 * Computes bounds of the offset between the CPU's clock and the GPU's clock. At some moments, it is
 * certain that a launch had ended, or that it had not ended. These moments give the bounds. All
 * calls of these functions must come from one thread.
 */
#ifndef GPUPART_LIB_RECORDS_CLOCKS_H
#define GPUPART_LIB_RECORDS_CLOCKS_H

#include <stdint.h>

#define CLOCKS_MAX_POINTS	4096

/*
 * Measures the rate of the CPU's counter. The first call takes 10 ms, and later calls do
 * nothing.
 */
void clocks_measure(void);

/*
 * Returns the CLOCK_MONOTONIC time at which the CPU's counter had the value @counter. The
 * measured rate is not exact, so the error of the result grows with time.
 */
int64_t clocks_cpu_ns(uint64_t counter);

/*
 * At the moment when the GPU's clock shows @end, it is ahead of the CPU's clock by at least @ahead
 * ns.
 */
struct point {
	uint64_t end;
	int64_t ahead;
};

/*
 * A list of bounds of the offset. The list contains lower bounds or, if @sign is -1, upper bounds.
 * Upper bounds are stored negated. So the same code handles both kinds of lists.
 */
struct points {
	struct point list[CLOCKS_MAX_POINTS], hull[CLOCKS_MAX_POINTS];
	unsigned int nr, nr_hull;
	int sign;
};

/*
 * Adds a bound. When the GPU's clock showed @end, the CPU's clock showed @cpu_time or an earlier
 * time. If @points->sign is -1, the CPU's clock showed @cpu_time or a later time.
 */
void points_add(struct points *points, uint64_t end, int64_t cpu_time);

/*
 * Computes the convex hull of the points. Both clocks run evenly, so the offset is never below this
 * hull. If @than is not NULL, it contains the opposite bounds. If a point contradicts the hull of
 * @than, the record of the point arrived late, and the point is dropped.
 */
void points_hull(struct points *points, const struct points *than);

/*
 * Returns the bound at the moment when the GPU's clock shows @end. The list @points must have at
 * least one point.
 */
int64_t points_hull_at(const struct points *points, uint64_t end);

/*
 * Drops points that are more than @age ns older than the newest point. Must be called after
 * points_hull().
 */
void points_forget(struct points *points, uint64_t age);

#endif
