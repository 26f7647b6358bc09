// SPDX-License-Identifier: MIT
/* Packs a number of TPCs into few uGPUs and few GPCs. */
#include <string.h>
#include "lib/plan/pack.h"

struct gpupart_tpcset pack_lowest(const struct gpupart_tpcset *from, unsigned int nr)
{
	struct gpupart_tpcset set = { 0 };

	for (int tpc = gpupart_tpcset_next(from, 0); nr && tpc >= 0;
	     tpc = gpupart_tpcset_next(from, tpc + 1), nr--)
		gpupart_tpcset_add(&set, tpc);
	return set;
}

struct gpupart_tpcset pack_gpcs(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *from, unsigned int nr)
{
	/*
	 * The element fewest[i][n] is the smallest number of GPCs that together have exactly n
	 * TPCs. Only GPC i and later GPCs may be used. If no such GPCs exist, the element is NONE.
	 */
	enum { NONE = GPUPART_MAX_GPCS + 1 };
	unsigned char fewest[GPUPART_MAX_GPCS + 1][GPUPART_MAX_TPCS + 1];
	struct gpupart_tpcset parts[GPUPART_MAX_GPCS], set = { 0 }, part;
	unsigned int size[GPUPART_MAX_GPCS], nr_gpcs = gpupart_topology_nr_gpcs(topo), whole = nr;
	int rest = -1;

	for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
		parts[gpc] = gpupart_tpcset_and(&gpupart_topology_gpc(topo, gpc)->tpcs, from);
		size[gpc] = gpupart_tpcset_count(&parts[gpc]);
	}
	memset(fewest[nr_gpcs], NONE, sizeof(fewest[0]));
	fewest[nr_gpcs][0] = 0;
	for (int gpc = nr_gpcs - 1; gpc >= 0; gpc--)
		for (unsigned int n = 0; n <= nr; n++) {
			fewest[gpc][n] = fewest[gpc + 1][n];
			if (size[gpc] && n >= size[gpc] &&
			    fewest[gpc + 1][n - size[gpc]] + 1 < fewest[gpc][n])
				fewest[gpc][n] = fewest[gpc + 1][n - size[gpc]] + 1;
		}
	while (fewest[0][whole] == NONE)
		whole--;
	nr -= whole;
	/*
	 * Several choices may have the smallest number of GPCs. Prefer low GPCs: if any of these
	 * choices contains this GPC, take this GPC.
	 */
	for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
		bool taken = size[gpc] && whole >= size[gpc] &&
			     fewest[gpc + 1][whole - size[gpc]] + 1 == fewest[gpc][whole];

		if (taken) {
			set = gpupart_tpcset_or(&set, &parts[gpc]);
			whole -= size[gpc];
		} else if (size[gpc] > nr && (rest < 0 || size[gpc] < size[rest])) {
			rest = gpc;
		}
	}
	/* Each remaining GPC has more TPCs than are still needed. */
	if (rest >= 0) {
		part = pack_lowest(&parts[rest], nr);
		set = gpupart_tpcset_or(&set, &part);
	}
	return set;
}

struct gpupart_tpcset pack_tpcs(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *from, unsigned int nr)
{
	struct gpupart_tpcset left = *from, set = { 0 }, part;

	while (nr) {
		struct gpupart_tpcset best = { 0 };
		unsigned int best_nr = 0, part_nr;

		for (unsigned int ugpu = 0; ugpu < gpupart_topology_nr_ugpus(topo); ugpu++) {
			part = gpupart_topology_ugpu(topo, ugpu);
			part = gpupart_tpcset_and(&part, &left);
			part_nr = gpupart_tpcset_count(&part);
			if (best_nr < nr ? part_nr > best_nr : part_nr >= nr && part_nr < best_nr) {
				best = part;
				best_nr = part_nr;
			}
		}
		if (!best_nr) {		/* the uGPUs are unknown, or these TPCs are in no uGPU */
			best = left;
			best_nr = gpupart_tpcset_count(&left);
		}
		part = best_nr <= nr ? best : pack_gpcs(topo, &best, nr);
		set = gpupart_tpcset_or(&set, &part);
		left = gpupart_tpcset_andnot(&left, &part);
		nr -= gpupart_tpcset_count(&part);
	}
	return set;
}
