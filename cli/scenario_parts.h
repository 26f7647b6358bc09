/* SPDX-License-Identifier: MIT */
/* What scenario.c and scenario_steps.c share. Knows no more than they. */
#ifndef GPUPART_CLI_SCENARIO_PARTS_H
#define GPUPART_CLI_SCENARIO_PARTS_H

#include "scenario.h"

/* Zeroed, freed with the scenario; NULL, and said: no memory. */
void *scenario_new(struct scenario *s, size_t nr, size_t size);
/* A name of 1 to 60 characters, the scenario's. NULL: said. */
char *scenario_name(struct scenario *s, const yaml_node_t *node, const char *what);
/* The set of @map's key "set" on @gpu; NULL: all TPCs, or said. */
const struct pipe_set *scenario_set(struct scenario *s, const yaml_node_t *map, unsigned int gpu);
/* The kernel that @map's key "kernel" names; false: said. */
bool scenario_find_kernel(struct scenario *s, const yaml_node_t *map, unsigned int *kernel);
/* The number of the process that @map's key "process" names, made where it is new. */
unsigned int scenario_process(struct scenario *s, const yaml_node_t *map);
/* The section "programs", and the events they name. */
void scenario_programs(struct scenario *s);

#endif
