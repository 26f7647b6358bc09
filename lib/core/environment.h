/* SPDX-License-Identifier: MIT */
/*
 * What `gpupart run`, a scheduler or the user tells the library of a process in its environment.
 * The one reader of these variables. Their users are documented in gpupart(1).
 */
#ifndef GPUPART_LIB_CORE_ENVIRONMENT_H
#define GPUPART_LIB_CORE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/core/ctx.h"

#define ENVIRONMENT_OFF		"GPUPART_DISABLE"
#define ENVIRONMENT_SET		"GPUPART_SET"
#define ENVIRONMENT_GPU		"GPUPART_GPU"
#define ENVIRONMENT_RULES	"GPUPART_RULES"
#define ENVIRONMENT_JOB		"GPUPART_JOB"
#define ENVIRONMENT_TENANT	"GPUPART_TENANT"
#define ENVIRONMENT_MEM		"GPUPART_MEM"
#define ENVIRONMENT_STAT	"GPUPART_STAT"
#define ENVIRONMENT_REPORT	"GPUPART_REPORT"
#define ENVIRONMENT_STRICT	"GPUPART_STRICT"
#define ENVIRONMENT_SM_COUNT	"GPUPART_SM_COUNT"
#define ENVIRONMENT_NAME	"GPUPART_NAME"
#define ENVIRONMENT_CHECKED	"GPUPART_CHECKED"
#define ENVIRONMENT_MAPS	"GPUPART_MAPS"
#define ENVIRONMENT_LOG		"GPUPART_LOG"
#define ENVIRONMENT_NEXT	"GPUPART_NEXT_INJECTION"
#define ENVIRONMENT_PROFILE	"GPUPART_PROFILE"
#define ENVIRONMENT_NO_DEVICE_LAUNCH "GPUPART_NO_DEVICE_LAUNCH"
#define ENVIRONMENT_RECORDS	"GPUPART_RECORDS"
#define ENVIRONMENT_GRAPH_SETS	"GPUPART_GRAPH_SETS"

#define ENVIRONMENT_MOST_GRAPH_SETS 4

/* Texts are NULL where the variable is missing or empty, and valid until it is changed. */
struct environment {
	bool untouched;		/* OFF is "1": the library does nothing that no grant asks for */
	bool profile;		/* PROFILE is "1": a profiler may subscribe after the library */
	/* NO_DEVICE_LAUNCH is "1": modules whose kernels can launch others are not loaded. */
	bool no_device_launch;
	bool no_records;	/* RECORDS is "0": the GPU writes no records of launches */
	/* GRAPH_SETS: how many sets an executable graph stays built for; else the most. */
	unsigned int graph_sets;
	/*
	 * The limit from outside, as gpupart_set_parse() reads it, and the GPU that it is for, as
	 * gpupart_attach() takes it; NULL: any. Of several GPUs a list parted by commas, with a
	 * set for each, parted by semicolons, or one for all.
	 */
	const char *set, *gpu;
	/*
	 * Lines of a set, or one for each GPU as above, a blank, and the pattern of the kernels'
	 * names that it is for.
	 */
	const char *rules;
	const char *job;	/* id of the job that the process belongs to */
	const char *tenant;	/* whose memory quota holds for it */
	const char *mem;	/* bytes of it on each GPU that has no quota yet */
	const char *maps;	/* XDG_CACHE_HOME of `run`: where learnt maps are, too */

	/* For the injected library. */
	bool has_set, has_tenant;	/* the variable exists, also empty */
	bool has_strict;	/* STRICT is not empty */
	bool strict;		/* nor "0": no launch outside of the set */
	bool sm_count;		/* SM_COUNT is "1": the program is told the SMs of its set */
	const char *stat;	/* where the process is to show itself to `gpupart stat` */
	const char *report;	/* where launches outside of the set are reported */
	const char *name;	/* that the process shows */
	const char *key;	/* of the checked map of its GPU; of several a list as @gpu */
	const char *log;	/* file for messages; NULL: stderr */
	const char *next;	/* another tool's library, which is to be loaded, too */
};

/* As it is now: what is to hold for the life of the process its caller keeps. */
GPUPART_PRIVATE
struct environment environment_read(void);

/*
 * Copies part @n, from 0, of @list, whose parts @separator parts. Returns its length, which is not
 * below @len where it was cut, or -1 after the last part.
 */
int environment_part(const char *list, char separator, unsigned int n, char *part, size_t len);

/* The bytes of @mem; 0 where it is NULL or no number from 1 on. */
uint64_t environment_mem(const struct environment *environment);

#endif
