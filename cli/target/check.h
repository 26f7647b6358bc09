/* SPDX-License-Identifier: MIT */
/* Checks before a program starts: mask bits, strictness, names. */
#ifndef GPUPART_CLI_TARGET_CHECK_H
#define GPUPART_CLI_TARGET_CHECK_H

#include "cli/target/args.h"
#include "cli/target/cuda.h"

struct check {
	int err;
	bool called_back;	/* the driver called the launch callback */
	bool no_callback;	/* @err: the launch callback is missing or has an unknown form */
	bool from_cache;	/* this and the next ones as in struct gpupart_check */
	unsigned int nr_proven, nr_launches;
	char layout[32], streams[256], graphs[256];
	char records[256];	/* why the GPU writes no completion records, or "" */
	char profilers[256];	/* why they cannot attach with GPUPART_PROFILE=1, or "" */
	char green[256];	/* why green contexts fail, or ""; set by check_attach_tools() */
	char key[20];		/* for gpupart_attach_early() */
	struct gpupart_driver driver;
	char pci[20];		/* of the checked GPU */
	uint64_t memory;	/* of the GPU in bytes; 0: not known */
	int nr_visible;		/* GPUs that CUDA reports, with their addresses */
	char visible[CUDA_MAX_GPUS][20];
	char why[512];
};

/* In a child: attaches to the GPU @selector, checks its mask bits, fills in a struct check. */
void check_attach_gpu(void *selector, void *check);
/* The same as with `run --profile`, and also tries to create a green context. */
void check_attach_tools(void *selector, void *check);

/* Checks the mask bits of the GPU at @pci in a child. Returns 0 or an error. */
int check_in_child(const char *pci, struct check *check);

/*
 * Finds out whether the node's configuration makes all runs strict: *node is NULL, or describes the
 * setting. Returns 0, or an error if the setting is invalid. @told: do not report a setting that is
 * ignored or cannot be read.
 */
int check_node_strict(bool told, const char **node);

/* Whether @name is valid for gpupart_job_begin(). */
bool check_is_name(const char *name);

/* The same, with a message. Returns 0 or an error. */
int check_name(const char *name);

#endif
