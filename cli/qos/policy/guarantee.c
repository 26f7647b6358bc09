// SPDX-License-Identifier: MIT
/*
 * Decides how many TPCs a guaranteed tenant needs. The decision depends on this tenant. It also
 * depends on whether best-effort tenants can still give up TPCs.
 */
#include "cli/qos/policy/internal.h"

/* in thousandths of a proportional gain; a smaller gain counts as no gain */
#define FRUITLESS	250
#define SURE	3u	/* number of misses with all TPCs after which the goal counts as
			 * impossible */
#define LESS_PATIENT	8u /* after a wrong lowering, the wait for the next lowering grows by
			    * this factor */
#define ONE_LESS_AFTER	(QOS_CALM * 3 / 2) /* epochs until a well measured loss of one TPC is
					    * accepted */

/* Returns @nr TPCs times @by / @over, rounded up. */
static unsigned int scaled(unsigned int nr, uint64_t by, uint64_t over)
{
	uint64_t n = over ? (nr * by + over - 1) / over : GPUPART_MAX_TPCS;

	return n > GPUPART_MAX_TPCS ? GPUPART_MAX_TPCS : n;
}

/* Returns true if the raises since the first miss brought no gain. */
static bool is_fruitless(const struct qos_actor *a)
{
	int64_t gain;

	if (!a->raise.from || !a->raise.score || a->nr * 4 < a->raise.from * 5)
		return false;
	gain = ((int64_t)a->score - a->raise.score) * 1000 / a->raise.score;
	return gain * a->raise.from < FRUITLESS * (int64_t)(a->nr - a->raise.from);
}

/* Ignores the first raise without a gain. The load may have changed during this raise. */
static void find_deaf(struct qos_actor *a)
{
	if (!a->raise.fruitless++) {
		a->raise.from = a->nr;
		a->raise.score = a->score;
		return;
	}
	a->deaf = true;
	a->class = QOS_MEMORY;
}

static bool effort_is_least(const struct qos_policy *p)
{
	for (unsigned int i = 0; i < p->nr; i++)
		if (!qos_guaranteed(&p->actors[i]) && p->actors[i].nr > p->actors[i].least)
			return false;
	return true;
}

/*
 * Returns the smallest count above @nr that is known to meet the goal. If no such count is known,
 * returns @nr.
 */
static unsigned int known_to_suffice(const struct qos_policy *p, const struct qos_actor *a,
				unsigned int nr)
{
	uint64_t need = a->score ? qos_times(a->curve[a->nr], qos_target(p, a), a->score) : 0;

	for (unsigned int n = most_of(a->nr, a->failed_at) + 1;
	     need && n < nr && n <= GPUPART_MAX_TPCS; n++)
		if (a->curve[n] >= need)
			return n;
	return nr;
}

/*
 * Assumes that the score is proportional to the TPCs. Returns the number of TPCs that would meet
 * the goal. If earlier gains are known and were smaller, returns a larger number.
 */
static unsigned int nr_needed(const struct qos_actor *a, uint32_t score, uint32_t target)
{
	unsigned int nr = scaled(a->nr, target, score), n = qos_seen(a, a->nr - 1);
	uint64_t missing, rise;

	/* The form of the curve is useful even if the load has changed. */
	if (!n || !a->curve[a->nr] || a->curve[n] >= a->curve[a->nr])
		return nr;
	rise = qos_times(a->curve[a->nr] - a->curve[n], 1000, a->curve[a->nr]) * score / 1000;
	missing = target > score ? target - score : 0;
	if (rise)
		nr = most_of(nr, a->nr + least_of(2 * (nr - a->nr),
						  (missing * (a->nr - n) + rise - 1) / rise));
	return nr;
}

/* Raises without a gain have added TPCs. Takes back these TPCs, one step in each epoch. */
static unsigned int undo_raises(const struct qos_policy *p, const struct qos_actor *a)
{
	unsigned int back = a->raise.first && a->raise.first < a->nr ? a->raise.first : a->nr;

	if (a->nr > p->rules.step)
		back = most_of(back, a->nr - p->rules.step);
	return most_of(back, a->least);
}

