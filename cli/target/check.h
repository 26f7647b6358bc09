/* SPDX-License-Identifier: MIT */
/* What is made sure of before a program is let into a set. Knows not how it gets there. */
#ifndef GPUPART_CLI_TARGET_CHECK_H
#define GPUPART_CLI_TARGET_CHECK_H

#include "cli/target/args.h"

struct check {
	int err;
	bool called_back;	/* the driver told of a launch */
	bool from_cache;	/* as struct gpupart_check, its texts copied out of the child */
	unsigned int nr_proven, nr_launches;
	char layout[32], streams[256], graphs[256];
	char key[20];
	struct gpupart_driver driver;
	char pci[20];		/* of the GPU that was checked */
	uint64_t memory;	/* its bytes; 0: not told */
	char why[512];
};

/* In a child: attaches to the GPU @selector, whose mask bits are checked, into a struct check. */
void check_attach_gpu(void *selector, void *check);

/*
 * Has the mask bits of the GPU at @pci checked, in a child of its own: 0, or an error.
 */
int check_in_child(const struct args *args, const char *pci, struct check *check);

/* Whether @name can be a job's, as gpupart_job_begin() takes it. */
bool check_is_name(const char *name);

/* The same: 0, or an error. */
int check_name(const struct args *args, const char *name);

#endif
