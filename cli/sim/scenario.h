/* SPDX-License-Identifier: MIT */
/* Converts a scenario file to the input of the pipeline. See Documentation/user/scenarios.md. */
#ifndef GPUPART_CLI_SIM_SCENARIO_H
#define GPUPART_CLI_SIM_SCENARIO_H

#include <gpupart_manage.h>
#include "sim/pipe/gpupart_sim.h"
#include "cli/util/yaml.h"

/* A pointer to memory that is freed with the scenario. */
struct scenario_piece {
	struct scenario_piece *next;
};

struct scenario {
	struct yaml *yaml;
	struct scenario_piece *pieces;
	struct pipe_scenario pipe;
	const char **gpu_names;
	bool made_up[PIPE_MAX_GPUS]; /* no capture has the GPU's GPCs, so they are invented */
	const char *processes[PIPE_MAX_PROGRAMS];
	unsigned int nr_steps, depth;
	const struct pipe_program *program;	/* the program whose steps are being read */
	struct {				/* names of nodes in the current graph */
		const char **names;
		void *tree;			/* tree of indexes into @names */
		unsigned int nr;		/* nodes so far */
	} nodes;
};

/*
 * Stores the name of run @i in *name. A file without runs counts as one run, whose name is NULL. If
 * there is no run @i, returns false.
 */
bool scenario_run_name(struct yaml *yaml, unsigned int i, const char **name);

/* Chooses run @i. After this call, each variable $NAME has its value of run @i. */
void scenario_choose_run(struct yaml *yaml, unsigned int i);

/*
 * Creates the scenario of run @i in the file. If this fails, prints an error message and returns
 * false. In both cases the caller must call scenario_free().
 */
bool scenario_make(struct scenario *scenario, struct yaml *yaml, unsigned int i);
void scenario_free(struct scenario *scenario);

#endif
