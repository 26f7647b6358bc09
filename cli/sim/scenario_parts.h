/* SPDX-License-Identifier: MIT */
/* Declarations that scenario.c and scenario_steps.c share. */
#ifndef GPUPART_CLI_SIM_SCENARIO_PARTS_H
#define GPUPART_CLI_SIM_SCENARIO_PARTS_H

#include "cli/sim/scenario.h"

/* A list in the scenario. The entries are structs. The first member of each struct is its name. */
struct section {
	const char *name;
	size_t list, nr;	/* offsets of pointer and count in struct scenario */
	size_t size;			/* of an entry */
	/* reads an entry that already has its name */
	void (*make)(struct scenario *s, yaml_node_t *key, yaml_node_t *node, void *entry);
	unsigned int most;		/* maximum number of entries; 0: no limit */
};

#define SECTION(type, member) #member, offsetof(struct scenario, pipe.member), \
	offsetof(struct scenario, pipe.nr_##member), sizeof(type)

extern const struct section scenario_kernels, scenario_graphs, scenario_streams,
	scenario_program_list;

/* Allocates zeroed memory. This memory is freed with the scenario. */
void *scenario_new(struct scenario *s, size_t nr, size_t size);
/*
 * Finds the entry of @section that has the name in @node. Returns the index of this entry. If there
 * is no such entry, prints an error message and returns 0.
 */
unsigned int scenario_find_index(struct scenario *s, const yaml_node_t *node, const char *what,
			    const struct section *section);
/*
 * Finds the name of @node in the list @names, and returns its index. The list has *nr names. If the
 * name is new and *nr is less than @most, adds the name.
 */
unsigned int scenario_add(struct scenario *s, const yaml_node_t *node, const char *what,
			  const char **names, unsigned int *nr, unsigned int most);

/* The functions below are for tables of keys. */
/* Stores the index of an entry in the section @key->with. */
void scenario_take_index(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			 void *to);
/*
 * Stores the number of a process. If the process is new, creates the process. If @node is NULL, the
 * name of the process is "main".
 */
void scenario_take_process(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			   void *to);
/* Stores a set of TPCs of a GPU. If the set contains all TPCs, stores NULL. */
const struct pipe_set *scenario_set(struct scenario *s, yaml_node_t *node, unsigned int gpu);

#endif
