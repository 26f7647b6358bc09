/* SPDX-License-Identifier: MIT */
/* Allocates a set and a quota of a GPU of this node to a job. */
#ifndef GPUPART_SLURM_ALLOCATE_H
#define GPUPART_SLURM_ALLOCATE_H

#include <gpupart_manage.h>
#include "slurm/options.h"

struct allocate_job {
	unsigned int job, uid;
	int gpu;		/* Slurm's number; -1 if it counted none for this job */
	const struct words *words;
	const char *asked;	/* the text of @words */
	bool again;		/* a retry: does not wait for the lock, records success only */
	bool strict;		/* unconfined processes must not use the GPU */
};

/*
 * Allocates to @job around other jobs and writes its grant, or why it was refused. A job keeps an
 * existing grant. Returns 0, also for a refusal, or -errno with a reason in @why if it would fail
 * for every job: the GPU is not known, or the grant cannot be written.
 */
int allocate_job(const struct allocate_job *job, struct gpupart_grant *grant, char *why,
		 size_t len);

/*
 * Retries for a job that was refused, for the time of its wait= option. The @first task on this
 * node retries; the other tasks wait for its result. /
 */
void allocate_wait(struct gpupart_grant *grant, bool first);

/* Records that @job, whose option is invalid, is refused for the reason @because. */
int allocate_refuse(const struct allocate_job *job, const char *because, char *why, size_t len);

/* Finds the grant of @job. Returns 0, -ESRCH without one, or another -errno. */
int allocate_find(unsigned int job, struct gpupart_grant *grant);

/* Kills processes that still use the grant of @job, and removes it. 0 also without a grant. */
int give_back(unsigned int job, char *why, size_t len);

/* Whether @grant has TPCs, that is, is not a refusal. */
bool allocate_is_granted(const struct gpupart_grant *grant);

#endif
