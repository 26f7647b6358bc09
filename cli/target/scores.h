/* SPDX-License-Identifier: MIT */
/*
 * Scores of the tenants of a running `gpupart qos run`, which writes them each epoch into a file
 * beside the pages of its user's processes, for that user and root.
 */
#ifndef GPUPART_CLI_TARGET_SCORES_H
#define GPUPART_CLI_TARGET_SCORES_H

#include <gpupart_manage.h>

#define SCORES_MAX 64	/* of one GPU */

/* A tenant that has a goal and was measured in the last epoch. */
struct score {
	char job[GPUPART_JOB_STRLEN];	/* its job, or "" */
	int pid;			/* its process where it has no job */
	unsigned int milli;		/* progress against the goal: 1000 meets it */
	bool met;
};

/*
 * Writes @nr scores of this user's tenants on the GPU at @pci, which are read for @hold_ms: 0 or
 * -errno. One writer a GPU.
 */
int scores_write(const char *pci, const struct score *list, unsigned int nr, long hold_ms);
void scores_remove(const char *pci);

/*
 * Reads those of user @uid on the GPU at @pci into @list, which has SCORES_MAX places. Returns how
 * many there are: none if their writer has ended, or has written nothing for too long.
 */
unsigned int scores_read(unsigned int uid, const char *pci, struct score *list);

#endif
