/* SPDX-License-Identifier: MIT */
/*
 * What `gpupart stat` makes of its measurement: shares, a verdict, advice, and how they
 * are shown. Knows not how a program is started.
 */
#ifndef GPUPART_CLI_STAT_H
#define GPUPART_CLI_STAT_H

#include <jansson.h>
#include "out.h"

enum stat_verdict {
	STAT_NO_CALL,		/* no process called CUDA */
	STAT_NOT_MEASURED,	/* none that did could be measured */
	STAT_NO_WORK,		/* none gave a GPU anything to do, or it was not seen */
	STAT_GPU_BOUND, STAT_CPU_BOUND, STAT_COPY_BOUND, STAT_NEITHER,
};

struct stat_result {
	double window;		/* seconds that the shares are of; 0: all from the first work on */
	struct gpupart_stat_process *processes;
	unsigned int nr_processes, nr_lost;
	/* What became of the program. */
	char **program;
	const char *source, *gpu;	/* -i and --gpu as they were given, or NULL */
	int status;		/* as the command ends */
	int signal;		/* that ended it, or 0 */
	double seconds;
	bool simulated;
	const char *set;	/* that it ran in, list form, or NULL */
	unsigned int nr_tpcs;	/* of the set, or of the GPU; 0: not known */
	unsigned int gpu_tpcs;	/* of the GPU; 0: not known */
	/* stat_judge() fills in what follows. */
	struct gpupart_stat_process sum;	/* of all processes; gpus[0] of all GPUs */
	double span;		/* seconds from the first work of any to the last of any */
	double rate;		/* launches a second of that */
	/* Shares of the span, from those of the stretches, without what was ours. */
	double busy, kernels, copies, both;
	double starved, held, starved_waiting, blocked;
	double cpu_waits, cpu_launches, cost;	/* shares of the processes' spans, added up */
	double fill;		/* of the SMs that kernels of known size fill, or negative */
	double depth;		/* on average */
	uint64_t depth_median;
	enum stat_verdict verdict;
	char why[512];
	char advice[4][512];
	unsigned int nr_advice;
	char *again;		/* a command to try, as a shell takes it, or NULL; to be freed */
};

/* All of them at this moment: sums and shares alone. */
void stat_add_up(struct stat_result *result);

/* The same, with the verdict and the advice. */
void stat_judge(struct stat_result *result);

const char *stat_word(enum stat_verdict verdict);

void stat_text(struct out *out, const struct stat_result *result);
void stat_json(json_t *root, const struct stat_result *result);

#endif
