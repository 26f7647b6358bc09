/* SPDX-License-Identifier: MIT */
/* Computes the number of TPCs for -n and --sms, and chooses the TPCs. */
#ifndef GPUPART_CLI_TARGET_AMOUNT_H
#define GPUPART_CLI_TARGET_AMOUNT_H

#include "lib/private.h"

/*
 * Reads @text, the value of @option, as a number of TPCs or as a share of the TPCs @around. Returns
 * 0 or an error.
 */
int amount_parse(const char *option, const char *text, const struct gpupart_topology *topo,
		 const struct gpupart_tpcset *around, unsigned int *nr);

/*
 * Adds @nr TPCs of @from to @set, in the shape @shape. Avoids the TPCs of @others if there are
 * enough other TPCs. Otherwise prints which TPCs overlap. Returns 0 or an error.
 */
int amount_choose(const struct gpupart_topology *topo, enum gpupart_shape shape,
		  const struct gpupart_tpcset *from, const struct gpupart_tpcset *others,
		  unsigned int nr, struct gpupart_tpcset *set);

#endif
