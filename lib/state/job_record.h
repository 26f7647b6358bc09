/* SPDX-License-Identifier: MIT */
/*
 * Jobs: what one `gpupart run` started, and all that it starts. A file a job beside the blocks of
 * processes says what it is limited to now, for processes that begin later.
 */
#ifndef GPUPART_LIB_STATE_JOB_RECORD_H
#define GPUPART_LIB_STATE_JOB_RECORD_H

#include <gpupart_manage.h>
#include <stdio.h>
#include <string.h>
#include "lib/core/ctx.h"
#include "lib/core/shared_header.h"

#define JOB_LAYOUT	2	/* counted up with every change behind the header */
#define JOB_PREFIX	"job-"
/* Runs inside runs; a user's notes may have been made to lead round. */
#define JOB_MAX_DEPTH	1000

struct job_record {
	struct shared_header header;	/* its process is the run, and the program that it became */
	struct shared_gpu gpu;		/* the set asked for; what the parent allows holds */
	char source[512];
};

static inline bool job_is_other_version(const struct job_record *record)
{
	return record->header.layout != JOB_LAYOUT;
}

/* A program runs on a capture's GPU only on the simulated driver. */
static inline bool job_is_simulated(const char *source)
{
	return strcmp(source, "rm") && strcmp(source, "kernel");
}

static inline void job_file(char *file, size_t len, const char *id)
{
	snprintf(file, len, JOB_PREFIX "%.63s", id);
}

/* Whether a file may be named by @id. */
GPUPART_PRIVATE
bool job_id_good(const char *id);

/* Reads a job's file. @id may lie in @record, as the parent of the one before. */
GPUPART_PRIVATE
bool job_read(int dir, const char *id, struct job_record *record);

/* What holds for @record: no more than what holds for the job that it was begun in. */
GPUPART_PRIVATE
struct gpupart_tpcset job_effective(int dir, const struct job_record *record);

/* Whether @id is @ancestor or was begun in it. */
GPUPART_PRIVATE
bool job_belongs(int dir, const char *id, const char *ancestor);

/* This user's processes; *nr of them. The caller frees it. NULL: none, or no memory. */
GPUPART_PRIVATE
struct gpupart_process *job_processes(unsigned int *nr);

#endif
