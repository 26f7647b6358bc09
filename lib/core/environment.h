/* SPDX-License-Identifier: MIT */
/*
 * The environment variables through which `gpupart run`, a scheduler or the user configures the
 * library in a process. No other file reads these variables. gpupart(1) documents the variables
 * that users may set.
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

/*
 * The values of the variables. A string is NULL if its variable is missing or empty. A string is
 * valid until the variable is changed.
 */
struct environment {
	bool untouched;		/* DISABLE is "1": the library does only what a grant requires */
	bool profile;		/* PROFILE is "1": a profiler may subscribe after the library */
	/*
	 * NO_DEVICE_LAUNCH is "1": refuse modules with kernels that can launch other kernels.
	 */
	bool no_device_launch;
	bool no_records;	/* RECORDS is "0": the GPU writes no completion records */
	/*
	 * GRAPH_SETS: the number of sets for which an executable graph is kept built. If the
	 * variable is missing, this is the maximum.
	 */
	unsigned int graph_sets;
	/*
	 * The limit from outside, in the form of gpupart_set_parse(), and the GPU to which it
	 * applies, in the form of gpupart_attach(). If the GPU is NULL, the limit applies to any
	 * GPU. Several GPUs are separated by commas. Their sets are separated by semicolons, or
	 * there is one set for all GPUs.
	 */
	const char *set, *gpu;
	/*
	 * Rules, with one rule in each line. A line consists of a set, a blank, and the pattern
	 * of the kernel names. Instead of one set, a line can have one set for each GPU, with
	 * semicolons between the sets.
	 */
	const char *rules;
	const char *job;	/* id of the job that the process belongs to */
	const char *tenant;	/* the tenant whose memory quota applies */
	/* Quota in bytes on each GPU on which the tenant has no quota yet. */
	const char *mem;
	/* XDG_CACHE_HOME of `gpupart run`, whose cache may contain learnt maps */
	const char *maps;

	/* The following members are for the injected library. */
	bool has_set, has_tenant;	/* true if the variable exists, even if it is empty */
	bool has_strict;	/* STRICT is not empty */
	bool strict;		/* STRICT is not empty and not "0": launches outside the set fail */
	bool sm_count;		/* SM_COUNT is "1": report the SMs of the set to the program */
	const char *stat;	/* the measurement of `gpupart stat` in which the process
				 * registers */
	const char *report;	/* the report for launches outside the set */
	const char *name;	/* the name that the process publishes */
	/*
	 * Key of the checked map of the GPU. For several GPUs, a list of keys in the form of
	 * @gpu.
	 */
	const char *key;
	const char *log;	/* file for messages; NULL: stderr */
	const char *next;	/* library of another tool, which must also be loaded */
};

/*
 * Reads the current values of all variables. A caller that needs a value later must copy the
 * value.
 */
GPUPART_PRIVATE
struct environment environment_read(void);

/*
 * Copies item number @n of @list, counted from 0. The items are separated by @separator. Returns
 * the length of the item. If this length is @len or more, the copy was shortened. Returns -1 if
 * @list has no such item.
 */
int environment_part(const char *list, char separator, unsigned int n, char *part, size_t len);

/* Returns the number of bytes in @mem, or 0 if @mem is NULL or not a number of at least 1. */
uint64_t environment_mem(const struct environment *environment);

#endif
