/* SPDX-License-Identifier: MIT */
/* Kills processes that outlive their job, for example after the death of a slurmstepd. */
#ifndef GPUPART_SLURM_ORPHANS_H
#define GPUPART_SLURM_ORPHANS_H

#include <gpupart_manage.h>

/*
 * The processes of all users. The first job makes the list. After a kill of processes, the next
 * job makes the list again. The list is not made more often, because making the list takes a
 * second for each user with many files. Before the first call, the caller sets the struct to
 * zero.
 */
struct left {
	struct gpupart_process *list;
	int nr;
};

/*
 * Kills all processes of @job that use a GPU. @grant is the grant of the job. First, the node's
 * MPS daemon ends the GPU work of these processes, in up to 5 s. After the kill, the function
 * waits up to 2 s for the end of the processes. Returns the number of processes that have not
 * ended; *why describes the state of these processes. After the last job, the caller must free
 * left->list.
 */
unsigned int left_kill(struct left *left, unsigned int job, const struct gpupart_grant *grant,
		       const char **why);

#endif