static unsigned int give_up(struct qos_policy *p, struct qos_actor *a)
{
	a->wait_stuck = 3 * QOS_CALM;
	a->state = QOS_STUCK;
	qos_add_message(
		p,
		"%s: the goal cannot be met: the tenant reaches %u.%u%% of the goal with %u TPCs, "
		"and reached %u.%u%% with %u TPCs; best effort has no more TPCs to give",
		a->t.name, a->score / 10, a->score % 10, a->nr, a->raise.score / 10,
		a->raise.score % 10, a->raise.from);
	qos_set_reason(a, "missed: neither more TPCs nor fewer for best effort help");
	a->raise.from = a->raise.fruitless = 0;
	return undo_raises(p, a);
}

/* If all other tenants had their minimum, some TPCs would remain. Returns their number. */
static unsigned int most_available(const struct qos_policy *p, const struct qos_actor *a)
{
	unsigned int nr = qos_free(p);

	for (unsigned int i = 0; i < p->nr; i++)
		if (&p->actors[i] != a && p->actors[i].state != QOS_GONE)
			nr -= p->actors[i].least;
	return nr;
}

/*
 * The tenant misses its goal with all TPCs, although more TPCs make it faster. It keeps all TPCs.
 * One decision says that the goal is impossible.
 */
static unsigned int keep_all(struct qos_policy *p, struct qos_actor *a)
{
	qos_set_reason(a, "missed, at %u.%u%% of the goal, with all %u TPCs that it can get",
		a->score / 10, a->score % 10, a->nr);
	if (a->window.misses < SURE)
		return a->nr;
	a->state = QOS_STUCK;
	if (!a->beyond || p->epoch - a->beyond > QOS_CALM)
		qos_add_message(p,
				"%s: the goal cannot be met even with all %u TPCs that the tenant "
				"can get: it reaches %u.%u%% of the goal",
				a->t.name, a->nr, a->score / 10, a->score % 10);
	a->beyond = p->epoch;
	qos_set_reason(a, "the goal cannot be met even with all %u TPCs: at %u.%u%% of it", a->nr,
		a->score / 10, a->score % 10);
	return a->nr;
}

/*
 * If the load has not changed for a long time, a small loss of speed is usually temporary. Then a
 * raise by the loss and the whole margin would be too large.
 */
static uint32_t score_wanted(const struct qos_policy *p, const struct qos_actor *a, bool slight)
{
	uint32_t margin = qos_target(p, a) - 1000;

	return 1000 + (slight && a->exact && !a->fresh ? margin / 2 : margin);
}

/*
 * Some tenants suddenly get slower under a known load. On H200s, such a tenant gained almost
 * nothing from one more TPC and missed again. So give such a tenant several more TPCs at once. If
 * these TPCs are too many, a later epoch takes some of the TPCs back.
 */
static unsigned int least_raise(const struct qos_actor *a)
{
	return a->exact && !a->fresh ? most_of((a->nr + 8) / 16, 1) : 1;
}

