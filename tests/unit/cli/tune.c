// SPDX-License-Identifier: MIT
/*
 * Tests the candidates of `gpupart tune` and the choice of the best candidate. The boards are
 * real, and the speeds are invented.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/tap.h"
#include "cli/bench/stats.c"
#include "cli/tune/choose.c"

#define NR_BEST 3

static struct gpupart_topology *topo;
static struct tune tune;

static void list_all(unsigned int programs, const struct gpupart_tpcset *a,
		     const struct gpupart_tpcset *b, unsigned int sizes)
{
	memset(&tune, 0, sizeof(tune));
	tune.nr = programs;
	tune.c.live.topo = topo;
	tune.room[0] = *a;
	tune.room[1] = *b;
	tap_ok(!tune_list(&tune, sizes), "%u program(s), %u sizes: %u candidates",
	       programs, sizes, tune.nr_candidates);
}

/* Checks rules that all candidates of two programs must keep. */
static void check_all(const struct gpupart_tpcset *a, const struct gpupart_tpcset *b,
		      unsigned int shapes)
{
	bool apart = true, inside = true, some = true, differ = true;
	unsigned int seen = 0;

	for (unsigned int n = 0; n < tune.nr_candidates; n++) {
		const struct gpupart_tpcset *sets = tune.list[n].sets;

		apart &= !gpupart_tpcset_intersects(&sets[0], &sets[1]);
		inside &= gpupart_tpcset_subset(&sets[0], a) && gpupart_tpcset_subset(&sets[1], b);
		some &= !gpupart_tpcset_empty(&sets[0]) && !gpupart_tpcset_empty(&sets[1]);
		seen |= 1 << tune.list[n].shape;
		for (unsigned int m = 0; m < n; m++)
			differ &= !gpupart_tpcset_equal(&sets[0], &tune.list[m].sets[0]);
	}
	tap_ok(apart && inside && some, "sets are disjoint, of what each may have, and not empty");
	tap_ok(differ && tune.nr_candidates <= TUNE_MOST,
	       "no two are alike, and no more than asked for");
	tap_ok(seen == shapes, "all shapes are tried that differ: %x", seen);
}

static void check_lists(void)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo), none = { 0 }, half;
	unsigned int nr = gpupart_tpcset_count(&all);

	list_all(2, &all, &all, 9);
	check_all(&all, &all, 0xf);
	tap_ok(gpupart_tpcset_count(&tune.list[0].sets[0]) == nr - 4 &&
	       gpupart_tpcset_count(&tune.list[0].sets[1]) == 4 &&
	       gpupart_tpcset_count(&tune.list[1].sets[0]) == 4,
	       "the first two have all but 4 TPCs for one of them");
	tap_ok(gpupart_set_cluster(topo, &tune.list[0].sets[1]) >= 8,
	       "and those 4 have room for a cluster of 8 blocks");
	half = gpupart_topology_ugpu(topo, 0);
	list_all(2, &half, &all, 9);
	/*
	 * A board with one uGPU has no balanced sets. On such a board, a set of whole GPCs is a
	 * packed set.
	 */
	check_all(&half, &all, 1 << GPUPART_SHAPE_PACKED | 1 << GPUPART_SHAPE_SPREAD);
	list_all(1, &all, &none, 9);
	tap_ok(gpupart_tpcset_equal(&tune.list[0].sets[0], &all) &&
		       gpupart_tpcset_empty(&tune.list[5].sets[1]),
	       "of one program the first has all TPCs");
	for (unsigned int programs = 1; programs <= 2; programs++) {
		list_all(programs, &all, programs > 1 ? &all : &none, 2);
		tap_ok(tune.nr_candidates >= 8, "at least eight");
	}
	memset(&tune, 0, sizeof(tune));
	tune.nr = 2;
	tune.c.live.topo = topo;
	tune.room[0] = tune.room[1] = gpupart_tpcset_first(1);
	tap_ok(tune_list(&tune, 9), "one TPC is none for two");
}

/*
 * Sets the speeds of two programs. The slices of the first program have @noise. All other slices
 * are equal.
 */
static struct tune_candidate *put(unsigned int n, double a, double b, double noise)
{
	struct tune_candidate *x = &tune.list[n];

	*x = (struct tune_candidate){
		.valid = { true, true }, .nr_slices = TUNE_SLICES,
	};
	for (unsigned int s = 0; s < TUNE_SLICES; s++) {
		x->slices[0][s] = a * (1 + (s % 2 ? noise : -noise));
		x->slices[1][s] = b;
	}
	x->sets[0] = gpupart_tpcset_first(10 * (n + 1));
	if (tune.nr_candidates <= n)
		tune.nr_candidates = n + 1;
	tune_compute(&tune, x);
	return x;
}

/* Stores at most @most candidates in @best, the best first. Returns their number. */
static unsigned int find_best(struct tune *of, struct tune_candidate **best, unsigned int most)
{
	unsigned int nr = 0;

	for (; nr < most && (best[nr] = tune_best(of, false)); nr++)
		best[nr]->again = true;
	for (unsigned int i = 0; i < nr; i++)
		best[i]->again = false;
	return nr;
}

