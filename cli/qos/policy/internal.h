/* SPDX-License-Identifier: MIT */
/*
 * Private data of the policy, for the files in this folder. The policy keeps the state of each
 * tenant from epoch to epoch.
 */
#ifndef GPUPART_CLI_QOS_POLICY_INTERNAL_H
#define GPUPART_CLI_QOS_POLICY_INTERNAL_H

#include <string.h>
#include "cli/qos/policy/gpupart_qos.h"

#define QOS_SCORE_MOST	1000000u
#define QOS_CALM	20u	/* epochs between two changes, if the second change is not
				 * because of a miss */
#define QOS_FRESH	4u	/* number of epochs in which a tenant or its load counts as new */
#define QOS_PATIENT	256u	/* maximum number of epochs before a lowering */
#define QOS_UNITS	16u	/* minimum number of units of work for the computation of a speed */
#define QOS_RETRY	60u	/* epochs until a class is checked for the second time */
#define QOS_LENT_AFTER	2u	/* after the end of the policy's lending, TPCs may still be lent
				 * in this number of epochs */
#define QOS_KEEP	600u	/* for this number of epochs, the policy remembers how many TPCs
				 * a recurring load needed */

/* Measurements since the last change of the plan. */
struct qos_window {
	unsigned int nr;		/* epochs with a signal */
	unsigned int misses;
	uint32_t worst, mean;		/* scores */
	unsigned int nr_lent;		/* good epochs with lending; only the waiting times include
					 * them */
};

/* A series of raises shows the policy whether more TPCs help. */
struct qos_raise {
	unsigned int first;		/* TPCs before the first raise */
	unsigned int from;		/* TPCs before the current raise; 0: no current raise */
	uint32_t score;			/* the score before the current raise */
	unsigned int fruitless;		/* number of raises that did not help */
};

struct qos_actor {
	struct qos_tenant t;
	unsigned int least, most;	/* smallest and largest allowed number of TPCs */
	unsigned int guarantee;		/* number of TPCs of its first allocation */

	unsigned int nr;		/* number of TPCs of the tenant, including @coming */
	struct gpupart_tpcset set, coming;
	uint64_t pending_since;
	uint32_t had[GPUPART_MAX_TPCS];	/* for each TPC: 1 + the last epoch in which the tenant
					 * had this TPC; 0: never */

	enum qos_state state;
	bool shared;			/* other tenants also adopted some of its TPCs */
	bool begun;			/* it has made progress */
	unsigned int disturbed;	/* consecutive epochs with a wrong set */
	unsigned int silent;		/* epochs without a signal */
	uint64_t carried_ns;		/* time of epochs in which the counter did not change */
	uint64_t quantum, unit_ns;	/* thousandths of a unit in one report; time of one unit */
	unsigned __int128 gathered;	/* work with the present TPCs that is too little to
					 * compute a speed */
	uint64_t gathered_ns;		/* the time of that work */
	uint64_t took_ns;		/* length of its last epoch with a signal */
	bool exact;			/* partial units are measured */
	bool moved;			/* its TPCs changed between the previous epoch and this
					 * epoch */
	uint64_t speed;
	uint32_t score;
	unsigned __int128 sum;		/* sum of all scores, weighted by time or requests */
	uint64_t sum_weight;

	struct qos_window window;
	uint32_t noise;	/* mean deviation of the scores, in thousandths */
	uint32_t noise_was;		/* @noise before the last epoch */
	uint32_t dip;	/* largest deviation below the mean under this load */
	unsigned int fresh;		/* number of remaining epochs in which its load counts as
					 * new */
	unsigned int patience;		/* epochs before the next lowering */
	unsigned int failed_at;		/* number of TPCs with which it missed its goal; 0: none
					 * */
	bool lowered;			/* its last change was a lowering */
	/* since the last change, a lowering was due, and the tenant kept all its TPCs */
	bool few_enough;
	unsigned int stood;		/* epochs with these TPCs */
	unsigned int had_nr;		/* its number of TPCs before the last lowering; 0: none */
	/* number of TPCs that a recurring load needs; epochs to remember that number */
	unsigned int keep, keep_for;
	struct qos_raise raise;
	bool tried;			/* its TPCs were lowered to measure the effect */
	bool deaf;			/* more TPCs do not help */
	uint64_t beyond;	/* 1 + the last epoch in which the tenant missed its goal even
				 * with all TPCs */
	unsigned int wait_stuck;	/* number of remaining epochs until another try */

