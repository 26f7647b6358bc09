/* SPDX-License-Identifier: MIT */
/* What runs confined at one moment: taken, and printed as a table or as JSON. */
#ifndef GPUPART_CLI_TARGET_LOOK_H
#define GPUPART_CLI_TARGET_LOOK_H

#include "cli/target/tenants.h"

struct look {
	struct gpupart_process *list;
	struct gpupart_job *jobs;
	int nr, nr_jobs;	/* nr_jobs below 0: they could not be listed */
	struct tenants tenants;
	uint64_t at_ns;
};

/*
 * Replaces what is in *look, which begins as all zero: 0, or an error. Without @with_jobs its jobs
 * stay as they are: they are two thirds of the work.
 */
int look_take(struct look *look, bool with_jobs);
void look_drop(struct look *look);

/* A row a process, then the tenants. With launches a second since @before, which may be NULL. */
void look_print(struct out *out, const struct look *now, const struct look *before);
void look_json(struct out *out, const struct look *look);

/*
 * The topology of a process's GPU, opened once for all processes on it and never closed; NULL if
 * it could not be opened.
 */
const struct gpupart_topology *look_topology(const struct gpupart_process *p);

#endif
