/* SPDX-License-Identifier: MIT */
/*
 * Waits for the end of launches that programs made before their sets were changed. Call these
 * functions from one thread.
 */
#ifndef GPUPART_CLI_TARGET_DRAINED_H
#define GPUPART_CLI_TARGET_DRAINED_H

#include <gpupart_manage.h>
#include "cli/util/out.h"

/* A process on one GPU whose set has changed. */
struct drained_row {
	int pid;
	char pci[20];
	struct gpupart_records_reader *reader;	/* NULL if not open */
	int state;		/* 1: drained; 0: not yet; -errno: unknown, see @why */
	char why[256];
};

struct drained {
	struct drained_row *rows;
	unsigned int nr;
	uint64_t begin_ns, took_ns;	/* time of the first drained_add(); time since then */
};

/*
 * Adds processes on the GPU at @pci. Call this after the change of their set. If @job is "", adds
 * process @pid. Otherwise adds all processes of job @job and of its inner jobs. Adds each process
 * once. Ignores other users' processes that the job did not start. Returns 0 or an error.
 */
int drained_add(struct drained *drained, int pid, const char *job, const char *pci,
		const struct gpupart_job *jobs, int nr_jobs);

/*
 * Waits until each process is drained or unknown. The time limit is @most_ns. If @most_ns is 0,
 * there is no time limit.
 */
void drained_wait(struct drained *drained, uint64_t most_ns);

/*
 * Adds the result to the JSON object @root. If @root is NULL, prints the result as text. If a
 * process has not drained, returns EXIT_FAILED. Otherwise returns 0.
 */
int drained_report(struct drained *drained, struct out *out, json_t *root);
void drained_drop(struct drained *drained);

#endif
