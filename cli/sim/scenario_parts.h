/* SPDX-License-Identifier: MIT */
/* Declarations that scenario.c and scenario_steps.c share. */
#ifndef GPUPART_CLI_SIM_SCENARIO_PARTS_H
#define GPUPART_CLI_SIM_SCENARIO_PARTS_H

#include "cli/sim/scenario.h"

/* A list of the scenario. Its structs begin with their name. */
struct section {
	const char *name;
	size_t list, nr;	/* offsets in struct scenario: of the pointer and of the count */
	size_t size;			/* of an entry */
	/* Reads an entry whose name is set. */
	void (*make)(struct scenario *s, yaml_node_t *key, yaml_node_t *node, void *entry);
	unsigned int most;		/* most entries; 0: no limit */
};

#define SECTION(type, member) #member, offsetof(struct scenario, pipe.member), \
	offsetof(struct scenario, pipe.nr_##member), sizeof(type)

extern const struct section scenario_kernels, scenario_graphs, scenario_streams,
	scenario_program_list;

/* Allocates zeroed memory that is freed with the scenario. */
void *scenario_new(struct scenario *s, size_t nr, size_t size);
/*
 * The index of the entry of @section that @node names; 0 after an error message if there is
 * none.
 */
unsigned int scenario_find_index(struct scenario *s, const yaml_node_t *node, const char *what,
			    const struct section *section);
/*
 * The index of the name of @node among *@nr names. A new name is added if there are fewer than
 * @most.
 */
unsigned int scenario_add(struct scenario *s, const yaml_node_t *node, const char *what,
			  const char **names, unsigned int *nr, unsigned int most);

/* Functions for tables of keys: */
/* stores the index in the section @key->with; */
void scenario_take_index(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			 void *to);
/* stores the number of a process, which it creates if it is new; "main" if @node is NULL; */
void scenario_take_process(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			   void *to);
/* stores the set of a GPU: NULL for all TPCs. */
const struct pipe_set *scenario_set(struct scenario *s, yaml_node_t *node, unsigned int gpu);

#endif
