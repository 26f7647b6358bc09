/* SPDX-License-Identifier: MIT */
/* Waits until launches that programs made before their sets changed have ended. One thread. */
#ifndef GPUPART_CLI_TARGET_DRAINED_H
#define GPUPART_CLI_TARGET_DRAINED_H

#include <gpupart_manage.h>
#include "cli/util/out.h"

/* A process on one GPU whose set was changed. */
struct drained_row {
	int pid;
	char pci[20];
	struct gpupart_records_reader *reader;	/* NULL: not open */
	int state;		/* 1 drained, 0 not yet, or -errno: it cannot be known, for: */
	char why[256];
};

struct drained {
	struct drained_row *rows;
	unsigned int nr;
	uint64_t begin_ns, took_ns;	/* since the first one was added */
};

/*
 * After the change: process @pid, or all processes of the job @job (not "") and of jobs inside it,
 * on the GPU at @pci, each of them once; another user's only if the job started it. 0, or an error.
 */
int drained_add(struct drained *drained, int pid, const char *job, const char *pci,
		const struct gpupart_job *jobs, int nr_jobs);

/* Until all are drained or unknown, or @most_ns (0: no limit) have passed. */
void drained_wait(struct drained *drained, uint64_t most_ns);

/* What became of it, into @root or, without one, as text: 0, or EXIT_FAILED if not all drained. */
int drained_report(struct drained *drained, struct out *out, json_t *root);
void drained_drop(struct drained *drained);

#endif
