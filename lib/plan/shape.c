// SPDX-License-Identifier: MIT
/* Chooses a given number of TPCs in one of four shapes: packed, gpcs, balanced or spread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/core/ctx.h"
#include "lib/plan/pack.h"
#include "lib/private.h"
#include "lib/topo/cluster.h"

const char *gpupart_shape_name(enum gpupart_shape shape)
{
	static const char *const names[] = { "packed", "gpcs", "balanced", "spread" };

	return names[shape];
}

int gpupart_shape_parse(struct gpupart *gp, const char *text, enum gpupart_shape *shape)
{
	for (unsigned int i = 0; i < GPUPART_NR_SHAPES; i++)
		if (!strcmp(gpupart_shape_name(i), text)) {
			*shape = i;
			return 0;
		}
	return ctx_fail(gp, -EINVAL, "the shape must be packed, gpcs, balanced or spread");
}

static struct gpupart_tpcset gpc_part(const struct gpupart_topology *topo, unsigned int gpc,
				      const struct gpupart_tpcset *from)
{
	return gpupart_tpcset_and(&gpupart_topology_gpc(topo, gpc)->tpcs, from);
}

/* Returns the GPCs that are completely in @set. */
static struct gpupart_tpcset whole_gpcs(const struct gpupart_topology *topo,
					const struct gpupart_tpcset *set)
{
	struct gpupart_tpcset whole = { 0 };

	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		const struct gpupart_tpcset *tpcs = &gpupart_topology_gpc(topo, gpc)->tpcs;

		if (gpupart_tpcset_subset(tpcs, set))
			whole = gpupart_tpcset_or(&whole, tpcs);
	}
	return whole;
}

static struct gpupart_tpcset shape_gpcs(const struct gpupart_topology *topo,
					const struct gpupart_tpcset *from, unsigned int nr)
{
	struct gpupart_tpcset whole = whole_gpcs(topo, from), left, set = whole;

	if (gpupart_tpcset_count(&whole) > nr) {
		set = pack_gpcs(topo, &whole, nr);
		set = whole_gpcs(topo, &set);
	}
	nr -= gpupart_tpcset_count(&set);
	/* If the split GPCs have enough TPCs for the rest, do not split another GPC. */
	left = gpupart_tpcset_andnot(from, &whole);
	if (gpupart_tpcset_count(&left) < nr)
		left = gpupart_tpcset_andnot(from, &set);
	left = pack_gpcs(topo, &left, nr);
	return gpupart_tpcset_or(&set, &left);
}

static int plan_balanced(struct gpupart *gp, const struct gpupart_topology *topo,
			 const struct gpupart_tpcset *from, unsigned int nr,
			 struct gpupart_tpcset *set)
{
	const struct gpupart_demand demand = { .name = "set", .min_tpcs = nr, .max_tpcs = nr,
					       .gpcs = true, .spread = true };
	struct gpupart_plan plan;
	int err = gpupart_plan_make(gp, topo, from, &demand, 1, &plan);

	if (!err)
		*set = plan.tenants[0].set;
	return err;
}

static int shape_balanced(struct gpupart *gp, const struct gpupart_topology *topo,
			  const struct gpupart_tpcset *from, unsigned int nr,
			  struct gpupart_tpcset *set)
{
	unsigned int most = gpupart_tpcset_count(from), below = nr - 1, above = nr + 1;
	int err = plan_balanced(gp, topo, from, nr, set);
	char would[64] = "";

	if (err != -ENOSPC)
		return err;
	while (below && plan_balanced(gp, topo, from, below, set))
		below--;
	while (above <= most && plan_balanced(gp, topo, from, above, set))
		above++;
	if (below && above <= most)
		snprintf(would, sizeof(would), ": %u or %u would do", below, above);
	else if (below || above <= most)
		snprintf(would, sizeof(would), ": %u would do", below ? below : above);
	return ctx_fail(gp, -ENOSPC,
			"no choice of equally many whole GPCs from each uGPU has %u TPC%s in total%s",
			nr, nr == 1 ? "" : "s", would);
}

