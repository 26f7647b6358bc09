/* SPDX-License-Identifier: MIT */
/* `gpupart run --lend` and `--depth`: their options, and the process that watches the lender. */
#ifndef GPUPART_CLI_START_LEND_H
#define GPUPART_CLI_START_LEND_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/private.h"

struct args;

struct lend_wishes {
	const char *job, *limit, *depth;	/* option values, or NULL */
	uint64_t limit_ns, depth_ns;		/* 0 if not given */
};

/* Checks the options. @name: the run's own, may be NULL; @exec: --exec. Returns 0 or an error. */
int lend_check(struct lend_wishes *wishes, const char *name, bool exec);

static inline bool lend_is_asked(const struct lend_wishes *wishes)
{
	return wishes->depth_ns;
}

/* Stores the bounds in @report, which the program reads. Call it before the program starts. */
void lend_prepare(const struct lend_wishes *wishes, struct gpupart_report *report);

/*
 * Starts a process that watches the lender and prints on stderr why nothing is lent. It ends with
 * this one. @id identifies @report. The caller has blocked all signals.
 */
void lend_watch(struct args *args, const struct lend_wishes *wishes,
		struct gpupart_report *report, const char *id);

/* Prints on stderr, at the end, how many launches used lent TPCs. */
void lend_say(const struct lend_wishes *wishes, const struct gpupart_report *report,
	      bool simulated);

#endif
