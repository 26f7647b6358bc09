/* SPDX-License-Identifier: MIT */
/* What run says at the end of its program: what was not confined, and what would be. */
#ifndef GPUPART_CLI_START_RUN_REPORT_H
#define GPUPART_CLI_START_RUN_REPORT_H

#include "lib/private.h"
#include "cli/start/witness.h"
#include "cli/target/args.h"

/* Whether a launch of @process was not confined, or cannot be kept from it. */
bool run_report_breach(const struct gpupart_report_process *process);

enum run_report_found { RUN_REPORT_ABSENT, RUN_REPORT_UNKNOWN, RUN_REPORT_PRESENT };

/*
 * Whether process @p is one of those in @report. Unknown: one that may be it is of another pid or
 * time namespace, or its start time cannot be read.
 */
enum run_report_found run_report_find(const struct gpupart_report *report,
				      const struct process *p);

/* Writes to stderr which processes could not be looked into, if they are not in @report either. */
void run_report_say_hidden(const struct gpupart_report *report, const struct witness *witness,
			   bool simulated);

/* Writes it to stderr; nothing where all was confined. */
void run_report_say(const struct gpupart_report *report, const struct witness *witness,
		    const struct args *args);

#endif
