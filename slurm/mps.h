/* SPDX-License-Identifier: MIT */
/* Makes a job's tasks clients of the node's MPS daemon. */
#ifndef GPUPART_SLURM_MPS_H
#define GPUPART_SLURM_MPS_H

#include <slurm/spank.h>
#include <gpupart_manage.h>

/*
 * Sets CUDA_MPS_PIPE_DIRECTORY of a task if the node's daemon answers; if the node is to have one
 * and the task does not join it, says on the task's stderr that programs take turns.
 */
void mps_join_task(spank_t spank, unsigned int job, const struct gpupart_grant *grant);

#endif
