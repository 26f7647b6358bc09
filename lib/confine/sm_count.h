/* SPDX-License-Identifier: MIT */
/* What a program is told of a set's SMs where it asks the driver for their number or room. */
#ifndef GPUPART_LIB_CONFINE_SM_COUNT_H
#define GPUPART_LIB_CONFINE_SM_COUNT_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

/* From now on (or no more) for questions about @gpu. -EOPNOTSUPP with a sentence. */
int smcount_tell(struct gpupart *gp, struct gpupart_gpu *gpu, bool on);

/* How many SMs the limit and the process's set leave now. */
unsigned int smcount_now(const struct gpupart_gpu *gpu);

#endif
