// SPDX-License-Identifier: MIT
/*
 * Compares measurements with the goal and with earlier measurements. Sets the state and the score
 * of a tenant. Classifies the tenant as compute-intensive or memory-intensive.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/qos/policy/internal.h"

#define COMPUTE_FROM	500	/* thousandths of a proportional gain from more TPCs */
#define MEMORY_UP_TO	250
#define NOISE_SCALE	16u	/* weight of the old value in the average */
#define PLATEAU		950u	/* minimum speed at the optimum, in thousandths of the best speed */

static uint32_t score_of(uint64_t is, uint64_t wanted)
{
	uint64_t score = qos_times(is, 1000, wanted);

	return score > QOS_SCORE_MOST ? QOS_SCORE_MOST : score;
}

static uint64_t goal_speed(const struct qos_actor *a)
{
	if (a->t.goal == QOS_RATE)
		return a->t.rate;
	return qos_times(a->t.alone, a->t.alpha, 1000);
}

uint32_t qos_target(const struct qos_policy *p, const struct qos_actor *a)
{
	uint32_t margin = 3 * a->noise / NOISE_SCALE;

	if (margin < p->rules.hysteresis)
		margin = p->rules.hysteresis;
	return 1000 + (margin > 250 ? 250 : margin);
}

/* ----------------------------------------------------------------------- the curve */

bool qos_answer(const struct qos_actor *a, int *answer)
{
	unsigned int high = qos_seen(a, GPUPART_MAX_TPCS), low = qos_seen(a, high * 3 / 4);
	__int128 gain, value;

	if (!low)
		return false;
	gain = (__int128)qos_times(a->curve[high], 1000, a->curve[low]) - 1000;
	value = gain * low / (int)(high - low);
	*answer = value > 5000 ? 5000 : value < -5000 ? -5000 : value;
	return true;
}

static uint64_t best_speed(const struct qos_actor *a)
{
	uint64_t best = 0;

	for (unsigned int n = 1; n <= GPUPART_MAX_TPCS; n++)
		best = a->curve[n] > best ? a->curve[n] : best;
	return best;
}

/*
 * Returns the smallest number of TPCs with nearly the best speed. Interpolates linearly between
 * known speeds.
 */
static unsigned int find_optimum(const struct qos_actor *a)
{
	uint64_t enough = qos_times(best_speed(a), PLATEAU, 1000);
	unsigned int n, before = 0;

	for (n = 1; n <= GPUPART_MAX_TPCS; n++) {
		if (!a->curve[n])
			continue;
		if (a->curve[n] >= enough)
			break;
		before = n;
	}
	if (!before || n > GPUPART_MAX_TPCS)
		return n > GPUPART_MAX_TPCS ? 0 : n;
	return before + 1 + qos_times(enough - a->curve[before], n - before,
				  a->curve[n] - a->curve[before] + 1);
}

/*
 * The optimum predicts speeds. Returns whether the speed with the present number of TPCs is below
 * the prediction. Then there is no optimum.
 */
static bool is_disproved(const struct qos_actor *a)
{
	if (qos_guaranteed(a) || a->class != QOS_MEMORY || a->nr > a->optimum)
		return false;
	return qos_times(a->curve[a->nr], 1000, best_speed(a)) < PLATEAU - 150;
}

static void classify(const struct qos_policy *p, struct qos_actor *a)
{
	int answer;

	if (is_disproved(a)) {
		a->class = QOS_COMPUTE;
		a->optimum = a->probe = 0;
		a->no_memory = QOS_RETRY;
		return;
	}
	/*
	 * Up to the optimum, the speed is proportional to the TPCs. So smaller counts cannot
	 * contradict the optimum. The function look_again() clears the speeds of larger counts
	 * until the tenant has run with more TPCs.
	 */
	if (!qos_guaranteed(a) && a->class == QOS_MEMORY &&
	    qos_seen(a, GPUPART_MAX_TPCS) * 3 / 4 < a->optimum)
		return;
	if (!qos_answer(a, &answer))
		return;
	if (answer >= COMPUTE_FROM || (a->class == QOS_UNKNOWN && answer > MEMORY_UP_TO)) {
		a->class = QOS_COMPUTE;
		a->optimum = a->probe = 0;
	} else if (answer <= MEMORY_UP_TO && a->class != QOS_MEMORY && !a->no_memory &&
		   qos_seen(a, GPUPART_MAX_TPCS) >= p->board.nr_tpcs / 8) {
		a->class = QOS_MEMORY;
		a->optimum = find_optimum(a);
		a->at_optimum = 0;
	}
}

