/* SPDX-License-Identifier: MIT */
/* Processes that outlive their job, as when a slurmstepd is killed. */
#ifndef GPUPART_SLURM_ORPHANS_H
#define GPUPART_SLURM_ORPHANS_H

#include <gpupart_manage.h>

/*
 * The processes of all users, listed when the first job asks, and anew where one had some that were
 * killed: a look takes a second for each user with many files. All zero at first.
 */
struct left {
	struct gpupart_process *list;
	int nr;
};

/*
 * Kills those of @job, whose part is @grant, that use a GPU, and waits two seconds at most
 * until they are gone. First it asks the node's MPS daemon to end their GPU work, and waits five
 * seconds at most for that. Returns how many are not gone; *why says in what state those are.
 * The caller frees left->list after the last job.
 */
unsigned int left_kill(struct left *left, unsigned int job, const struct gpupart_grant *grant,
		       const char **why);

#endif
