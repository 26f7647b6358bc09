/* SPDX-License-Identifier: MIT */
/* Makes the tasks of a job clients of the node's MPS daemon. */
#ifndef GPUPART_SLURM_MPS_H
#define GPUPART_SLURM_MPS_H

#include <slurm/spank.h>
#include <gpupart_manage.h>

/*
 * If the node's daemon answers, sets CUDA_MPS_PIPE_DIRECTORY of a task. If the node has a daemon
 * that the task cannot use, prints a message on the task's stderr. The message says that programs
 * run in time slices.
 */
void mps_join_task(spank_t spank, unsigned int job, const struct gpupart_grant *grant);

#endif
