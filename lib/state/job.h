/* SPDX-License-Identifier: MIT */
/* Reads the current limit of the job to which a process belongs. */
#ifndef GPUPART_LIB_STATE_JOB_H
#define GPUPART_LIB_STATE_JOB_H

#include <gpupart.h>
#include "lib/core/ctx.h"

/*
 * Reads the limit of job @id on the GPU at @pci. The limits of the jobs that contain job @id also
 * apply. A run on several GPUs has one job for each GPU. The second job is inside the first job,
 * and so on. If no such job is on this GPU, returns false. The limit then comes from the
 * environment.
 */
GPUPART_PRIVATE
bool job_limit(const char *id, const char *pci, struct gpupart_tpcset *set);

#endif
