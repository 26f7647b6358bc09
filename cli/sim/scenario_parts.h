/* SPDX-License-Identifier: MIT */
/* Declarations that scenario.c and scenario_steps.c share. */
#ifndef GPUPART_CLI_SIM_SCENARIO_PARTS_H
#define GPUPART_CLI_SIM_SCENARIO_PARTS_H

#include "cli/sim/scenario.h"

/* A list of the scenario. The structs in the list begin with their name. */
struct section {
	const char *name;
	size_t list, nr;	/* offsets in struct scenario: of the pointer and of the count */
	size_t size;			/* of an entry */
	/* reads an entry after its name was set */
	void (*make)(struct scenario *s, yaml_node_t *key, yaml_node_t *node, void *entry);
	unsigned int most;		/* maximum number of entries; 0: no limit */
};

#define SECTION(type, member) #member, offsetof(struct scenario, pipe.member), \
	offsetof(struct scenario, pipe.nr_##member), sizeof(type)

extern const struct section scenario_kernels, scenario_graphs, scenario_streams,
	scenario_program_list;

/* Allocates zeroed memory, which is freed with the scenario. */
void *scenario_new(struct scenario *s, size_t nr, size_t size);
/*
 * Returns the index of the entry of @section that @node names. If there is no such entry, prints an
 * error message and returns 0.
 */
unsigned int scenario_find_index(struct scenario *s, const yaml_node_t *node, const char *what,
			    const struct section *section);
/*
 * Returns the index of the name of @node in the list of *@nr names. Adds a new name if the list has
 * fewer than @most names.
 */
unsigned int scenario_add(struct scenario *s, const yaml_node_t *node, const char *what,
			  const char **names, unsigned int *nr, unsigned int most);

/* The functions below are for tables of keys. */
/* Stores the index of an entry in the section @key->with. */
void scenario_take_index(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			 void *to);
/*
 * Stores the number of a process. Creates the process if it is new. Its name is "main" if @node is
 * NULL.
 */
void scenario_take_process(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			   void *to);
/* Stores the set of a GPU, which is NULL for all TPCs. */
const struct pipe_set *scenario_set(struct scenario *s, yaml_node_t *node, unsigned int gpu);

#endif
