/* SPDX-License-Identifier: MIT */
/*
 * The report of `gpupart stat`. It is made from completion records, which the GPU writes for each
 * launch. One thread.
 */
#ifndef GPUPART_CLI_STAT_STAT_H
#define GPUPART_CLI_STAT_STAT_H

#include <jansson.h>
#include "cli/target/args.h"
#include "cli/util/out.h"
#include "lib/private.h"

struct stat_sample {
	uint64_t at_ns, cpu_ns;		/* time of CLOCK_MONOTONIC; CPU time of all threads */
	struct gpupart_records records;
	struct gpupart_records_watched watched;
};

/* A process on one GPU. */
struct stat_row {
	struct gpupart_process process;
	struct gpupart_records_reader *reader;
	/* @reported: the sample of the last line of --interval */
	struct stat_sample first, reported, last;
	bool ended;
	/*
	 * @looks counts all samples. The members after @looks are about outstanding launches. They
	 * use the samples since the first launch.
	 */
	uint64_t due_ns, looks, outstanding_looks, outstanding_sum, outstanding_max;
};

/* Additional results for `gpupart stat PROGRAM`. */
struct stat_program {
	char **argv;
	int status;		/* the exit status of the command */
	int signal;		/* the signal that ended the command, or 0 */
	double seconds;
	const char *set;	/* the set of the command in list form, or NULL */
	struct gpupart_tpcset tpcs;		/* the TPCs of the set; empty: no set */
	struct gpupart_stat_process sum;	/* the counts of all processes of the command */
	/* number of processes that called CUDA; number of these processes without a row */
	unsigned int nr_processes, nr_lost;
};

struct stat_report {
	const struct args *args;
	bool simulated;
	struct stat_row *rows;
	unsigned int nr_rows;
	double seconds, interval;	/* @interval 0: print no lines */
	double next;			/* time of the next line of --interval */
	json_t *intervals;
	const struct stat_program *program;	/* NULL: the processes already ran before the
						 * report */
};

/* Differences between two samples. */
struct stat_counts {
	unsigned long long launches, ended, graphs, unrecorded;
	double seconds, least, most, cpus;
};

/* ------------------------------------------------------------------- watch.c */

/* Adds processes on GPUs. Returns the same values as gpupart_records_open(). */
int stat_add(struct stat_report *report, const struct gpupart_process *process);

/*
 * Samples all rows that are due. If @all is true, samples all rows. Sets *left to the number of
 * running processes, and *due_ns to the time of the next sample. Returns 0 or an exit status.
 */
int stat_sample_due(struct stat_report *report, bool all, unsigned int *left, uint64_t *due_ns);

/* Prints the lines of --interval that are due at @seconds. */
void stat_print_intervals(struct stat_report *report, double seconds);
/* Completes the report after the last sample. */
void stat_finish(struct stat_report *report);
void stat_drop(struct stat_report *report);

/* ------------------------------------------------------------------- running.c */

/* Finds the processes of @pid or of @name. The value of -p is @pid. Returns 0 or an exit status. */
int running_find(struct stat_report *report, const char *pid, const char *name);
/* Samples the found processes for report->seconds. Returns 0 or an exit status. */
int running_watch(struct stat_report *report);

/* ------------------------------------------------------------------- judge.c */

/* If there are no records or not enough samples, returns false. */
bool stat_count(const struct stat_sample *from, const struct stat_sample *to,
		struct stat_counts *c);

/*
 * Formats two shares as "31.0 to 44.2%". If the shares differ by less than 2%, formats only
 * their mean.
 */
const char *stat_share(char text[48], double least, double most);
/*
 * Formats two other values like stat_share(). The text between the values is @to. The text after
 * the values is @unit.
 */
const char *stat_range(char text[48], double least, double most, const char *to,
		       const char *unit);

struct stat_verdict {
	const char *verdict, *advice;	/* @advice is NULL if there is no advice */
	double least, most;	/* busy time of the GPU, divided by the time of all rows */
	char why[512];
};

void stat_judge(const struct stat_report *report, struct stat_verdict *verdict);

/* ------------------------------------------------------------------- show.c */

/* Prints a line or a JSON object about @row. It covers the time since the previous line. */
void stat_interval(const struct stat_report *report, struct stat_row *row, double seconds);
/* Prints the whole report, as text or JSON. Returns 0 or an exit status. */
int stat_show(struct out *out, const struct stat_report *report);

#endif
