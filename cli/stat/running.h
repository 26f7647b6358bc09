/* SPDX-License-Identifier: MIT */
/* `gpupart stat` of programs that run already, from the records of their launches. */
#ifndef GPUPART_CLI_STAT_RUNNING_H
#define GPUPART_CLI_STAT_RUNNING_H

#include <jansson.h>
#include "cli/target/args.h"
#include "cli/util/out.h"
#include "lib/private.h"

struct running_sample {
	uint64_t at_ns, cpu_ns;		/* CLOCK_MONOTONIC; CPU time of all its threads */
	struct gpupart_records records;
	struct gpupart_records_watched watched;
};

/* A process on one GPU. */
struct running_row {
	struct gpupart_process process;
	struct gpupart_records_reader *reader;
	struct running_sample first, told, last;	/* told: at the last line of --interval */
	bool ended;
	uint64_t due_ns, looks, outstanding_sum, outstanding_max;
};

struct running {
	const struct args *args;
	struct running_row *rows;
	unsigned int nr_rows;
	double seconds, interval;	/* @interval 0: none */
	json_t *intervals;
};

/* The processes that @pid, -p's value, or the name @name means: 0, or an error. */
int running_find(struct running *running, const char *pid, const char *name);

/* Looks at them for running->seconds and reports: 0, or an error. */
int running_measure(struct running *running);
void running_drop(struct running *running);

/* A line, or a JSON object, of what @row did since the one before. */
void running_interval(const struct running *running, struct running_row *row, double seconds);
void running_text(struct out *out, const struct running *running);
void running_json(json_t *root, const struct running *running);

#endif