bool qos_ramping(const struct qos_policy *p)
{
	for (unsigned int i = 0; i < p->nr; i++) {
		const struct qos_actor *a = &p->actors[i];

		if (!qos_guaranteed(a) && a->begun && !qos_without_signal(a) && a->ramp < 4)
			return true;
	}
	return false;
}

/* A class is valid for a while. Then the tenant gets a third more TPCs to test the class again. */
static void recheck_class(struct qos_actor *a)
{
	if (a->no_memory)
		a->no_memory--;
	if (a->class != QOS_MEMORY || qos_guaranteed(a) || a->state != QOS_GOOD)
		return;
	a->at_optimum++;
	if (a->probe && a->at_optimum >= 2 * QOS_CALM) {
		a->at_optimum = a->probe = 0;
		if (a->retry < QOS_PATIENT * 4)
			a->retry *= 2;
	} else if (!a->probe && a->at_optimum >= a->retry && a->nr >= a->optimum) {
		a->probe = a->optimum * 4 / 3 + 1;
		for (unsigned int n = a->probe; n <= GPUPART_MAX_TPCS; n++)
			a->curve[n] = 0;
		a->at_optimum = 0;
	}
}

/* Called when the load has changed. Discards the results from the old load. */
static void forget(const struct qos_policy *p, struct qos_actor *a)
{
	qos_forget_shapes(a);
	a->class = QOS_UNKNOWN;
	a->optimum = 0;
	a->failed_at = 0;
	a->few_enough = false;
	a->dip = 0;
	a->deaf = false;
	a->raise.from = a->raise.fruitless = 0;
	a->tried = true;
	a->strange = 0;
	a->forgot = true;
	a->fresh = QOS_FRESH;
	a->window = (struct qos_window){ 0 };
	a->probe = a->no_memory = 0;
	a->retry = QOS_RETRY;
	/* Requests come in bursts. With other goals, the load stays changed for longer. */
	if (a->t.goal != QOS_LATENCY)
		a->patience = a->patience > 8 * p->rules.dwell ? a->patience / 8 : p->rules.dwell;
	if (!qos_guaranteed(a) && !a->next_ramp) {
		a->ramp = 1;
		a->next_ramp = 2 * QOS_CALM;
	}
}

/* Returns whether the deviation in one epoch is large enough to prove a changed load. */
static bool is_another(const struct qos_actor *a, uint64_t off, uint64_t known, uint64_t room)
{
	if (a->t.goal == QOS_LATENCY)
		return false;
	return qos_times(off, 1000, known) > (qos_guaranteed(a) ? room * 3 / 2 : 1000);
}

/*
 * Returns how far a value may deviate under the same load, in thousandths. Values deviate because
 * of noise, waves of blocks and neighbours. For a guaranteed tenant, @guaranteed is the tolerance
 * without noise.
 */
static uint64_t tolerance_of(const struct qos_actor *a, unsigned int guaranteed)
{
	return (qos_guaranteed(a) ? guaranteed : 300) + 4 * a->noise / NOISE_SCALE;
}

/*
 * Returns whether the speed proves that the load has changed. First case: the tenant is slower than
 * it was with fewer TPCs, and a constant load cannot explain the difference. Second case: a
 * best-effort tenant is faster than it was with more TPCs. The second case does not count for a
 * guaranteed tenant, because its neighbours may have changed together with its TPCs.
 */
