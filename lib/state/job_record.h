/* SPDX-License-Identifier: MIT */
/*
 * Declares job records. A job consists of the process that a `gpupart run` started, and all
 * descendants of this process. Each job has a file beside the state pages. When a process of the
 * job starts, it reads the job's current limit in this file.
 */
#ifndef GPUPART_LIB_STATE_JOB_RECORD_H
#define GPUPART_LIB_STATE_JOB_RECORD_H

#include <gpupart_manage.h>
#include <stdio.h>
#include <string.h>
#include "lib/core/ctx.h"
#include "lib/core/shared_header.h"

#define JOB_LAYOUT	2	/* increase this number with every change of the data
				 * after the header */
#define JOB_PREFIX	"job-"
/*
 * The maximum nesting of runs. A user could edit the records so that they form a cycle. Without a
 * maximum, a reader would then loop forever.
 */
#define JOB_MAX_DEPTH	1000

struct job_record {
	struct shared_header header;	/* contains the pid of the process that started the job */
	struct shared_gpu gpu;		/* the set that the user requested; the limit of the
					 * parent job also applies */
	char source[512];
};

static inline bool job_is_other_version(const struct job_record *record)
{
	return record->header.layout != JOB_LAYOUT;
}

/*
 * Returns true if the GPU comes from a capture. A program can run on such a GPU only with the
 * simulated driver.
 */
static inline bool job_is_simulated(const char *source)
{
	return strcmp(source, "rm") && strcmp(source, "kernel");
}

static inline void job_file(char *file, size_t len, const char *id)
{
	snprintf(file, len, JOB_PREFIX "%.63s", id);
}

/* Returns true if @id can be a part of a file name. */
GPUPART_PRIVATE
bool job_id_good(const char *id);

/*
 * Reads the record of job @id. The string @id may be a member of @record, for example its
 * parent.
 */
GPUPART_PRIVATE
bool job_read(int dir, const char *id, struct job_record *record);

/*
 * Returns the limit that applies to the job of @record. The limit is the intersection of the job's
 * own limit and the limit of the parent job.
 */
GPUPART_PRIVATE
struct gpupart_tpcset job_effective(int dir, const struct job_record *record);

/* Returns true if job @id is @ancestor or was started inside @ancestor. */
GPUPART_PRIVATE
bool job_belongs(int dir, const char *id, const char *ancestor);

/*
 * Returns a list of this user's processes. Stores their number in *nr. The caller must free the
 * list. If there are no processes, or if memory is short, returns NULL.
 */
GPUPART_PRIVATE
struct gpupart_process *job_processes(unsigned int *nr);

#endif
