/* SPDX-License-Identifier: MIT */
/* What a controller writes while it runs: its log, lines, table and picture. */
#ifndef GPUPART_CLI_QOS_RESULTS_H
#define GPUPART_CLI_QOS_RESULTS_H

#include "pump.h"
#include "qos.h"

/* Of --log or -o. */
struct qos_result {
	const char *option, *path;	/* path NULL: not asked for */
	FILE *file;
	bool made;			/* by us: it was not there */
};

/* All zero: nothing is open. */
struct qos_results {
	const struct args *args;
	struct qos_session *session;
	struct qos_result log, output;
	struct out out;			/* where the result goes; file NULL: none is asked for */
	struct pump *log_pump, *lines_pump, *shown_pump;
};

/*
 * Opens what is asked for, and leaves in it what is in it: nobody knows yet whether anything
 * comes of it. Refuses one that stdout is, too, or that another controller writes. -1, or a status.
 */
int qos_results_open(struct qos_results *results, const struct args *args,
		     const struct qos_options *options, struct qos_session *session);

/*
 * Empties them and begins the log. From here on no writing holds the caller up. -1 or a status.
 */
int qos_results_begin(struct qos_results *results);

/* Where what is decided is shown; NULL: nowhere, or who looks is still busy with the last. */
FILE *qos_results_shown(struct qos_results *results, bool whole);

/* The summary or the picture, where one is asked for, and all is written: -1 or a status. */
int qos_results_end(struct qos_results *results);

/* What was not begun is as it was before. */
void qos_results_close(struct qos_results *results);

#endif
