/* SPDX-License-Identifier: MIT */
/*
 * Private data of the policy: what it remembers of each tenant. For the files of this folder.
 */
#ifndef GPUPART_CLI_QOS_POLICY_INTERNAL_H
#define GPUPART_CLI_QOS_POLICY_INTERNAL_H

#include <string.h>
#include "cli/qos/policy/gpupart_qos.h"

#define QOS_SCORE_MOST	1000000u
#define QOS_CALM	20u	/* epochs between changes that no miss requires */
#define QOS_FRESH	4u	/* epochs for which a tenant, or its load, counts as new */
#define QOS_PATIENT	256u	/* most epochs that a lowering waits */
#define QOS_UNITS	16u	/* fewest units of work from which a speed is computed */
#define QOS_RETRY	60u	/* epochs until a class is checked again, at first */
#define QOS_KEEP	600u	/* epochs to remember the count that a recurring load needed */

/* Measurements since the last change of the plan. */
struct qos_window {
	unsigned int nr;		/* epochs with a signal */
	unsigned int misses;
	uint32_t worst, mean;		/* scores */
};

/* A series of raises, to find out whether they help. */
struct qos_raise {
	unsigned int first;		/* TPCs before the first raise */
	unsigned int from;		/* .. before the raise that is examined; 0: none */
	uint32_t score;			/* then */
	unsigned int fruitless;		/* times that raises did not help */
};

struct qos_actor {
	struct qos_tenant t;
	unsigned int least, most;	/* TPCs */
	unsigned int guarantee;		/* TPCs of its first allocation */

	unsigned int nr;		/* its TPCs, @coming included */
	struct gpupart_tpcset set, coming;
	uint64_t pending_since;
	uint32_t had[GPUPART_MAX_TPCS];	/* 1 + the last epoch in which it had that TPC; 0: never */

	enum qos_state state;
	bool shared;			/* some TPCs that it adopted belong to others as well */
	bool begun;			/* it has made progress */
	unsigned int disturbed;	/* epochs in a row with another set than the decided one */
	unsigned int silent;		/* epochs without a signal */
	uint64_t carried_ns;		/* time of epochs in which the counter did not change */
	uint64_t quantum, unit_ns;	/* thousandths in one report; the time of one unit */
	unsigned __int128 gathered;	/* work with these TPCs, until it is enough for a speed */
	uint64_t gathered_ns;
	uint64_t took_ns;		/* length of its last epoch with a signal */
	bool exact;			/* partial units are measured */
	bool moved;			/* its TPCs changed before this epoch */
	uint64_t speed;
	uint32_t score;
	unsigned __int128 sum;		/* of all scores, weighted by time or requests */
	uint64_t sum_weight;

	struct qos_window window;
	uint32_t noise;	/* mean deviation of scores from their mean, thousandths */
	uint32_t noise_was;		/* .. without the last epoch */
	uint32_t dip;	/* the largest deviation below the mean, under this load */
	unsigned int fresh;		/* epochs left for which its load counts as new */
	unsigned int patience;		/* epochs that a lowering waits */
	unsigned int failed_at;		/* TPCs with which it missed its goal; 0: none */
	bool lowered;			/* its last change was a lowering */
	unsigned int stood;		/* epochs with these TPCs */
	unsigned int had_nr;		/* TPCs before it was lowered; 0: none */
	unsigned int keep, keep_for; /* TPCs that a recurring load needs; epochs to remember it */
	struct qos_raise raise;
	bool tried;			/* its TPCs were lowered to measure the effect */
	bool deaf;			/* more TPCs do not help */
	uint64_t beyond;	/* 1 + the last epoch in which all TPCs were not enough */
	unsigned int wait_stuck;	/* epochs left without another try */

	/*
	 * Speed (for a latency: score) by TPCs, for each shape; 0: not known. @curve: of the
	 * present shape.
	 */
	uint64_t curves[QOS_SHAPES][GPUPART_MAX_TPCS + 1], *curve;
	enum qos_shape shape, was;	/* present shape; shape before the last change */
	enum qos_shape base, best, trying; /* of trials: the first, the fastest, the present one */
	uint32_t noise_before, dip_before;
	unsigned int fresh_before;
	unsigned int tried_shapes;	/* a bit for each; 0: none */
	unsigned int tried_nr;		/* TPCs during the trials */
	unsigned int trial;		/* epochs since a trial of @shape began; 0: none */
	/* epochs until the next trials; .. after trials without gain */
	unsigned int wait_shapes, next_shapes;
	/*
	 * The largest count with which TPCs in GPCs of other tenants made it slower; 0: none.
	 */
	unsigned int edge, nr_edges;
	bool forgot;			/* in this epoch: because its load has changed */
	unsigned int strange;		/* epochs in a row that the curve does not explain */
	enum qos_class class;
	unsigned int optimum;
	unsigned int no_memory;	/* epochs during which it is not classed as memory-intensive */
	unsigned int at_optimum, retry;	/* epochs at the optimum; after how many to try more TPCs */
	unsigned int probe;		/* most TPCs in such a try; 0: none */
	unsigned int ramp;		/* best effort: quarters of its share, 1, 2 or 4 */
	unsigned int next_ramp;		/* epochs until it may ramp again */
	unsigned int press;	/* most TPCs, because a guarantee needs the rest; 0: no limit */

