/* SPDX-License-Identifier: MIT */
/*
 * Estimates how much of a unit of work a tenant has done since its last report. If a unit crosses
 * the end of an epoch, the estimate makes it count exactly once. The estimate uses the time of the
 * last report and the time between reports.
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
	uint64_t reported;		/* work reported since the last take */
	uint64_t ahead;	/* work counted before its report; it is subtracted from later reports */
	uint64_t part;		/* at the last take: work that had begun but was not reported */
	uint64_t owed;		/* uncounted work from before pace_discard() */
	bool known;		/* at the last take, the estimate was possible */
	bool begun;		/* the time between reports was already known */
};

/*
 * Returns a + b. On overflow, returns the largest value, because a program may report any number.
 */
uint64_t pace_add(uint64_t a, uint64_t b);

/* Returns the increase of a counter. If the counter decreased, returns 0. */
static inline uint64_t pace_increase(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Adds @reports reports with the total work @work. The last report came at @reported_ns. */
void pace_report(struct pace *pace, uint64_t work, uint64_t reports, uint64_t reported_ns);

/*
 * Returns the unreported work of the tenant at @now_ns, which is at most the work of one report. If
 * this work cannot be estimated, or if the next report may never come, returns 0.
 */
uint64_t pace_part(const struct pace *pace, uint64_t now_ns);

/*
 * Returns the work since the last take or pace_discard(). Each unit counts exactly once. If the
 * tenant reported nothing, @any is false. Then this function returns 0, and a unit that has begun
 * counts when it is reported. If unreported work could not be estimated now or at the last take,
 * sets *exact to false.
 */
uint64_t pace_take(struct pace *pace, uint64_t now_ns, bool any, bool *exact);

/* Discards the work since the last take. Keeps earlier work that no take has counted. */
void pace_discard(struct pace *pace, uint64_t now_ns);

/* Returns the reported work of an ended program that no take has counted. */
uint64_t pace_remaining(const struct pace *pace);

#endif
