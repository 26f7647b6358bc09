/* SPDX-License-Identifier: MIT */
/* What the run that a process belongs to is limited to now. */
#ifndef GPUPART_LIB_STATE_JOB_H
#define GPUPART_LIB_STATE_JOB_H

#include <gpupart.h>

/*
 * The set of job @id, and of those that it was begun in, on the GPU at @pci. False where
 * nothing is known of it: then what the environment says holds.
 */
bool job_limit(const char *id, const char *pci, struct gpupart_tpcset *set);

#endif
