/* SPDX-License-Identifier: MIT */
/*
 * The insides of the policy: what is remembered of each tenant. Shared by the files of this
 * folder; knows no clock, no process and no file.
 */
#ifndef GPUPART_CLI_QOS_POLICY_INTERNAL_H
#define GPUPART_CLI_QOS_POLICY_INTERNAL_H

#include <string.h>
#include "cli/qos/policy/gpupart_qos.h"

#define QOS_SCORE_MOST	1000000u
#define QOS_CALM	20u	/* epochs between changes that nothing calls for */
#define QOS_FRESH	4u	/* epochs after its begin, or that of another load */
#define QOS_PATIENT	256u	/* epochs: the longest that a lowering waits */
#define QOS_UNITS	16u	/* fewer are no measure of a speed */
#define QOS_RETRY	60u	/* epochs after which a class is looked at again, at first */
#define QOS_KEEP	600u	/* epochs that a count is kept which a load that came back needed */

/* What was seen since the plan changed last. */
struct qos_window {
	unsigned int nr;		/* epochs with a signal */
	unsigned int misses;
	uint32_t worst, mean;		/* scores */
};

/* A series of raises, to see whether they help. */
struct qos_raise {
	unsigned int first;		/* TPCs before the first */
	unsigned int from;		/* .. before those that are looked at; 0: there are none */
	uint32_t score;			/* then */
	unsigned int fruitless;		/* times that it did not */
};

struct qos_actor {
	struct qos_tenant t;
	unsigned int least, most;	/* TPCs */
	unsigned int guarantee;		/* those of its first allocation */

	unsigned int nr;		/* TPCs that it has, @coming included */
	struct gpupart_tpcset set, coming;
	uint64_t pending_since;
	uint32_t had[GPUPART_MAX_TPCS];	/* 1 + the epoch in which it had that TPC last; 0 never */

	enum qos_state state;
	bool shared;			/* what it adopted was others' too */
	bool begun;			/* it made progress once */
	unsigned int disturbed;		/* epochs in a row in which its set was another one */
	unsigned int silent;		/* epochs without a signal */
	uint64_t carried_ns;		/* of epochs in which a counter stood still */
	uint64_t quantum, unit_ns;	/* what is told at once: thousandths; the time of one */
	unsigned __int128 gathered;	/* work with these TPCs, until it is enough to tell */
	uint64_t gathered_ns;
	uint64_t took_ns;		/* its last epoch of which there was a signal */
	bool exact;			/* parts of units are measured */
	bool moved;			/* its TPCs changed before this epoch */
	uint64_t speed;
	uint32_t score;
	unsigned __int128 sum;		/* of all scores, each by its time or requests */
	uint64_t sum_weight;

	struct qos_window window;
	uint32_t noise;			/* mean distance of scores from their mean, thousandths */
	uint32_t noise_was;		/* .. without the last epoch */
	uint32_t dip;			/* the most that a score was below the mean, of this load */
	unsigned int fresh;		/* epochs left in which what is known of it is new */
	unsigned int patience;		/* epochs that a lowering waits */
	unsigned int failed_at;		/* TPCs with which the goal was missed; 0 none */
	bool lowered;			/* the last change of its share was one downwards */
	unsigned int stood;		/* epochs with these TPCs */
	unsigned int had_nr;		/* TPCs with which it stood before it was lowered; 0 none */
	unsigned int keep, keep_for;	/* TPCs that a load needs which comes back; epochs left */
	struct qos_raise raise;
	bool tried;			/* with fewer TPCs, to see what that does */
	bool deaf;			/* more TPCs do not help */
	uint64_t beyond;		/* 1 + the last epoch in which all TPCs were not enough */
	unsigned int wait_stuck;	/* epochs left in which nothing is tried */

	/* Speed (latency: score) by TPCs, for each shape; 0 not seen. @curve: of the shape now. */
	uint64_t curves[QOS_SHAPES][GPUPART_MAX_TPCS + 1], *curve;
	enum qos_shape shape, was;	/* that it has; before it changed */
	enum qos_shape base, best, trying;	/* of trials: the first; the fastest; that of now */
	uint32_t noise_before, dip_before;
	unsigned int fresh_before;
	unsigned int tried_shapes;	/* bits; 0 none */
	unsigned int tried_nr;		/* TPCs with which they were */
	unsigned int trial;		/* epochs that a trial of @shape has lasted; 0 none */
	unsigned int wait_shapes, next_shapes;	/* epochs until they are tried; after a vain try */
	/* The most TPCs with which some of them in others' GPCs made it slower; 0 none. */
	unsigned int edge, nr_edges;
	bool forgot;			/* in this epoch: its load has changed */
	unsigned int strange;		/* epochs in a row that the curve does not explain */
	enum qos_class class;
	unsigned int optimum;
	unsigned int no_memory;		/* epochs in which it is not taken for memory-intensive */
	unsigned int at_optimum, retry;	/* epochs there; after which a few TPCs more are tried */
	unsigned int probe;		/* most TPCs in such a try; 0 none */
	unsigned int ramp;		/* of best effort: quarters of its share, 1, 2 or 4 */
	unsigned int next_ramp;		/* epochs until it may be tried again */
	unsigned int press;		/* most TPCs, for the sake of a guarantee; 0 none */

