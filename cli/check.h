/* SPDX-License-Identifier: MIT */
/* What is made sure of before a program is let into a set. Knows not how it gets there. */
#ifndef GPUPART_CLI_CHECK_H
#define GPUPART_CLI_CHECK_H

#include "args.h"

struct check {
	int err;
	char key[20];
	char pci[20];		/* of the GPU that was checked */
	uint64_t memory;	/* its bytes; 0: not told */
	char why[512];
};

/*
 * Has the mask bits of the GPU at @pci checked, in a child of its own: -1 to go on, or a
 * status with the line written.
 */
int check_in_child(const struct args *args, const char *pci, struct check *check);

/* Whether @name can be a job's, as gpupart_job_begin() takes it. */
bool check_is_name(const char *name);

/* The same: -1 to go on, or a status with the line written. */
int check_name(const struct args *args, const char *name);

#endif
