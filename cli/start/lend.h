/* SPDX-License-Identifier: MIT */
/* `gpupart run --lend` and `--depth`: what is asked for, and the process that watches who lends. */
#ifndef GPUPART_CLI_START_LEND_H
#define GPUPART_CLI_START_LEND_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/private.h"

struct args;

struct lend_wishes {
	const char *job, *limit, *depth;	/* as they were given, or NULL */
	uint64_t limit_ns, depth_ns;		/* 0: none */
};

/* @name: of the run itself, may be NULL; @exec: it is to have no parent. 0, or an error. */
int lend_check(struct lend_wishes *wishes, const char *name, bool exec);

static inline bool lend_is_asked(const struct lend_wishes *wishes)
{
	return wishes->depth_ns;
}

/* Before the program is there, in whose report it finds the bounds. */
void lend_prepare(const struct lend_wishes *wishes, struct gpupart_report *report);

/*
 * Starts a process that watches the job that lends, and says on stderr why nothing is lent. It
 * ends with this one. @id: of @report. All signals are blocked.
 */
void lend_watch(struct args *args, const struct lend_wishes *wishes,
		struct gpupart_report *report, const char *id);

/* At the end, on stderr. */
void lend_say(const struct lend_wishes *wishes, const struct gpupart_report *report,
	      bool simulated);

#endif
