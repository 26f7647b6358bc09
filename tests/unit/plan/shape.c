// SPDX-License-Identifier: MIT
/*
 * Tests shapes of sets. It tests every number of TPCs on every board and on random parts of the
 * board. The results are compared with all sets of GPCs. They are also compared with counts that
 * do not use the library.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/private.h"
#include "tests/tap.h"

#define CLUSTER_TPCS 4		/* TPCs for 8 blocks; the boards have two SMs per TPC */

static struct gpupart *gp;
static struct gpupart_topology *topo;
static unsigned int nr_gpcs;

static unsigned int in_gpc(const struct gpupart_tpcset *set, unsigned int gpc)
{
	struct gpupart_tpcset part = gpupart_tpcset_and(
		&gpupart_topology_gpc(topo, gpc)->tpcs, set);

	return gpupart_tpcset_count(&part);
}

static bool is_whole(const struct gpupart_tpcset *set, unsigned int gpc)
{
	return gpupart_tpcset_subset(&gpupart_topology_gpc(topo, gpc)->tpcs, set);
}

/* Returns the maximum number of TPCs of @set in one virtual GPC. */
static unsigned int in_vgpc(const struct gpupart_tpcset *set)
{
	unsigned int most = 0;

	for (unsigned int v = 0; v < gpupart_topology_end_vgpc(topo); v++) {
		struct gpupart_tpcset part = gpupart_topology_vgpc(topo, v);

		part = gpupart_tpcset_and(&part, set);
		if (gpupart_tpcset_count(&part) > most)
			most = gpupart_tpcset_count(&part);
	}
	return most;
}

/*
 * Finds the possible sums of whole GPCs in @from by exhaustive search. The result has a bit for
 * each sum. If @equal is true, the number of GPCs from each uGPU must be the same.
 */
static void find_sums(const struct gpupart_tpcset *from, bool equal, bool *sums)
{
	memset(sums, 0, (GPUPART_MAX_TPCS + 1) * sizeof(*sums));
	for (unsigned int pick = 0; pick < 1u << nr_gpcs; pick++) {
		unsigned int sum = 0, of[2] = { 0 };
		bool good = true;

		for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
			if (!(pick >> gpc & 1))
				continue;
			good &= is_whole(from, gpc);
			sum += in_gpc(from, gpc);
			of[gpupart_topology_gpc(topo, gpc)->ugpu]++;
		}
		sums[sum] |= good && (!equal || of[0] == of[1]);
	}
}

/*
 * Distributes @nr TPCs over GPCs. Returns the lowest sum of squares. GPC @home must get at least
 * CLUSTER_TPCS TPCs. If @home is -1, there is no such condition.
 */
static unsigned int most_even(const struct gpupart_tpcset *from, unsigned int nr, int home)
{
	/* least[n] is the lowest sum for n TPCs in the GPCs up to this one. */
	unsigned int least[GPUPART_MAX_TPCS + 1], next[GPUPART_MAX_TPCS + 1];

	memset(least, 0x3f, sizeof(least));
	least[0] = 0;
	for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
		memset(next, 0x3f, sizeof(next));
		for (unsigned int n = 0; n <= nr; n++)
			for (unsigned int x = (int)gpc == home ? CLUSTER_TPCS : 0;
			     x <= in_gpc(from, gpc) && x <= n; x++)
				if (least[n - x] + x * x < next[n])
					next[n] = least[n - x] + x * x;
		memcpy(least, next, sizeof(least));
	}
	return least[nr];
}

static unsigned int bad_size, bad_twice, bad_gpcs, bad_balanced, bad_would, bad_even, bad_cluster;
static unsigned int nr_balanced, nr_not_balanced, nr_homes;

static bool get(enum gpupart_shape shape, const struct gpupart_tpcset *from, unsigned int nr,
		struct gpupart_tpcset *set)
{
	struct gpupart_tpcset again;
	int err = gpupart_set_shape(gp, topo, shape, from, nr, set);