static unsigned int raise_it(struct qos_policy *p, struct qos_actor *a)
{
	bool slight = a->score + p->rules.hysteresis >= 1000;
	unsigned int nr;

	/* If a miss comes long after a lowering, the lowering is not the reason. */
	if (a->lowered && p->calm < QOS_CALM * 3 / 2)
		a->patience = least_of(a->patience * LESS_PATIENT, QOS_PATIENT);
	/* The number of TPCs was enough until an earlier load returned. */
	if (a->had_nr > a->nr && p->calm >= QOS_CALM / 2) {
		a->keep = a->had_nr;
		a->keep_for = QOS_KEEP;
	}
	a->had_nr = 0;
	a->lowered = false;
	a->failed_at = most_of(a->failed_at, a->nr);
	if (!a->raise.from) {
		a->raise.from = a->nr;
		a->raise.score = a->score;
	}
	if (!a->raise.first)
		a->raise.first = a->nr;
	if (!a->deaf && is_fruitless(a))
		find_deaf(a);
	if (!a->deaf && a->nr >= most_available(p, a))
		return keep_all(p, a);
	if (a->deaf || a->nr >= a->most) {
		if (effort_is_least(p) && p->calm >= 2)
			return give_up(p, a);
		qos_set_reason(a, "missed, and %s: taking TPCs from best effort",
			a->deaf ? "more TPCs do not help" : "it has all the TPCs that it may get");
		return a->nr;
	}
	nr = nr_needed(a, slight && a->window.mean && !a->exact ? a->window.mean : a->score,
		    score_wanted(p, a, slight));
	/* The score is far below the goal. Give too many TPCs rather than miss the goal again. */
	if (a->score + 3 * p->rules.hysteresis < 1000)
		nr += (nr - a->nr) / 4;
	nr = most_of(known_to_suffice(p, a, nr), a->nr + least_raise(a));
	nr = least_of(least_of(nr, a->nr + p->rules.step), a->most);
	qos_set_reason(a, "missed, at %u.%u%% of the goal: raised from %u", a->score / 10,
		       a->score % 10, a->nr);
	return nr;
}

static uint32_t least_secure(const struct qos_policy *p, const struct qos_actor *a)
{
	return 1000 + (qos_target(p, a) - 1000) * 2 / 3;
}

/*
 * The tenant meets its goal under a new load, but its surplus is less than the noise of the
 * measurements. Adds TPCs now, before the tenant misses its goal.
 */
static unsigned int raise_early(struct qos_policy *p, struct qos_actor *a, bool raised)
{
	unsigned int nr = nr_needed(a, a->window.mean, qos_target(p, a));

	/*
	 * The tenant has just got more TPCs. If two more requests would meet the goal, this is not
	 * a miss yet, and the next epoch decides.
	 */
	if (raised && a->window.nr < 2 && a->took_ns &&
	    a->window.mean + qos_times(2000, a->unit_ns, a->took_ns) >= least_secure(p, a))
		return a->nr;
	nr = least_of(least_of(nr, a->nr + p->rules.step), a->most);
	if (nr > a->nr)
		qos_set_reason(a, "barely met, at %u.%u%% of the goal: raised from %u",
			a->window.mean / 10, a->window.mean % 10, a->nr);
	return most_of(nr, a->nr);
}

/*
 * If fewer TPCs made little difference so far, lowers the count as far as the slope allows, but at
 * most by half. If the loss was steeper at a larger count, the curve has an edge there. Then does
 * nothing.
 */
static unsigned int lower_along_slope(const struct qos_policy *p, const struct qos_actor *a)
{
	uint64_t slope, spare = a->window.mean - qos_target(p, a), fall, best = 0;
	unsigned int n, near = 0;

	for (n = GPUPART_MAX_TPCS; n > a->nr; n--) {
		if (a->curve[n])
			near = n;
		best = a->curve[n] > best ? a->curve[n] : best;
	}
	if (!near || !a->curve[a->nr])
		return a->nr;
	slope = a->curve[near] > a->curve[a->nr] ? a->curve[near] - a->curve[a->nr] : 0;
	if (qos_times(a->curve[a->nr], 1000, 970) < best &&
	    (unsigned __int128)slope * a->nr * 10 <
	    (unsigned __int128)a->curve[a->nr] * 3 * (near - a->nr))
		return a->nr;
	/* 1.5 times the slope, in millionths for each TPC. */
	slope = qos_times(slope, 1500, a->curve[a->nr]);
	slope = qos_times(slope, a->window.mean, near - a->nr);
	fall = spare * 1000 / (slope + 1);
	return a->nr > 2 * fall ? a->nr - fall : (a->nr + 1) / 2;
}

/*
 * Returns the smallest count that should meet the goal, according to the known speeds with smaller
 * counts.
 */
