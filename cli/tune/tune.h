/* SPDX-License-Identifier: MIT */
/* What the files of `gpupart tune` share: candidates, what was measured of them, the goal. */
#ifndef GPUPART_CLI_TUNE_TUNE_H
#define GPUPART_CLI_TUNE_TUNE_H

#include "cli/qos/control.h"

#define TUNE_PROGRAMS	2
#define TUNE_MOST	64	/* candidates */
#define TUNE_SLICES	10	/* of a candidate's time: a speed each */
#define TUNE_BEST	3	/* candidates that are measured again */

enum tune_state {
	TUNE_WAITING, TUNE_MEASURED,
	TUNE_DOMINATED,		/* stopped early: another one is better in all */
	TUNE_STALLED,		/* a program made no progress: all got their old sets back */
	TUNE_DISTURBED,		/* another command changed a set meanwhile */
};

struct tune_candidate {
	enum gpupart_shape shape;
	enum tune_state state;
	struct gpupart_tpcset sets[TUNE_PROGRAMS];
	unsigned int nr_slices;
	double slices[TUNE_PROGRAMS][TUNE_SLICES];	/* speeds, units a second */
	double speed[TUNE_PROGRAMS];		/* their median */
	double noise[TUNE_PROGRAMS];		/* half the distance of their quartiles, of 1 */
	uint64_t nr_times[TUNE_PROGRAMS];	/* requests, or pauses between reports */
	double time_ns[TUNE_PROGRAMS];		/* the percentile of those; 0: there are none */
	bool again;				/* measured longer, as one of the best */
};

enum tune_kind { TUNE_SUM, TUNE_FAIR, TUNE_GOAL };

struct tune {
	unsigned int nr;		/* programs: 1 or 2 */
	unsigned int nr_tpcs;		/* that candidates may use */
	enum tune_kind kind;
	unsigned int of;		/* TUNE_GOAL: the program that has the goal */
	struct qos_tenant goal;		/* .. as a tenant's: alpha, rate or latency_ns */
	unsigned int nr_candidates;
	struct tune_candidate list[TUNE_MOST], before, after;	/* these two: the old sets */
	double alone[TUNE_PROGRAMS];	/* the best speed that was seen of each */
	double noise[TUNE_PROGRAMS];	/* the median of the candidates' */
	struct tune_candidate *best;
};

/* A run of the command. */
struct tune_run {
	struct tune tune;
	struct control c;
	const struct args *args;
	const char *goal;		/* in the user's words */
	uint64_t budget_ns, wait_ns, took_ns;
	struct gpupart_tpcset room[TUNE_PROGRAMS];
	uint64_t each_ns[TUNE_PROGRAMS];	/* between two reports with the old sets */
	uint64_t moved_to[TUNE_PROGRAMS], moved_ns[TUNE_PROGRAMS];	/* its last progress */
	bool applied;
};

/*
 * choose.c, which measures nothing. Makes about @nr candidates of the TPCs in @room, different
 * ones in all shapes that the GPU has; the first ones have nearly all TPCs for one program. 0, or
 * an error.
 */
int tune_list(struct tune *tune, const struct gpupart_topology *topo,
	      const struct gpupart_tpcset room[TUNE_PROGRAMS], unsigned int nr);
/* Takes the slices of @x into its speeds and noise, and those into @tune's. */
void tune_sum_up(struct tune *tune, struct tune_candidate *x);
/* Whether a candidate that is measured is better than @x in all by more than the noise. */
bool tune_is_dominated(const struct tune *tune, const struct tune_candidate *x);
double tune_share(const struct tune *tune, const struct tune_candidate *x, unsigned int i);
/* How good it is for the goal: more is better; below 0 the goal is not met. */
double tune_worth(const struct tune *tune, const struct tune_candidate *x);
/* Measured candidates, the best first, into @best: how many, at most @most. */
unsigned int tune_best(struct tune *tune, struct tune_candidate **best, unsigned int most);

/* measure.c: measures all and finds the best. Old sets are in force then. 0, or an error. */
int tune_measure(struct tune_run *run);

/* show.c: table or JSON, the files at @outputs, a plan or a picture each. 0, or an error. */
int tune_show(const struct tune_run *run, const struct args_texts *outputs);

#endif
