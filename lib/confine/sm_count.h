/* SPDX-License-Identifier: MIT */
/*
 * A program can ask the driver for the number of SMs or for occupancy. This code changes the
 * driver's answer to the SMs of the set.
 */
#ifndef GPUPART_LIB_CONFINE_SM_COUNT_H
#define GPUPART_LIB_CONFINE_SM_COUNT_H

#include "lib/confine/scope.h"

/*
 * Starts or stops changing the driver's answers about @gpu. Returns 0, or -EOPNOTSUPP with an
 * error message.
 */
int smcount_report(struct gpupart *gp, struct gpupart_gpu *gpu, bool on);

/* Returns the number of SMs that both the limit and the process's set allow now. */
unsigned int smcount_now(const struct gpupart_gpu *gpu);

#endif
