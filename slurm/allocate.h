/* SPDX-License-Identifier: MIT */
/* Allocates a set and a quota to a job, on a GPU of this node. */
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
	/* a retry: do not wait for the lock, and do not record a refusal */
	bool again;
	bool strict;		/* unconfined processes must not use the GPU */
};

/*
 * Allocates free TPCs and free memory to @job. Writes the job's grant, or the reason for a
 * refusal. If the job already has a grant, the job keeps this grant. After a refusal, returns 0
 * too. If the allocation would fail for every job, returns -errno and stores a reason in @why.
 * Examples of such errors are an unknown GPU and a grant that cannot be written.
 */
int allocate_job(const struct allocate_job *job, struct gpupart_grant *grant, char *why,
		 size_t len);

/*
 * Retries the allocation for a refused job. The job's wait= option limits the time for retries.
 * The @first task on this node retries. The other tasks wait for the result of the first task.
 */
void allocate_wait(struct gpupart_grant *grant, bool first);

/* Records a refusal of @job because of its invalid option. @because is the reason. */
int allocate_refuse(const struct allocate_job *job, const char *because, char *why, size_t len);

/* Finds the grant of @job. Returns 0 or -errno. -ESRCH: the job has no grant. */
int allocate_find(unsigned int job, struct gpupart_grant *grant);

/*
 * Kills the processes that still use the grant of @job. Then removes the grant. If there is no
 * grant, returns 0.
 */
int give_back(unsigned int job, char *why, size_t len);

/* Returns true if @grant has TPCs. A grant without TPCs is a refusal. */
bool allocate_is_granted(const struct gpupart_grant *grant);

#endif
