// SPDX-License-Identifier: MIT
/* Chooses sets for `gpupart bench` from a topology. */
#include <stdio.h>
#include <string.h>
#include "cli/bench/sets.h"
#include "cli/draw/topology.h"

const char *const sets_name[SETS_NR] = {
	[SETS_NONE] = "no partition",
	[SETS_INTERLEAVED] = "interleaved",
	[SETS_GPC] = "own GPC",
	[SETS_UGPU] = "own uGPU",
	[SETS_REST] = "all the rest",
};

/* Returns @nr TPCs of a GPC. Prefers TPCs in the virtual GPC that corresponds to this GPC. */
static struct gpupart_tpcset some_of(const struct gpupart_topology *topo, unsigned int gpc,
				     unsigned int nr)
{
	const struct gpupart_tpcset *all = &gpupart_topology_gpc(topo, gpc)->tpcs;
	struct gpupart_tpcset set = { { 0 } };

	for (int t = gpupart_tpcset_next(all, 0); t >= 0 && nr;
	     t = gpupart_tpcset_next(all, t + 1), nr--)
		gpupart_tpcset_add(&set, t);
	return set;
}

static unsigned int size_of(const struct gpupart_topology *topo, unsigned int gpc)
{
	return gpupart_tpcset_count(&gpupart_topology_gpc(topo, gpc)->tpcs);
}

/*
 * Returns the largest GPC inside @ugpu. If @in is false, returns the largest GPC outside @ugpu.
 * Ignores the GPCs @a and @b. If there is no such GPC, returns -1. If @a or @b is -1, it means no
 * GPC.
 */
static int largest(const struct gpupart_topology *topo, int ugpu, bool in, int a, int b)
{
	int best = -1;

	for (int gpc = 0; gpc < (int)gpupart_topology_nr_gpcs(topo); gpc++)
		if (gpc != a && gpc != b &&
		    (gpupart_topology_gpc(topo, gpc)->ugpu == ugpu) == in &&
		    (best < 0 || size_of(topo, gpc) > size_of(topo, best)))
			best = gpc;
	return best;
}

static struct gpupart_tpcset half_of(const struct gpupart_tpcset *of, unsigned int which)
{
	struct gpupart_tpcset set = { { 0 } };
	unsigned int at = 0;

	for (int t = gpupart_tpcset_next(of, 0); t >= 0; t = gpupart_tpcset_next(of, t + 1), at++)
		if (at % 2 == which)
			gpupart_tpcset_add(&set, t);
	return set;
}

static unsigned int smaller(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static void set_pair(struct sets *sets, enum arrangement which, struct gpupart_tpcset victim,
		     struct gpupart_tpcset neighbour)
{
	sets->of[which].victim = victim;
	sets->of[which].neighbour = neighbour;
}

static void why_not(struct sets *sets, enum arrangement which, const char *why)
{
	snprintf(sets->of[which].why_not, sizeof(sets->of[which].why_not), "%s", why);
}

/* Chooses the arrangements for a board with only one GPC. */
static void choose_of_one(const struct gpupart_topology *topo, struct sets *sets)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo);

	sets->nr_tpcs = gpupart_tpcset_count(&all) / 2;
	set_pair(sets, SETS_NONE, all, all);
	set_pair(sets, SETS_INTERLEAVED, half_of(&all, 0), half_of(&all, 1));
	for (int which = SETS_GPC; which < SETS_NR; which++)
		why_not(sets, which, "this board has only one GPC");
	if (sets->nr_tpcs)
		return;
	why_not(sets, SETS_INTERLEAVED, "this board has only one TPC");
}

void sets_choose(const struct gpupart_topology *topo, struct sets *sets)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo), a_set, b_set, c_set, half, other;
	int a, b, c, ugpu;

	memset(sets, 0, sizeof(*sets));
	if (gpupart_topology_nr_gpcs(topo) < 2) {
		choose_of_one(topo, sets);
		return;
	}
	/*
	 * GPC a and GPC b are in one uGPU, and GPC c is in a different uGPU. If uGPUs are not
	 * known, each GPC has the uGPU -1.
	 */
	a = largest(topo, gpupart_topology_gpc(topo, 0)->ugpu, true, -1, -1);
	ugpu = gpupart_topology_gpc(topo, a)->ugpu;
	b = largest(topo, ugpu, true, a, -1);
	c = largest(topo, ugpu, false, a, -1);
	sets->nr_tpcs = smaller(SETS_TPCS, size_of(topo, a));
	if (b >= 0)
		sets->nr_tpcs = smaller(sets->nr_tpcs, size_of(topo, b));
	if (c >= 0)
		sets->nr_tpcs = smaller(sets->nr_tpcs, size_of(topo, c));
	a_set = some_of(topo, a, sets->nr_tpcs);
	set_pair(sets, SETS_REST, a_set, gpupart_tpcset_andnot(&all, &a_set));
	if (c < 0) {
		why_not(sets, SETS_UGPU, "this board has only one uGPU, or its uGPUs are not "
			"known");
	} else {
		c_set = some_of(topo, c, sets->nr_tpcs);
		set_pair(sets, SETS_UGPU, a_set, c_set);
	}
	if (b < 0) {
		why_not(sets, SETS_GPC, "no uGPU of this board has two GPCs");
		b_set = c_set;
	} else {
		b_set = some_of(topo, b, sets->nr_tpcs);
		set_pair(sets, SETS_GPC, a_set, b_set);
	}
	all = gpupart_tpcset_or(&a_set, c < 0 ? &b_set : &c_set);
	set_pair(sets, SETS_NONE, all, all);
	all = gpupart_tpcset_or(&a_set, &b_set);
	half = half_of(&a_set, 0);
	other = half_of(&b_set, 1);
	half = gpupart_tpcset_or(&half, &other);
	set_pair(sets, SETS_INTERLEAVED, half, gpupart_tpcset_andnot(&all, &half));
}

struct gpupart_tpcset sets_packed(const struct gpupart_topology *topo, unsigned int nr)
{
	unsigned int order[GPUPART_MAX_GPCS], nr_gpcs = topology_order_gpcs(topo, order);
	struct gpupart_tpcset set = { { 0 } };

	for (unsigned int at = 0; nr && at < nr_gpcs; at++) {
		struct gpupart_tpcset some = some_of(topo, order[at], nr);

		set = gpupart_tpcset_or(&set, &some);
		nr -= gpupart_tpcset_count(&some);
	}
	return set;
}

struct gpupart_tpcset sets_spread(const struct gpupart_topology *topo, unsigned int nr)
{
	struct gpupart_tpcset set = { { 0 } };

	for (unsigned int round = 1; gpupart_tpcset_count(&set) < nr; round++) {
		unsigned int before = gpupart_tpcset_count(&set);

		for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
			struct gpupart_tpcset some = some_of(topo, gpc, round);

			if (gpupart_tpcset_count(&set) < nr)
				set = gpupart_tpcset_or(&set, &some);
		}
		if (gpupart_tpcset_count(&set) == before)
			break;
	}
	return set;
}
