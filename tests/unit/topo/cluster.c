// SPDX-License-Identifier: MIT
/*
 * Tests the largest cluster that a set can run. The result is compared with the rule for launches
 * and with a count. Also tests sets that are chosen for a cluster. On a small GPU, these sets are
 * compared with all sets. Also tests plans on boards and made-up GPUs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/tmd/layouts.h"
#include "lib/tmd/tmd.h"
#include "tests/tap.h"

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static unsigned int below(unsigned int end)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % end;
}

static struct gpupart_tpcset some_of(const struct gpupart_tpcset *from, unsigned int per_cent)
{
	struct gpupart_tpcset set = { 0 };

	for (int t = gpupart_tpcset_next(from, 0); t >= 0; t = gpupart_tpcset_next(from, t + 1))
		if (below(100) < per_cent)
			gpupart_tpcset_add(&set, t);
	return set;
}

/* ------------------------------------------------------- the rule for launches */

/* Returns the result of the rule for a launch of one cluster of @size blocks in @set. */
static enum tmd_outcome launch(const struct tmd_map *map, const struct gpupart_tpcset *set,
			       unsigned int size)
{
	unsigned char tmd[384] __attribute__((aligned(16))) = { 0 };
	struct tmd_allow allow;

	tmd[72] = 0x40;
	tmd[2] = 1 << 7;	/* bits 25:23 are 3, which means a cluster launch */
	tmd[3] = 1;
	tmd[268] = size;
	tmd[269] = tmd[270] = 1;
	tmd_map_convert(map, set, &allow);
	return tmd_confine(map, tmd, NULL, &allow);
}

static const struct tmd_layout *layout_v04(void)
{
	for (unsigned int i = 0; i < tmd_nr_layouts; i++)
		if (!strcmp(tmd_layouts[i].name, "V04_00"))
			return &tmd_layouts[i];
	return NULL;
}

static void agrees_with_launches(struct gpupart *gp, const char *path)
{
	unsigned int wrong = 0, nr = 0, held = 0;
	struct gpupart_topology *topo;
	struct tmd_map map = { 0 };
	struct gpupart_tpcset all;

	if (gpupart_topology_open(gp, path, NULL, &topo) ||
	    tmd_map_build(gp, topo, layout_v04(), NULL, &map)) {
		tap_ok(false, "%s: %s", path, gpupart_error(gp));
		return;
	}
	all = gpupart_topology_all(topo);
	for (unsigned int i = 0; i < 3000; i++) {
		struct gpupart_tpcset set = some_of(&all, 1 + below(60));
		unsigned int size = 1 + below(18), cluster = gpupart_set_cluster(topo, &set);

		/* A cluster that does not fit on all TPCs is launched on all TPCs. */
		if (gpupart_tpcset_empty(&set) || gpupart_set_cluster(topo, &all) < size)
			continue;
		nr++;
		held += cluster >= size;
		wrong += (launch(&map, &set, size) == TMD_CONFINED) != (cluster >= size);
	}
	tap_ok(!wrong && held > 100 && nr - held > 100,
	       "%s: %u sets hold the cluster that is launched in them, %u do not, as at launches",
	       path, held, nr - held);
	gpupart_topology_close(topo);
}

/* ------------------------------------------------------ sets that can run a cluster */

/*
 * A made-up GPU: the virtual GPC of each TPC. A negative number means a TPC of GPC 3 or 4 whose
 * virtual GPC is unknown.
 */
static const int vgpcs[] = { 0, 0, 1, 0, 1, 2, 0, 1, 3, -1, -1, -2, -1, -2 };

#define NR_TPCS (sizeof(vgpcs) / sizeof(vgpcs[0]))

static struct gpupart_topology *make_small(unsigned int sms_per_tpc)
{
	struct gpupart_gpu_info info = { .source = "made up", .mig = -1 };
	struct topo_sm sms[NR_TPCS * 4];
	struct gpupart_topology *topo;
	int place[4] = { 0 };

