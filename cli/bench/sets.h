/* SPDX-License-Identifier: MIT */
/*
 * The sets of the programs that bench runs. They are chosen from a topology with any number of GPCs
 * and uGPUs.
 */
#ifndef GPUPART_CLI_BENCH_SETS_H
#define GPUPART_CLI_BENCH_SETS_H

#include <gpupart_manage.h>

#define SETS_TPCS 8	/* number of TPCs of a program; fewer if the GPCs are smaller */

enum arrangement {
	SETS_NONE,		/* both programs use the union of the sets of SETS_UGPU */
	SETS_INTERLEAVED,	/* each program has half of each of two GPCs */
	SETS_GPC,		/* each program has one GPC, in the same uGPU */
	SETS_UGPU,		/* each program has one GPC, in different uGPUs */
	SETS_REST,		/* the victim has a GPC, and the neighbour has all other TPCs */
	SETS_NR,
};

extern const char *const sets_name[SETS_NR];

struct sets {
	unsigned int nr_tpcs;	/* number of TPCs of each program */
	struct {
		struct gpupart_tpcset victim, neighbour;
		char why_not[128];	/* the reason why this board has no such sets, or "" */
	} of[SETS_NR];
};

void sets_choose(const struct gpupart_topology *topo, struct sets *sets);

/* Return @nr TPCs. Packed sets use one GPC after the other. Spread sets use each GPC in turn. */
struct gpupart_tpcset sets_packed(const struct gpupart_topology *topo, unsigned int nr);
struct gpupart_tpcset sets_spread(const struct gpupart_topology *topo, unsigned int nr);

#endif
