/* SPDX-License-Identifier: MIT */
/*
 * The options of `gpupart run --lend` and `--depth`, and the process that watches the lender.
 * `gpupart qos run` uses the same process.
 */
#ifndef GPUPART_CLI_START_LEND_H
#define GPUPART_CLI_START_LEND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/private.h"

struct args;

/*
 * The controller sets this limit in memory that it shares with the watcher. If it is 0, nothing is
 * lent. The limit expires at the time @until_ns of process_now_ns(), because the controller may be
 * stopped. The controller sets @until_ns first.
 */
struct lend_orders {
	_Atomic uint64_t limit_ns, until_ns;
};

struct lend_wishes {
	const char *job, *limit, *depth, *weight;	/* option values, or NULL */
	/*
	 * If @limit_ns is 0, the limit is the slack of the lender's goal. If @depth_ns is 0, there
	 * is no bound.
	 */
	uint64_t limit_ns, depth_ns;
	unsigned int nr_weight;			/* 0 means 1 */
	const struct lend_orders *orders;	/* orders that replace @limit_ns, or NULL */
	const char *borrower;			/* the tenant, for messages; NULL: `run --lend` */
};

/*
 * Checks the options. If the run has a name, it is @name. If --exec was given, @exec is true.
 * Returns 0 or an error.
 */
int lend_check(struct lend_wishes *wishes, const char *name, bool exec);

static inline bool lend_is_asked(const struct lend_wishes *wishes)
{
	return wishes->depth_ns;
}

/*
 * Stores the bounds in @report, which the program reads. Call this function before the program
 * starts.
 */
void lend_prepare(const struct lend_wishes *wishes, struct gpupart_report *report);

/*
 * Starts a process that watches the lender. If nothing is lent, the new process prints the reason
 * on stderr. It ends when this process ends. The id of @report is @id. The caller must block the
 * signals that it handles itself before the call. Returns the pid of the new process. If there is
 * no such process, returns 0.
 */
pid_t lend_watch(struct args *args, const struct lend_wishes *wishes,
		struct gpupart_report *report, const char *id);

/*
 * Prints on stderr how many launches used lent TPCs. Called at the end of the run with the report
 * @id.
 */
void lend_say(const struct lend_wishes *wishes, const char *id, bool simulated);

#endif
