/* SPDX-License-Identifier: MIT */
/* What the run that a process belongs to is limited to now. */
#ifndef GPUPART_LIB_STATE_JOB_H
#define GPUPART_LIB_STATE_JOB_H

#include <gpupart.h>
#include "lib/core/ctx.h"

/*
 * The set on the GPU at @pci of job @id and of those that it was begun in; a run on several GPUs is
 * a job a GPU, each begun in the one before. False where no job on that GPU is known: then what the
 * environment says holds.
 */
GPUPART_PRIVATE
bool job_limit(const char *id, const char *pci, struct gpupart_tpcset *set);

#endif
