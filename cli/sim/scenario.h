/* SPDX-License-Identifier: MIT */
/* Converts a scenario file (Documentation/user/scenarios.md) to the input of the pipeline. */
#ifndef GPUPART_CLI_SIM_SCENARIO_H
#define GPUPART_CLI_SIM_SCENARIO_H

#include <gpupart_manage.h>
#include "sim/pipe/gpupart_sim.h"
#include "cli/util/yaml.h"

/* A pointer that is freed with the scenario. */
struct scenario_piece {
	struct scenario_piece *next;
};

struct scenario {
	struct yaml *yaml;
	struct scenario_piece *pieces;
	struct pipe_scenario pipe;
	const char **gpu_names;
	bool made_up[PIPE_MAX_GPUS]; /* the GPU's GPCs are invented, because no capture has them */
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
 * Stores the name of run @i in *name, or NULL if the file has no runs and @i is its only run.
 * Returns false if there is no run @i.
 */
bool scenario_run_name(struct yaml *yaml, unsigned int i, const char **name);

/* Chooses run @i. After this call, each $NAME has the value that run @i gives it. */
void scenario_choose_run(struct yaml *yaml, unsigned int i);

/*
 * Creates the scenario of run @i of the file. Returns false after an error message. In both cases
 * the caller must call scenario_free().
 */
bool scenario_make(struct scenario *scenario, struct yaml *yaml, unsigned int i);
void scenario_free(struct scenario *scenario);

#endif
