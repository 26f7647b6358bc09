/* SPDX-License-Identifier: MIT */
/*
 * What `gpupart run`, a scheduler or the user tells the library of a process in its environment.
 * The one reader of these variables. Their users are documented in gpupart(1).
 */
#ifndef GPUPART_LIB_CORE_ENVIRONMENT_H
#define GPUPART_LIB_CORE_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#define ENVIRONMENT_OFF		"GPUPART_DISABLE"
#define ENVIRONMENT_SET		"GPUPART_SET"
#define ENVIRONMENT_GPU		"GPUPART_GPU"
#define ENVIRONMENT_JOB		"GPUPART_JOB"
#define ENVIRONMENT_TENANT	"GPUPART_TENANT"
#define ENVIRONMENT_MEM		"GPUPART_MEM"

/* Texts are NULL where the variable is missing or empty, and valid until it is changed. */
struct environment {
	bool untouched;		/* OFF is "1": the library does nothing that no grant asks for */
	const char *set;	/* the limit from outside, as gpupart_set_parse() reads it */
	const char *gpu;	/* the GPU it is for, as gpupart_attach() takes it; NULL: any */
	const char *job;	/* id of the job that the process belongs to */
	const char *tenant;	/* whose memory quota holds for it */
	const char *mem;	/* bytes of it on each GPU that has no quota yet */
};

/* As it is now: what is to hold for the life of the process its caller keeps. */
struct environment environment_read(void);

/* The bytes of @mem; 0 where it is NULL or no number from 1 on. */
uint64_t environment_mem(const struct environment *environment);

#endif
