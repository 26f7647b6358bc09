/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of `gpupart tune` share: the candidates, their measurements, and the
 * goal. One thread.
 */
#ifndef GPUPART_CLI_TUNE_TUNE_H
#define GPUPART_CLI_TUNE_TUNE_H

#include <math.h>
#include "cli/qos/control.h"

#define TUNE_PROGRAMS	2
#define TUNE_SIZES	9	/* sizes of candidates, at most; each is tried in each shape */
#define TUNE_MOST	(TUNE_PROGRAMS + TUNE_SIZES * GPUPART_NR_SHAPES)	/* candidates */
#define TUNE_SLICES	10	/* the time of a candidate has this number of slices; each slice
				 * has a speed */

struct tune_candidate {
	enum gpupart_shape shape;
	struct gpupart_tpcset sets[TUNE_PROGRAMS];
	unsigned int nr_slices;
	double slices[TUNE_PROGRAMS][TUNE_SLICES];	/* speeds, units a second */
	double speed[TUNE_PROGRAMS];		/* median of @slices */
	double noise[TUNE_PROGRAMS]; /* half the interquartile range, as a fraction of the speed */
	uint64_t nr_times[TUNE_PROGRAMS]; /* number of requests, or of report intervals */
	double time_ns[TUNE_PROGRAMS];		/* percentile of the request times, or of the
						 * report intervals; 0: no times */
	bool valid[TUNE_PROGRAMS], again; /* @speed is the speed with these sets; it is one of the
					   * best candidates, so it was measured again for longer */
	const char *why;	/* the reason why it was not measured completely, or NULL */
};

/* One run of 'gpupart tune': its options, its programs, and its candidates. */
struct tune {
	struct args args;
	struct qos_options qos;
	double seconds, wait, took;	/* options, and the seconds of all measurements */
	bool apply, met;		/* the best candidate: apply it, later: it was applied; it
					 * reaches the goal */
	struct args_texts outputs;
	/* command lines to start, and one that is refused; NULL for running jobs */
	char **programs[TUNE_PROGRAMS + 1];
	unsigned int nr, of;		/* programs, 1 or 2; index of the program with the goal */
	unsigned int processes[TUNE_PROGRAMS];	/* the most processes that used the GPU */
	struct control c;		/* has the goal of program @of, if it is not sum or fair */
	struct gpupart_tpcset room[TUNE_PROGRAMS];	/* TPCs that candidates may use */
	/* report interval with the old sets; time without progress after which a program has
	 * stalled with the present set */
	uint64_t each_ns[TUNE_PROGRAMS], stall_ns[TUNE_PROGRAMS];
	unsigned int nr_candidates;
	/* After the candidates come two measurements of the old sets: the first and the last. */
	struct tune_candidate list[TUNE_MOST + 2];
	double alone[TUNE_PROGRAMS];	/* the highest valid speed of each program, not 0 */
	double noise[TUNE_PROGRAMS];	/* median noise of all complete measurements */
	struct tune_candidate *best;
};

/*
 * Functions of choose.c. These functions do not measure. The function tune_list() makes candidates
 * from the TPCs in tune->room. The first candidates give one program nearly all TPCs. The others
 * have @sizes sizes, at most TUNE_SIZES, in all shapes that the GPU has. Returns 0 or an exit
 * status.
 */
int tune_list(struct tune *tune, unsigned int sizes);
/*
 * Computes the speeds and the noise of @x from its slices. Updates the speeds and the noise of
 * @tune.
 */
void tune_compute(struct tune *tune, struct tune_candidate *x);
/*
 * Returns whether a complete candidate is better than @x in every respect. The differences must be
 * larger than the noise.
 */
bool tune_is_dominated(const struct tune *tune, const struct tune_candidate *x);
/*
 * Returns the value of @x for the goal. Higher values are better. If the value is below 0, @x does
 * not meet the goal.
 */
double tune_value(const struct tune *tune, const struct tune_candidate *x);
/*
 * Returns the best complete candidate of those that were measured again, or if @again is false, of
 * the others. If there is none, returns NULL.
 */
struct tune_candidate *tune_best(struct tune *tune, bool again);

/*
 * measure.c: measures all candidates and finds the best candidate. At the end, applies the best
 * candidate, or restores the old sets. Returns 0 or an exit status.
 */
int tune_measure(struct tune *tune);

/*
 * show.c: prints a table or JSON, and writes a plan or a picture to each file of -o. Returns 0 or
 * an exit status.
 */
int tune_show(struct tune *tune);

#endif