static void check_choice(void)
{
	struct tune_candidate *best[NR_BEST], *x;

	memset(&tune, 0, sizeof(tune));
	tune.nr = 2;
	tune.qos.goal = "sum";
	put(0, 100, 10, 0);
	put(1, 60, 90, 0);
	put(2, 50, 100, 0);
	tap_ok(tune.alone[0] == 100 && tune.alone[1] == 100 && tune.list[1].speed[0] == 60,
	       "speeds are medians, alone is the best that was seen");
	tap_ok(find_best(&tune, best, NR_BEST) == 3 && best[0] == &tune.list[1] &&
	       best[1] == &tune.list[2] && best[2] == &tune.list[0], "sum: the most of both");
	tune.qos.goal = "fair";
	put(3, 71, 70, 0);
	tap_ok(find_best(&tune, best, 1) == 1 && best[0] == &tune.list[3],
	       "fair: the most for the one with less");
	tune.c.setup.tenants[0] = (struct qos_tenant){ .goal = QOS_RATE, .rate = 59000 };
	find_best(&tune, best, 2);
	tap_ok(best[0] == &tune.list[1] && tune_value(&tune, best[0]) >= 0,
	       "a rate: of those that reach it the one with the most for the other");
	tune.c.setup.tenants[0].rate = 200000;
	find_best(&tune, best, 1);
	tap_ok(best[0] == &tune.list[0] && tune_value(&tune, best[0]) < 0,
	       "none reaches it: the nearest, and it says so");
	tune.of = 1;
	tune.c.setup.tenants[1] = (struct qos_tenant){ .goal = QOS_ALPHA, .alpha = 500 };
	find_best(&tune, best, 1);
	tap_ok(best[0] == &tune.list[3], "a share of the second program's");
	tune.c.setup.tenants[1] = (struct qos_tenant){
		.goal = QOS_LATENCY, .latency_ns = 8000000,
	};
	tune.list[0].time_ns[1] = 9e6;
	tune.list[2].time_ns[1] = 7e6;
	find_best(&tune, best, 2);
	tap_ok(best[0] == &tune.list[2] && best[1] == &tune.list[0] &&
	       tune_value(&tune, best[1]) < 0,
	       "a latency: the one within it; what has no times is last");
	tune.list[2].why = "";
	find_best(&tune, best, 1);
	tap_ok(best[0] == &tune.list[0], "one in which a program stood still is none");
	tune.nr = 1;
	tune.c.setup.tenants[0] = (struct qos_tenant){ .goal = QOS_RATE, .rate = 55000 };
	tune.of = 0;
	put(0, 50, 0, 0);
	find_best(&tune, best, 1);
	tap_ok(best[0] == &tune.list[1], "of one program the fewest TPCs that reach it");
	tap_ok(!tune_best(&tune, true), "none was measured again");
	best[0]->again = true;
	tap_ok(tune_best(&tune, true) == best[0] && tune_best(&tune, false) != best[0],
	       "the best of those that were, and of the others");

	memset(&tune, 0, sizeof(tune));
	tune.nr = 2;
	put(0, 100, 10, 0);
	x = put(1, 200, 30, 0);
	x->why = "";
	x->valid[1] = false;
	put(0, 100, 10, 0);
	tap_ok(tune.alone[0] == 200 && tune.alone[1] == 10,
	       "only the other program stood still: its speed alone counts");
	tune.c.setup.tenants[0] = (struct qos_tenant){ .goal = QOS_ALPHA, .alpha = 900 };
	tap_ok(tune_value(&tune, &tune.list[0]) < 0,
	       "and a share of it is not reached by half of it");
	x->valid[0] = false;
	put(0, 100, 10, 0);
	tap_ok(tune.alone[0] == 100, "what another command disturbed does not count");
	put(2, 150, 20, 0);
	tune.nr_candidates = 2;
	put(0, 100, 10, 0);
	tap_ok(tune.alone[0] == 150 && tune.alone[1] == 20, "the speed with the old sets does");

	memset(&tune, 0, sizeof(tune));
	tune.nr = 2;
	put(0, 100, 50, 0);
	x = put(1, 90, 45, 0);
	tap_ok(tune_is_dominated(&tune, x), "worse in both: stopped");
	tap_ok(!tune_is_dominated(&tune, put(1, 99, 49.5, 0)), "within 2%%: not");
	tap_ok(!tune_is_dominated(&tune, put(1, 90, 51, 0)), "better in one: not");
	tap_ok(!tune_is_dominated(&tune, put(1, 90, 45, 0.2)), "within its own noise: not");
	put(0, 100, 50, 0.06);
	put(2, 10, 60, 0.06);
	tap_ok(tune.noise[0] > 0.05 && !tune_is_dominated(&tune, put(1, 90, 45, 0)),
	       "within three times the noise of all: not");
	tune.nr = 1;
	memset(tune.noise, 0, sizeof(tune.noise));
	tap_ok(!tune_is_dominated(&tune, put(1, 120, 0, 0)) &&
	       tune_is_dominated(&tune, put(2, 50, 0, 0)),
	       "one program: only by what has no more TPCs");
}

int main(int argc, char **argv)
{
	static const char *const boards[] = { "gh100-h200-a", "gh100-h200-e" };
	char path[128];

	(void)argc;
	(void)argv;
	cmd_gp = alloc_gpupart();
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "tests/data/%s/capture.txt", boards[i]);
		if (!tap_ok(!gpupart_topology_open(cmd_gp, path, NULL, &topo), "%s", boards[i]))
			return tap_done();
		check_lists();
		gpupart_topology_close(topo);
	}
	check_choice();
	gpupart_close(cmd_gp);
	return tap_done();
}
