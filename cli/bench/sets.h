/* SPDX-License-Identifier: MIT */
/*
 * The sets that bench puts programs in, chosen from a topology: whatever GPCs and uGPUs a board
 * has.
 */
#ifndef GPUPART_CLI_BENCH_SETS_H
#define GPUPART_CLI_BENCH_SETS_H

#include <gpupart_manage.h>

#define SETS_TPCS 8	/* of a tenant; fewer where no GPCs have so many */

enum arrangement {
	SETS_NONE,		/* both in the union of what UGPU has */
	SETS_INTERLEAVED,	/* half of each of two GPCs */
	SETS_GPC,		/* a GPC each, same uGPU */
	SETS_UGPU,		/* a GPC each, another uGPU */
	SETS_REST,		/* a GPC, and all other TPCs of the GPU */
	SETS_NR,
};

extern const char *const sets_name[SETS_NR];

struct sets {
	unsigned int nr_tpcs;	/* of a tenant */
	struct {
		struct gpupart_tpcset victim, neighbour;
		char why_not[128];	/* "" or why this board has no such sets */
	} of[SETS_NR];
};

void sets_choose(const struct gpupart_topology *topo, struct sets *sets);

/* @nr TPCs, GPC after GPC (packed) or one of each GPC in turn. */
struct gpupart_tpcset sets_packed(const struct gpupart_topology *topo, unsigned int nr);
struct gpupart_tpcset sets_spread(const struct gpupart_topology *topo, unsigned int nr);

#endif
