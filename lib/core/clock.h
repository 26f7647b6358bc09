/* SPDX-License-Identifier: MIT */
/* Reads the monotonic clock. Any thread may call this function. */
#ifndef GPUPART_LIB_CORE_CLOCK_H
#define GPUPART_LIB_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

#endif
