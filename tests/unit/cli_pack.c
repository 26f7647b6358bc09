// SPDX-License-Identifier: MIT
/* "-n N" of the command: every N on every board against all subsets of GPCs. */
#include <string.h>
#include <tap.h>
#include "../../cli/pack.c"

/* TPCs of @set that are in GPCs it holds whole (whole as @from has them). */
static unsigned int in_whole(const struct gpupart_topology *topo, const struct gpupart_tpcset *from,
			     const struct gpupart_tpcset *set, unsigned int *nr_gpcs)
{
	unsigned int nr = 0;

	*nr_gpcs = 0;
	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		struct gpupart_tpcset part = gpupart_tpcset_and(
			&gpupart_topology_gpc(topo, gpc)->tpcs, from);

		*nr_gpcs += gpupart_tpcset_intersects(&part, set);
		if (gpupart_tpcset_subset(&part, set))
			nr += gpupart_tpcset_count(&part);
	}
	return nr;
}

/* By trying all: the most TPCs (at most @nr) that whole GPCs of @from make, in the fewest GPCs. */
static unsigned int best_whole(const struct gpupart_topology *topo,
			       const struct gpupart_tpcset *from, unsigned int nr,
			       unsigned int *nr_gpcs)
{
	unsigned int best = 0;

	*nr_gpcs = 0;
	for (unsigned int pick = 0; pick < 1u << gpupart_topology_nr_gpcs(topo); pick++) {
		unsigned int sum = 0, picked = 0;

		for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
			struct gpupart_tpcset part = gpupart_tpcset_and(
				&gpupart_topology_gpc(topo, gpc)->tpcs, from);

			if (!(pick >> gpc & 1) || gpupart_tpcset_empty(&part))
				continue;
			sum += gpupart_tpcset_count(&part);
			picked++;
		}
		if (sum > nr || sum < best || (sum == best && picked >= *nr_gpcs))
			continue;
		best = sum;
		*nr_gpcs = picked;
	}
	return best;
}

/* What is left over is in the smallest GPC of @from that @set does not hold whole. */
static bool rest_in_smallest(const struct gpupart_topology *topo, const struct gpupart_tpcset *from,
			     const struct gpupart_tpcset *set)
{
	unsigned int smallest = ~0u, broken = 0;

	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		struct gpupart_tpcset part = gpupart_tpcset_and(
			&gpupart_topology_gpc(topo, gpc)->tpcs, from);
		unsigned int nr = gpupart_tpcset_count(&part);

		if (!nr || gpupart_tpcset_subset(&part, set))
			continue;
		if (nr < smallest)
			smallest = nr;
		if (gpupart_tpcset_intersects(&part, set))
			broken = nr;
	}
	return !broken || broken == smallest;
}

/* uGPUs of different sizes: one has lost a GPC to somebody else. */
static void unequal(const struct gpupart_topology *topo, const char *path)
{
	struct gpupart_tpcset ugpus[2], from, set, lost;
	unsigned int small, large, bad_small = 0, bad_large = 0, bad_both = 0;

	ugpus[0] = gpupart_topology_ugpu(topo, 0);
	ugpus[1] = gpupart_topology_ugpu(topo, 1);
	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++)
		if (gpupart_topology_gpc(topo, gpc)->ugpu == 1)
			lost = gpupart_topology_gpc(topo, gpc)->tpcs;
	ugpus[1] = gpupart_tpcset_andnot(&ugpus[1], &lost);
	from = gpupart_tpcset_or(&ugpus[0], &ugpus[1]);
	small = gpupart_tpcset_count(&ugpus[1]);
	large = gpupart_tpcset_count(&ugpus[0]);
	for (unsigned int nr = 1; nr <= small + large; nr++) {
		set = pack_tpcs(topo, &from, nr);
		if (nr <= small)
			bad_small += !gpupart_tpcset_subset(&set, &ugpus[1]);
		else if (nr <= large)
			bad_large += !gpupart_tpcset_subset(&set, &ugpus[0]);
		else
			bad_both += !gpupart_tpcset_subset(&ugpus[0], &set);
	}
	tap_ok(small < large && !bad_small, "%s: in the smaller uGPU what it holds", path);
	tap_ok(!bad_large, "%s: in the larger uGPU what only it holds", path);
	tap_ok(!bad_both, "%s: the larger uGPU whole and on", path);
}

static void board(const char *path)
{
	struct gpupart_tpcset all, set, ugpu;
	struct gpupart_topology *topo;
	unsigned int bad_count = 0, bad_ugpu = 0, bad_whole = 0, bad_gpcs = 0, bad_rest = 0;

	if (!tap_ok(!gpupart_topology_open(NULL, path, NULL, &topo), "%s opens", path))
		return;
	all = gpupart_topology_all(topo);
	for (unsigned int nr = 1; nr <= gpupart_tpcset_count(&all); nr++) {
		unsigned int nr_gpcs, best_gpcs, best, whole;

		set = pack_tpcs(topo, &all, nr);
		bad_count += gpupart_tpcset_count(&set) != nr || !gpupart_tpcset_subset(&set, &all);
		/* Both uGPUs of these boards have the same number of TPCs: the first is taken. */
		ugpu = gpupart_topology_ugpu(topo, 0);
		if (nr > gpupart_tpcset_count(&ugpu)) {
			bad_ugpu += !gpupart_tpcset_subset(&ugpu, &set);
			continue;
		}
		bad_ugpu += !gpupart_tpcset_subset(&set, &ugpu);
		best = best_whole(topo, &ugpu, nr, &best_gpcs);
		whole = in_whole(topo, &all, &set, &nr_gpcs);
		bad_whole += whole != best;
		bad_rest += !rest_in_smallest(topo, &ugpu, &set);
		bad_gpcs += nr_gpcs != best_gpcs + (nr > best);
	}
	tap_ok(!bad_count, "%s: as many as asked for", path);
	tap_ok(!bad_ugpu, "%s: in as few uGPUs as hold them", path);
	tap_ok(!bad_whole, "%s: as many as can be in whole GPCs", path);
	tap_ok(!bad_gpcs, "%s: in as few GPCs as that takes", path);

	tap_ok(!bad_rest, "%s: the rest from the smallest GPC not taken", path);
	unequal(topo, path);

	/* From what another set leaves, and where no uGPU is left whole. */
	set = gpupart_topology_gpc(topo, 0)->tpcs;
	all = gpupart_tpcset_andnot(&all, &set);
	set = pack_tpcs(topo, &all, gpupart_tpcset_count(&all));
	tap_ok(gpupart_tpcset_equal(&set, &all), "%s: all of what is left", path);
	gpupart_topology_close(topo);
}

int main(void)
{
	board("tests/data/gh100-h200-a/capture.txt");
	board("tests/data/gh100-h200-c/capture.txt");
	board("tests/data/gh100-h200-e/capture.txt");
	return tap_done();
}
