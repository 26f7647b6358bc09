/* SPDX-License-Identifier: MIT */
/*
 * Figures of two programs, A and B, that share a GPU in several ways. Comparisons of the ways
 * use these figures.
 */
#ifndef GPUPART_CLI_BENCH_PEERS_H
#define GPUPART_CLI_BENCH_PEERS_H

#include <stdbool.h>

/* Returns true if @word is in @list, whose words are separated by commas. */
bool peers_is_in(const char *list, const char *word);

/* Work of A and B in one second of one round. */
struct peers_second {
	float *ms;			/* latencies of A in the order of their times */
	unsigned int nr_a, nr_b;	/* completed units of work */
};

enum peers_figure { PEERS_RATE, PEERS_P50, PEERS_P99, PEERS_P999, PEERS_OTHER, PEERS_NR };

/* A figure and its 95% interval. */
struct peers_value {
	double value, low, high;
};

/*
 * Computes the figures of @nr seconds: the units that A completes per second, the latencies of A in
 * ms, and the units that B completes per second. The intervals come from resampling the seconds
 * with a fixed seed. Consecutive seconds are not quite independent, so the intervals are slightly
 * too narrow.
 */
void peers_figures(const struct peers_second *seconds, unsigned int nr,
		   struct peers_value figures[PEERS_NR]);

/*
 * Returns a quantile of @nr sorted values: the smallest value for which at least @milli
 * thousandths of all values are less than or equal to it. Returns 0 if @nr is 0.
 */
double peers_quantile(const float *sorted, unsigned int nr, unsigned int milli);

enum peers_verdict {
	PEERS_WORSE,	/* significantly worse for A or for B */
	PEERS_EQUAL,	/* worse for neither program, and less than 10% better for both */
	PEERS_BETTER,	/* worse for neither program, and at least 10% better for one or both */
};

/*
 * Compares @ours with @peer by the 99% latency of A, the rate of A and the rate of B. A figure
 * counts as worse only if its interval does not overlap the other interval.
 */
enum peers_verdict peers_compare(const struct peers_value ours[PEERS_NR],
				 const struct peers_value peer[PEERS_NR]);

#endif
