/* SPDX-License-Identifier: MIT */
/*
 * From the times of single pieces of work to sums: how long a GPU was busy, what with, how deep
 * its queue was.
 */
#ifndef GPUPART_LIB_STAT_FOLD_H
#define GPUPART_LIB_STAT_FOLD_H

#include "lib/private.h"

/* One piece of work: all times on the GPU's clock. */
struct stat_work {
	int64_t asked;		/* the call that submitted it began, .. */
	int64_t submitted;	/* .. and ended */
	int64_t start, end;	/* it ran */
	bool copy;
};

/* The CPU waited. */
struct stat_wait {
	int64_t start, end;
};

#define STAT_BATCH	2048

struct stat_fold {
	struct stat_work work[STAT_BATCH];
	struct stat_wait waits[STAT_BATCH];
	unsigned int nr_work, nr_waits;
	/* Between batches of one stretch. */
	bool open;
	int64_t any, kernel, copy;	/* up to here it is known what ran */
	int64_t ends[STAT_BATCH];	/* of what was not over at the last submission */
	unsigned int nr_ends;
	int64_t scratch[2 * STAT_BATCH];
	uint64_t untimed_over;		/* see struct gpupart_stat_gpu */
	struct gpupart_stat_gpu *sums;
};

/* Adds up what is in work[] (in the order of submission) and waits[], and empties them. */
void stat_fold_batch(struct stat_fold *fold);

/* The stretch is over: where it was cut off at @cut, what is idle up to there counts. */
void stat_fold_end(struct stat_fold *fold, int64_t cut);

#endif