	if (err)
		return false;
	bad_size += gpupart_tpcset_count(set) != nr || !gpupart_tpcset_subset(set, from);
	bad_twice += gpupart_set_shape(gp, topo, shape, from, nr, &again) ||
		     !gpupart_tpcset_equal(set, &again);
	return true;
}

static void try_gpcs(const struct gpupart_tpcset *from, unsigned int nr)
{
	bool sums[GPUPART_MAX_TPCS + 1];
	unsigned int in_whole = 0, best = nr, broken = 0, newly_broken = 0;
	struct gpupart_tpcset set;

	if (!get(GPUPART_SHAPE_GPCS, from, nr, &set)) {
		bad_gpcs++;
		return;
	}
	find_sums(from, false, sums);
	while (!sums[best])
		best--;
	for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
		in_whole += is_whole(&set, gpc) ? in_gpc(&set, gpc) : 0;
		broken += is_whole(from, gpc) ? 0 : in_gpc(from, gpc);
		newly_broken += is_whole(from, gpc) && in_gpc(&set, gpc) && !is_whole(&set, gpc);
	}
	bad_gpcs += in_whole != best;
	/*
	 * Other sets use some GPCs in part. If these GPCs have enough TPCs, the remaining TPCs
	 * must come from them.
	 */
	bad_gpcs += newly_broken > 1 || (newly_broken && broken >= nr - best);
}

static void try_balanced(const struct gpupart_tpcset *from, unsigned int nr)
{
	unsigned int of[2] = { 0 }, below = nr, above = nr;
	bool sums[GPUPART_MAX_TPCS + 1];
	struct gpupart_tpcset set;
	char would[64] = "";

	find_sums(from, true, sums);
	if (get(GPUPART_SHAPE_BALANCED, from, nr, &set) != sums[nr]) {
		bad_balanced++;
		return;
	}
	if (sums[nr]) {
		nr_balanced++;
		for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
			of[gpupart_topology_gpc(topo, gpc)->ugpu] += is_whole(&set, gpc);
			bad_balanced += in_gpc(&set, gpc) && !is_whole(&set, gpc);
		}
		bad_balanced += of[0] != of[1];
		return;
	}
	nr_not_balanced++;
	while (below && !sums[below])
		below--;
	while (above <= GPUPART_MAX_TPCS && !sums[above])
		above++;
	if (below && above <= GPUPART_MAX_TPCS)
		snprintf(would, sizeof(would), ": %u or %u would do", below, above);
	else if (below || above <= GPUPART_MAX_TPCS)
		snprintf(would, sizeof(would), ": %u would do", below ? below : above);
	if (*would)
		bad_would += !strstr(gpupart_error(gp), would);
	else
		bad_would += strstr(gpupart_error(gp), "would do") != NULL;
}

static void try_spread(const struct gpupart_tpcset *from, unsigned int nr)
{
	unsigned int sum = 0, least = most_even(from, nr, -1), with_home = ~0u;
	struct gpupart_tpcset set;
	bool can = nr >= CLUSTER_TPCS && in_vgpc(from) >= CLUSTER_TPCS;

	if (!get(GPUPART_SHAPE_SPREAD, from, nr, &set)) {
		bad_even++;
		return;
	}
	for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
		struct gpupart_tpcset part = gpupart_tpcset_and(
			&gpupart_topology_gpc(topo, gpc)->tpcs, from);

		sum += in_gpc(&set, gpc) * in_gpc(&set, gpc);
		if (can && in_vgpc(&part) >= CLUSTER_TPCS && most_even(from, nr, gpc) < with_home)
			with_home = most_even(from, nr, gpc);
	}
	if (can && with_home > least)
		nr_homes++;
	bad_even += can ? sum < least || sum > with_home : sum != least;
	bad_cluster += can && in_vgpc(&set) < CLUSTER_TPCS;
}

