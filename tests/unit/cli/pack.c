// SPDX-License-Identifier: MIT
/*
 * Tests the option -n N of the command. It tests every N on every board, and compares the result
 * with all subsets of GPCs. For clusters, it also tests random sets of free TPCs, on boards and
 * on made-up GPUs.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/tap.h"
#include "lib/plan/pack.c"
#include "cli/target/clusters.c"

const char *cmd_name;

void cmd_note(const char *cmd, const char *fmt, ...)
{
	(void)cmd;
	(void)fmt;
}

/*
 * Counts the TPCs of @set in complete GPCs. A GPC is complete if @set contains all its TPCs that
 * are in @from.
 */
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

/*
 * Finds two numbers by exhaustive search. The first number is the maximum number of TPCs in whole
 * GPCs of @from, up to @nr TPCs. The second number is the minimum number of GPCs with this number
 * of TPCs.
 */
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

/*
 * The remaining TPCs must be in one GPC of @from. This GPC must be the smallest GPC that @set
 * does not contain completely.
 */
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

/* Another user has a GPC of one uGPU, so the uGPUs have different sizes. */
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
		/*
		 * Both uGPUs of these boards have the same number of TPCs, so the first uGPU is
		 * used.
		 */
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

	/*
	 * Another set has TPCs of both uGPUs, so no uGPU is complete. Chooses from the other
	 * TPCs.
	 */
	set = gpupart_topology_gpc(topo, 0)->tpcs;
	all = gpupart_tpcset_andnot(&all, &set);
	set = pack_tpcs(topo, &all, gpupart_tpcset_count(&all));
	tap_ok(gpupart_tpcset_equal(&set, &all), "%s: all of what is left", path);
	gpupart_topology_close(topo);
}

/* Returns the maximum number of TPCs of @set in one virtual GPC. Counts without the library. */
static unsigned int most_in_vgpc(const struct gpupart_topology *topo,
				 const struct gpupart_tpcset *set)
{
	unsigned int most = 0;

	for (unsigned int v = 0; v < gpupart_topology_end_vgpc(topo); v++) {
		struct gpupart_tpcset in = gpupart_topology_vgpc(topo, v);

		in = gpupart_tpcset_and(&in, set);
		if (gpupart_tpcset_count(&in) > most)
			most = gpupart_tpcset_count(&in);
	}
	return most;
}

/* Returns a random subset with @per_cent of the TPCs of @set. */
static struct gpupart_tpcset some_of(const struct gpupart_tpcset *set, int per_cent)
{
	struct gpupart_tpcset some = { 0 };

	for (int t = gpupart_tpcset_next(set, 0); t >= 0; t = gpupart_tpcset_next(set, t + 1))
		if (rand() % 100 < per_cent)
			gpupart_tpcset_add(&some, t);
	return some;
}

/*
 * The given TPCs and N free TPCs together may be able to run a cluster of 8. In this case, the
 * chosen set must be able to run such a cluster.
 */
static void holds_clusters(const char *path)
{
	unsigned int bad = 0, bad_set = 0, lacking = 0, mended = 0, need;
	struct gpupart_topology *topo;
	struct gpupart_tpcset all;

	if (gpupart_topology_open(NULL, path, NULL, &topo)) {
		tap_ok(false, "%s opens", path);
		return;
	}
	all = gpupart_topology_all(topo);
	need = (8 + gpupart_topology_tpc(topo, 0)->nr_sms - 1) /
	       gpupart_topology_tpc(topo, 0)->nr_sms;
	srand(1);
	for (unsigned int i = 0; i < 3000; i++) {
		struct gpupart_tpcset from = some_of(&all, 10 + rand() % 90), part, set, any;
		struct gpupart_tpcset named = some_of(&all, i % 3 ? 0 : rand() % 10);
		unsigned int nr, in;
		bool can = false;

		from = gpupart_tpcset_andnot(&from, &named);
		if (gpupart_tpcset_empty(&from))
			continue;
		nr = 1 + rand() % gpupart_tpcset_count(&from);
		if (i % 2 && nr > 12)
			nr = 1 + nr % 12;
		any = gpupart_tpcset_or(&from, &named);
		for (unsigned int v = 0; v < gpupart_topology_end_vgpc(topo); v++) {
			struct gpupart_tpcset vgpc = gpupart_topology_vgpc(topo, v), has;

			has = gpupart_tpcset_and(&vgpc, &named);
			in = gpupart_tpcset_count(&has);
			vgpc = gpupart_tpcset_and(&vgpc, &any);
			can |= gpupart_tpcset_count(&vgpc) >= need && need <= in + nr;
		}
		part = pack_tpcs(topo, &from, nr);
		set = gpupart_tpcset_or(&part, &named);
		mended -= most_in_vgpc(topo, &set) >= need;
		set = named;
		clusters_add(topo, &part, &from, &set);
		mended += most_in_vgpc(topo, &set) >= need;
		lacking += most_in_vgpc(topo, &set) < need;
		bad += (most_in_vgpc(topo, &set) >= need) != can;
		bad_set += gpupart_tpcset_count(&set) != gpupart_tpcset_count(&named) + nr ||
			   !gpupart_tpcset_subset(&named, &set) ||
			   !gpupart_tpcset_subset(&set, &any);
	}
	tap_ok(!bad && !bad_set,
	       "%s: 3000 sets hold a cluster where any does, %u by another choice, %u cannot",
	       path, mended, lacking);
	gpupart_topology_close(topo);
}

int main(void)
{
	char path[512];

	board("tests/data/gh100-h200-a/capture.txt");
	board("tests/data/gh100-h200-c/capture.txt");
	board("tests/data/gh100-h200-e/capture.txt");
	for (char letter = 'a'; letter <= 'g'; letter++) {
		sprintf(path, "tests/data/gh100-h200-%c/capture.txt", letter);
		holds_clusters(path);
	}
	for (unsigned int i = 0; i < 26; i++) {
		snprintf(path, sizeof(path), "%s/tests/generated/%02u.capture",
			 getenv("BUILD") ? getenv("BUILD") : "build", i);
		holds_clusters(path);
	}
	return tap_done();
}
