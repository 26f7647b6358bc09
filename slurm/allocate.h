/* SPDX-License-Identifier: MIT */
/* Allocates a set and a quota of a GPU of this node to a job. */
#ifndef GPUPART_SLURM_ALLOCATE_H
#define GPUPART_SLURM_ALLOCATE_H

#include <gpupart_manage.h>
#include "slurm/options.h"

struct allocate_job {
	unsigned int job, uid;
	/* Slurm's number of the GPU; -1: Slurm did not count a GPU for this job */
	int gpu;
	const struct words *words;
	const char *asked;	/* the text of the option, from which @words were read */
	/* this is a retry, so do not wait for the lock, and record only a success */
	bool again;
	bool strict;		/* unconfined processes must not use the GPU */
};

/*
 * Gives @job TPCs and memory that no other job has. Writes the job's grant, or the reason for a
 * refusal. A job keeps a grant that it already has. Returns 0, also after a refusal. Returns
 * -errno with a reason in @why if the allocation would fail for every job: the GPU is not known,
 * or the grant cannot be written.
 */
int allocate_job(const struct allocate_job *job, struct gpupart_grant *grant, char *why,
		 size_t len);

/*
 * Retries the allocation for a job that was refused. Retries until the time in the job's wait=
 * option has passed. The @first task on this node retries. The other tasks wait for its result.
 */
void allocate_wait(struct gpupart_grant *grant, bool first);

/* Records that @job is refused because its option is invalid. @because is the reason. */
int allocate_refuse(const struct allocate_job *job, const char *because, char *why, size_t len);

/* Finds the grant of @job. Returns 0, -ESRCH if the job has no grant, or another -errno. */
int allocate_find(unsigned int job, struct gpupart_grant *grant);

/*
 * Kills the processes that still use the grant of @job, and removes the grant. If there is no
 * grant, returns 0 too.
 */
int give_back(unsigned int job, char *why, size_t len);

/* Returns whether @grant has TPCs. A grant without TPCs is a refusal. */
bool allocate_is_granted(const struct gpupart_grant *grant);

#endif
