/* SPDX-License-Identifier: MIT */
/* Converts a scenario file (Documentation/user/scenarios.md) to the input of the pipeline. */
#ifndef GPUPART_CLI_SIM_SCENARIO_H
#define GPUPART_CLI_SIM_SCENARIO_H

#include <gpupart_manage.h>
#include "sim/pipe/gpupart_sim.h"
#include "cli/util/yaml.h"

/* A pointer to free with the scenario. */
struct scenario_piece {
	struct scenario_piece *next;
};

struct scenario {
	struct yaml *yaml;
	struct scenario_piece *pieces;
	struct pipe_scenario pipe;
	const char **gpu_names;
	bool made_up[PIPE_MAX_GPUS];	/* its GPCs are invented, because no capture has them */
	const char *processes[PIPE_MAX_PROGRAMS];
	unsigned int nr_steps, depth;
	const struct pipe_program *program;	/* the program whose steps are read */
	struct {				/* names of nodes in the graph that is read */
		const char **names;
		void *tree;			/* tree of indexes into @names */
		unsigned int nr;		/* nodes so far */
	} nodes;
};

/*
 * *name is the name of run @i, or NULL for the only run of a file without runs. Returns false
 * if there is no run @i.
 */
bool scenario_run_name(struct yaml *yaml, unsigned int i, const char **name);

/* From here on $NAME means the value in run @i. */
void scenario_choose_run(struct yaml *yaml, unsigned int i);

/*
 * Creates run @i of the file. Returns false after an error message. Call scenario_free() in
 * both cases.
 */
bool scenario_make(struct scenario *scenario, struct yaml *yaml, unsigned int i);
void scenario_free(struct scenario *scenario);

#endif
