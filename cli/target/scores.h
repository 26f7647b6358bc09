/* SPDX-License-Identifier: MIT */
/*
 * Scores of the tenants of a running `gpupart qos run`. In each epoch, `qos run` writes the scores
 * to a file in the user's state directory. The user and root can read this file.
 */
#ifndef GPUPART_CLI_TARGET_SCORES_H
#define GPUPART_CLI_TARGET_SCORES_H

#include <gpupart_manage.h>

#define SCORES_MAX 64	/* maximum number of scores for one GPU */

/* A tenant with a goal. In the last epoch, the tenant was measured or had no requests. */
struct score {
	char job[GPUPART_JOB_STRLEN];	/* its job, or "" */
	int pid;			/* process of a tenant without a job */
	unsigned int milli;		/* progress relative to the goal; 1000 is the goal */
	bool idle;			/* no requests; ignore @milli and @met */
	bool met;
	uint64_t lend_ns;	/* maximum time to lend the TPCs; 0: lend nothing now */
	bool has_limit;		/* @lend_ns comes from the latency goal or from "lend" */
};

/*
 * Writes @nr scores of this user's tenants on the GPU at @pci. The scores are valid for @hold_ms.
 * Each GPU has one writer. Returns 0 or -errno.
 */
int scores_write(const char *pci, const struct score *list, unsigned int nr, long hold_ms);
void scores_remove(const char *pci);

/*
 * Reads the scores of user @uid on the GPU at @pci into @list. The array @list has SCORES_MAX
 * entries. Returns the number of scores. If the writer has ended or the scores are no longer valid,
 * returns 0.
 */
unsigned int scores_read(unsigned int uid, const char *pci, struct score *list);

#endif