	/*
	 * The speed with each number of TPCs, for each shape. If a speed is not known, it is 0. A
	 * latency goal has scores instead of speeds. The curve of the present shape is @curve.
	 */
	uint64_t curves[QOS_SHAPES][GPUPART_MAX_TPCS + 1], *curve;
	enum qos_shape shape, was;	/* present shape; shape before the last change */
	enum qos_shape base, best, trying; /* first, fastest and current shape of the trials */
	uint32_t noise_before, dip_before;
	unsigned int fresh_before;
	unsigned int tried_shapes;	/* a bit for each tried shape */
	unsigned int tried_nr;		/* TPCs during the trials */
	unsigned int trial;		/* epochs since a trial of @shape began; 0: none */
	/* epochs until the next trials; wait after the next trials, if they bring no gain */
	unsigned int wait_shapes, next_shapes;
	/*
	 * The tenant was slower because some of its TPCs were in GPCs of other tenants. The largest
	 * number of TPCs with this effect is @edge, or 0 if there is no such effect.
	 */
	unsigned int edge, nr_edges;
	bool forgot;		/* the load changed in this epoch, so its curve was discarded */
	unsigned int strange;		/* number of consecutive epochs with speeds that the
					 * curve does not explain */
	enum qos_class class;
	unsigned int optimum;
	unsigned int no_memory;	/* number of remaining epochs in which the tenant cannot get the
				 * class QOS_MEMORY */
	/*
	 * number of epochs with the optimal number of TPCs; after @retry such epochs, more TPCs
	 * are tried
	 */
	unsigned int at_optimum, retry;
	unsigned int probe;		/* largest number of TPCs in such a try; 0: no try */
	unsigned int ramp;		/* best effort: quarters of its share: 1, 2 or 4 */
	unsigned int next_ramp;		/* epochs until it may ramp again */
	/* maximum number of TPCs while a guarantee needs TPCs; 0: no limit */
	unsigned int press;

	bool lent;			/* in the last epoch, other programs could use its TPCs */
	uint64_t lend_ns;		/* the limit from now on */
	unsigned int unordered;		/* consecutive epochs with a limit of 0 */
	/* its latency without lending, and the largest such latency; for QOS_LATENCY */
	uint64_t bare_ns, bare_worst_ns;
	unsigned int nr_bare;		/* epochs without lending since the last measurement */
	unsigned int nr_learned;	/* epochs in which @bare_ns was measured */
	unsigned int lend_epochs;	/* consecutive epochs with lending */
	/*
	 * remaining epochs without lending; epochs without lending after the last miss; epochs
	 * since the last miss
	 */
	unsigned int lend_wait, lend_back, lend_good;
	/* late requests with lending, minus those that the goal allows, in thousandths */
	uint64_t lend_late;

	char why[QOS_REASON_SIZE];
};

struct qos_policy {
	struct qos_board board;
	struct qos_rules rules;
	unsigned int nr;
	unsigned int order[QOS_MAX_TENANTS];	/* actors[i] is tenant order[i] of the caller */
	struct qos_actor actors[QOS_MAX_TENANTS];	/* guaranteed tenants first */
	uint64_t epoch;
	bool swapping;
	/* number of consecutive swaps that ended early, because tenants waited for each other */
	unsigned int stuck;
	unsigned int relay;	/* 1 + the actor whose TPCs are being rearranged; 0: none */
	bool growing;			/* best-effort tenants get more TPCs in the next epoch */
	/* for each TPC: 1 + the actor whose blocks may still run on it; 0: none */
	uint8_t drains[GPUPART_MAX_TPCS];
	/* TPCs of other programs: tenants do not get @held, but they do get @shared */
	struct gpupart_tpcset held, shared;
	/* TPCs in the last message about programs that are not tenants */
	struct gpupart_tpcset announced;
	unsigned int calm;			/* epochs since the last change */
	unsigned int wants[QOS_MAX_TENANTS];	/* number of TPCs each guaranteed tenant needs */
	char words[QOS_MESSAGE_SIZE];
};

