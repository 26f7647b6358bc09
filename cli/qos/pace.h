/* SPDX-License-Identifier: MIT */
/*
 * What one that reports its work has done, and how far the piece is that was begun and not told
 * yet, from when the last one was and how long those before it took: an epoch's end is no reason
 * to count one more or less.
 */
#ifndef GPUPART_CLI_QOS_PACE_H
#define GPUPART_CLI_QOS_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing was told yet. Work is in thousandths of a unit. */
struct pace {
	uint64_t told_ns;	/* the last report */
	uint64_t each_ns;	/* between two; 0 not known */
	uint64_t each;		/* work that one report tells of */
	uint64_t told;		/* since the last take */
	uint64_t ahead;		/* counted before it was told: what is told pays for it first */
	uint64_t part;		/* under way at the last take */
	uint64_t owed;		/* done before it was forgotten, and in no take */
	bool known;		/* at the last take, how far it was */
	bool begun;		/* the pace was known before */
};

/* Programs say what they like: more than there can be is as much as there can be. */
uint64_t pace_add(uint64_t a, uint64_t b);

/* A counter that went back tells nothing. */
static inline uint64_t pace_more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* @reports came, the last of them at @told_ns, of @work together. */
void pace_told(struct pace *pace, uint64_t work, uint64_t reports, uint64_t told_ns);

/*
 * What is done at @now_ns and not told: never more than a report tells of; 0 where it is not
 * known, and where the next report is so late that there may be none.
 */
uint64_t pace_part(const struct pace *pace, uint64_t now_ns);

/*
 * The work since the last take or pace_forget(), nothing lost and nothing twice. @any: somebody
 * of the same tenant told some; else there is no work, and what is under way counts when it is
 * told. *exact becomes false where how far this one was is not known, then or now.
 */
uint64_t pace_take(struct pace *pace, uint64_t now_ns, bool any, bool *exact);

/* What was done since the last take does not count; what no take has counted before still does. */
void pace_forget(struct pace *pace, uint64_t now_ns);

/* Of one that ended: what it told and nobody has taken. */
uint64_t pace_rest(const struct pace *pace);

#endif
