/* SPDX-License-Identifier: MIT */
/* Collects metrics of jobs and GPUs for Prometheus, keeps their totals and prints them. */
#ifndef GPUPART_CLI_METRICS_METRICS_H
#define GPUPART_CLI_METRICS_METRICS_H

#include "cli/target/model.h"

enum metric {
	/* Counters. The first: a smaller number of it shows that a process is a new one. */
	METRIC_LAUNCHES, METRIC_OUTSIDE, METRIC_UNRECORDED, METRIC_BUSY, METRIC_NR_COUNTERS,
	METRIC_PROCESSES = METRIC_NR_COUNTERS, METRIC_SET_TPCS, METRIC_MEMORY, METRIC_QUOTA,
	METRIC_SCORE, METRIC_GOAL_MET, METRIC_NR
};

/* A job on a GPU. Texts can have any bytes; @job and @pci are one word each. */
struct metrics_row {
	unsigned int uid;
	char job[GPUPART_JOB_STRLEN], pci[20];	/* with @uid: the key of the row */
	const char *name, *user, *uuid;		/* of the model; @uuid may be NULL */
	struct cgroup_ids ids;
	double values[METRIC_NR];		/* NAN: not known */
};

/* Begins as all zero, with model_begin(). */
struct metrics {
	struct model model;
	struct metrics_row *rows;
	unsigned int nr;
};

/* Replaces @metrics by what runs now; @age as for model_take(): 0, or an error. */
int metrics_collect(struct metrics *metrics, int age);

/* As OpenMetrics, or else in Prometheus' own format. The caller frees it. */
char *metrics_text(const struct metrics *metrics, bool openmetrics);

/*
 * Raises the counters of jobs to those in @before, the last text that was written: after a loss of
 * totals they would be smaller.
 */
void metrics_raise(struct metrics *metrics, const char *before);

/*
 * totals.c keeps the counts of a job's ended processes. One look: metrics_totals_add() for each
 * process of a row, metrics_totals_end(), metrics_totals_sum() for each row.
 */
void metrics_totals_add(const struct metrics_row *row, int pid, const double *counters);
void metrics_totals_end(void);
void metrics_totals_sum(struct metrics_row *row);
/* Raises @counter of @row by @more, in this look and the next ones. */
void metrics_totals_raise(struct metrics_row *row, int counter, double more);
/*
 * From and to a file, for looks of several processes: 0 or -errno, -EPERM if another user could
 * have written it. Reading ignores bad lines, and returns the number of the first one.
 */
int metrics_totals_read(const char *path);
int metrics_totals_write(const char *path);
/* A file that only this user can have written: a stream, or NULL and errno. */
FILE *metrics_open(const char *path);

/*
 * The one function of METRICS_HTTP, the library that alone is linked with libmicrohttpd: serves on
 * @fd, which listens, until SIGTERM or SIGINT. @text is called for each request (NULL: nothing
 * could be read), @look at least once a second, by several threads. 0 or -errno.
 */
#define METRICS_HTTP	"libgpupart-http.so"
typedef int metrics_serve(int fd, char *(*text)(bool openmetrics), void (*look)(void));
metrics_serve gpupart_metrics_serve;

#endif
