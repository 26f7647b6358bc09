// SPDX-License-Identifier: MIT
/* Computes figures, with intervals, for a way to share a GPU. Compares two ways. */
#include <stdlib.h>
#include <string.h>
#include "cli/bench/peers.h"
#include "cli/util/alloc.h"

#define DRAWS	400
#define BETTER	1.10

static int by_ms(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

double peers_quantile(const float *sorted, unsigned int nr, unsigned int milli)
{
	return nr ? sorted[((unsigned long)nr * milli + 999) / 1000 - 1] : 0;
}

/* Each unit of a second is stored with the same probability. */
void peers_add_time(struct peers_second *second, float ms)
{
	static unsigned int seed = 1;
	unsigned int at = second->nr_a++;

	if (at < PEERS_MAX_TIMES)
		second->ms = alloc_resized(second->ms, ++second->nr_ms, sizeof(*second->ms));
	else
		at = rand_r(&seed) % second->nr_a;
	if (at < PEERS_MAX_TIMES)
		second->ms[at] = ms;
}

/*
 * Computes the figures from some of the seconds. The indices of these seconds are in @drawn. The
 * array @room has space for all stored latencies of these seconds.
 */
static void figures_of(const struct peers_second *seconds, const unsigned int *drawn,
		       unsigned int nr, float *room, double figures[PEERS_NR])
{
	unsigned long nr_a = 0, nr_b = 0, nr_ms = 0;

	for (unsigned int i = 0; i < nr; i++) {
		const struct peers_second *second = &seconds[drawn[i]];

		if (second->nr_ms)
			memcpy(room + nr_ms, second->ms, second->nr_ms * sizeof(*room));
		nr_ms += second->nr_ms;
		nr_a += second->nr_a;
		nr_b += second->nr_b;
	}
	qsort(room, nr_ms, sizeof(*room), by_ms);
	figures[PEERS_RATE] = nr ? (double)nr_a / nr : 0;
	figures[PEERS_P50] = peers_quantile(room, nr_ms, 500);
	figures[PEERS_P99] = peers_quantile(room, nr_ms, 990);
	figures[PEERS_P999] = peers_quantile(room, nr_ms, 999);
	figures[PEERS_OTHER] = nr ? (double)nr_b / nr : 0;
}

static int by_draw(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void peers_figures(const struct peers_second *seconds, unsigned int nr, bool has_intervals,
		   struct peers_value figures[PEERS_NR])
{
	unsigned int most = 1, *drawn = alloc_zeroed(nr + 1, sizeof(*drawn)), seed = 1;
	double all[PEERS_NR], (*draws)[DRAWS] = alloc_zeroed(PEERS_NR, sizeof(*draws));
	float *room;

	for (unsigned int i = 0; i < nr; i++) {
		drawn[i] = i;
		most = seconds[i].nr_ms > most ? seconds[i].nr_ms : most;
	}
	room = alloc_zeroed((size_t)most * (nr + 1), sizeof(*room));
	figures_of(seconds, drawn, nr, room, all);
	for (unsigned int k = 0; k < DRAWS && nr && has_intervals; k++) {
		double one[PEERS_NR];

		for (unsigned int i = 0; i < nr; i++)
			drawn[i] = rand_r(&seed) % nr;
		figures_of(seconds, drawn, nr, room, one);
		for (unsigned int f = 0; f < PEERS_NR; f++)
			draws[f][k] = one[f];
	}
	for (unsigned int f = 0; f < PEERS_NR; f++) {
		qsort(draws[f], DRAWS, sizeof(**draws), by_draw);
		figures[f] = (struct peers_value){
			all[f], draws[f][DRAWS / 40], draws[f][DRAWS - 1 - DRAWS / 40],
		};
	}
	free(room);
	free(draws);
	free(drawn);
}

#define NEVER	1e12

/* If a program completed no unit of work, use an infinite latency. */
static struct peers_value judged_value(const struct peers_value *figures, enum peers_figure f)
{
	struct peers_value value = figures[f];

	if (f == PEERS_P99 && !figures[PEERS_RATE].value)
		value = (struct peers_value){ NEVER, NEVER, NEVER };
	return value;
}

/* If a larger value is better, @sign is 1. If a smaller value is better, @sign is -1. */
static bool is_worse(const struct peers_value *ours, const struct peers_value *peer, int sign)
{
	return sign > 0 ? ours->high < peer->low : ours->low > peer->high;
}

static bool is_better(const struct peers_value *ours, const struct peers_value *peer, int sign)
{
	return is_worse(peer, ours, sign) &&
	       (sign > 0 ? ours->value >= BETTER * peer->value :
			   BETTER * ours->value <= peer->value);
}

enum peers_verdict peers_compare(const struct peers_value ours[PEERS_NR],
				 const struct peers_value peer[PEERS_NR],
				 enum peers_figure *worst, double *loss)
{
	static const struct {
		enum peers_figure figure;
		int sign;
	} judged[] = { { PEERS_P99, -1 }, { PEERS_RATE, 1 }, { PEERS_OTHER, 1 } };
	bool better = false, worse = false;
	double factor;

	for (unsigned int i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
		const struct peers_value a = judged_value(ours, judged[i].figure),
					 b = judged_value(peer, judged[i].figure);

		better |= is_better(&a, &b, judged[i].sign);
		factor = judged[i].sign > 0 ? b.value / a.value : a.value / b.value;
		if (!is_worse(&a, &b, judged[i].sign) || (worse && factor <= *loss))
			continue;
		worse = true;
		*loss = factor;
		*worst = judged[i].figure;
	}
	return worse ? PEERS_WORSE : better ? PEERS_BETTER : PEERS_EQUAL;
}