	for (unsigned int i = 0; i < NR_TPCS * sms_per_tpc; i++) {
		unsigned int tpc = i / sms_per_tpc;
		int vgpc = vgpcs[tpc];

		sms[i] = (struct topo_sm){
			.gpc = vgpc < 0 ? 2 - vgpc : vgpc == 3 ? 0 : vgpc, .local_tpc = -1,
			.local_sm = -1, .tpc = tpc, .vgpc = vgpc < 0 ? -1 : vgpc,
			.tpc_in_vgpc = vgpc < 0 ? -1 : place[vgpc],
			.ugpu = -1, .cpc = -1, .virtual_tpc = -1, .measured_bit = -1 };
		if (vgpc >= 0 && i % sms_per_tpc == sms_per_tpc - 1)
			place[vgpc]++;
	}
	return topo_build(NULL, &info, sms, NR_TPCS * sms_per_tpc, NULL, 0, &topo) ? NULL : topo;
}

/* Returns the maximum number of TPCs of @bits in one group. Counts without the library. */
static unsigned int most_together(unsigned int bits)
{
	unsigned int nr[6] = { 0 }, most = 0;

	for (unsigned int tpc = 0; tpc < NR_TPCS; tpc++)
		if (bits >> tpc & 1 && ++nr[vgpcs[tpc] + 2] > most)
			most = nr[vgpcs[tpc] + 2];
	return most;
}

static struct gpupart_tpcset set_of(unsigned int bits)
{
	struct gpupart_tpcset set = { { bits } };

	return set;
}

/*
 * Searches all sets with the required members and the required size. Returns the largest number
 * of preferred TPCs. If there is no such set, returns -1.
 */
static int best_of_all(unsigned int need, unsigned int keep, unsigned int prefer,
		       unsigned int from, unsigned int nr)
{
	unsigned int may = from & ~keep;
	int best = -1;

	for (unsigned int part = may;; part = (part - 1) & may) {
		unsigned int set = part | keep;

		if ((unsigned int)__builtin_popcount(set) == nr && most_together(set) >= need &&
		    __builtin_popcount(set & (prefer | keep)) > best)
			best = __builtin_popcount(set & (prefer | keep));
		if (!part)
			return best;
	}
}

static void small(unsigned int sms_per_tpc)
{
	struct gpupart_topology *topo = make_small(sms_per_tpc);
	unsigned int wrong = 0, counted = 0, found = 0, none = 0, unequal = 0;

	if (!tap_ok(topo != NULL, "%u SMs a TPC: the GPU is made", sms_per_tpc))
		return;
	for (unsigned int bits = 0; bits < 1u << NR_TPCS; bits++) {
		struct gpupart_tpcset set = set_of(bits);

		counted += gpupart_set_cluster(topo, &set) != most_together(bits) * sms_per_tpc;
	}
	tap_ok(!counted, "%u SMs a TPC: the cluster of every set", sms_per_tpc);
	for (unsigned int i = 0; i < 4000; i++) {
		unsigned int from = below(1u << NR_TPCS), prefer = below(1u << NR_TPCS);
		unsigned int keep = below(3) ? 0 : below(1u << NR_TPCS) & below(1u << NR_TPCS);
		unsigned int nr = 1 + below(NR_TPCS), cluster = below(10);
		struct gpupart_tpcset kept = set_of(keep), preferred = set_of(prefer);
		struct gpupart_tpcset of = set_of(from), set = set_of(1), again;
		unsigned int need = (cluster + sms_per_tpc - 1) / sms_per_tpc;
		int best = best_of_all(need, keep, prefer, from, nr);
		int err = gpupart_set_pick(topo, cluster, &kept, &preferred, &of, nr, &set);
		unsigned int bits = set.allowed[0];

		if (best < 0) {
			none++;
			wrong += err != -ENOSPC || bits != 1;
			continue;
		}
		found++;
		wrong += err || (unsigned int)__builtin_popcount(bits) != nr ||
			 (bits & ~(from | keep)) || (keep & ~bits) || most_together(bits) < need ||
			 __builtin_popcount(bits & (prefer | keep)) != best;
		gpupart_set_pick(topo, cluster, &kept, &preferred, &of, nr, &again);
		unequal += !gpupart_tpcset_equal(&set, &again);
	}
	tap_ok(!wrong && found > 400 && none > 400,
	       "%u SMs a TPC: %u sets are the best of all, %u times there is none; %u wrong",
	       sms_per_tpc, found, none, wrong);
	tap_ok(!unequal, "%u SMs a TPC: the same each time", sms_per_tpc);
	gpupart_topology_close(topo);
}