	char why[QOS_REASON_SIZE];
};

struct qos_policy {
	struct qos_board board;
	struct qos_rules rules;
	unsigned int nr;
	unsigned int order[QOS_MAX_TENANTS];	/* actors[i] is tenant order[i] of the caller */
	struct qos_actor actors[QOS_MAX_TENANTS];	/* guaranteed ones first */
	uint64_t epoch;
	bool swapping;
	unsigned int relay;	/* 1 + the actor whose set gets a new arrangement; 0: none */
	bool growing;				/* best effort gets more in the next epoch */
	uint8_t drains[GPUPART_MAX_TPCS]; /* 1 + the actor whose blocks may still run on that TPC */
	struct gpupart_tpcset held, shared;	/* of others: not given; given in spite of that */
	struct gpupart_tpcset told;		/* of others, at the last message about it */
	unsigned int calm;			/* epochs since the last change */
	unsigned int wants[QOS_MAX_TENANTS];	/* TPCs that guaranteed tenants ask for */
	char words[QOS_MESSAGE_SIZE];
};

static inline unsigned int least_of(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/*
 * @a * @b / @c. Speeds have up to 64 bits, and @a may be a sum of several; then @b is smaller.
 */
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

/* It has no signal that counts: it keeps its guarantee, and causes no decision. */
static inline bool qos_without_signal(const struct qos_actor *a)
{
	return a->state == QOS_WAITING || a->state == QOS_LOST || a->state == QOS_GONE;
}

__attribute__((format(printf, 2, 3)))
void qos_set_reason(struct qos_actor *a, const char *fmt, ...);
/* Adds a message to the decision. */
__attribute__((format(printf, 2, 3)))
void qos_add_message(struct qos_policy *p, const char *fmt, ...);

/* The number of TPCs that tenants may get. */
static inline unsigned int qos_free(const struct qos_policy *p)
{
	return p->board.nr_tpcs - gpupart_tpcset_count(&p->held);
}

/* progress.c: processes measurements; sets state, score, window, curve and class. */
void qos_take(struct qos_policy *p, struct qos_actor *a, const struct qos_measured *m);
/* The score that a raise or a lowering aims at. */
uint32_t qos_target(const struct qos_policy *p, const struct qos_actor *a);
/*
 * Whether a best-effort tenant has less than its share for now. It will soon use more of
 * everything.
 */
bool qos_ramping(const struct qos_policy *p);
/* How speed depends on TPCs, in thousandths of a proportional gain. False: not known. */
bool qos_answer(const struct qos_actor *a, int *answer);

/* others.c: finds the TPCs of others that no tenant gets, and those shared for the floors. */
void qos_find_held(struct qos_policy *p);
/* Whether other programs have started to use its TPCs since the last message about it. */
bool qos_newly_held(const struct qos_policy *p, const struct qos_actor *a);
/* Adds a message about the changes since then. */
void qos_report_held(struct qos_policy *p);

/*
 * shape.c: begins, continues and ends trials of shapes. Returns true while one is in progress;
 * then all tenants keep their number of TPCs.
 */
bool qos_try_shapes(struct qos_policy *p);

/* curve.c: lets each tenant's curve be the one of its set's shape, or of the others' shapes. */
void qos_choose_curves(struct qos_policy *p);
/* Forgets the trials under another load or next to another neighbour. */
void qos_forget_shapes(struct qos_actor *a);
/* The number of its TPCs in GPCs in which no other tenant has any. */
unsigned int qos_alone(const struct qos_policy *p, const struct qos_actor *a);
/* Whether TPCs in GPCs of other tenants explain why @value is below the expectation. */
bool qos_find_edge(const struct qos_policy *p, struct qos_actor *a, uint64_t value, uint64_t room);

/* guarantee.c: the number of TPCs that a guaranteed tenant asks for. */
unsigned int qos_want(struct qos_policy *p, struct qos_actor *a);

/*
 * effort.c: reduces best effort for guarantees; distributes @rest TPCs among best effort, 0 or
 * more each, into @counts.
 */
void qos_press(struct qos_policy *p);
void qos_share(struct qos_policy *p, unsigned int rest, unsigned int *counts);
/*
 * Distributes @rest TPCs one by one to actors @from .. @to - 1: each to the one with the fewest
 * for its weight that has less than its @most.
 */
void qos_deal(const struct qos_policy *p, unsigned int from, unsigned int to, unsigned int rest,
	      const unsigned int *most, unsigned int *counts);

/* place.c: chooses TPCs for these counts, and begins the swaps. */
void qos_place(struct qos_policy *p, const unsigned int *counts);
/* Gives TPCs that have drained to the tenants that wait for them. */
void qos_give_drained(struct qos_policy *p, const bool *drained);

#endif