static bool contradicts(const struct qos_actor *a, uint64_t value)
{
	uint64_t room = tolerance_of(a, 100);

	if (a->t.goal == QOS_LATENCY || room >= 1000)
		return false;
	for (unsigned int n = 1; n <= GPUPART_MAX_TPCS; n++)
		if (n < a->nr ? qos_times(a->curve[n], 1000 - room, 1000) > value :
		    n > a->nr && !qos_guaranteed(a) && a->curve[n] &&
		    qos_times(value, 1000 - room, 1000) > a->curve[n])
			return true;
	return false;
}

static void learn(const struct qos_policy *p, struct qos_actor *a, uint64_t value)
{
	uint64_t *known = &a->curve[a->nr], off, room;
	bool sudden;

	if (qos_find_edge(p, a, value, tolerance_of(a, 100)))
		return;
	if (*known) {
		off = value > *known ? value - *known : *known - value;
		room = tolerance_of(a, 150);
		if (qos_times(off, 1000, *known) <= room) {
			a->strange = 0;
			*known += (int64_t)(value - *known) / 4;
		} else if (++a->strange >= 2 || is_another(a, off, *known, room)) {
			/*
			 * The value of a best-effort tenant may come partly from the old load
			 * and partly from the new load.
			 */
			sudden = a->strange < 2 && !qos_guaranteed(a);
			forget(p, a);
			*known = sudden ? 0 : value;
		}
	} else {
		if (contradicts(a, value))
			forget(p, a);
		*known = value;
	}
	classify(p, a);
}

/* ------------------------------------------------------------------------ whole units */

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/*
 * Work comes in whole units. If there are few units, one more unit changes the speed much, and the
 * first unit began with other TPCs. So collects work until these effects are small.
 */
static void gather(const struct qos_policy *p, struct qos_actor *a, const struct qos_measured *m,
		   uint64_t ns)
{
	uint64_t work = m->work, nr, each;

	if (m->reports)
		a->quantum = m->reports < work ? work / m->reports : 1;
	else
		a->quantum = common(a->quantum ? a->quantum : 1000, work);
	nr = work / a->quantum;
	each = ns / nr;
	a->unit_ns = a->unit_ns ? (3 * a->unit_ns + each) / 4 : each;
	if (a->moved && nr < QOS_UNITS)
		return;
	a->gathered += work;
	a->gathered_ns += ns;
	if (a->gathered / a->quantum < QOS_UNITS)
		return;
	learn(p, a, qos_times(a->gathered, 1000000000, a->gathered_ns));
	a->gathered = a->gathered_ns = 0;
}

/* Returns whether a unit that takes longer than an epoch is in progress. */
static bool is_under_way(const struct qos_actor *a)
{
	return !qos_guaranteed(a) && a->begun && a->state == QOS_GOOD &&
	       a->carried_ns <= 3 * a->unit_ns;
}

/* ---------------------------------------------------------------------- the window */

static void watch(struct qos_actor *a, uint32_t value, bool missed)
{
	struct qos_window *w = &a->window;
	uint32_t off, weight;

	a->noise_was = a->noise;
	/* A change of load does not count as noise. */
	if (w->nr && w->mean && !a->strange && !a->forgot) {
		off = value > w->mean ? value - w->mean : w->mean - value;
		off = qos_times(off, 1000 * NOISE_SCALE, w->mean);
		if (off <= 200 * NOISE_SCALE)
			a->noise += ((int32_t)off - (int32_t)a->noise) / 8;
		if (!a->fresh && value + a->dip < w->mean)
			a->dip = w->mean - value;
	}
	w->nr++;
	weight = w->nr < 8 ? w->nr : 8;
	w->mean += ((int32_t)value - (int32_t)w->mean) / (int32_t)weight;
	if (w->nr == 1 || value < w->worst)
		w->worst = value;
	w->misses += missed;
}

