/* SPDX-License-Identifier: MIT */
/* The current limit of the job that a process belongs to. */
#ifndef GPUPART_LIB_STATE_JOB_H
#define GPUPART_LIB_STATE_JOB_H

#include <gpupart.h>
#include "lib/core/ctx.h"

/*
 * Reads the limit, on the GPU at @pci, of job @id and of the jobs around it. A run on several
 * GPUs has one job for each GPU, and each of these jobs is inside the previous one. Returns
 * false if there is no job on that GPU; the limit then comes from the environment.
 */
GPUPART_PRIVATE
bool job_limit(const char *id, const char *pci, struct gpupart_tpcset *set);

#endif
