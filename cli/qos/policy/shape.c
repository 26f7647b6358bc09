// SPDX-License-Identifier: MIT
/*
 * Tries other shapes of a tenant's set with the same number of TPCs, and keeps the fastest shape.
 */
#include "cli/qos/policy/internal.h"

#define ALL		((1u << QOS_SHAPES) - 1)
#define GAIN		30u	/* minimum gain for a change of the shape, in thousandths */
#define TRIAL		4u	/* maximum number of epochs until the speed in a shape is known */
#define SURE		3u	/* after this number of misses with the same TPCs, another shape
				 * is tried */
#define MUCH		500 /* above this gain, shapes matter little; in thousandths of a
			     * proportional gain */
#define ALL_OF_IT	900	/* above this gain, shapes do not matter; in thousandths of a
				 * proportional gain */

static void change(struct qos_policy *p, struct qos_actor *a, enum qos_shape shape)
{
	if (a->shape == shape)
		return;
	a->was = a->shape;
	a->shape = shape;
	a->gathered = a->gathered_ns = 0;
	p->relay = 1 + (a - p->actors);
}

/* Returns whether best-effort tenants can use the TPCs that a faster shape saves. */
static bool effort_can_use(const struct qos_policy *p)
{
	for (unsigned int i = 0; i < p->nr; i++)
		if (!qos_guaranteed(&p->actors[i]) && !qos_without_signal(&p->actors[i]))
			return true;
	return false;
}

static bool others_are_met(const struct qos_policy *p, const struct qos_actor *a)
{
	for (unsigned int i = 0; i < p->nr; i++) {
		const struct qos_actor *b = &p->actors[i];

		if (b->forgot || b->state == QOS_DISTURBED || (b->state == QOS_GONE && b->nr) ||
		    (b != a && qos_guaranteed(b) && b->state == QOS_MISSED))
			return false;
	}
	return true;
}

/* Returns whether all tenants can keep their present numbers of TPCs. */
static bool counts_can_stay(const struct qos_policy *p)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < p->nr; i++) {
		if (p->actors[i].nr < p->actors[i].least && p->actors[i].state != QOS_GONE)
			return false;
		nr += p->actors[i].nr;
	}
	return nr <= qos_free(p);
}

/* With many more TPCs, the tenant may reach the full bandwidth of DRAM in any shape. */
static bool is_due_again(const struct qos_actor *a)
{
	return (a->shape == QOS_BALANCED || (a->shape == QOS_PACKED && a->class == QOS_MEMORY)) &&
	       !a->fresh && a->nr * 4 <= a->tried_nr * 3 &&
	       qos_times(a->curves[QOS_SPREAD][a->tried_nr], 1000 + GAIN, 1000) >
		       a->curves[a->shape][a->tried_nr];
}

static bool is_due(const struct qos_policy *p, const struct qos_actor *a)
{
	int answer;

	if (a->tried_shapes == ALL && !is_due_again(a))
		return false;
	if (a->wait_shapes || a->nr < most_of(4, p->board.cluster_tpcs) ||
	    a->nr * 4 > p->board.nr_tpcs * 3 || !a->curve[a->nr] || !others_are_met(p, a))
		return false;
	if (!qos_guaranteed(a) && a->ramp == 2)
		return a->state == QOS_GOOD && qos_answer(a, &answer) && answer < ALL_OF_IT;
	if (!qos_guaranteed(a))
		return a->state == QOS_GOOD && a->class == QOS_MEMORY && a->ramp == 4 && a->stood;
	if (a->state == QOS_MISSED)
		return a->deaf || a->window.misses >= SURE;
	return a->state == QOS_GOOD && a->window.nr + !!a->fresh >= 2 && !qos_ramping(p) &&
	       !p->growing && effort_can_use(p);
}

static void begin_trial(struct qos_policy *p, struct qos_actor *a)
{
	enum qos_shape shape = qos_guaranteed(a) ? QOS_BALANCED : QOS_SPREAD;

	/*
	 * Memory streams are fastest in a spread set. But in a spread set, launches of other
	 * tenants run in the same GPCs.
	 */
	while (a->tried_shapes >> shape & 1)
		shape = (shape + 1) % QOS_SHAPES;
	change(p, a, shape);
	a->trying = shape;
	a->trial = 1;
}

/*
 * Chooses the fastest shape. If the load has changed, the policy tries the shapes again. After a
 * trial without gain, the policy tries the shapes again later.
 */
