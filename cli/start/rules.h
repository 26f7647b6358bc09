/* SPDX-License-Identifier: MIT */
/* Reads --rule PATTERN=SET of run and rules of plans: sets of kernels by their names. */
#ifndef GPUPART_CLI_START_RULES_H
#define GPUPART_CLI_START_RULES_H

#include "cli/target/args.h"

/* The sets of rules, by rule; a part for each GPU that was worked out. */
struct rules {
	char *sets[ARGS_MAX_TERMS];
};

/* Whether each of @texts is a rule: 0, or an error. Before anything else is done. */
int rules_check(const struct args_texts *texts);

/*
 * Works out the set of each rule on the GPU at @pci, inside @within, the run's: 0, or an error,
 * which names the rule and @within.
 */
int rules_add(struct rules *rules, const struct args_texts *texts, const struct args *args,
	      const struct gpupart_topology *topo, const char *pci,
	      const struct gpupart_tpcset *within);

/* The value of GPUPART_RULES, to be freed, or NULL without any. Frees what is in @rules. */
char *rules_take(struct rules *rules, const struct args_texts *texts);

#endif
