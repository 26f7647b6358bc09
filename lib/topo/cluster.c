// SPDX-License-Identifier: MIT
/*
 * Computes how many thread block clusters fit into a set of TPCs. Also finds sets that can hold a
 * cluster. A cluster needs one SM for each block. All these SMs must be in one virtual GPC. At a
 * launch, lib/tmd/fit.c counts clusters in the same way.
 */
#include <errno.h>
#include "lib/topo/cluster.h"

/* Returns whether one cluster can have blocks on both TPCs. */
static bool share_clusters(const struct gpupart_tpc *a, const struct gpupart_tpc *b)
{
	return a->vgpc == b->vgpc && (a->vgpc >= 0 || a->gpc == b->gpc);
}

/* Returns the TPCs of @set that are in the same virtual GPC as @tpc. */
static struct gpupart_tpcset in_vgpc_of(const struct gpupart_topology *topo, unsigned int tpc,
					const struct gpupart_tpcset *set)
{
	struct gpupart_tpcset in = { 0 };

	for (int t = gpupart_tpcset_next(set, 0); t >= 0; t = gpupart_tpcset_next(set, t + 1))
		if (share_clusters(&topo->tpcs[tpc], &topo->tpcs[t]))
			gpupart_tpcset_add(&in, t);
	return in;
}

struct gpupart_tpcset cluster_tpcs(const struct gpupart_topology *topo,
				   const struct gpupart_tpcset *set)
{
	struct gpupart_tpcset left = *set, best = { 0 };

	while (!gpupart_tpcset_empty(&left)) {
		struct gpupart_tpcset in = in_vgpc_of(topo, gpupart_tpcset_next(&left, 0), &left);

		if (gpupart_tpcset_count(&in) > gpupart_tpcset_count(&best))
			best = in;
		left = gpupart_tpcset_andnot(&left, &in);
	}
	return best;
}

unsigned int gpupart_set_cluster(const struct gpupart_topology *topo,
				 const struct gpupart_tpcset *set)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo), there, best;

	there = gpupart_tpcset_and(set, &all);
	best = cluster_tpcs(topo, &there);
	return gpupart_tpcset_count(&best) * topo_sms_per_tpc(topo);
}

/*
 * Adds TPCs of @from to @set until @set has @nr TPCs. The function begins with the virtual GPC that
 * has the most TPCs in @from. It ends with the virtual GPC that has the fewest. In each virtual
 * GPC, it adds the lowest TPCs first.
 */
static void fill(const struct gpupart_topology *topo, const struct gpupart_tpcset *from,
		 unsigned int nr, struct gpupart_tpcset *set)
{
	struct gpupart_tpcset left = *from;

	while (!gpupart_tpcset_empty(&left)) {
		struct gpupart_tpcset in = cluster_tpcs(topo, &left);

		for (int t = gpupart_tpcset_next(&in, 0);
		     t >= 0 && gpupart_tpcset_count(set) < nr; t = gpupart_tpcset_next(&in, t + 1))
			gpupart_tpcset_add(set, t);
		left = gpupart_tpcset_andnot(&left, &in);
	}
}

int gpupart_set_pick(const struct gpupart_topology *topo, unsigned int cluster,
		     const struct gpupart_tpcset *keep, const struct gpupart_tpcset *prefer,
		     const struct gpupart_tpcset *from, unsigned int nr, struct gpupart_tpcset *set)
{
	unsigned int sms = topo_sms_per_tpc(topo), need = cluster / sms + !!(cluster % sms);
	struct gpupart_tpcset all = gpupart_topology_all(topo), left, wanted, best = { 0 };
	int most = -1;

	all = gpupart_tpcset_and(from, &all);
	all = gpupart_tpcset_or(&all, keep);
	wanted = gpupart_tpcset_and(prefer, &all);
	wanted = gpupart_tpcset_or(&wanted, keep);
	for (left = all; !gpupart_tpcset_empty(&left);) {
		unsigned int tpc = gpupart_tpcset_next(&left, 0);
		struct gpupart_tpcset in = in_vgpc_of(topo, tpc, &all), home = { 0 }, part;
		int has;

		left = gpupart_tpcset_andnot(&left, &in);
		part = gpupart_tpcset_and(&in, keep);
		fill(topo, &part, need, &home);
		part = gpupart_tpcset_and(&in, &wanted);
		fill(topo, &part, need, &home);
		fill(topo, &in, need, &home);
		has = gpupart_tpcset_count(&part);
		if (gpupart_tpcset_count(&home) < need || has <= most)
			continue;
		home = gpupart_tpcset_or(&home, keep);
		if (gpupart_tpcset_count(&home) > nr)
			continue;
		best = home;
		most = has;
	}
	fill(topo, &wanted, nr, &best);
	fill(topo, &all, nr, &best);
	if (most < 0 || gpupart_tpcset_count(&best) < nr)
		return -ENOSPC;
	*set = best;
	return 0;
}
