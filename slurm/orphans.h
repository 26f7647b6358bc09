/* SPDX-License-Identifier: MIT */
/* Kills processes that outlive their job, for example after a slurmstepd was killed. */
#ifndef GPUPART_SLURM_ORPHANS_H
#define GPUPART_SLURM_ORPHANS_H

#include <gpupart_manage.h>

/*
 * The processes of all users. The list is made for the first job, and made again only after
 * processes of a job were killed. The list is not made more often, because making it takes a
 * second for each user who has many files. The caller sets the struct to zero before the first
 * call.
 */
struct left {
	struct gpupart_process *list;
	int nr;
};

/*
 * Kills those processes of @job that use a GPU. @grant: the grant of the job. It first asks the
 * node's MPS daemon to end the GPU work of these processes, which takes up to 5 s. After the
 * kill it waits up to 2 s for the processes to end. Returns the number of processes that have
 * not ended; *why describes their state. The caller frees left->list after the last job.
 */
unsigned int left_kill(struct left *left, unsigned int job, const struct gpupart_grant *grant,
		       const char **why);

#endif