/*
 * Adds TPCs of @from to @set until @set has @nr TPCs. For each TPC, the function first chooses the
 * uGPU with the fewest TPCs in @set. In this uGPU, it chooses the GPC with the fewest TPCs in @set.
 * In this GPC, it chooses the lowest TPC.
 */
static void spread_more(const struct gpupart_topology *topo, const struct gpupart_tpcset *from,
			unsigned int nr, struct gpupart_tpcset *set)
{
	unsigned int has[GPUPART_MAX_GPCS] = { 0 }, of_ugpu[GPUPART_MAX_GPCS + 1] = { 0 };
	unsigned int ugpu[GPUPART_MAX_GPCS], nr_gpcs = gpupart_topology_nr_gpcs(topo);
	struct gpupart_tpcset part;

	for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
		int is = gpupart_topology_gpc(topo, gpc)->ugpu;

		part = gpc_part(topo, gpc, set);
		has[gpc] = gpupart_tpcset_count(&part);
		ugpu[gpc] = is < 0 ? GPUPART_MAX_GPCS : (unsigned int)is;
		of_ugpu[ugpu[gpc]] += has[gpc];
	}
	for (unsigned int left = nr - gpupart_tpcset_count(set); left; left--) {
		struct gpupart_tpcset room = gpupart_tpcset_andnot(from, set);
		unsigned int best = nr_gpcs;

		for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
			part = gpc_part(topo, gpc, &room);
			if (!gpupart_tpcset_empty(&part) &&
			    (best == nr_gpcs || has[gpc] < has[best] ||
			     (has[gpc] == has[best] && of_ugpu[ugpu[gpc]] < of_ugpu[ugpu[best]])))
				best = gpc;
		}
		if (best == nr_gpcs)
			return;
		part = gpc_part(topo, best, &room);
		gpupart_tpcset_add(set, gpupart_tpcset_next(&part, 0));
		has[best]++;
		of_ugpu[ugpu[best]]++;
	}
}

static struct gpupart_tpcset shape_spread(const struct gpupart_topology *topo,
					  const struct gpupart_tpcset *from, unsigned int nr)
{
	unsigned int sms = topo_sms_per_tpc(topo);
	unsigned int home = (GPUPART_PORTABLE_CLUSTER + sms - 1) / sms;
	struct gpupart_tpcset set = { 0 }, part, with;

	spread_more(topo, from, nr, &set);
	if (nr < home || gpupart_set_cluster(topo, &set) >= GPUPART_PORTABLE_CLUSTER)
		return set;
	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		part = gpc_part(topo, gpc, from);
		part = cluster_tpcs(topo, &part);
		if (gpupart_tpcset_count(&part) < home)
			continue;
		with = pack_lowest(&part, home);
		/*
		 * A different GPC of the same size would give an equally even result, so return
		 * now.
		 */
		spread_more(topo, from, nr, &with);
		return with;
	}
	return set;
}

int gpupart_set_shape(struct gpupart *gp, const struct gpupart_topology *topo,
		      enum gpupart_shape shape, const struct gpupart_tpcset *from, unsigned int nr,
		      struct gpupart_tpcset *set)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo);

	all = gpupart_tpcset_and(from, &all);
	from = &all;
	if (!nr || nr > gpupart_tpcset_count(from))
		return ctx_fail(gp, -ENOSPC, "%u TPCs of %u", nr, gpupart_tpcset_count(from));
	switch (shape) {
	case GPUPART_SHAPE_PACKED:
		*set = pack_tpcs(topo, from, nr);
		return 0;
	case GPUPART_SHAPE_GPCS:
		*set = shape_gpcs(topo, from, nr);
		return 0;
	case GPUPART_SHAPE_BALANCED:
		return shape_balanced(gp, topo, from, nr, set);
	case GPUPART_SHAPE_SPREAD:
		*set = shape_spread(topo, from, nr);
		return 0;
	}
	return ctx_fail(gp, -EINVAL, "shape number %d does not exist", shape);
}
