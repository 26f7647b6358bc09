/* SPDX-License-Identifier: MIT */
/* Waits for launches that programs made before a change of their sets. One thread. */
#ifndef GPUPART_CLI_TARGET_DRAINED_H
#define GPUPART_CLI_TARGET_DRAINED_H

#include <gpupart_manage.h>
#include "cli/util/out.h"

/* A process on one GPU whose set has changed. */
struct drained_row {
	int pid;
	char pci[20];
	struct gpupart_records_reader *reader;	/* NULL if not open */
	int state;		/* 1: drained, 0: not yet, -errno: unknown, for the reason @why */
	char why[256];
};

struct drained {
	struct drained_row *rows;
	unsigned int nr;
	uint64_t begin_ns, took_ns;	/* time of the first drained_add(); time since then */
};

/*
 * Adds processes on the GPU at @pci after their set has changed. If @job is "", adds process @pid.
 * Otherwise adds all processes of job @job and of the jobs inside it. Adds each process once. Adds
 * a process of another user only if the job started it. Returns 0 or an error.
 */
int drained_add(struct drained *drained, int pid, const char *job, const char *pci,
		const struct gpupart_job *jobs, int nr_jobs);

/*
 * Waits until each process is drained or unknown. Waits at most @most_ns. If @most_ns is 0,
 * waits without a limit.
 */
void drained_wait(struct drained *drained, uint64_t most_ns);

/*
 * Adds the result to the JSON object @root, or prints it as text if @root is NULL. Returns 0, or
 * EXIT_FAILED if a process has not drained.
 */
int drained_report(struct drained *drained, struct out *out, json_t *root);
void drained_drop(struct drained *drained);

#endif
