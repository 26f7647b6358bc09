/* SPDX-License-Identifier: MIT */
/* A job's part of a GPU of this node. */
#ifndef GPUPART_SLURM_ALLOCATE_H
#define GPUPART_SLURM_ALLOCATE_H

#include <gpupart_manage.h>
#include "slurm/options.h"

struct give_job {
	unsigned int job, uid;
	int gpu;		/* as Slurm numbers it; -1: it counts none for this job */
	const struct words *words;
	const char *asked;	/* the same as text */
	bool again;		/* it waits: does not wait for its turn, and notes success alone */
	bool strict;		/* its processes are confined or do not use the GPU */
};

/*
 * Plans around what other jobs have and notes what @job gets, or why it gets nothing. A job
 * that has something keeps that. 0, also where it gets nothing; -errno with a sentence in @why
 * where no job would fare better here: the GPU is not known, or nothing can be noted.
 */
int give_job(const struct give_job *job, struct gpupart_grant *grant, char *why, size_t len);

/*
 * Tries again for a job that was refused, as long as its words say, until it has something. Its
 * @first task on this node does; the others look for what that one gets.
 */
void give_wait(struct gpupart_grant *grant, bool first);

/* Notes that @job, whose words say nothing, gets nothing, for @because. */
int give_nothing(const struct give_job *job, const char *because, char *why, size_t len);

/* What was noted; -ESRCH where nothing was, -EPERM, .. where that cannot be read. */
int give_find(unsigned int job, struct gpupart_grant *grant);

/* Everything back; what still uses it is killed before. No error where nothing was given. */
int give_back(unsigned int job, char *why, size_t len);

/* Whether @grant is something. */
bool give_is_given(const struct gpupart_grant *grant);

#endif
