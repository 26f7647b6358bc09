/* SPDX-License-Identifier: MIT */
/*
 * Scores of the tenants of a running `gpupart qos run`. In each epoch, qos writes them to a file in
 * the user's state directory. The user and root can read this file.
 */
#ifndef GPUPART_CLI_TARGET_SCORES_H
#define GPUPART_CLI_TARGET_SCORES_H

#include <gpupart_manage.h>

#define SCORES_MAX 64	/* maximum number of scores for one GPU */

/* A tenant with a goal. The tenant was measured in the last epoch, or had no requests in it. */
struct score {
	char job[GPUPART_JOB_STRLEN];	/* its job, or "" */
	int pid;			/* its process, if it has no job */
	unsigned int milli;		/* progress relative to the goal; 1000 is the goal */
	bool idle;			/* it had no requests; ignore @milli and @met */
	bool met;
	uint64_t lend_ns;	/* kernels may use its TPCs for this time; 0: lend nothing now */
	bool has_limit;		/* @lend_ns is from its latency goal or its key lend */
};

/*
 * Writes @nr scores of this user's tenants on the GPU at @pci. They are valid for @hold_ms. Returns
 * 0 or -errno. Each GPU has only one writer.
 */
int scores_write(const char *pci, const struct score *list, unsigned int nr, long hold_ms);
void scores_remove(const char *pci);

/*
 * Reads the scores of user @uid on the GPU at @pci into @list, which has SCORES_MAX entries.
 * Returns the number of scores, which is 0 if the writer has ended or the scores are no longer
 * valid.
 */
unsigned int scores_read(unsigned int uid, const char *pci, struct score *list);

#endif