static void end_trials(struct qos_policy *p, struct qos_actor *a)
{
	bool changed = a->best != a->base;

	a->trial = 0;
	a->tried_shapes = ALL;
	a->noise = a->noise_before;
	a->dip = a->dip_before;
	a->fresh = a->fresh_before;
	if (qos_guaranteed(a))
		a->window = (struct qos_window){ 0 };
	a->next_shapes = changed ? 0 : least_of(a->next_shapes ? 2 * a->next_shapes : QOS_CALM,
						QOS_PATIENT);
	a->wait_shapes = a->next_shapes;
	change(p, a, a->best);
	qos_choose_curves(p);
	if (!changed)
		return;
	qos_add_message(p, "%s: %s is faster than %s with %u TPCs", a->t.name,
			qos_shape_name(a->best), qos_shape_name(a->base), a->nr);
	a->failed_at = a->keep = 0;
	a->few_enough = false;
	a->deaf = false;
	a->raise = (struct qos_raise){ 0 };
	a->patience = p->rules.dwell;
	a->fresh = QOS_FRESH;
	if (qos_guaranteed(a))
		return;
	/*
	 * Measure half of its share and then its whole share, to find out how many TPCs it needs.
	 */
	a->class = QOS_UNKNOWN;
	a->optimum = a->probe = 0;
	a->ramp = 2;
	a->next_ramp = 2 * QOS_CALM;
}

/* Continues a trial after one of its epochs has ended as planned. */
static void continue_trial(struct qos_policy *p, struct qos_actor *a)
{
	uint64_t margin = 1000 + GAIN + 2 * a->noise_before / 16, value;
	int answer;

	/* If the planned shape was not possible, the set has a different shape. */
	value = a->shape == a->trying ? a->curve[a->nr] : 0;
	if (a->shape == a->trying && !value && a->trial++ < TRIAL)
		return;
	a->tried_shapes |= 1u << a->trying;
	/*
	 * If more TPCs do not help, fewer TPCs are enough in a shape without shared ports of GPCs.
	 */
	if (a->trying == QOS_SPREAD && a->class == QOS_MEMORY)
		margin = 1000 - GAIN;
	if (qos_times(a->curves[a->best][a->nr], margin, 1000) < value)
		a->best = a->trying;
	/*
	 * If the speed is proportional to the TPCs in one shape, it is proportional in every shape.
	 */
	a->curve = a->curves[a->base];
	if (a->tried_shapes == ALL || (a->best == a->base && qos_guaranteed(a) &&
				       qos_answer(a, &answer) && answer >= MUCH))
		end_trials(p, a);
	else
		begin_trial(p, a);
}

static void explain(struct qos_policy *p, const struct qos_actor *tries)
{
	for (unsigned int i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		if (a->state == QOS_GONE)
			qos_set_reason(a, "it ended");
		else if (a != tries)
			qos_set_reason(a, "as many TPCs as before while %s tries another shape",
				tries->t.name);
		else if (a->trial)
			qos_set_reason(a, "trying %u TPCs %s", a->nr, qos_shape_name(a->shape));
		else
			qos_set_reason(a, "%s is the fastest shape of its %u TPCs",
				qos_shape_name(a->best), a->nr);
	}
}

bool qos_try_shapes(struct qos_policy *p)
{
	struct qos_actor *a = NULL;

	for (unsigned int i = 0; i < p->nr; i++) {
		if (p->actors[i].wait_shapes)
			p->actors[i].wait_shapes--;
		if (p->actors[i].trial)
			a = &p->actors[i];
	}
	if (a && (!others_are_met(p, a) || qos_without_signal(a) || a->state == QOS_IDLE ||
		  !counts_can_stay(p))) {
		a->trial = 0;
		a->noise = a->noise_before;
		a->wait_shapes = TRIAL;
		change(p, a, a->best);
		qos_choose_curves(p);
		return false;
	}
	if (!a) {
		for (unsigned int i = 0; i < p->nr && !a && p->board.shapes; i++)
			a = is_due(p, &p->actors[i]) ? &p->actors[i] : NULL;
		if (!a || !counts_can_stay(p))
			return false;
		a->base = a->best = a->shape;
		a->tried_shapes = a->tried_shapes == ALL ? ALL & ~(1u << QOS_SPREAD) :
							   1u << a->shape;
		a->tried_nr = a->nr;
		a->noise_before = a->noise;
		a->dip_before = a->dip;
		a->fresh_before = a->fresh;
		begin_trial(p, a);
	} else {
		continue_trial(p, a);
		/* A guaranteed tenant's speed in its present shape must be known first. */
		if (!a->trial && !qos_guaranteed(a))
			return false;
	}
	explain(p, a);
	return true;
}

const char *qos_shape_name(enum qos_shape shape)
{
	static const char *const names[] = { "packed", "balanced", "spread" };

	return names[shape];
}