/* -------------------------------------------------------------------------- plans */

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

static void random_demand(struct gpupart_demand *d, const char *name, unsigned int nr)
{
	*d = (struct gpupart_demand){
		.name = name, .min_tpcs = 1 + below(nr), .spread = below(2),
		.weight = 1 + below(3), .cluster = below(4) ? 0 : 1 + below(8),
	};
	d->max_tpcs = below(2) ? 0 : d->min_tpcs + below(nr);
	if (d->max_tpcs && d->max_tpcs < 4)
		d->cluster = 0;
}

/*
 * Plans one to four tenants on random free TPCs. If a set cannot run a cluster of 8, then the set
 * with all free TPCs added must also be too small for such a cluster.
 */
static void plans(struct gpupart *gp, const char *path)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	unsigned int nr_sets = 0, lacking = 0, bad = 0, unequal = 0, sms, need, home = 1;
	struct gpupart_topology *topo;
	struct gpupart_tpcset all;

	if (gpupart_topology_open(gp, path, NULL, &topo)) {
		tap_ok(false, "%s: %s", path, gpupart_error(gp));
		return;
	}
	all = gpupart_topology_all(topo);
	sms = gpupart_topology_tpc(topo, 0)->nr_sms;
	need = (8 + sms - 1) / sms;
	/* A plan's homes are powers of two. */
	while (home < need)
		home *= 2;
	for (unsigned int i = 0; i < 150; i++) {
		struct gpupart_tpcset within = some_of(&all, 10 + below(91)), left = within;
		unsigned int nr = 1 + below(4);
		struct gpupart_demand demands[4];
		struct gpupart_plan plan, again;

		if (gpupart_tpcset_empty(&within))
			continue;
		for (unsigned int t = 0; t < nr; t++)
			random_demand(&demands[t], names[t],
				      (gpupart_tpcset_count(&within) + nr - 1) / nr);
		if (gpupart_plan_make(gp, topo, &within, demands, nr, &plan))
			continue;
		for (unsigned int t = 0; t < nr; t++)
			left = gpupart_tpcset_andnot(&left, &plan.tenants[t].set);
		gpupart_plan_make(gp, topo, &within, demands, nr, &again);
		for (unsigned int t = 0; t < nr; t++) {
			const struct gpupart_tpcset *set = &plan.tenants[t].set;
			struct gpupart_tpcset might = gpupart_tpcset_or(set, &left);

			unequal += !gpupart_tpcset_equal(set, &again.tenants[t].set);
			nr_sets += gpupart_tpcset_count(set) >= home;
			if (gpupart_tpcset_count(set) < home || most_in_vgpc(topo, set) >= need)
				continue;
			lacking++;
			bad += most_in_vgpc(topo, &might) >= home;
		}
	}
	tap_ok(!bad && !unequal,
	       "%s: of %u sets of %u TPCs or more %u hold no cluster of 8; %u might, %u are others each time",
	       path, nr_sets, home, lacking, bad, unequal);
	gpupart_topology_close(topo);
}

int main(void)
{
	struct gpupart *gp;
	char path[512];

	if (gpupart_open(&gp))
		return 1;
	for (char board = 'a'; board <= 'g'; board++) {
		snprintf(path, sizeof(path), "tests/data/gh100-h200-%c/capture.txt", board);
		agrees_with_launches(gp, path);
		plans(gp, path);
	}
	for (unsigned int i = 0; i < 26; i++) {
		snprintf(path, sizeof(path), "%s/tests/generated/%02u.capture",
			 getenv("BUILD") ? getenv("BUILD") : "build", i);
		plans(gp, path);
	}
	for (unsigned int sms = 1; sms <= 4; sms++)
		small(sms);
	gpupart_close(gp);
	return tap_done();
}