static unsigned int smallest_safe(const struct qos_policy *p, const struct qos_actor *a)
{
	uint64_t here = a->curve[a->nr], need;
	unsigned int n, least = a->nr;

	if (!here || !a->window.mean)
		return 1;
	need = qos_times(here, qos_target(p, a), a->window.mean);
	if (need >= here)
		return a->nr;
	/*
	 * Interpolate between a count that was too small and the smallest count that met the goal.
	 */
	for (n = a->nr - 1; n; n--) {
		if (!a->curve[n])
			continue;
		if (a->curve[n] < need)
			break;
		least = n;
		here = a->curve[n];
	}
	if (!n)
		return least < a->nr ? least : 1;
	here -= a->curve[n];
	need -= a->curve[n];
	return n + ((unsigned __int128)need * (least - n) + here - 1) / here;
}

static bool some_are_reserved(const struct qos_policy *p)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < p->nr; i++)
		nr += p->actors[i].nr;
	return nr < qos_free(p);
}

/*
 * Estimates the score with one TPC less. Uses the known loss of one TPC, or the proportional loss
 * if it is larger. If the loss is not known, returns 0.
 */
static uint32_t without_one(const struct qos_actor *a)
{
	uint64_t here = a->curve[a->nr], fall, loss = here / a->nr;
	unsigned int n = qos_seen(a, a->nr - 1);

	if (!here || !n || a->curve[n] >= here)
		return 0;
	fall = (here - a->curve[n] + a->nr - n - 1) / (a->nr - n);
	if (fall > loss)
		loss = fall;
	return a->window.mean * qos_times(here - loss, 1000, here) / 1000;
}

/*
 * After a long time with a surplus, takes one TPC in two cases. First case: the goal would be met
 * even with twice the proportional loss of a TPC. This happens at the edge of a wave of blocks.
 * Second case: the loss of one TPC is well measured, and the goal would be met even at the lowest
 * score so far.
 */
static unsigned int one_less(const struct qos_policy *p, const struct qos_actor *a)
{
	uint32_t worst = least_of(a->window.mean, a->window.worst + p->rules.hysteresis / 2);
	uint32_t without;

	if (a->t.goal == QOS_LATENCY || a->nr < 3 || a->window.nr < QOS_CALM ||
	    a->window.misses || a->nr - 1 <= a->failed_at || a->nr - 1 < a->least ||
	    (a->keep && a->nr <= a->keep) || some_are_reserved(p))
		return a->nr;
	without = a->exact ? without_one(a) : 0;
	if ((uint64_t)worst * (a->nr - 2) / a->nr >= 1000 + p->rules.hysteresis / 2 ||
	    (a->window.nr >= ONE_LESS_AFTER && without >= 1000 + p->rules.hysteresis / 2 &&
	     without >= 1000 + p->rules.hysteresis / 4 + a->dip))
		return a->nr - 1;
	return a->nr;
}

/* Returns a smaller number of TPCs that would still meet the goal. */
static unsigned int fewer(const struct qos_policy *p, const struct qos_actor *a)
{
	unsigned int nr = scaled(a->nr, qos_target(p, a), a->window.mean);

	nr = most_of(nr, scaled(a->nr, 1000 + p->rules.hysteresis / 2, a->window.worst));
	/* The curve of waiting times is not a straight line. */
	if (a->t.goal == QOS_LATENCY)
		nr = most_of(nr, a->nr - a->nr / 4);
	else if (a->fresh && a->window.mean > qos_target(p, a))
		nr = least_of(nr, lower_along_slope(p, a));
	nr = most_of(nr, a->failed_at + 1);
	nr = most_of(nr, least_of(a->keep, a->nr));
	nr = most_of(nr, smallest_safe(p, a));
	nr = most_of(nr, a->nr > p->rules.step ? a->nr - p->rules.step : 1);
	return most_of(nr, a->least);
}

/*
 * Once for each new load, gives the tenant an eighth fewer TPCs than it seems to need. If the
 * tenant is as fast as before, the count can be lowered further. Otherwise the next epoch raises
 * the count again.
 */
