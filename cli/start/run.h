/* SPDX-License-Identifier: MIT */
/* Starts a program inside a set, for the commands that do. */
#ifndef GPUPART_CLI_START_RUN_H
#define GPUPART_CLI_START_RUN_H

#include "cli/start/lend.h"
#include "cli/target/args.h"

struct plan_file;

/* The options of run's own. */
struct run_wishes {
	const char *name;
	const char *plan;	/* FILE:NAME, the set is of this plan; NULL: of none */
	const struct plan_file *file;	/* the same, read */
	const char *mem;	/* as it was given; NULL: no quota */
	uint64_t mem_bytes;
	const char *gpus;	/* several, parted by commas, or "all"; NULL: the one of args */
	bool names_gpus;	/* --gpu was given */
	struct args_texts rules;	/* PATTERN=SET */
	struct lend_wishes lend;
	bool sm_count, mps, strict, exec, profile, no_device_launch;
	bool quiet;		/* the caller says itself which TPCs, and that they are simulated */
};

/* Whether @args has a program: 0, or an error. */
int run_check_program(const struct args *args);

/* Inside a run the GPU is the one that is limited, or the first. Before args_simulate(). */
void run_inherit_gpu(struct args *args);
/* The same of all that are limited, or that --gpu names: in @wishes where there are several. */
void run_take_gpus(struct args *args, struct run_wishes *wishes);

/*
 * The limit of a run around this command, on the GPU at @pci: in @set, with *outer to it,
 * or NULL where there is none. 0, or an error: it is on another GPU, or no set.
 */
int run_outer_limit(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		    struct gpupart_tpcset *set, const struct gpupart_tpcset **outer);

/*
 * Works out the set, has the mask bits checked, and puts all that the program needs into
 * the environment: 0, or an error.
 */
int run_confine(struct args *args, const struct run_wishes *wishes);

/*
 * Only the injected library into the environment; @strict: where it is loaded at the program's
 * start. 0, or an error.
 */
int run_inject(bool strict);

/* run_confine() and run_become() in a child of this process: an error, or CMD_ENDED. */
int run_as_parent(struct args *args, const struct run_wishes *wishes);

/* The program in this process's place; returns an error: it could not be started. */
int run_become(const struct args *args);

#endif
