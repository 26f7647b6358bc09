/* SPDX-License-Identifier: MIT */
/* Computes the number of TPCs for the options -n and --sms, and chooses these TPCs. */
#ifndef GPUPART_CLI_TARGET_AMOUNT_H
#define GPUPART_CLI_TARGET_AMOUNT_H

#include "lib/private.h"

/*
 * Reads a number of TPCs, or a share of the TPCs in @around. The text @text is the value of
 * @option. Returns 0 or an error.
 */
int amount_parse(const char *option, const char *text, const struct gpupart_topology *topo,
		 const struct gpupart_tpcset *around, unsigned int *nr);

/*
 * Adds @nr TPCs of @from to @set, in the shape @shape. If there are enough other TPCs, avoids the
 * TPCs of @others. Otherwise prints the TPCs that overlap. Returns 0 or an error.
 */
int amount_choose(const struct gpupart_topology *topo, enum gpupart_shape shape,
		  const struct gpupart_tpcset *from, const struct gpupart_tpcset *others,
		  unsigned int nr, struct gpupart_tpcset *set);

#endif