static unsigned int try_fewer(const struct qos_policy *p, struct qos_actor *a)
{
	unsigned int nr = most_of(a->nr - a->nr / 8, smallest_safe(p, a));

	if (a->fresh < 2 || a->tried || a->t.goal == QOS_LATENCY || nr < a->least ||
	    nr <= a->failed_at || nr + 1 + a->nr / 32 > a->nr)
		return a->nr;
	a->tried = true;
	qos_set_reason(a, "met, at %u.%u%% of the goal: tried with fewer than %u", a->score / 10,
		a->score % 10, a->nr);
	return nr;
}

/*
 * Returns whether best-effort tenants are idle. Then more TPCs do not help these tenants now, but
 * may help later.
 */
static bool best_effort_is_idle(const struct qos_policy *p)
{
	bool found = false;

	for (unsigned int i = 0; i < p->nr; i++) {
		const struct qos_actor *a = &p->actors[i];

		if (qos_guaranteed(a) || a->state == QOS_GONE)
			continue;
		if (!a->begun || !qos_without_signal(a))
			return false;
		found = true;
	}
	return found;
}

static unsigned int lower_it(struct qos_policy *p, struct qos_actor *a)
{
	unsigned int nr, patience = a->patience;

	/* If the load is new and no lowering was wrong, a lowering needs only one good epoch. */
	if (a->fresh && patience == p->rules.dwell)
		patience = 1;
	else if (p->calm < QOS_CALM)
		return a->nr;
	/*
	 * If a tenant's score over all epochs is below its goal, the tenant keeps a surplus for
	 * longer.
	 */
	if (!a->fresh && a->sum < (unsigned __int128)1000 * a->sum_weight)
		patience *= 4;
	if (a->window.nr < least_of(patience, p->rules.dwell) ||
	    a->window.nr + a->window.nr_lent < patience || qos_ramping(p) || p->growing)
		return a->nr;
	/* Without a latency goal, the tenant may still lose one TPC later. */
	a->few_enough = p->calm >= QOS_CALM && !a->window.misses &&
			(a->t.goal == QOS_LATENCY || a->window.nr >= ONE_LESS_AFTER);
	if (a->window.misses || best_effort_is_idle(p))
		return a->nr;
	nr = fewer(p, a);
	if (nr + 1 + a->nr / 32 > a->nr)
		nr = a->fresh ? a->nr : one_less(p, a);
	if (nr == a->nr)
		return try_fewer(p, a);
	qos_set_reason(a, "at %u.%u%% of the goal for %u epoch%s: lowered from %u",
		       a->window.mean / 10, a->window.mean % 10, a->window.nr,
		       a->window.nr > 1 ? "s" : "", a->nr);
	return nr;
}

/* The plan stays unchanged for a while. Then the tenant returns to its guarantee. */
static unsigned int without_signal(const struct qos_policy *p, struct qos_actor *a)
{
	unsigned int step = p->rules.step;

	if (a->state == QOS_WAITING) {
		qos_set_reason(a, "no signal yet");
		return a->nr;
	}
	if (a->silent <= p->rules.hold || a->nr == a->guarantee) {
		qos_set_reason(a, "no signal for %u epochs: %s", a->silent,
			a->nr == a->guarantee ? "the guarantee stays" : "the plan stays");
		return a->nr;
	}
	qos_set_reason(a, "no signal for %u epochs: from %u to the guarantee of %u", a->silent,
		       a->nr, a->guarantee);
	if (a->nr < a->guarantee)
		return least_of(a->nr + step, a->guarantee);
	return most_of(a->nr > step ? a->nr - step : 1, a->guarantee);
}

/* After a long time, old misses are forgotten. */
static void forget_old_misses(struct qos_actor *a)
{
	unsigned int nr = a->window.nr + a->window.nr_lent;

	if (nr < QOS_PATIENT || nr % QOS_PATIENT)
		return;
	a->failed_at = 0;
	a->few_enough = false;
	/* With lending, the scores of a slow start would count for ever. */
	if (a->window.nr_lent)
		a->window.worst = a->window.mean;
	a->dip /= 2;
	if (a->patience > 2)
		a->patience /= 2;
}

