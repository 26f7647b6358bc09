/* SPDX-License-Identifier: MIT */
/* Kills processes that outlive their job, for example after a slurmstepd was killed. */
#ifndef GPUPART_SLURM_ORPHANS_H
#define GPUPART_SLURM_ORPHANS_H

#include <gpupart_manage.h>

/*
 * The processes of all users. They are listed for the first job, and again after processes of a job
 * were killed: listing takes a second for each user with many files. Zeroed before the first call.
 */
struct left {
	struct gpupart_process *list;
	int nr;
};

/*
 * Kills the processes of @job, with the grant @grant, that use a GPU, and waits up to 2 s for their
 * end. First it asks the node's MPS daemon to end their GPU work, which takes up to 5 s. Returns
 * how many have not ended; *why describes their state. The caller frees left->list after the last
 * job. /
 */
unsigned int left_kill(struct left *left, unsigned int job, const struct gpupart_grant *grant,
		       const char **why);

#endif
