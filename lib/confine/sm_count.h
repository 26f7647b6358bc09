/* SPDX-License-Identifier: MIT */
/*
 * Reports the SMs of a set to the program when the program asks the driver for the number of SMs
 * or for occupancy.
 */
#ifndef GPUPART_LIB_CONFINE_SM_COUNT_H
#define GPUPART_LIB_CONFINE_SM_COUNT_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

/*
 * Starts or stops reporting the SMs of the set in answers to queries about @gpu. Returns 0, or
 * -EOPNOTSUPP with an error sentence.
 */
int smcount_report(struct gpupart *gp, struct gpupart_gpu *gpu, bool on);

/* Returns the number of SMs that the limit and the process's set allow now. */
unsigned int smcount_now(const struct gpupart_gpu *gpu);

#endif
