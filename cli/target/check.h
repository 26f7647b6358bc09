/* SPDX-License-Identifier: MIT */
/* Checks before a program starts: the mask bits, whether a run is strict, and names. */
#ifndef GPUPART_CLI_TARGET_CHECK_H
#define GPUPART_CLI_TARGET_CHECK_H

#include "cli/target/args.h"
#include "cli/target/cuda.h"

struct check {
	int err;
	bool called_back;	/* the driver called the launch callback */
	bool no_callback;	/* @err: the launch callback is missing or has an unknown form */
	bool from_cache;	/* from_cache to graphs: same members as in struct gpupart_check */
	unsigned int nr_proven, nr_launches;
	char layout[32], streams[256], graphs[256];
	char records[256];	/* the reason why the GPU writes no completion records, or "" */
	/* the reason why profilers cannot attach with GPUPART_PROFILE=1, or "" */
	char profilers[256];
	/* the reason why green contexts fail, or ""; check_attach_tools() sets it */
	char green[256];
	char key[20];		/* for gpupart_attach_early() */
	struct gpupart_driver driver;
	char pci[20];		/* address of the checked GPU */
	uint64_t memory;	/* bytes of memory of the GPU; 0: not known */
	int nr_visible;		/* number of GPUs that CUDA reports; @visible has their addresses */
	char visible[CUDA_MAX_GPUS][20];
	char why[512];
};

/*
 * Runs in a child. Attaches to the GPU @selector, checks its mask bits and fills in a struct check.
 */
void check_attach_gpu(void *selector, void *check);
/*
 * Does the same as check_attach_gpu(), with the settings of `run --profile`. Also tries to create a
 * green context.
 */
void check_attach_tools(void *selector, void *check);

/* Checks the mask bits of the GPU at @pci in a child. Returns 0 or an error. */
int check_in_child(const char *pci, struct check *check);

/*
 * Finds out whether the node's configuration makes all runs strict. If it does, sets *node to a
 * description of the setting. Otherwise sets *node to NULL. Returns 0, or an error if the
 * setting is invalid. If @told is true, prints no message about a setting that is ignored or
 * cannot be read.
 */
int check_node_strict(bool told, const char **node);

/* Returns whether @name is valid for gpupart_job_begin(). */
bool check_is_name(const char *name);

/*
 * Checks @name, the value of @option, like check_is_name(). Prints an error message if the name is
 * not valid. Returns 0 or an error.
 */
int check_name(const char *option, const char *name);

#endif