static unsigned int want(struct qos_policy *p, struct qos_actor *a)
{
	bool raised;

	if (a->state == QOS_GONE) {
		qos_set_reason(a, "it ended");
		return 0;
	}
	/* The tenant has a signal again, or its set is smaller than its guarantee. */
	if (a->nr < a->least)
		return a->guarantee;
	if (qos_without_signal(a))
		return without_signal(p, a);
	if (a->state == QOS_DISTURBED) {
		qos_set_reason(a, "disturbed by other programs: the epoch does not count");
		return a->nr;
	}
	if (a->state == QOS_IDLE) {
		qos_set_reason(a, "it had no requests");
		return a->nr;
	}
	forget_old_misses(a);
	if (a->wait_stuck && a->state == QOS_MISSED) {
		a->wait_stuck--;
		a->state = QOS_STUCK;
		qos_set_reason(a, "missed: TPCs did not help; trying more again in %u epochs",
			a->wait_stuck);
		return undo_raises(p, a);
	}
	a->wait_stuck = 0;
	if (a->state == QOS_MISSED)
		return raise_it(p, a);
	raised = a->raise.first;
	a->raise = (struct qos_raise){ 0 };
	qos_set_reason(a, "met, at %u.%u%% of the goal", a->score / 10, a->score % 10);
	if (a->fresh && a->window.mean < least_secure(p, a) && !a->deaf)
		return raise_early(p, a, raised);
	return lower_it(p, a);
}

/*
 * The tenant was slower because some of its TPCs are in GPCs of other tenants. The largest number
 * of TPCs with this effect is @edge. If the tenant has at most @edge TPCs, it gives up its TPCs in
 * GPCs with other tenants. A raise goes beyond @edge.
 */
static unsigned int beside_others(struct qos_policy *p, struct qos_actor *a, unsigned int nr)
{
	unsigned int alone = qos_alone(p, a), most = least_of(most_available(p, a), a->most), n;
	uint64_t need = a->score ? qos_times(a->speed, qos_target(p, a), a->score) : 0;

	if (a->state == QOS_GOOD && nr < a->nr && nr > alone && !a->curve[nr])
		return a->nr;
	if (alone < most_of(a->least, a->nr * 2 / 3))
		return nr;
	/* Without the TPCs in shared GPCs, the tenant may be as fast as now, or faster. */
	if (a->state != QOS_MISSED && nr == a->nr && alone < nr && !a->curve[alone]) {
		qos_set_reason(a, "tried without the %u TPCs in GPCs shared with other tenants",
			nr - alone);
		return alone;
	}
	if (nr > a->edge || a->state == QOS_STUCK)
		return nr;
	if (nr <= a->nr && a->state == QOS_GOOD)
		return least_of(nr, alone);
	if (a->edge >= most) {
		a->state = QOS_STUCK;
		qos_set_reason(a,
			       "missed; TPCs in GPCs shared with other tenants made the tenant "
			       "slower: %u TPCs without these",
			       alone);
		return alone;
	}
	for (n = a->edge + 1; n < most && (!a->curve[n] || a->curve[n] < need); n++)
		;
	qos_set_reason(a, "missed, at %u.%u%% of the goal: raised from %u", a->score / 10,
		       a->score % 10, a->nr);
	return least_of(n, a->nr + p->rules.step);
}

unsigned int qos_want(struct qos_policy *p, struct qos_actor *a)
{
	unsigned int nr;

	/*
	 * If a tenant misses its goal while it lends, the lending ends first. Only a miss without
	 * lending changes the number of TPCs.
	 */
	if (a->lent && a->nr >= a->least &&
	    (a->state == QOS_GOOD || a->state == QOS_MISSED)) {
		if (a->state == QOS_GOOD)
			forget_old_misses(a);
		return a->nr;
	}
	nr = want(p, a);
	return a->edge && qos_has_result(a->state) ? beside_others(p, a, nr) : nr;
}
