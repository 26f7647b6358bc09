/* SPDX-License-Identifier: MIT */
/*
 * Estimates the work of a tenant between two of its reports, so that the end of an epoch
 * neither loses a unit of work nor counts it twice. The estimate uses the time of the last
 * report and the time between reports.
 */
#ifndef GPUPART_CLI_QOS_PACE_H
#define GPUPART_CLI_QOS_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. Work is in thousandths of a unit. */
struct pace {
	uint64_t reported_ns;	/* time of the last report */
	uint64_t each_ns;	/* time between two reports; 0: not known */
	uint64_t each;		/* work of one report */
	uint64_t told;		/* reported since the last take */
	uint64_t ahead;	/* counted before it was reported; later reports are reduced by it */
	uint64_t part;		/* begun but not reported at the last take */
	uint64_t owed;		/* done before pace_discard(), and not in any take */
	bool known;		/* the estimate was possible at the last take */
	bool begun;		/* the time between reports was known before */
};

/* a + b, or the largest value: a program may report any number. */
uint64_t pace_add(uint64_t a, uint64_t b);

/* The increase of a counter; 0 if it decreased. */
static inline uint64_t pace_increase(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Adds @reports, which came with @work together. The last one came at @reported_ns. */
void pace_report(struct pace *pace, uint64_t work, uint64_t reports, uint64_t reported_ns);

/*
 * The work done by @now_ns and not reported yet: at most that of one report. 0 if it cannot be
 * estimated, or if the next report is so late that there may be none.
 */
uint64_t pace_part(const struct pace *pace, uint64_t now_ns);

/*
 * Returns the work since the last take or pace_discard(); each unit counts exactly once. If @any
 * is false the tenant reported nothing: there is no work, and what is begun counts when it is
 * reported. Sets *exact to false if unreported work could not be estimated, now or at the last
 * take.
 */
uint64_t pace_take(struct pace *pace, uint64_t now_ns, bool any, bool *exact);

/* Discards the work since the last take. Work that no earlier take has counted is kept. */
void pace_discard(struct pace *pace, uint64_t now_ns);

/* For a program that ended: reported work that no take has counted. */
uint64_t pace_remaining(const struct pace *pace);

#endif
