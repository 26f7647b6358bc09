/* SPDX-License-Identifier: MIT */
/* Starts a program inside a set, for the commands run, stat and qos. One thread. */
#ifndef GPUPART_CLI_START_RUN_H
#define GPUPART_CLI_START_RUN_H

#include "cli/start/lend.h"
#include "cli/target/args.h"

struct plan_file;

/* The options of 'gpupart run'. */
struct run_wishes {
	const char *name;
	const char *plan;	/* FILE:NAME of --plan, or NULL */
	const struct plan_file *file;	/* content of the plan */
	const char *mem;	/* --mem, or NULL */
	uint64_t mem_bytes;
	const char *gpus; /* several GPUs, separated by commas, or "all"; NULL: use args->gpu */
	bool names_gpus;	/* --gpu was given */
	struct args_texts rules;	/* PATTERN=SET */
	struct lend_wishes lend;
	bool sm_count, mps, strict, exec, profile, no_device_launch;
	bool quiet;		/* do not print the TPCs of a simulated GPU */
};

/* Checks that @args has a program. Returns 0 or an error. */
int run_check_program(const struct args *args);

/*
 * If this process is inside a run, sets args->gpu to the first GPU of the run's limit. Call this
 * function before args_simulate().
 */
void run_inherit_gpu(struct args *args);
/*
 * Finds all GPUs of the run's limit or of --gpu. Stores several GPUs in @wishes, and a single GPU
 * in args->gpu.
 */
void run_take_gpus(struct args *args, struct run_wishes *wishes);

/*
 * If there is an outer run, reads its limit on the GPU at @pci into @set, and sets *outer to @set.
 * Otherwise sets *outer to NULL. If the limit is invalid or is for another GPU, returns an error.
 * Otherwise returns 0.
 */
int run_outer_limit(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		    struct gpupart_tpcset *set, const struct gpupart_tpcset **outer);

/*
 * Computes the set, checks the mask bits, and prepares the environment of the program. Returns 0 or
 * an error.
 */
int run_confine(struct args *args, const struct run_wishes *wishes);

/*
 * Puts the injected library into the environment, and nothing else. If @strict is true, the loader
 * loads the library when the program starts. Returns 0 or an error.
 */
int run_inject(bool strict);

/* Calls run_confine() and run_become() in a child process. Returns an error or CMD_ENDED. */
int run_as_parent(struct args *args, const struct run_wishes *wishes);

/* Replaces this process by the program. If this fails, returns an error. */
int run_become(const struct args *args);

#endif
