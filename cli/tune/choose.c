// SPDX-License-Identifier: MIT
/* Chooses the sets that `gpupart tune` measures, and finds the best sets for a goal. */
#include <math.h>
#include <string.h>
#include "cli/bench/stats.h"
#include "cli/tune/tune.h"

#define LEAST_TPCS	4 /* enough TPCs for a cluster of 8 blocks: libraries launch such
			   * clusters */
#define LEAST_MARGIN	0.02 /* a smaller difference of speeds, as a fraction, does not stop a
			      * measurement */

static void add(struct tune *tune, const struct tune_candidate *x)
{
	for (unsigned int i = 0; i < tune->nr_candidates; i++)
		if (gpupart_tpcset_equal(&tune->list[i].sets[0], &x->sets[0]) &&
		    gpupart_tpcset_equal(&tune->list[i].sets[1], &x->sets[1]))
			return;
	if (tune->nr_candidates < TUNE_MOST)
		tune->list[tune->nr_candidates++] = *x;
}

/*
 * Gives the first program @nr TPCs of @from, and the second program TPCs of @rest. If there are not
 * enough TPCs, returns false.
 */
static bool make_candidate(const struct tune *tune, const struct gpupart_topology *topo,
			   const struct gpupart_tpcset *from, const struct gpupart_tpcset *rest,
			   unsigned int nr, struct tune_candidate *x)
{
	if (gpupart_set_shape(cmd_gp, topo, x->shape, from, nr, &x->sets[0]))
		return false;
	if (tune->nr == TUNE_PROGRAMS)
		x->sets[1] = gpupart_tpcset_andnot(rest, &x->sets[0]);
	return tune->nr == 1 || !gpupart_tpcset_empty(&x->sets[1]);
}

int tune_list(struct tune *tune, const struct gpupart_topology *topo,
	      const struct gpupart_tpcset room[TUNE_PROGRAMS], unsigned int nr)
{
	unsigned int all = gpupart_tpcset_count(&room[0]), least, step, n;
	struct gpupart_tpcset both = gpupart_tpcset_or(&room[0], &room[1]);
	struct tune_candidate x = { 0 }, swapped;

	tune->nr_tpcs = gpupart_tpcset_count(&both);
	least = all < 2 * LEAST_TPCS ? 1 : LEAST_TPCS;
	if (tune->nr == 1) {
		x.sets[0] = room[0];
		add(tune, &x);
	} else if (make_candidate(tune, topo, &room[0], &room[1], least, &x)) {
		/* If the allowed sets permit it, give one program nearly all TPCs. */
		swapped = x;
		if (make_candidate(tune, topo, &room[1], &room[0], least, &swapped))
			add(tune, &(struct tune_candidate){
				.sets = { swapped.sets[1], swapped.sets[0] } });
		add(tune, &x);
	}
	nr = nr < tune->nr_candidates + GPUPART_NR_SHAPES ? 1 :
	     (nr - tune->nr_candidates) / GPUPART_NR_SHAPES;
	step = all / (nr + 1) ?: 1;
	for (unsigned int k = 1; k <= nr; k++) {
		n = all * k / (nr + 1);
		for (unsigned int shape = 0; shape < GPUPART_NR_SHAPES && n >= least; shape++) {
			x = (struct tune_candidate){ .shape = shape };
			/*
			 * Sets of whole GPCs have few sizes. Take the nearest smaller set that is
			 * not in the list yet.
			 */
			for (unsigned int less = 0; less < step && less < n; less++)
				if (make_candidate(tune, topo, &room[0], &room[1], n - less, &x)) {
					add(tune, &x);
					break;
				}
		}
	}
	return tune->nr_candidates >= 2 ? 0 :
	       usage_error("%u TPCs are too few to choose from: other programs use the rest",
			   tune->nr_tpcs);
}

bool tune_is_valid(const struct tune_candidate *x, unsigned int i)
{
	return x->state == TUNE_MEASURED || x->state == TUNE_DOMINATED ||
	       (x->state == TUNE_STALLED && x->stalled != i);
}

/* Returns the higher of @alone and the speed of program @i in @x, if @x measures this program. */
static double faster(double alone, const struct tune_candidate *x, unsigned int i)
{
	return tune_is_valid(x, i) ? fmax(alone, x->speed[i]) : alone;
}

