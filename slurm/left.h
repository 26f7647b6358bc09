/* SPDX-License-Identifier: MIT */
/* Processes that outlive their job, as when a slurmstepd is killed. Knows no SPANK. */
#ifndef GPUPART_SLURM_LEFT_H
#define GPUPART_SLURM_LEFT_H

#include <gpupart.h>

/*
 * Kills those of @job, whose part is @grant, that use a GPU, and waits two seconds at most
 * until they are gone: how many are not.
 */
unsigned int left_kill(unsigned int job, const struct gpupart_grant *grant);

#endif
