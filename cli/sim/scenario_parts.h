/* SPDX-License-Identifier: MIT */
/* What scenario.c and scenario_steps.c share. */
#ifndef GPUPART_CLI_SIM_SCENARIO_PARTS_H
#define GPUPART_CLI_SIM_SCENARIO_PARTS_H

#include "cli/sim/scenario.h"

/* A list of the scenario: its structs begin with their name. */
struct section {
	const char *name;
	size_t list, nr;		/* offsets in struct scenario: a pointer, a count */
	size_t size;			/* of an entry */
	/* Reads an entry, which has its name. */
	void (*make)(struct scenario *s, yaml_node_t *key, yaml_node_t *node, void *entry);
	unsigned int most;		/* entries; 0: no limit */
};

#define SECTION(type, member) #member, offsetof(struct scenario, pipe.member), \
	offsetof(struct scenario, pipe.nr_##member), sizeof(type)

extern const struct section scenario_kernels, scenario_graphs, scenario_streams,
	scenario_program_list;

/* Zeroed, freed with the scenario. */
void *scenario_new(struct scenario *s, size_t nr, size_t size);
/* The place of @node's text in @section; 0, the error written: it is not there. */
unsigned int scenario_place(struct scenario *s, const yaml_node_t *node, const char *what,
			    const struct section *section);
/* The place of @node's name among *@nr names, added where it is new and they are below @most. */
unsigned int scenario_add(struct scenario *s, const yaml_node_t *node, const char *what,
			  const char **names, unsigned int *nr, unsigned int most);

/* The functions of tables: */
/* the place in the section @key->with; */
void scenario_take_place(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			 void *to);
/* the number of a process, made where it is new, "main" where @node is NULL; */
void scenario_take_process(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			   void *to);
/* the set of a GPU: NULL for all TPCs. */
const struct pipe_set *scenario_set(struct scenario *s, yaml_node_t *node, unsigned int gpu);

#endif
