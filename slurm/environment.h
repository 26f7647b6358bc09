/* SPDX-License-Identifier: MIT */
/* Sets the environment of a job's tasks. 'gpupart run' sets the same environment for a program. */
#ifndef GPUPART_SLURM_ENVIRONMENT_H
#define GPUPART_SLURM_ENVIRONMENT_H

#include <stdbool.h>
#include <slurm/spank.h>
#include <gpupart_manage.h>

/*
 * Returns the path of this package's file @name below bin/. If @lib is true, the file is below
 * lib/gpupart/ instead. The caller must free the path. The path is on the heap, because threads
 * of slurmd have small stacks. If the file does not exist or there is not enough memory, returns
 * NULL.
 */
char *environment_package(bool lib, const char *name);

/* Sets the environment for @grant. Returns 0, or -errno with a reason in @why. */
int environment_set(spank_t spank, const struct gpupart_grant *grant, char *why, size_t len);

#endif