	char why[QOS_WHY];
};

struct qos_policy {
	struct qos_board board;
	struct qos_rules rules;
	unsigned int nr;
	unsigned int order[QOS_MAX_TENANTS];	/* actors[i] is tenant order[i] of the caller's */
	struct qos_actor actors[QOS_MAX_TENANTS];	/* guaranteed ones first */
	uint64_t epoch;
	bool swapping;
	unsigned int relay;			/* 1 + the actor that is laid out anew; 0 none */
	bool growing;				/* best effort will have more in the next epoch */
	uint8_t drains[GPUPART_MAX_TPCS];	/* 1 + the actor whose blocks may be on that TPC */
	struct gpupart_tpcset held, shared;	/* others': not to be given; given all the same */
	struct gpupart_tpcset told;		/* others', as it was said last */
	unsigned int calm;			/* epochs since the last change */
	unsigned int wants[QOS_MAX_TENANTS];	/* what guaranteed ones ask for */
	char words[QOS_WORDS];
};

static inline unsigned int least_of(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* @a times @b / @c; speeds may be as large as 64 bits are, @a a sum of some, @b less then. */
static inline uint64_t qos_times(unsigned __int128 a, uint64_t b, uint64_t c)
{
	unsigned __int128 product = a * b / (c ? c : 1);

	return product > INT64_MAX ? INT64_MAX : product;
}

static inline unsigned int most_of(unsigned int a, unsigned int b)
{
	return a > b ? a : b;
}

static inline bool qos_guaranteed(const struct qos_actor *a)
{
	return a->t.goal != QOS_BEST_EFFORT;
}

/* No signal counts for it: it gets what it is due, and is no reason for anything. */
static inline bool qos_unheard(const struct qos_actor *a)
{
	return a->state == QOS_WAITING || a->state == QOS_LOST || a->state == QOS_GONE;
}

__attribute__((format(printf, 2, 3)))
void qos_why(struct qos_actor *a, const char *fmt, ...);
/* Adds a sentence to the policy's words. */
__attribute__((format(printf, 2, 3)))
void qos_say(struct qos_policy *p, const char *fmt, ...);

/* TPCs that are tenants' to have. */
static inline unsigned int qos_free(const struct qos_policy *p)
{
	return p->board.nr_tpcs - gpupart_tpcset_count(&p->held);
}

/* progress.c: takes what was measured; sets state, score, window, curve, class. */
void qos_take(struct qos_policy *p, struct qos_actor *a, const struct qos_measured *m);
/* The score that a lowering or a raise aims at. */
uint32_t qos_target(const struct qos_policy *p, const struct qos_actor *a);
/* Whether best effort has less than its share, for now: it will take more of all else soon. */
bool qos_ramping(const struct qos_policy *p);
/* How speed answers to TPCs: thousandths of one-to-one. False: not seen. */
bool qos_answer(const struct qos_actor *a, int *answer);

/* others.c: which TPCs of others nobody is given, and which are shared for the floors. */
void qos_find_held(struct qos_policy *p);
/* Whether others have come to its TPCs since that was told last. */
bool qos_came_to(const struct qos_policy *p, const struct qos_actor *a);
/* What came and went since then, in words. */
void qos_tell_held(struct qos_policy *p);

/*
 * shape.c: begins, goes on with and ends trials of shapes. True: one is under way, for which
 * all keep as many TPCs as they have.
 */
bool qos_try_shapes(struct qos_policy *p);

/* curve.c: points each curve to that of the shape that a set has, by its own or others'. */
void qos_choose_curves(struct qos_policy *p);
/* What was learnt with another load or beside another neighbour. */
void qos_forget_shapes(struct qos_actor *a);
/* Its TPCs in GPCs of which no other tenant has any. */
unsigned int qos_alone(const struct qos_policy *p, const struct qos_actor *a);
/* Whether TPCs in others' GPCs are why @value is less than fewer TPCs let expect. */
bool qos_find_edge(const struct qos_policy *p, struct qos_actor *a, uint64_t value, uint64_t room);

/* guarantee.c: the TPCs that a guaranteed tenant asks for. */
unsigned int qos_want(struct qos_policy *p, struct qos_actor *a);

/* effort.c: @rest TPCs among best effort; 0 .. of each in @counts. Presses and ramps. */
void qos_press(struct qos_policy *p);
void qos_share(struct qos_policy *p, unsigned int rest, unsigned int *counts);
/*
 * @rest TPCs dealt one by one to actors @from .. @to - 1, each to the one with the least for
 * its weight that has not its @most yet.
 */
void qos_deal(const struct qos_policy *p, unsigned int from, unsigned int to, unsigned int rest,
	      const unsigned int *most, unsigned int *counts);

/* place.c: which TPCs make these counts; begins the swaps. */
void qos_place(struct qos_policy *p, const unsigned int *counts);
/* TPCs of those who drained go where they are awaited. */
void qos_hand_over(struct qos_policy *p, const bool *drained);

#endif