static void try_all(const struct gpupart_tpcset *from, unsigned int nr)
{
	struct gpupart_tpcset set;

	bad_size += !get(GPUPART_SHAPE_PACKED, from, nr, &set);
	try_gpcs(from, nr);
	try_balanced(from, nr);
	try_spread(from, nr);
}

static void board(char letter)
{
	struct gpupart_tpcset all, from, set;
	unsigned int nr_bad = 0, nr;
	char path[64];

	snprintf(path, sizeof(path), "tests/data/gh100-h200-%c/capture.txt", letter);
	if (!tap_ok(!gpupart_topology_open(gp, path, NULL, &topo), "%s opens", path))
		return;
	nr_gpcs = gpupart_topology_nr_gpcs(topo);
	all = gpupart_topology_all(topo);
	for (nr = 1; nr <= gpupart_tpcset_count(&all); nr++) {
		try_all(&all, nr);
		for (enum gpupart_shape s = GPUPART_SHAPE_GPCS; s <= GPUPART_SHAPE_SPREAD; s++)
			nr_bad += nr >= CLUSTER_TPCS &&
				  !gpupart_set_shape(gp, topo, s, &all, nr, &set) &&
				  in_vgpc(&set) < CLUSTER_TPCS;
	}
	tap_ok(!nr_bad, "%s: a cluster of 8 in every set of 4 TPCs and more, in any shape", path);
	for (unsigned int i = 0; i < 60; i++) {
		int per_cent = 40 + rand() % 60;

		memset(&from, 0, sizeof(from));
		for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
			const struct gpupart_tpcset *tpcs = &gpupart_topology_gpc(topo, gpc)->tpcs;
			bool whole = rand() % 2;

			for (int t = gpupart_tpcset_next(tpcs, 0); t >= 0;
			     t = gpupart_tpcset_next(tpcs, t + 1))
				if (whole || rand() % 100 < per_cent)
					gpupart_tpcset_add(&from, t);
		}
		nr = 1 + rand() % gpupart_tpcset_count(&from);
		try_all(&from, nr);
	}
	from = gpupart_tpcset_first(3);
	tap_ok(gpupart_set_shape(gp, topo, GPUPART_SHAPE_SPREAD, &from, 4, &set) == -ENOSPC &&
	       gpupart_set_shape(gp, topo, GPUPART_SHAPE_PACKED, &from, 0, &set) == -ENOSPC,
	       "%s: more than there are, and none, are refused", path);
	gpupart_topology_close(topo);
}

int main(void)
{
	enum gpupart_shape shape;

	if (gpupart_open(&gp))
		return 1;
	srand(1);
	for (char letter = 'a'; letter <= 'g'; letter++)
		board(letter);
	tap_ok(!bad_size, "as many TPCs as asked for, of those that may be taken");
	tap_ok(!bad_twice, "the same each time");
	tap_ok(!bad_gpcs, "gpcs: as many as can be in whole GPCs");
	tap_ok(!bad_balanced && nr_balanced > 50 && nr_not_balanced > 200,
	       "balanced: whole GPCs, the same number of each uGPU: %u, and %u refused have none",
	       nr_balanced, nr_not_balanced);
	tap_ok(!bad_would, "balanced: what would do is the nearest below and above");
	tap_ok(!bad_even && nr_homes > 50,
	       "spread: the most even, %u of them with 4 TPCs of one GPC for a cluster", nr_homes);
	tap_ok(!bad_cluster, "spread: a cluster of 8 fits where any set of that size holds one");
	tap_ok(!gpupart_shape_parse(gp, "balanced", &shape) && shape == GPUPART_SHAPE_BALANCED &&
	       gpupart_shape_parse(gp, "round", &shape) == -EINVAL &&
	       !strcmp(gpupart_error(gp), "the shape must be packed, gpcs, balanced or spread"),
	       "shapes have names, and another is refused with them");
	gpupart_close(gp);
	return tap_done();
}
