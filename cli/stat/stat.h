/* SPDX-License-Identifier: MIT */
/* The measurement of `gpupart stat`: sums, shares, a verdict, and how they are shown. */
#ifndef GPUPART_CLI_STAT_STAT_H
#define GPUPART_CLI_STAT_STAT_H

#include <jansson.h>
#include "cli/util/out.h"
#include "lib/private.h"

enum stat_verdict {
	STAT_NO_CALL,		/* no process called CUDA */
	STAT_NOT_MEASURED,	/* none that did could be measured */
	STAT_NO_WORK,		/* none gave a GPU anything to do */
	STAT_NOT_SEEN,		/* none of what they gave it was seen to end */
	STAT_GPU_BOUND, STAT_CPU_BOUND, STAT_COPY_BOUND, STAT_NEITHER,
};

/* Of the span, without what measuring took. */
enum stat_share {
	STAT_BUSY, STAT_KERNELS, STAT_COPIES, STAT_BOTH, STAT_STARVED, STAT_HELD, STAT_NR_SHARES
};

struct stat_result {
	double window;		/* seconds that the shares are of; 0: all from the first work on */
	struct gpupart_stat_process *processes;
	unsigned int nr_processes, nr_lost;
	/* What became of the program. */
	char **program;
	int status;		/* as the command ends */
	int signal;		/* that ended it, or 0 */
	double seconds;
	bool simulated;
	const char *set;	/* that it ran in, list form, or NULL */
	struct gpupart_tpcset tpcs;	/* of the set; empty: not known */
	/* stat_judge() fills in what follows. */
	struct gpupart_stat_process sum;	/* of all processes; gpus[0] of all GPUs */
	double span;		/* seconds from the first work of any to the last of any */
	double rate;		/* launches a second of that */
	double shares[STAT_NR_SHARES];
	double starved_waiting, blocked;
	double cpu_waits, cpu_launches, cost;	/* shares of the processes' spans, added up */
	double depth;		/* on average */
	uint64_t depth_median;
	const char *verdict, *advice;	/* @advice: NULL none */
	char why[512];
};

/* All of them at this moment: sums and shares alone. */
void stat_add_up(struct stat_result *result);

/* The same, with the verdict. */
void stat_judge(struct stat_result *result);

/* "LABEL         text", on below itself. */
__attribute__((format(printf, 3, 4)))
void stat_row(struct out *out, const char *label, const char *fmt, ...);

void stat_text(struct out *out, const struct stat_result *result);
void stat_json(json_t *root, const struct stat_result *result);

#endif
