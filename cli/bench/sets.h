/* SPDX-License-Identifier: MIT */
/*
 * Sets for the programs that `gpupart bench` runs. The topology may have any number of GPCs and
 * uGPUs.
 */
#ifndef GPUPART_CLI_BENCH_SETS_H
#define GPUPART_CLI_BENCH_SETS_H

#include <gpupart_manage.h>

#define SETS_TPCS 8	/* maximum number of TPCs of a program */

enum arrangement {
	SETS_NONE,		/* both programs use both sets of SETS_UGPU */
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
		char why_not[128];	/* why this board has no such sets, or "" */
	} of[SETS_NR];
};

void sets_choose(const struct gpupart_topology *topo, struct sets *sets);

/*
 * These functions return @nr TPCs. A packed set fills a GPC before it uses the next GPC. A spread
 * set takes TPCs from each GPC in turn.
 */
struct gpupart_tpcset sets_packed(const struct gpupart_topology *topo, unsigned int nr);
struct gpupart_tpcset sets_spread(const struct gpupart_topology *topo, unsigned int nr);

#endif
