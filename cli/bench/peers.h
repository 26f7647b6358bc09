/* SPDX-License-Identifier: MIT */
/*
 * Figures of two programs, A and B, that share a GPU. The figures are used to compare ways to share
 * a GPU.
 */
#ifndef GPUPART_CLI_BENCH_PEERS_H
#define GPUPART_CLI_BENCH_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include "cli/bench/report.h"

/* Returns true if @word is in @list, whose words are separated by commas. */
bool peers_is_in(const char *list, const char *word);

/*
 * Reads a line that @program of the way @way printed. @program is 'A' or 'B'. If the line is not a
 * time in ms that is greater than 0 and finite, returns false. Programs may print other lines, but
 * a number that is no such time is an error. For the first one, prints a message and sets *refused.
 */
bool peers_read_time(const char *line, const char *way, char program, bool *refused, float *ms);

#define PEERS_MAX_TIMES	2000		/* stored latencies of one second; sorting takes time */

/* The work of A and B during one second. */
struct peers_second {
	/* latencies of A; if there are more than PEERS_MAX_TIMES, a random sample of them */
	float *ms;
	unsigned int nr_a, nr_b, nr_ms;	/* completed units of work; entries of @ms */
};

/* Counts a unit of work of A, which took @ms. */
void peers_add_time(struct peers_second *second, float ms);

enum peers_figure { PEERS_RATE, PEERS_P50, PEERS_P99, PEERS_P999, PEERS_OTHER, PEERS_NR };

/* A figure and its 95% interval. */
struct peers_value {
	double value, low, high;
};

/*
 * Computes the rates of A and B in units per second, and the latencies of A in ms. Uses the records
 * of @nr seconds. For the intervals, it resamples the seconds with a fixed seed. Consecutive
 * seconds are not quite independent, so the intervals are slightly too narrow. If @has_intervals is
 * false, computes no intervals, which take most of the time.
 */
void peers_figures(const struct peers_second *seconds, unsigned int nr, bool has_intervals,
		   struct peers_value figures[PEERS_NR]);

/*
 * Returns a quantile of @nr sorted values. At least @milli thousandths of all values are less than
 * or equal to the quantile. The quantile is the smallest such value. If @nr is 0, returns 0.
 */
double peers_quantile(const float *sorted, unsigned int nr, unsigned int milli);

enum peers_kind {
	PEERS_ALONE,
	PEERS_PEER,
	PEERS_OURS,
	PEERS_COST,	/* shares the GPU as a peer does, and shows what gpupart itself costs */
};

struct peers_way {
	char name[48];
	const char *family;		/* in the picture, ways of a family have one letter */
	/* for the picture: A's TPCs or percentage, TPCs of A/B if sets overlap, or "" */
	char size[16];
	enum peers_kind kind;
	char *command[2];		/* command lines of A and of B; NULL: not started */
	bool has_tenants;		/* the command of A is `qos run`, which starts A and B */
	uint64_t warm_ns;
	struct peers_second *seconds;
	unsigned int nr_seconds;
	char why[200];			/* the reason why the way could not be measured, or "" */
	struct peers_value figures[PEERS_NR];
};

/*
 * Reports the figures of @nr ways as tables and a picture. If @compares, also compares each peer
 * with the ways of gpupart, except those of the kind PEERS_COST. On the simulated GPU, @is_judged
 * is false.
 */
void peers_report(json_t *report, const struct peers_way *ways, unsigned int nr, bool compares,
		  bool is_judged);

enum peers_verdict {
	PEERS_WORSE,	/* significantly worse for A or for B */
	PEERS_EQUAL,	/* worse for neither program, and less than 10% better for both */
	PEERS_BETTER,	/* worse for neither program, and at least 10% better for one or both */
};

/*
 * Compares @ours with @peer. Compares the 99% latency of A, A's rate, and B's rate. If the
 * intervals of two figures overlap, neither figure counts as worse. If @ours is worse, stores the
 * figure with the largest factor between @ours and @peer in *worst, and this factor in *loss.
 */
enum peers_verdict peers_compare(const struct peers_value ours[PEERS_NR],
				 const struct peers_value peer[PEERS_NR],
				 enum peers_figure *worst, double *loss);

#endif
