/* SPDX-License-Identifier: MIT */
/* What the tasks of a job are started with, as 'gpupart run' does it. */
#ifndef GPUPART_SLURM_ENVIRONMENT_H
#define GPUPART_SLURM_ENVIRONMENT_H

#include <stdbool.h>
#include <slurm/spank.h>
#include <gpupart_manage.h>

/*
 * The path of this package's file @name below bin/ or, @lib, lib/gpupart/, which the caller frees;
 * NULL: it is not there, or no memory. On the heap, since a thread of slurmd has a small stack.
 */
char *environment_package(bool lib, const char *name);

/* 0, or -errno with a sentence in @why. */
int environment_set(spank_t spank, const struct gpupart_grant *grant, char *why, size_t len);

#endif