static inline unsigned int least_of(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/*
 * Returns @a * @b / @c. A speed has up to 64 bits. If the product with @b has at most 128 bits, @a
 * may be a sum of speeds.
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

/*
 * Returns whether the tenant has no signal that counts. Such a tenant keeps its guarantee and
 * causes no decision.
 */
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

/*
 * progress.c: processes the measurements of @a, and sets its state, score, window, curve and class.
 */
void qos_take(struct qos_policy *p, struct qos_actor *a, const struct qos_measured *m);
/* Returns the score that the tenant should have after a change of its number of TPCs. */
uint32_t qos_target(const struct qos_policy *p, const struct qos_actor *a);
/*
 * Returns whether a best-effort tenant temporarily has less than its share. Such a tenant will soon
 * use more TPCs and more bandwidth.
 */
bool qos_ramping(const struct qos_policy *p);
/* Returns the largest number of TPCs up to @n for which the curve of @a has a speed, or 0. */
static inline unsigned int qos_seen(const struct qos_actor *a, unsigned int n)
{
	while (n && !a->curve[n])
		n--;
	return n;
}
/*
 * Stores in *answer how much the speed grows with the TPCs, in thousandths of a proportional gain.
 * If the growth is not known, returns false.
 */
bool qos_answer(const struct qos_actor *a, int *answer);

/*
 * held.c: finds the TPCs of other programs that no tenant gets. If too few TPCs are left for the
 * floors, also finds the TPCs that tenants share with other programs.
 */
void qos_find_held(struct qos_policy *p);
/*
 * Returns whether other programs have started to use TPCs of @a since the last message about other
 * programs.
 */
bool qos_newly_held(const struct qos_policy *p, const struct qos_actor *a);
/* Adds a message about the changes since the last message about other programs. */
void qos_report_held(struct qos_policy *p);

/*
 * shape.c: begins, continues and ends trials of shapes. Returns true while a trial is in
 * progress. During a trial all tenants keep their number of TPCs.
 */
bool qos_try_shapes(struct qos_policy *p);

/*
 * curve.c: selects the curve of each tenant. A curve is valid for one shape of the tenant's set, or
 * for certain shapes of other sets.
 */
void qos_choose_curves(struct qos_policy *p);
/* Discards the results of trials. The load or a neighbour has changed. */
void qos_forget_shapes(struct qos_actor *a);
/* Counts the TPCs of @a in GPCs without TPCs of other tenants. */
unsigned int qos_alone(const struct qos_policy *p, const struct qos_actor *a);
/* If @value is too low because @a has TPCs in GPCs of other tenants, returns true. */
bool qos_find_edge(const struct qos_policy *p, struct qos_actor *a, uint64_t value, uint64_t room);

/*
 * lend.c: sets lend_ns of @a after the decision about its TPCs. If @moved is true, its TPCs have
 * changed or will change.
 */
void qos_lend(struct qos_actor *a, const struct qos_measured *m, bool moved);

/* guarantee.c: returns the number of TPCs that a guaranteed tenant needs. */
unsigned int qos_want(struct qos_policy *p, struct qos_actor *a);

/*
 * effort.c: qos_press() limits best-effort tenants so that guarantees fit. The function qos_share()
 * distributes @rest TPCs among the best-effort tenants. It stores the number of TPCs of each tenant
 * in @counts. This number may be 0.
 */
void qos_press(struct qos_policy *p);
void qos_share(struct qos_policy *p, unsigned int rest, unsigned int *counts);
/*
 * Distributes @rest TPCs one by one to the actors @from .. @to - 1. The next TPC goes to the actor
 * with the fewest TPCs relative to its weight. An actor gets at most @most TPCs.
 */
void qos_deal(const struct qos_policy *p, unsigned int from, unsigned int to, unsigned int rest,
	      const unsigned int *most, unsigned int *counts);

/* place.c: chooses the TPCs of each tenant for the numbers in @counts, and begins the swaps. */
void qos_place(struct qos_policy *p, const unsigned int *counts);
/* Gives TPCs that have drained to the tenants that wait for them. */
void qos_give_drained(struct qos_policy *p, const bool *drained);

#endif
