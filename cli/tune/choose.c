// SPDX-License-Identifier: MIT
/* Chooses the sets that `gpupart tune` measures, and finds the best sets for a goal. */
#include <string.h>
#include "cli/bench/stats.h"
#include "cli/tune/tune.h"

#define LEAST_TPCS	4 /* enough TPCs for a cluster of 8 blocks: libraries launch such
			   * clusters */
#define LEAST_MARGIN	0.02 /* a smaller difference of speeds, as a fraction, does not stop a
			      * measurement */

/*
 * Adds a candidate that gives program @of @nr TPCs in the shape @shape, and the other program the
 * rest. If there are no such sets, returns false.
 */
static bool add(struct tune *tune, unsigned int of, unsigned int nr, enum gpupart_shape shape)
{
	struct tune_candidate x = { .shape = shape, .why = "" };

	if (gpupart_set_shape(cmd_gp, tune->c.live.topo, shape, &tune->room[of], nr, &x.sets[of]))
		return false;
	x.sets[!of] = gpupart_tpcset_andnot(&tune->room[!of], &x.sets[of]);
	if (tune->nr == TUNE_PROGRAMS && gpupart_tpcset_empty(&x.sets[!of]))
		return false;
	for (unsigned int i = 0; i < tune->nr_candidates; i++)
		if (!memcmp(tune->list[i].sets, x.sets, sizeof(x.sets)))
			return true;
	tune->list[tune->nr_candidates++] = x;
	return true;
}

int tune_list(struct tune *tune, unsigned int sizes)
{
	unsigned int all = gpupart_tpcset_count(&tune->room[0]);
	unsigned int least = all < 2 * LEAST_TPCS ? 1 : LEAST_TPCS;

	/* Does nothing if there is only one program, because its room is empty. */
	add(tune, 1, least, GPUPART_SHAPE_PACKED);
	add(tune, 0, tune->nr == TUNE_PROGRAMS ? least : all, GPUPART_SHAPE_PACKED);
	for (unsigned int i = 0; i < sizes * GPUPART_NR_SHAPES; i++) {
		unsigned int size = all * (i / GPUPART_NR_SHAPES + 1) / (sizes + 1);
		/* Sets of whole GPCs have few sizes. Do not go down to the previous size. */
		unsigned int lowest = fmax(least, all * (i / GPUPART_NR_SHAPES) / (sizes + 1) + 1);

		while (size >= lowest && !add(tune, 0, size, i % GPUPART_NR_SHAPES))
			size--;
	}
	return tune->nr_candidates >= 2 ? 0 :
	       usage_error("%u TPCs are too few to choose: other programs use the rest", all);
}

void tune_compute(struct tune *tune, struct tune_candidate *x)
{
	double sorted[TUNE_SLICES], noise[TUNE_MOST + 2], range;

	for (unsigned int i = 0; i < tune->nr; i++) {
		unsigned int nr = 0;

		memcpy(sorted, x->slices[i], sizeof(sorted));
		x->speed[i] = stats_median(sorted, x->nr_slices);
		range = stats_quantile(sorted, x->nr_slices, 75) -
			stats_quantile(sorted, x->nr_slices, 25);
		x->noise[i] = x->speed[i] > 0 ? range / 2 / x->speed[i] : 0;
		tune->alone[i] = 1e-9;	/* a divisor, so not 0 */
		for (unsigned int n = 0; n < tune->nr_candidates + 2; n++) {
			const struct tune_candidate *one = &tune->list[n];

			tune->alone[i] = fmax(tune->alone[i], one->valid[i] * one->speed[i]);
			if (!one->why && one->speed[i] > 0)
				noise[nr++] = one->noise[i];
		}
		tune->noise[i] = stats_median(noise, nr);
	}
}

bool tune_is_dominated(const struct tune *tune, const struct tune_candidate *x)
{
	for (unsigned int n = 0; n < tune->nr_candidates; n++) {
		const struct tune_candidate *y = &tune->list[n];
		/* For one program, a larger set is not better. */
		bool better = y != x && !y->why &&
			      (tune->nr > 1 || gpupart_tpcset_count(&y->sets[0]) <=
					       gpupart_tpcset_count(&x->sets[0]));

		for (unsigned int i = 0; i < tune->nr && better; i++)
			better = y->speed[i] * (1 - fmax(LEAST_MARGIN, 3 * tune->noise[i])) >
				 x->speed[i] * (1 + 2 * x->noise[i]);
		if (better)
			return true;
	}
	return false;
}

double tune_value(const struct tune *tune, const struct tune_candidate *x)
{
	const unsigned int of = tune->of;
	const struct qos_tenant *goal = &tune->c.setup.tenants[of];
	double share = x->speed[of] / tune->alone[of];
	double other = x->speed[!of] / tune->alone[!of], met;

	if (goal->goal == QOS_BEST_EFFORT)
		return !strcmp(tune->qos.goal, "fair") ? fmin(share, other) : share + other;
	met = goal->goal == QOS_ALPHA ? share * 1000 / goal->alpha :
	      goal->goal == QOS_RATE ? x->speed[of] * 1000 / goal->rate :
	      x->time_ns[of] > 0 ? goal->latency_ns / x->time_ns[of] : 0;
	if (met < 1)
		return met - 1;
	return tune->nr > 1 ? other :
	       1 - gpupart_tpcset_count(&x->sets[0]) / (GPUPART_MAX_TPCS + 1.0);
}

struct tune_candidate *tune_best(struct tune *tune, bool again)
{
	struct tune_candidate *best = NULL, *x;

	for (x = tune->list; x < tune->list + tune->nr_candidates; x++)
		if (!x->why && x->again == again &&
		    (!best || tune_value(tune, x) > tune_value(tune, best)))
			best = x;
	return best;
}
