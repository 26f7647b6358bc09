/* SPDX-License-Identifier: MIT */
/* A scenario file (Documentation/user/scenarios.md) as what the pipeline runs. */
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
	bool made_up[PIPE_MAX_GPUS];	/* its GPCs: no capture tells them */
	const char *processes[PIPE_MAX_PROGRAMS];
	unsigned int nr_steps, depth;
	const struct pipe_program *program;	/* whose steps are read */
	struct {				/* nodes' names of the graph that is read */
		const char **names;
		void *tree;			/* of places in @names */
		unsigned int nr;		/* nodes so far */
	} nodes;
};

/* The run's name, NULL for the only one of a file without runs. False past the last. */
bool scenario_run_name(struct yaml *yaml, unsigned int i, const char **name);

/* From then on $NAME stands for what the @i'th run says. */
void scenario_choose_run(struct yaml *yaml, unsigned int i);

/*
 * Makes the @i'th run of the file. False: a line was written. Drop it with
 * scenario_free() either way.
 */
bool scenario_make(struct scenario *scenario, struct yaml *yaml, unsigned int i);
void scenario_free(struct scenario *scenario);

#endif
