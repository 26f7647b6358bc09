/* SPDX-License-Identifier: MIT */
/*
 * 'gpupart run' prints this report after its program has ended. The report lists the launches that
 * were not confined, and the reasons.
 */
#ifndef GPUPART_CLI_START_RUN_REPORT_H
#define GPUPART_CLI_START_RUN_REPORT_H

#include "lib/private.h"
#include "cli/start/witness.h"
#include "cli/target/args.h"

/*
 * Returns true if a launch of @process was not confined, or if the launches of @process could not
 * be refused.
 */
bool run_report_breach(const struct gpupart_report_process *process);

enum run_report_found { RUN_REPORT_ABSENT, RUN_REPORT_UNKNOWN, RUN_REPORT_PRESENT };

/*
 * Returns whether process @p is in @report. If an entry from another pid or time namespace may be
 * @p, the result is unknown. If the start time of @p cannot be read, the result is unknown, too.
 */
enum run_report_found run_report_find(const struct gpupart_report *report,
				      const struct process *p);

/*
 * Some processes could not be examined. Prints these processes on stderr, except for processes in
 * @report.
 */
void run_report_say_hidden(const struct gpupart_report *report, const struct witness *witness,
			   bool simulated);

/* Prints the report on stderr. If all launches were confined, prints nothing. */
void run_report_say(const struct gpupart_report *report, const struct witness *witness,
		    const struct args *args);

#endif
