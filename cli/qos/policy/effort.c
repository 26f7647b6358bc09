// SPDX-License-Identifier: MIT
/*
 * Distributes the remaining TPCs among best-effort tenants by weight. A memory-intensive tenant
 * gets at most the TPCs that it can use. If a guarantee needs TPCs, a tenant gets fewer TPCs.
 */
#include "cli/qos/policy/internal.h"

void qos_deal(const struct qos_policy *p, unsigned int from, unsigned int to, unsigned int rest,
	      const unsigned int *most, unsigned int *counts)
{
	while (rest) {
		int next = -1;

		for (unsigned int i = from; i < to; i++) {
			const struct qos_tenant *t = &p->actors[i].t;

			if (counts[i] < most[i] &&
			    (next < 0 || (uint64_t)counts[i] * p->actors[next].t.weight <
					 (uint64_t)counts[next] * t->weight))
				next = i;
		}
		if (next < 0)
			return;
		counts[next]++;
		rest--;
	}
}

/* ------------------------------------------------------- for the sake of a guarantee */

/*
 * Returns the tenant whose share is reduced: the memory-intensive tenant with the most TPCs. If no
 * tenant is memory-intensive, returns the tenant with the most TPCs.
 */
static struct qos_actor *largest(struct qos_policy *p)
{
	struct qos_actor *found = NULL;

	for (unsigned int i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];
		bool memory = a->class == QOS_MEMORY;

		if (qos_guaranteed(a) || a->nr <= a->least)
			continue;
		if (!found || memory > (found->class == QOS_MEMORY) ||
		    (memory == (found->class == QOS_MEMORY) && a->nr > found->nr))
			found = a;
	}
	return found;
}

static bool calls_for_more(const struct qos_actor *a)
{
	return qos_guaranteed(a) && a->state == QOS_MISSED && !a->lent &&
	       (a->deaf || a->nr >= a->most);
}

/*
 * Returns whether each guarantee has been met for a long time. Ignores tenants that are stuck,
 * idle or without a signal.
 */
static bool all_met_for_long(struct qos_policy *p)
{
	for (unsigned int i = 0; i < p->nr && qos_guaranteed(&p->actors[i]); i++) {
		const struct qos_actor *a = &p->actors[i];

		if (a->state == QOS_STUCK || qos_without_signal(a) || a->state == QOS_IDLE)
			continue;
		if (a->state == QOS_MISSED || a->window.nr < a->patience ||
		    a->window.worst < qos_target(p, a))
			return false;
	}
	return true;
}

static void relax(struct qos_policy *p)
{
	bool any_met = false;

	/* If a reduction does not help a guarantee, the reduction ends at once. */
	for (unsigned int i = 0; i < p->nr; i++)
		any_met |= qos_guaranteed(&p->actors[i]) && p->actors[i].state == QOS_GOOD;
	for (unsigned int i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		/* If a miss follows the end of this reduction, the next reduction ends later. */
		if (qos_guaranteed(a))
			a->lowered = true;
		else if (any_met && a->press && a->press + 1 + a->press / 4 < a->most)
			a->press += 1 + a->press / 4;
		else
			a->press = 0;
	}
}

void qos_press(struct qos_policy *p)
{
	bool pressed = false, wanted = false;
	struct qos_actor *a;
	unsigned int i;

	for (i = 0; i < p->nr; i++) {
		pressed |= p->actors[i].press;
		wanted |= calls_for_more(&p->actors[i]);
	}
	a = wanted ? largest(p) : NULL;
	if (a) {
		a->press = a->nr > a->least + p->rules.step ? a->nr - p->rules.step : a->least;
		return;
	}
	if (pressed && !wanted && all_met_for_long(p))
		relax(p);
}

/* ------------------------------------------------------------------------- shares */

/* Stores the largest number of TPCs that each tenant can use. */
static void find_caps(struct qos_policy *p, unsigned int from, unsigned int *caps)
{
	for (unsigned int i = from; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		caps[i] = a->state == QOS_GONE ? 0 : a->most;
		if (a->class == QOS_MEMORY && a->optimum && a->ramp == 4 && a->optimum < caps[i])
			caps[i] = most_of(a->probe ? a->probe : a->optimum, a->least);
		if (caps[i] > a->most && a->state != QOS_GONE)
			caps[i] = a->most;
		if (a->press && a->press < caps[i])
			caps[i] = a->press;
	}
}

/*
 * A new tenant gets a quarter of its share, then half of its share, then its whole share. So its
 * speed is measured with three numbers of TPCs within two epochs.
 */
static unsigned int ramped(const struct qos_policy *p, struct qos_actor *a, unsigned int share)
{
	unsigned int part = (share * a->ramp + 3) / 4;

	if (a->ramp == 4 || share < 8) {
		a->ramp = 4;
		return share;
	}
	if (a->silent > p->rules.hold)
		a->ramp = 4;
	return part > a->least ? part : a->least;
}

static void explain(struct qos_actor *a, unsigned int cap, unsigned int now)
{
	if (a->state == QOS_GONE)
		qos_set_reason(a, "it ended");
	else if (a->state == QOS_LOST)
		qos_set_reason(a, "no signal for %u epochs: a share of the remaining TPCs",
			       a->silent);
	else if (a->state == QOS_DISTURBED)
		qos_set_reason(a, "disturbed by other programs: the epoch does not count");
	else if (a->press && now == a->press)
		qos_set_reason(a, "reduced to %u for a guarantee", a->press);
	else if (a->ramp < 4)
		qos_set_reason(a, "%u quarter%s of its share, to measure how it scales", a->ramp,
			a->ramp > 1 ? "s" : "");
	else if (a->class == QOS_MEMORY && a->optimum && now == cap)
		qos_set_reason(a, "memory-intensive: more than %u TPCs hardly help", now);
	else
		qos_set_reason(a, "its share of the remaining TPCs");
}

void qos_share(struct qos_policy *p, unsigned int rest, unsigned int *counts)
{
	unsigned int caps[QOS_MAX_TENANTS], from, i, room;

	for (from = 0; from < p->nr && qos_guaranteed(&p->actors[from]); from++)
		;
	find_caps(p, from, caps);
	p->growing = false;
	for (i = from; i < p->nr; i++) {
		counts[i] = p->actors[i].state == QOS_GONE ? 0 : p->actors[i].least;
		rest -= counts[i];
	}
	qos_deal(p, from, p->nr, rest, caps, counts);
	for (i = from; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		if (a->ramp < 4 && a->window.nr && a->state == QOS_GOOD)
			a->ramp *= 2;
		counts[i] = ramped(p, a, counts[i]);
		/* A reduced tenant that uses bandwidth gets its TPCs back step by step. */
		room = a->nr ? a->nr + most_of(a->nr, 1 + p->rules.step / 4) : p->rules.step;
		if (counts[i] > room && counts[i] > a->least) {
			counts[i] = room > a->least ? room : a->least;
			p->growing = true;
		}
		explain(a, caps[i], counts[i]);
	}
}
