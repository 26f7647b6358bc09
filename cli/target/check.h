/* SPDX-License-Identifier: MIT */
/* What is made sure of before a program is let into a set. */
#ifndef GPUPART_CLI_TARGET_CHECK_H
#define GPUPART_CLI_TARGET_CHECK_H

#include "cli/target/args.h"
#include "cli/target/cuda.h"

struct check {
	int err;
	bool called_back;	/* the driver told of a launch */
	bool from_cache;	/* as struct gpupart_check, its texts copied out of the child */
	unsigned int nr_proven, nr_launches;
	char layout[32], streams[256], graphs[256];
	char records[256];	/* why the GPU writes no records of launches, or "" */
	char profilers[256];	/* why they are not let in, where GPUPART_PROFILE=1 asked; or "" */
	char green[256];	/* why no green context can be made; check_attach_tools() alone */
	char key[20];		/* as gpupart_attach_early() takes it */
	struct gpupart_driver driver;
	char pci[20];		/* of the GPU that was checked */
	uint64_t memory;	/* its bytes; 0: not told */
	int nr_visible;		/* GPUs that CUDA shows, with their addresses */
	char visible[CUDA_MAX_GPUS][20];
	char why[512];
};

/* In a child: attaches to the GPU @selector, whose mask bits are checked, into a struct check. */
void check_attach_gpu(void *selector, void *check);
/* As `run --profile` has it, and whether the driver makes a green context then. */
void check_attach_tools(void *selector, void *check);

/*
 * Has the mask bits of the GPU at @pci checked, in a child of its own: 0, or an error.
 */
int check_in_child(const char *pci, struct check *check);

/*
 * Whether the node's setting makes processes strict: *node is NULL, or names the setting. 0, or
 * an error where the setting is not understood. @told: a setting that is ignored, or that cannot
 * be read, was reported before.
 */
int check_node_strict(bool told, const char **node);

/* Whether @name can be a job's, as gpupart_job_begin() takes it. */
bool check_is_name(const char *name);

/* The same: 0, or an error. */
int check_name(const char *name);

#endif