/* @ns is the length of this epoch plus the earlier epochs in which no unit ended. */
static void add_score(const struct qos_policy *p, struct qos_actor *a, const struct qos_measured *m,
		      uint32_t score, uint64_t ns)
{
	bool latency = a->t.goal == QOS_LATENCY;
	uint64_t weight = latency ? m->nr : ns / 1000;

	a->silent = 0;
	if (!a->begun)
		a->fresh = QOS_FRESH;
	else if (a->fresh && !qos_ramping(p) && !p->growing &&
		 !(a->moved && a->lowered && a->fresh == 1))
		a->fresh--;
	a->begun = true;
	a->took_ns = ns;
	a->exact = m->exact && !latency;
	a->speed = latency ? 0 : qos_times(m->work, 1000000000, ns);
	a->score = qos_guaranteed(a) ? score : 0;
	a->state = qos_guaranteed(a) && score < 1000 ? QOS_MISSED : QOS_GOOD;
	a->sum += (unsigned __int128)a->score * weight;
	a->sum_weight += weight;
	/*
	 * The borrower's kernels delayed the tenant, so the tenant's speed does not show whether
	 * its TPCs are enough.
	 */
	if (m->lent) {
		a->window.nr_lent = a->state == QOS_GOOD ? a->window.nr_lent + 1 : 0;
		return;
	}
	if (latency)
		learn(p, a, score);
	else if (!m->borrowed)
		gather(p, a, m, ns);
	watch(a, qos_guaranteed(a) ? score : 1000, a->state == QOS_MISSED);
}

static void no_result(struct qos_actor *a, enum qos_state state)
{
	a->speed = 0;
	a->score = 0;
	a->state = state;
}

static void not_heard(struct qos_policy *p, struct qos_actor *a)
{
	a->silent++;
	no_result(a, a->begun || a->silent > p->rules.hold ? QOS_LOST : QOS_WAITING);
}

static void idle(struct qos_actor *a)
{
	a->silent = 0;
	no_result(a, QOS_IDLE);
}

/* The tenant did not run on the TPCs of the decision. So its measurements are not used. */
static void disturb(struct qos_actor *a)
{
	no_result(a, QOS_DISTURBED);
	a->carried_ns = a->gathered = a->gathered_ns = 0;
	/* Units that began with the wrong TPCs end in the next epoch. */
	a->moved = true;
}

void qos_take(struct qos_policy *p, struct qos_actor *a, const struct qos_measured *m)
{
	uint64_t rate, ns;

	a->forgot = false;
	a->lent = m->lent;
	recheck_class(a);
	if (a->keep_for && !--a->keep_for)
		a->keep = 0;
	if (a->next_ramp)
		a->next_ramp--;
	if (m->gone) {
		no_result(a, QOS_GONE);
		a->begun = false;
		return;
	}
	if (a->state == QOS_GONE)
		a->state = QOS_WAITING;
	if (m->disturbed) {
		disturb(a);
		return;
	}
	if (!m->valid || !m->ns) {
		not_heard(p, a);
	} else if (a->t.goal == QOS_LATENCY) {
		if (!m->nr && (a->begun || m->stopped))
			idle(a);
		else if (!m->nr)
			not_heard(p, a);
		else
			add_score(p, a, m,
				  score_of(a->t.latency_ns, m->latency_ns ? m->latency_ns : 1),
				  m->ns);
	} else if (!m->work) {
		/* A unit may take longer than an epoch. It counts when it ends. */
		a->carried_ns += a->begun && !m->stopped ? m->ns : 0;
		if (m->stopped)
			idle(a);
		else if (!is_under_way(a))
			not_heard(p, a);
	} else {
		/* An idle tenant is not slow. */
		if (!qos_guaranteed(a) && a->carried_ns > 3 * a->unit_ns)
			a->carried_ns = 0;
		ns = m->ns + a->carried_ns;
		rate = qos_times(m->work, 1000000000, ns);
		add_score(p, a, m, score_of(rate, goal_speed(a)), ns);
		a->carried_ns = 0;
	}
	a->moved = false;
}
