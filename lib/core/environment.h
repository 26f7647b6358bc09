/* SPDX-License-Identifier: MIT */
/*
 * Reads the environment variables with which `gpupart run`, a scheduler or the user configures the
 * library in a process. No other file reads these variables. The variables for users are documented
 * in gpupart(1).
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
 * The values of the variables. If a variable is missing or empty, its string is NULL. A string is
 * valid until its variable is changed.
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
	 * GRAPH_SETS is the maximum number of sets for which the library keeps builds of an
	 * executable graph. If the variable is missing, this member has its largest value.
	 */
	unsigned int graph_sets;
	/*
	 * The limit from outside, and the GPU to which the limit applies. The set has the form of
	 * gpupart_set_parse(), and the GPU has the form of gpupart_attach(). If @gpu is NULL, the
	 * limit applies to any GPU. In a list of GPUs, commas separate the GPUs. There is one set
	 * for all GPUs, or one set for each GPU. Semicolons separate the sets.
	 */
	const char *set, *gpu;
	/*
	 * The rules. Each line is a rule, and consists of a set, a blank, and a pattern of kernel
	 * names. Instead of one set, a line can have one set for each GPU. Semicolons separate
	 * these sets.
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
	 * The key of the checked map of the GPU. If there are several GPUs, the string is a list of
	 * keys, which commas separate.
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
 * Copies item number @n of @list, counted from 0. The character @separator separates the items.
 * Returns the length of the item. If this length is @len or more, the copy was shortened. If @list
 * has no such item, returns -1.
 */
int environment_part(const char *list, char separator, unsigned int n, char *part, size_t len);

/*
 * Returns the number of bytes that @mem contains as a decimal number. If @mem is NULL or not a
 * positive number, returns 0.
 */
uint64_t environment_mem(const struct environment *environment);

#endif