void tune_compute(struct tune *tune, struct tune_candidate *x)
{
	double sorted[TUNE_SLICES], all[TUNE_MOST];
	unsigned int nr;

	for (unsigned int i = 0; i < tune->nr; i++) {
		memcpy(sorted, x->slices[i], sizeof(sorted));
		x->speed[i] = x->nr_slices ? stats_median(sorted, x->nr_slices) : 0;
		x->noise[i] = x->speed[i] > 0 ? (stats_quantile(sorted, x->nr_slices, 75) -
						 stats_quantile(sorted, x->nr_slices, 25)) /
							2 / x->speed[i] : 0;
		tune->alone[i] = faster(faster(0, &tune->before, i), &tune->after, i);
		nr = 0;
		for (unsigned int n = 0; n < tune->nr_candidates; n++) {
			const struct tune_candidate *one = &tune->list[n];

			tune->alone[i] = faster(tune->alone[i], one, i);
			if (one->state == TUNE_MEASURED && one->speed[i] > 0)
				all[nr++] = one->noise[i];
		}
		tune->noise[i] = nr ? stats_median(all, nr) : 0;
	}
}

static double cost(const struct tune_candidate *x)
{
	return gpupart_tpcset_count(&x->sets[0]);
}

bool tune_is_dominated(const struct tune *tune, const struct tune_candidate *x)
{
	for (unsigned int n = 0; n < tune->nr_candidates; n++) {
		const struct tune_candidate *y = &tune->list[n];
		bool better = y != x && y->state == TUNE_MEASURED;

		for (unsigned int i = 0; i < tune->nr && better; i++)
			better = y->speed[i] * (1 - fmax(LEAST_MARGIN, 3 * tune->noise[i])) >
				 x->speed[i] * (1 + 2 * x->noise[i]);
		if (better && (tune->nr > 1 || cost(y) <= cost(x)))
			return true;
	}
	return false;
}

double tune_share(const struct tune *tune, const struct tune_candidate *x, unsigned int i)
{
	return tune->alone[i] > 0 ? x->speed[i] / tune->alone[i] : 0;
}

double tune_value(const struct tune *tune, const struct tune_candidate *x)
{
	const struct qos_tenant *goal = &tune->goal;
	const unsigned int of = tune->of;
	double met = 0;

	if (tune->kind == TUNE_SUM)
		return tune_share(tune, x, 0) + tune_share(tune, x, 1);
	if (tune->kind == TUNE_FAIR)
		return fmin(tune_share(tune, x, 0), tune_share(tune, x, 1));
	if (goal->goal == QOS_ALPHA)
		met = tune_share(tune, x, of) * 1000 / goal->alpha;
	else if (goal->goal == QOS_RATE)
		met = x->speed[of] * 1000 / goal->rate;
	else if (x->time_ns[of] > 0)
		met = goal->latency_ns / x->time_ns[of];
	if (met < 1)
		return met - 1;
	return tune->nr > 1 ? tune_share(tune, x, !of) : 1 - cost(x) / (tune->nr_tpcs + 1);
}

bool tune_is_close(const struct tune *tune, const struct tune_candidate *x)
{
	double value = tune_value(tune, x), best = tune_value(tune, tune->best);
	double noise = fmax(tune->noise[0], tune->noise[1]);

	/* With one program that reaches the goal, the value is a number of TPCs, without noise. */
	if (best >= 0 && tune->nr == 1)
		return value >= best;
	if (best >= 0)
		return value >= best * (1 - noise);
	/* Both values are the reached part of the goal, minus 1. */
	return best > -1 && value + 1 >= (best + 1) * (1 - noise);
}

unsigned int tune_best(struct tune *tune, struct tune_candidate **best, unsigned int most)
{
	unsigned int nr = 0, at;

	for (unsigned int n = 0; n < tune->nr_candidates; n++) {
		struct tune_candidate *x = &tune->list[n];

		if (x->state != TUNE_MEASURED)
			continue;
		for (at = nr; at && tune_value(tune, x) > tune_value(tune, best[at - 1]); at--)
			if (at < most)
				best[at] = best[at - 1];
		if (at < most)
			best[at] = x;
		nr += nr < most;
	}
	return nr;
}
