/* SPDX-License-Identifier: MIT */
/*
 * Makes checks before a program starts. Checks the mask bits, the names, and the setting for strict
 * runs.
 */
#ifndef GPUPART_CLI_TARGET_CHECK_H
#define GPUPART_CLI_TARGET_CHECK_H

#include "cli/target/args.h"
#include "cli/target/cuda.h"

struct check {
	int err;
	bool called_back;	/* the driver called the launch callback */
	bool no_callback;	/* @err: the launch callback is missing or has an unknown form */
	bool from_cache;	/* from here to @graphs: same members as in struct gpupart_check */
	unsigned int nr_proven, nr_launches;
	char layout[32], streams[256], graphs[256];
	char records[256];	/* why the GPU writes no completion records, or "" */
	/* why profilers cannot attach with GPUPART_PROFILE=1, or "" */
	char profilers[256];
	/* why green contexts fail, or ""; set by check_attach_tools() */
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
 * Does the same as check_attach_gpu(), but with the settings of `gpupart run --profile`. Also tries
 * to create a green context.
 */
void check_attach_tools(void *selector, void *check);

/* Checks the mask bits of the GPU at @pci in a child. Returns 0 or an error. */
int check_in_child(const char *pci, struct check *check);

/*
 * Finds out whether the node's configuration makes all runs strict. If all runs are strict, sets
 * *node to a description of the setting. Otherwise sets *node to NULL. If the setting is invalid,
 * returns an error. If the setting is ignored or cannot be read, and @explicit is false, prints a
 * message.
 */
int check_node_strict(bool explicit, const char **node);

/* Returns whether @name is valid for gpupart_job_begin(). */
bool check_is_name(const char *name);

/*
 * Checks @name in the same way as check_is_name(). @name is the value of @option. If the name is
 * not valid, prints an error message. Returns 0 or an error.
 */
int check_name(const char *option, const char *name);

#endif
