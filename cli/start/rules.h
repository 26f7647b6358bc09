/* SPDX-License-Identifier: MIT */
/*
 * Reads the rules of --rule and of plans, which have the form PATTERN=SET. A rule gives a set to
 * all kernels whose names match the pattern.
 */
#ifndef GPUPART_CLI_START_RULES_H
#define GPUPART_CLI_START_RULES_H

#include "cli/target/args.h"

/*
 * The sets of the rules. For each rule, a list has one set for each GPU. The separator of the sets
 * is ';'.
 */
struct rules {
	char *sets[ARGS_MAX_TERMS];
};

/* Checks the number of rules, and the syntax of all rules. Returns 0 or an error. */
int rules_check(const struct args_texts *texts);

/*
 * Computes the set of each rule on the GPU at @pci. The sets must be inside the run's set @within.
 * Returns 0 or an error. The error message names the rule and @within.
 */
int rules_add(struct rules *rules, const struct args_texts *texts, const struct args *args,
	      const struct gpupart_topology *topo, const char *pci,
	      const struct gpupart_tpcset *within);

/* Returns the value of GPUPART_RULES, which the caller frees, or NULL. Frees the sets in @rules. */
char *rules_take(struct rules *rules, const struct args_texts *texts);

#endif
