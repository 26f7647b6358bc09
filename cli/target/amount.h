/* SPDX-License-Identifier: MIT */
/* How many TPCs -n and --sms ask for, and which TPCs these become. */
#ifndef GPUPART_CLI_TARGET_AMOUNT_H
#define GPUPART_CLI_TARGET_AMOUNT_H

#include "lib/private.h"

/* The TPCs of @around that @text, the value of @option, asks for, in *nr: 0, or an error. */
int amount_parse(const char *option, const char *text, const struct gpupart_topology *topo,
		 const struct gpupart_tpcset *around, unsigned int *nr);

/*
 * Adds @nr TPCs of @from to @set, in @shape: of those that @others do not have where these
 * suffice, else it says which overlap. 0, or an error.
 */
int amount_choose(const struct gpupart_topology *topo, enum gpupart_shape shape,
		  const struct gpupart_tpcset *from, const struct gpupart_tpcset *others,
		  unsigned int nr, struct gpupart_tpcset *set);

#endif
