/* SPDX-License-Identifier: MIT */
/*
 * Estimates how much of a unit of work a tenant has done since its last report. With the estimate,
 * each unit that crosses the end of an epoch counts exactly once. The estimate uses the time of
 * the last report and the time between reports.
 */
#ifndef GPUPART_CLI_QOS_PACE_H
#define GPUPART_CLI_QOS_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* The caller zeroes this struct first. Work is in thousandths of a unit. */
struct pace {
	uint64_t reported_ns;	/* time of the last report */
	uint64_t each_ns;	/* time between two reports; 0: not known */
	uint64_t each;		/* work of one report */
	uint64_t told;		/* work reported since the last take */
	uint64_t ahead;	/* work counted before its report; later reports are reduced by it */
	uint64_t part;		/* at the last take: work that had begun but was not reported */
	uint64_t owed;		/* work that was done before pace_discard() and that no take has
				 * counted */
	bool known;		/* at the last take, the estimate was possible */
	bool begun;		/* the time between reports was already known */
};

/* Returns a + b, or the largest value on overflow: a program may report any number. */
uint64_t pace_add(uint64_t a, uint64_t b);

/* Returns the increase of a counter, or 0 if it decreased. */
static inline uint64_t pace_increase(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Adds @reports reports with the total work @work. The last report came at @reported_ns. */
void pace_report(struct pace *pace, uint64_t work, uint64_t reports, uint64_t reported_ns);

/*
 * Returns the work that the tenant has done until @now_ns but not reported: at most the work of
 * one report. Returns 0 if it cannot be estimated, or if the next report is so late that it may
 * never come.
 */
uint64_t pace_part(const struct pace *pace, uint64_t now_ns);

/*
 * Returns the work since the last take or pace_discard(). Each unit counts exactly once. @any is
 * false if the tenant reported nothing. Then the function returns no work, and a unit that has
 * begun counts when it is reported. Sets *exact to false if unreported work could not be
 * estimated, now or at the last take.
 */
uint64_t pace_take(struct pace *pace, uint64_t now_ns, bool any, bool *exact);

/* Discards the work since the last take. Work that no earlier take has counted is kept. */
void pace_discard(struct pace *pace, uint64_t now_ns);

/* Returns the reported work of a program that has ended, if no take has counted it. */
uint64_t pace_remaining(const struct pace *pace);

#endif
