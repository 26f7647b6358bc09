/* SPDX-License-Identifier: MIT */
/*
 * The sets in which bench puts programs, chosen from a topology for any number of GPCs and
 * uGPUs.
 */
#ifndef GPUPART_CLI_BENCH_SETS_H
#define GPUPART_CLI_BENCH_SETS_H

#include <gpupart_manage.h>

#define SETS_TPCS 8	/* of a program; fewer if the GPCs are smaller */

enum arrangement {
	SETS_NONE,		/* both in the union of the sets of SETS_UGPU */
	SETS_INTERLEAVED,	/* half of each of two GPCs */
	SETS_GPC,		/* a GPC each, in the same uGPU */
	SETS_UGPU,		/* a GPC each, in different uGPUs */
	SETS_REST,		/* a GPC, and all other TPCs */
	SETS_NR,
};

extern const char *const sets_name[SETS_NR];

struct sets {
	unsigned int nr_tpcs;	/* of a program */
	struct {
		struct gpupart_tpcset victim, neighbour;
		char why_not[128];	/* "", or why this board has no such sets */
	} of[SETS_NR];
};

void sets_choose(const struct gpupart_topology *topo, struct sets *sets);

/* @nr TPCs: GPC by GPC (packed), or from each GPC in turn (spread). */
struct gpupart_tpcset sets_packed(const struct gpupart_topology *topo, unsigned int nr);
struct gpupart_tpcset sets_spread(const struct gpupart_topology *topo, unsigned int nr);

#endif
