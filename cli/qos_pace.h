/* SPDX-License-Identifier: MIT */
/*
 * How far the piece of work is that was begun and not told yet, from when the last one was and
 * how long those before it took: an epoch's end is no reason to count one more or less.
 */
#ifndef GPUPART_CLI_QOS_PACE_H
#define GPUPART_CLI_QOS_PACE_H

#include <stdint.h>

/* All zero: nothing was told yet. */
struct pace {
	uint64_t told_ns;	/* the last report */
	uint64_t each_ns;	/* between two; 0 not known */
	uint64_t each_milli;	/* thousandths of a unit that one report tells of */
};

/* @reports came, the last of them at @told_ns, of @milli thousandths of a unit together. */
void pace_told(struct pace *pace, uint64_t milli, uint64_t reports, uint64_t told_ns);

/*
 * Thousandths of a unit that are done at @now_ns and not told: never more than a report tells
 * of; 0 where it is not known, and where the next report is so late that there may be none.
 */
uint64_t pace_part(const struct pace *pace, uint64_t now_ns);

#endif
