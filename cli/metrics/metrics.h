/* SPDX-License-Identifier: MIT */
/* Collects metrics of jobs and GPUs for Prometheus, keeps their totals and prints them. */
#ifndef GPUPART_CLI_METRICS_METRICS_H
#define GPUPART_CLI_METRICS_METRICS_H

#include "cli/target/model.h"

enum metric {
	/*
	 * These are counters. If the first counter decreases, a new process has the pid of an ended
	 * process.
	 */
	METRIC_LAUNCHES, METRIC_OUTSIDE, METRIC_UNRECORDED, METRIC_BUSY, METRIC_NR_COUNTERS,
	METRIC_PROCESSES = METRIC_NR_COUNTERS, METRIC_SET_TPCS, METRIC_MEMORY, METRIC_QUOTA,
	METRIC_SCORE, METRIC_GOAL_MET, METRIC_LENT_TPCS,
	/* The run itself has these counters while it exists. */
	METRIC_LENT, METRIC_WAITED, METRIC_NR
};

/* A job on a GPU. Strings may contain any bytes. The strings @job and @pci are single words. */
struct metrics_row {
	unsigned int uid;
	char job[GPUPART_JOB_STRLEN], pci[20];	/* with @uid: the key of the row */
	/* The model owns these strings; @uuid and @lender may be NULL. */
	const char *name, *user, *uuid, *lender;
	struct cgroup_ids ids;
	double values[METRIC_NR];		/* NAN: not known */
};

/* The caller zeroes this struct, and then calls model_begin() for @model. */
struct metrics {
	struct model model;
	struct metrics_row *rows;
	unsigned int nr;
};

/*
 * Replaces the rows of @metrics by the rows of the running jobs. For @age, see model_take().
 * Returns 0 or an error.
 */
int metrics_collect(struct metrics *metrics, int age);

/*
 * Returns the metrics as text, which the caller frees. If @openmetrics is true, the format is
 * OpenMetrics. Otherwise it is the text format of Prometheus.
 */
char *metrics_text(const struct metrics *metrics, bool openmetrics);

/*
 * @before is the previous text. If a job's counter is below its value in @before, raises the
 * counter to this value. So a loss of the totals does not decrease the counters.
 */
void metrics_raise(struct metrics *metrics, const char *before);

/*
 * totals.c keeps the counters of a job's ended processes. An update calls metrics_totals_add()
 * for each process of each row, then metrics_totals_end() once, then metrics_totals_sum() for
 * each row.
 */
void metrics_totals_add(const struct metrics_row *row, int pid, const double *counters);
void metrics_totals_end(void);
void metrics_totals_sum(struct metrics_row *row);
/* Adds @more to @counter of @row, in this update and in all later updates. */
void metrics_totals_raise(struct metrics_row *row, int counter, double more);
/*
 * Read the totals from a file, and write the totals to a file. So several processes can update the
 * totals one after the other. Return 0 or -errno. If another user could have written the file,
 * metrics_totals_read() returns -EPERM. It ignores invalid lines, and returns the line number of
 * the first invalid line.
 */
int metrics_totals_read(const char *path);
int metrics_totals_write(const char *path);
/*
 * If another user could have written the file, does not open it. Returns a stream. On an error,
 * sets errno and returns NULL.
 */
FILE *metrics_open(const char *path);

/*
 * The library METRICS_HTTP has this function and no other. No other library is linked with
 * libmicrohttpd. Serves HTTP on the listening socket @fd until SIGTERM or SIGINT. Calls @text for
 * each request. @text returns the metrics. If the metrics cannot be read, @text returns NULL. Calls
 * @look at least once a second. Several threads may call @text and @look. Returns 0 or -errno.
 */
#define METRICS_HTTP	"libgpupart-http.so"
typedef int metrics_serve(int fd, char *(*text)(bool openmetrics), void (*look)(void));
metrics_serve gpupart_metrics_serve;

#endif
