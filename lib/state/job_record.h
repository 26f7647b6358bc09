/* SPDX-License-Identifier: MIT */
/*
 * Job records. A job is a process that one `gpupart run` started, with all descendants. Each job
 * has a file beside the state pages. Processes that start later read the job's current limit in
 * this file.
 */
#ifndef GPUPART_LIB_STATE_JOB_RECORD_H
#define GPUPART_LIB_STATE_JOB_RECORD_H

#include <gpupart_manage.h>
#include <stdio.h>
#include <string.h>
#include "lib/core/ctx.h"
#include "lib/core/shared_header.h"

#define JOB_LAYOUT	2	/* increase it with every change of what follows the header */
#define JOB_PREFIX	"job-"
/*
 * The maximum nesting of runs. The bound is needed because a user could edit the records so that
 * they form a cycle.
 */
#define JOB_MAX_DEPTH	1000

struct job_record {
	struct shared_header header;	/* its process is the one that started the job, also
					 * after exec */
	struct shared_gpu gpu;		/* the set that was requested; the parent's limit applies
					 * too */
	char source[512];
};

static inline bool job_is_other_version(const struct job_record *record)
{
	return record->header.layout != JOB_LAYOUT;
}

/* A program can only run on a capture's GPU with the simulated driver. */
static inline bool job_is_simulated(const char *source)
{
	return strcmp(source, "rm") && strcmp(source, "kernel");
}

static inline void job_file(char *file, size_t len, const char *id)
{
	snprintf(file, len, JOB_PREFIX "%.63s", id);
}

/* Whether @id is valid as a file name. */
GPUPART_PRIVATE
bool job_id_good(const char *id);

/* Reads the record of job @id. @id may be a member of @record, for example its parent. */
GPUPART_PRIVATE
bool job_read(int dir, const char *id, struct job_record *record);

/*
 * Returns the limit that applies to the job of @record: the intersection of its own limit and
 * the limit of the job in which it was started.
 */
GPUPART_PRIVATE
struct gpupart_tpcset job_effective(int dir, const struct job_record *record);

/* Returns true if job @id is @ancestor or was started inside @ancestor. */
GPUPART_PRIVATE
bool job_belongs(int dir, const char *id, const char *ancestor);

/*
 * Returns the list of this user's processes, and their number in *nr. The caller must free the
 * list. Returns NULL if there are no processes or if memory is short.
 */
GPUPART_PRIVATE
struct gpupart_process *job_processes(unsigned int *nr);

#endif
