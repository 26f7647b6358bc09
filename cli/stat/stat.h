/* SPDX-License-Identifier: MIT */
/* The report of `gpupart stat`, from the records that the GPU writes of processes' launches. */
#ifndef GPUPART_CLI_STAT_STAT_H
#define GPUPART_CLI_STAT_STAT_H

#include <jansson.h>
#include "cli/target/args.h"
#include "cli/util/out.h"
#include "lib/private.h"

struct stat_sample {
	uint64_t at_ns, cpu_ns;		/* CLOCK_MONOTONIC; CPU time of all its threads */
	struct gpupart_records records;
	struct gpupart_records_watched watched;
};

/* A process on one GPU. */
struct stat_row {
	struct gpupart_process process;
	struct gpupart_records_reader *reader;
	struct stat_sample first, told, last;	/* told: at the last line of --interval */
	bool ended;
	/* Looks at it since its first launch, and what was outstanding at them. */
	uint64_t due_ns, looks, outstanding_looks, outstanding_sum, outstanding_max;
};

/* What `gpupart stat PROGRAM` tells besides. */
struct stat_program {
	char **argv;
	int status;		/* as the command ends */
	int signal;		/* that ended it, or 0 */
	double seconds;
	const char *set;	/* that it was given, list form, or NULL */
	struct gpupart_tpcset tpcs;		/* of the set; empty: none */
	struct gpupart_stat_process sum;	/* the counts of all its processes */
	unsigned int nr_processes, nr_lost;	/* those that called CUDA; .. and have no row */
};

struct stat_report {
	const struct args *args;
	bool simulated;
	struct stat_row *rows;
	unsigned int nr_rows;
	double seconds, interval;	/* @interval 0: none */
	double next;			/* the next line of --interval */
	json_t *intervals;
	const struct stat_program *program;	/* NULL: of processes that run already */
};

/* What happened between two samples. */
struct stat_counts {
	unsigned long long launches, ended, graphs, unrecorded;
	double seconds, least, most, cpus;
};

/* ------------------------------------------------------------------- watch.c */

/* Processes on GPUs: as gpupart_records_open() has it. */
int stat_add(struct stat_report *report, const struct gpupart_process *process);

/*
 * Looks at all rows whose time has come, or with @all at all: 0, or an error. *left is how many
 * have not ended, *due_ns when the next is due.
 */
int stat_look(struct stat_report *report, bool all, unsigned int *left, uint64_t *due_ns);

/* Tells of intervals up to @seconds, if they are wanted. */
void stat_tick(struct stat_report *report, double seconds);
/* After the last look: fills in what the report says. */
void stat_finish(struct stat_report *report);
void stat_drop(struct stat_report *report);

/* ------------------------------------------------------------------- running.c */

/* The processes that @pid, -p's value, or the name @name means: 0, or an error. */
int running_find(struct stat_report *report, const char *pid, const char *name);
/* Looks at them for report->seconds: 0, or an error. */
int running_watch(struct stat_report *report);

/* ------------------------------------------------------------------- judge.c */

/* False: there are no records, or too little was read. */
bool stat_count(const struct stat_sample *from, const struct stat_sample *to,
		struct stat_counts *c);

/* "31.0 to 44.2%": one value if both are the same within 2% of them. */
const char *stat_share(char text[48], double least, double most);
/* The same of other values, with @to between them and @unit behind them. */
const char *stat_range(char text[48], double least, double most, const char *to,
		       const char *unit);

struct stat_verdict {
	const char *verdict, *advice;	/* @advice: NULL none */
	double least, most;		/* of the time of all rows, the GPU was busy */
	char why[512];
};

void stat_judge(const struct stat_report *report, struct stat_verdict *verdict);

/* ------------------------------------------------------------------- show.c */

/* A line, or a JSON object, of what @row did since the one before. */
void stat_interval(const struct stat_report *report, struct stat_row *row, double seconds);
/* The whole report, text or JSON, into @out: 0, or an error. */
int stat_show(struct out *out, const struct stat_report *report);

#endif
