// SPDX-License-Identifier: MIT
/*
 * Sets a time limit for kernels of other programs on the TPCs of an idle guaranteed tenant. The
 * limit is given, or it is the slack of a latency goal. The slack is the goal minus the latency
 * without lending. If the tenant missed its goal with lending, it lends nothing for a while.
 */
#include "cli/qos/policy/internal.h"

#define BARE		3u	/* minimum number of epochs without lending before TPCs are lent
				 * */
#define BARE_MOST	20u
#define IDLE_MOST	8u	/* after this number of epochs without lending, a tenant that was
				 * mostly idle lends again */
#define LOWERING_MOST	(2 * QOS_CALM) /* while a lowering is still to come: maximum number of
					* epochs without lending, and then with lending */
#define LEND_FOR	200u	/* number of epochs after which the latency without lending is
				 * measured again */
#define WAIT		5u	/* epochs without lending after the first miss */
#define WAIT_MOST	160u
#define SURE		50u	/* good epochs after which earlier misses are forgotten */
#define LATE		1000u	/* late requests beyond those that the goal allows, in thousandths:
				 * with more of them, nothing is lent */
#define LATE_MOST	10000u	/* more of them are not counted */

/*
 * Learns from an epoch without lending. The value bare_ns is the second largest latency of such
 * epochs. So it is an upper bound of the latency without lending, and a single slow epoch has no
 * effect. If the latency becomes smaller, both values become smaller slowly.
 */
static void learn_bare(struct qos_actor *a, uint64_t ns)
{
	uint64_t second;

	if (!a->nr_learned++)
		a->bare_worst_ns = ns;
	second = ns < a->bare_worst_ns ? ns : a->bare_worst_ns;
	if (a->nr_learned <= 2 || second >= a->bare_ns)
		a->bare_ns = second;
	else
		a->bare_ns -= (a->bare_ns - second) / 8;
	if (ns >= a->bare_worst_ns)
		a->bare_worst_ns = ns;
	else
		a->bare_worst_ns -= (a->bare_worst_ns - ns) / 8;
}

/* Returns whether a lowering is still to come. */
static bool is_lowering(const struct qos_actor *a)
{
	return qos_has_result(a->state) && !a->few_enough && a->nr > a->least;
}

/*
 * Returns the number of epochs without lending. This number is enough for a lowering, which needs
 * epochs without lending. A best-effort tenant gains more from TPCs of its own than from lent TPCs.
 * So lending begins after the last lowering, unless the next lowering is far off.
 */
static unsigned int bare_epochs(const struct qos_actor *a)
{
	if (is_lowering(a))
		return a->window.nr_lent ? BARE : LOWERING_MOST;
	return least_of(most_of(a->patience + 1, BARE), BARE_MOST);
}

static uint64_t limit_of(const struct qos_actor *a)
{
	/* While the tenant is idle, there is no latency to measure. */
	if (a->state == QOS_IDLE && a->t.lend_ns)
		return a->t.lend_ns;
	if (a->nr_bare < bare_epochs(a))
		return 0;
	if (a->t.lend_ns)
		return a->t.lend_ns;
	if (a->t.goal != QOS_LATENCY || a->t.latency_ns <= a->bare_ns)
		return 0;
	/*
	 * The latency was measured a long time ago, or with other TPCs. Idle epochs do not measure
	 * it, but after some time an idle tenant lends.
	 */
	if (a->nr_learned < (a->nr_bare < IDLE_MOST ? BARE : a->state != QOS_IDLE))
		return 0;
	return a->t.latency_ns - a->bare_ns;
}

/*
 * Returns whether the tenant missed its goal. In an epoch with lending, the late requests are
 * counted, because a few requests have no meaningful percentile. A goal for 99% of the requests
 * allows one late request for 100 requests, and one more at any time. Requests without lending also
 * make up for late ones.
 */
static bool misses(struct qos_actor *a, const struct qos_measured *m)
{
	const bool missed = qos_has_result(a->state) && a->score < 1000;
	uint64_t late = m->within < m->answered ? m->answered - m->within : 0, allowed;

	if (a->t.goal != QOS_LATENCY || !a->t.percentile || !m->answered)
		return missed;
	allowed = qos_times(m->answered, 1000 - a->t.percentile, 1);
	if (a->lent)
		a->lend_late += qos_times(late, 1000, 1);
	a->lend_late -= allowed < a->lend_late ? allowed : a->lend_late;
	if (a->lend_late > LATE_MOST)
		a->lend_late = LATE_MOST;
	return a->lent ? late && a->lend_late > LATE : missed;
}

void qos_lend(struct qos_actor *a, const struct qos_measured *m, bool moved)
{
	const bool idle = a->state == QOS_IDLE;
	bool missed;
	uint64_t limit;

	a->lend_ns = 0;
	if (!qos_guaranteed(a))
		return;
	missed = misses(a, m);
	a->lend_epochs = a->lent ? a->lend_epochs + 1 : 0;
	if (moved || a->lend_epochs >= (is_lowering(a) ? LOWERING_MOST : LEND_FOR)) {
		/* The latency without lending is measured again. */
		a->nr_bare = a->nr_learned = 0;
	} else if (!a->lent && (qos_has_result(a->state) || (idle && a->bare_ns))) {
		if (!idle)
			learn_bare(a, m->latency_ns);
		a->nr_bare += !missed;
	}
	if (a->lend_wait)
		a->lend_wait--;
	if (missed && a->lent) {
		a->lend_back = a->lend_back ? least_of(2 * a->lend_back, WAIT_MOST) : WAIT;
		a->lend_wait = a->lend_back;
		a->lend_good = 0;
	} else if (a->lent && !idle && ++a->lend_good >= SURE) {
		a->lend_back = 0;
	}
	/* A tenant without a result may have missed its goal. An idle tenant has not. */
	if (a->lend_wait || missed || (a->lend_late > LATE && !idle) || a->trial ||
	    (!qos_has_result(a->state) && !idle))
		return;
	limit = limit_of(a);
	if (limit >= QOS_LEND_LEAST)
		a->lend_ns = limit < QOS_LEND_MOST ? limit : QOS_LEND_MOST;
}
