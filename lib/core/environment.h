/* SPDX-License-Identifier: MIT */
/*
 * The environment variables through which `gpupart run`, a scheduler or the user configures the
 * library in a process. Only this file reads them. Those for users are documented in
 * gpupart(1).
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

/* Strings are NULL if the variable is missing or empty, and valid until it is changed. */
struct environment {
	bool untouched;		/* DISABLE is "1": the library does nothing that no grant
				 * requires */
	bool profile;		/* PROFILE is "1": a profiler may subscribe after the library */
	/*
	 * NO_DEVICE_LAUNCH is "1": refuse modules with kernels that can launch other kernels.
	 */
	bool no_device_launch;
	bool no_records;	/* RECORDS is "0": the GPU writes no completion records */
	/*
	 * GRAPH_SETS: for how many sets an executable graph stays built; otherwise the maximum.
	 */
	unsigned int graph_sets;
	/*
	 * The limit from outside, as gpupart_set_parse() reads it, and its GPU, as
	 * gpupart_attach() takes it; NULL: any GPU. Several GPUs are separated by commas; their
	 * sets by semicolons, or there is one set for all.
	 */
	const char *set, *gpu;
	/*
	 * Lines of rules: a set (or one for each GPU as above), a blank, and the pattern of the
	 * kernel names.
	 */
	const char *rules;
	const char *job;	/* id of the job that the process belongs to */
	const char *tenant;	/* the tenant whose memory quota applies */
	const char *mem;	/* quota in bytes on each GPU that has none yet */
	const char *maps;	/* XDG_CACHE_HOME of `run`, which also holds learnt maps */

	/* For the injected library. */
	bool has_set, has_tenant;	/* the variable exists, even if empty */
	bool has_strict;	/* STRICT is not empty */
	bool strict;		/* and not "0": no launch may leave the set */
	bool sm_count;		/* SM_COUNT is "1": report the SMs of its set to the program */
	const char *stat;	/* the measurement of `gpupart stat` that the process registers
				 * in */
	const char *report;	/* the report for launches outside the set */
	const char *name;	/* the name that the process publishes */
	const char *key;	/* of the checked map of its GPU; for several GPUs a list like
				 * @gpu */
	const char *log;	/* file for messages; NULL: stderr */
	const char *next;	/* library of another tool, which must be loaded too */
};

/*
 * Reads all variables now. A caller that needs a value for the life of the process must keep
 * it.
 */
GPUPART_PRIVATE
struct environment environment_read(void);

/*
 * Copies item @n (from 0) of @list, whose items are separated by @separator. Returns its
 * length, which is @len or more if it was cut, or -1 after the last item.
 */
int environment_part(const char *list, char separator, unsigned int n, char *part, size_t len);

/* The bytes in @mem; 0 if it is NULL or not a number of at least 1. */
uint64_t environment_mem(const struct environment *environment);

#endif
