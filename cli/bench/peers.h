/* SPDX-License-Identifier: MIT */
/*
 * Two programs, A and B, that share a GPU in one of several ways, and what is said of the ways when
 * all are measured.
 */
#ifndef GPUPART_CLI_BENCH_PEERS_H
#define GPUPART_CLI_BENCH_PEERS_H

#include <stdbool.h>

/* What A and B did in one second of one round. */
struct peers_second {
	float *ms;			/* latencies of A, in the order in which they came */
	unsigned int nr_a, nr_b;	/* units of work that ended */
};

enum peers_figure { PEERS_RATE, PEERS_P50, PEERS_P99, PEERS_P999, PEERS_OTHER, PEERS_NR };

/* A figure and the interval that holds it in 95 of 100 cases. */
struct peers_value {
	double value, low, high;
};

/*
 * The figures of @nr seconds: units of A a second, its latencies in ms, units of B a second. The
 * intervals are of seconds drawn anew, with a fixed seed: neighbouring seconds are not quite
 * independent, so they are somewhat too narrow.
 */
void peers_figures(const struct peers_second *seconds, unsigned int nr,
		   struct peers_value figures[PEERS_NR]);

/* The smallest of @nr sorted values that @milli of 1000 do not exceed; 0 of none. */
double peers_quantile(const float *sorted, unsigned int nr, unsigned int milli);

enum peers_verdict {
	PEERS_WORSE,	/* in A or in B, and that is not chance */
	PEERS_EQUAL,	/* in neither; nor is it 10% better in one */
	PEERS_BETTER,	/* in neither; it is 10% better in one */
};

/*
 * What @ours is beside @peer, by A's 99% latency, its rate and B's rate: worse is what has
 * intervals that do not touch.
 */
enum peers_verdict peers_compare(const struct peers_value ours[PEERS_NR],
				 const struct peers_value peer[PEERS_NR]);

#endif
