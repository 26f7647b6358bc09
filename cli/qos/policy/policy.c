// SPDX-License-Identifier: MIT
/*
 * The policy: the tenants, the first allocation from their goals, and the steps of an epoch. The
 * steps process the measurements and compute how many TPCs each tenant needs. Then they decide how
 * many TPCs each tenant gets, and choose these TPCs.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/qos/policy/internal.h"

/* ------------------------------------------------------------------------- texts */

__attribute__((format(printf, 3, 4)))
static int refuse(char *why, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, QOS_MESSAGE_SIZE, fmt, ap);
	va_end(ap);
	return err;
}

const char *qos_class_name(enum qos_class class)
{
	return class == QOS_COMPUTE ? "compute" : class == QOS_MEMORY ? "memory" : "unknown";
}

const char *qos_state_name(enum qos_state state)
{
	static const char *const names[] = {
		"waiting", "good", "missed", "idle", "lost", "stuck", "gone", "disturbed",
	};

	return names[state];
}

const char *qos_goal_name(enum qos_goal goal)
{
	static const char *const names[] = { "best effort", "alpha", "rate", "latency" };

	return names[goal];
}

void qos_board_of(const struct gpupart_topology *topo, struct qos_board *board)
{
	struct gpupart_tpcset one = gpupart_tpcset_first(1), all = gpupart_topology_all(topo);
	unsigned int sms = gpupart_set_cluster(topo, &one);

	*board = (struct qos_board){ .nr_tpcs = gpupart_topology_nr_tpcs(topo), .shapes = true };
	if (gpupart_set_cluster(topo, &all) >= GPUPART_PORTABLE_CLUSTER)
		board->cluster_tpcs = (GPUPART_PORTABLE_CLUSTER + sms - 1) / sms;
	for (unsigned int i = 0; i < board->nr_tpcs; i++) {
		const struct gpupart_tpc *tpc = gpupart_topology_tpc(topo, i);

		board->gpc[i] = tpc->gpc < 0 ? QOS_UNKNOWN_PLACE : tpc->gpc;
		board->ugpu[i] = tpc->ugpu < 0 ? QOS_UNKNOWN_PLACE : tpc->ugpu;
		/* The same rule as gpupart_set_cluster() for unknown virtual GPCs. */
		board->vgpc[i] = tpc->vgpc >= 0 ? (unsigned int)tpc->vgpc :
				 gpupart_topology_end_vgpc(topo) + tpc->gpc;
		board->shapes &= tpc->gpc >= 0;
	}
}

/* --------------------------------------------------------------------------- tenants */

static int check_tenant(const struct qos_tenant *t, const struct qos_board *board, char *why)
{
	if (t->goal == QOS_ALPHA && (t->alpha < 1 || t->alpha > 1000))
		return refuse(why, -EINVAL, "%s: alpha must be above 0 and at most 1",
			      t->name);
	if (t->goal == QOS_ALPHA && !t->alone)
		return refuse(why, -EINVAL, "%s: the goal alpha needs the tenant's solo speed",
			      t->name);
	if ((t->goal == QOS_RATE && !t->rate) || (t->goal == QOS_LATENCY && !t->latency_ns))
		return refuse(why, -EINVAL, "%s: the goal is 0", t->name);
	if (t->weight > 1000)
		return refuse(why, -EINVAL, "%s: weight %u: must be at most 1000",
			      t->name, t->weight);
	if (t->floor > board->nr_tpcs || t->ceiling > board->nr_tpcs)
		return refuse(why, -EINVAL, "%s: %s %u: the GPU has %u TPCs", t->name,
			      t->floor > board->nr_tpcs ? "floor" : "ceiling",
			      t->floor > board->nr_tpcs ? t->floor : t->ceiling, board->nr_tpcs);
	if (t->lend && t->goal == QOS_BEST_EFFORT)
		return refuse(why, -EINVAL,
			      "%s: lend: only a tenant with a goal lends; best effort borrows",
			      t->name);
	if (t->lend && !t->lend_ns && t->goal != QOS_LATENCY)
		return refuse(why, -EINVAL,
			      "%s: the value auto of lend needs a latency goal; use a time as the value",
			      t->name);
	if (t->ceiling && t->floor > t->ceiling)
		return refuse(why, -EINVAL, "%s: the floor of %u TPCs is above the ceiling of %u",
			      t->name, t->floor, t->ceiling);
	return 0;
}

static int check(const struct qos_board *board, const struct qos_tenant *tenants,
		 unsigned int nr, char *why)
{
	bool lends = false, borrows = false;
	unsigned int least = 0;
	int err;

	if (!nr || nr > QOS_MAX_TENANTS)
		return refuse(why, -EINVAL, "%u tenants: must be 1 to %d", nr, QOS_MAX_TENANTS);
	for (unsigned int i = 0; i < nr; i++) {
		err = check_tenant(&tenants[i], board, why);
		if (err)
			return err;
		for (unsigned int j = 0; j < i; j++)
			if (!strcmp(tenants[i].name, tenants[j].name))
				return refuse(why, -EINVAL, "two tenants are named %s",
					      tenants[i].name);
		least += tenants[i].floor ? tenants[i].floor : 1;
		lends |= tenants[i].lend;
		borrows |= tenants[i].goal == QOS_BEST_EFFORT;
	}
	if (lends && !borrows)
		return refuse(why, -EINVAL,
			      "lend: no tenant is best effort, so no tenant can borrow");
	if (least > board->nr_tpcs)
		return refuse(why, -ENOSPC,
			      "the floors of all tenants (each at least 1 TPC) need %u TPCs, but the GPU has only %u",
			      least, board->nr_tpcs);
	return 0;
}

/* Puts guaranteed tenants first, then sorts by weight, then by name. Never returns 0. */
static int by_rank(const void *a, const void *b)
{
	const struct qos_actor *x = a, *y = b;

	if (qos_guaranteed(x) != qos_guaranteed(y))
		return qos_guaranteed(x) ? -1 : 1;
	if (x->t.weight != y->t.weight)
		return x->t.weight > y->t.weight ? -1 : 1;
	return strcmp(x->t.name, y->t.name);
}

static void enlist(struct qos_policy *p, const struct qos_tenant *tenants)
{
	for (unsigned int i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		a->t = tenants[i];
		if (!a->t.weight)
			a->t.weight = 1;
		a->least = a->t.floor ? a->t.floor : 1;
		a->most = a->t.ceiling ? a->t.ceiling : p->board.nr_tpcs;
		a->patience = p->rules.dwell;
		a->ramp = 1;
		a->next_ramp = 2 * QOS_CALM;
		a->retry = QOS_RETRY;
	}
	qsort(p->actors, p->nr, sizeof(p->actors[0]), by_rank);
	for (unsigned int i = 0; i < p->nr; i++)
		for (unsigned int j = 0; j < p->nr; j++)
			if (!strcmp(p->actors[i].t.name, tenants[j].name))
				p->order[i] = j;
	qos_choose_curves(p);
}

/* ------------------------------------------------------ the first allocation */

/*
 * Returns the number of TPCs of the first allocation. It is the goal's share of all TPCs. For a
 * latency goal, it is the share by weight.
 */
static unsigned int goal_tpcs(const struct qos_policy *p, const struct qos_actor *a)
{
	unsigned int nr, weights = 0;
	uint64_t alpha = a->t.alpha;

	if (a->t.goal == QOS_RATE && a->t.alone)
		alpha = a->t.rate >= a->t.alone ? 1000 :
			(unsigned __int128)a->t.rate * 1000 / a->t.alone;
	for (unsigned int i = 0; i < p->nr; i++)
		weights += p->actors[i].t.weight;
	if (alpha)
		nr = (p->board.nr_tpcs * alpha + 999) / 1000;
	else
		nr = (qos_free(p) * a->t.weight + weights - 1) / weights;
	nr = nr < a->least ? a->least : nr;
	return nr > a->most ? a->most : nr;
}

/* Returns the number of TPCs that best-effort tenants do not need. */
static unsigned int most_for_guarantees(const struct qos_policy *p)
{
	unsigned int nr = qos_free(p);

	for (unsigned int i = 0; i < p->nr; i++)
		if (!qos_guaranteed(&p->actors[i]) && p->actors[i].state != QOS_GONE)
			nr -= p->actors[i].least;
	return nr;
}

/*
 * Gives guaranteed tenants the number of TPCs that they need. If there are too few TPCs,
 * distributes them by weight.
 */
static unsigned int grant(struct qos_policy *p, unsigned int *counts)
{
	unsigned int total = most_for_guarantees(p), sum = 0, nr, i;
	unsigned int held = gpupart_tpcset_count(&p->held);
	char others[48] = "";

	for (nr = 0; nr < p->nr && qos_guaranteed(&p->actors[nr]); nr++)
		sum += p->wants[nr];
	for (i = 0; i < nr; i++)
		counts[i] = p->wants[i];
	if (sum <= total)
		return sum;
	if (held)
		snprintf(others, sizeof(others), "; other programs have %u", held);
	if (nr == 1)
		qos_add_message(
			p,
			"%s: the goal cannot be met: it needs at least %u TPCs, but the tenant can "
			"get only %u%s",
			p->actors[0].t.name, sum, total, others);
	else
		qos_add_message(
			p,
			"the goals cannot be met together: they need %u TPCs, but there are only "
			"%u%s",
			sum, total, others);
	sum = 0;
	for (i = 0; i < nr; i++) {
		counts[i] = p->wants[i] < p->actors[i].least ? p->wants[i] : p->actors[i].least;
		sum += counts[i];
	}
	qos_deal(p, 0, nr, total - sum, p->wants, counts);
	for (i = 0; i < nr; i++)
		if (counts[i] < p->wants[i])
			qos_set_reason(&p->actors[i], "its share of %u TPCs; it asked for %u: %s",
				counts[i], p->wants[i], "there are no more TPCs");
	return total;
}

/*
 * Returns whether another tenant has adopted some TPCs of tenant @i, too. These TPCs do not yet
 * belong to one of the two tenants alone.
 */
static bool is_shared(const struct qos_policy *p, unsigned int i)
{
	const struct gpupart_tpcset *own = &p->actors[i].t.adopted;

	for (unsigned int j = 0; j < p->nr; j++)
		if (j != i && gpupart_tpcset_intersects(own, &p->actors[j].t.adopted))
			return true;
	return false;
}

/*
 * Adopts the present TPCs of each tenant. The TPCs must exist, and no earlier tenant may have
 * adopted them.
 */
static void adopt(struct qos_policy *p)
{
	struct gpupart_tpcset free = gpupart_tpcset_first(p->board.nr_tpcs);

	for (unsigned int i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		a->set = gpupart_tpcset_and(&a->t.adopted, &free);
		a->nr = gpupart_tpcset_count(&a->set);
		free = gpupart_tpcset_andnot(&free, &a->set);
		a->shared = is_shared(p, i);
		if (a->shared)
			continue;
		if (a->nr >= a->least && a->nr <= a->most) {
			a->ramp = 4;
			a->tried = true;
			continue;
		}
		a->set = (struct gpupart_tpcset){ 0 };
		a->nr = 0;
	}
}

static void first_wants(struct qos_policy *p)
{
	for (unsigned int i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		if (!qos_guaranteed(a))
			continue;
		a->guarantee = goal_tpcs(p, a);
		p->wants[i] = a->nr && !a->shared ? a->nr : a->guarantee;
		if (a->nr && !a->shared)
			qos_set_reason(a, "adopted with %u", a->nr);
		else
			qos_set_reason(a, "%u TPCs, from the goal", a->guarantee);
	}
}

/* ----------------------------------------------------------------------------- rounds */

static struct gpupart_tpcset reserved(const struct qos_policy *p)
{
	struct gpupart_tpcset set = gpupart_tpcset_first(p->board.nr_tpcs);

	set = gpupart_tpcset_andnot(&set, &p->held);
	for (unsigned int i = 0; i < p->nr; i++) {
		set = gpupart_tpcset_andnot(&set, &p->actors[i].set);
		set = gpupart_tpcset_andnot(&set, &p->actors[i].coming);
	}
	return set;
}

static void report_changes(const struct qos_policy *p, const struct gpupart_tpcset *before,
		 struct qos_decision *d)
{
	memset(d, 0, sizeof(*d));
	d->epoch = p->epoch;
	d->swapping = p->swapping;
	d->reserved = reserved(p);
	d->held = p->held;
	for (unsigned int i = 0; i < p->nr; i++) {
		const struct qos_actor *a = &p->actors[i];
		struct qos_verdict *v = &d->tenants[p->order[i]];

		v->set = a->set;
		v->coming = a->coming;
		v->nr_tpcs = a->nr;
		v->changed = !gpupart_tpcset_equal(&a->set, &before[i]);
		v->pending_since = a->pending_since;
		v->state = a->state;
		v->class = a->class;
		v->shape = a->shape;
		v->lend_ns = a->lend_ns;
		v->optimum = a->optimum;
		v->speed = a->speed;
		v->score = a->score;
		v->since_start = a->sum_weight && qos_guaranteed(a) ? a->sum / a->sum_weight : 0;
		memcpy(v->why, a->why, sizeof(v->why));
		d->changed |= v->changed;
	}
	memcpy(d->words, p->words, sizeof(d->words));
}

static void remember_sets(const struct qos_policy *p, struct gpupart_tpcset *before)
{
	for (unsigned int i = 0; i < p->nr; i++)
		before[i] = p->actors[i].set;
}

/* Measurements that were made before a change do not count after the change. */
static void begin_windows(struct qos_policy *p, const unsigned int *counts)
{
	bool effort_grew = false;
	unsigned int i;

	for (i = 0; i < p->nr; i++)
		effort_grew |= !qos_guaranteed(&p->actors[i]) && counts[i] > p->actors[i].nr;
	p->calm++;
	for (i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		a->stood++;
		if (counts[i] != a->nr) {
			a->lowered = counts[i] < a->nr;
			if (!a->lowered || a->stood >= QOS_CALM / 2)
				a->had_nr = a->lowered ? a->nr : 0;
			a->stood = 0;
			a->few_enough = false;
			a->moved = true;
			a->gathered = a->gathered_ns = 0;
			p->calm = 0;
		}
		if (counts[i] != a->nr || (effort_grew && qos_guaranteed(a)))
			a->window = (struct qos_window){ 0 };
	}
}

static void share_out(struct qos_policy *p)
{
	unsigned int counts[QOS_MAX_TENANTS] = { 0 }, given;

	qos_press(p);
	given = grant(p, counts);
	qos_share(p, qos_free(p) - given, counts);
	begin_windows(p, counts);
	qos_place(p, counts);
}

static void decide(struct qos_policy *p)
{
	unsigned int counts[QOS_MAX_TENANTS] = { 0 }, i;

	if (qos_try_shapes(p)) {
		for (i = 0; i < p->nr; i++)
			counts[i] = p->actors[i].nr;
		begin_windows(p, counts);
		qos_place(p, counts);
		return;
	}
	for (i = 0; i < p->nr && qos_guaranteed(&p->actors[i]); i++)
		p->wants[i] = qos_want(p, &p->actors[i]);
	share_out(p);
}

/* If a neighbour's load has changed, a number of TPCs that was too small may be enough now. */
static void forget_failures(struct qos_policy *p)
{
	bool another = false;
	unsigned int i;

	for (i = 0; i < p->nr; i++)
		another |= !qos_guaranteed(&p->actors[i]) && p->actors[i].forgot;
	for (i = 0; i < p->nr && another && qos_guaranteed(&p->actors[i]); i++) {
		struct qos_actor *a = &p->actors[i];
		uint64_t here = a->t.goal == QOS_LATENCY ? a->score : a->speed;

		if (a->noise > a->noise_was)
			a->noise = a->noise_was;
		a->patience = p->rules.dwell;
		a->failed_at = 0;
		a->few_enough = false;
		a->dip = 0;
		a->fresh = QOS_FRESH;
		qos_forget_shapes(a);
		a->curve[a->nr] = here;
	}
}

static void say_states(struct qos_policy *p)
{
	for (unsigned int i = 0; i < p->nr; i++) {
		const struct qos_actor *a = &p->actors[i];

		if (a->disturbed == 1 && a->state == QOS_DISTURBED)
			qos_add_message(
				p,
				"%s: another program changed this tenant's set, so the epoch does not count",
				a->t.name);
		if (a->state == QOS_LOST && a->silent == p->rules.hold + 1)
			qos_add_message(p, "%s: %s for %u epochs", a->t.name,
				a->begun ? "no signal" : "it has reported nothing", a->silent);
	}
}

/*
 * Another command can lend the TPCs of this tenant, and the policy cannot end this lending. If
 * nothing was lent by the policy for some epochs, the epoch counts as an epoch without lending.
 */
static bool is_ordered(struct qos_actor *a)
{
	a->unordered = a->lend_ns ? 0 : least_of(a->unordered + 1, QOS_LENT_AFTER + 1);
	return a->unordered <= QOS_LENT_AFTER;
}

void qos_policy_hold(struct qos_policy *p, const struct gpupart_tpcset *held)
{
	p->board.held = *held;
}

void qos_policy_step(struct qos_policy *p, const struct qos_measured *measured,
		     struct qos_decision *decision)
{
	struct gpupart_tpcset before[QOS_MAX_TENANTS];
	bool drained[QOS_MAX_TENANTS];
	struct qos_measured m;
	enum qos_state was;
	unsigned int i;

	remember_sets(p, before);
	p->words[0] = 0;
	if (p->swapping) {
		for (i = 0; i < p->nr; i++)
			drained[i] = measured[p->order[i]].drained || measured[p->order[i]].gone;
		qos_give_drained(p, drained);
		report_changes(p, before, decision);
		return;
	}
	p->epoch++;
	for (i = 0; i < p->nr; i++) {
		was = p->actors[i].state;
		m = measured[p->order[i]];
		p->actors[i].disturbed = m.disturbed ? p->actors[i].disturbed + 1 : 0;
		m.disturbed |= qos_newly_held(p, &p->actors[i]);
		m.lent &= is_ordered(&p->actors[i]);
		qos_take(p, &p->actors[i], &m);
		if (p->actors[i].state == QOS_GONE && was != QOS_GONE)
			qos_add_message(p, "%s: it ended", p->actors[i].t.name);
	}
	qos_find_held(p);
	qos_report_held(p);
	say_states(p);
	forget_failures(p);
	decide(p);
	for (i = 0; i < p->nr; i++)
		qos_lend(&p->actors[i], &measured[p->order[i]],
			 !gpupart_tpcset_equal(&p->actors[i].set, &before[i]) ||
			 !gpupart_tpcset_empty(&p->actors[i].coming));
	report_changes(p, before, decision);
}

int qos_policy_new(const struct qos_board *board, const struct qos_rules *rules,
		   const struct qos_tenant *tenants, unsigned int nr, struct qos_policy **policy,
		   struct qos_decision *first, char *why)
{
	static const struct gpupart_tpcset none[QOS_MAX_TENANTS];
	struct qos_policy *p;
	int err;

	if (!board->nr_tpcs || board->nr_tpcs > GPUPART_MAX_TPCS)
		return refuse(why, -EINVAL, "a GPU of %u TPCs is not possible", board->nr_tpcs);
	err = check(board, tenants, nr, why);
	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return refuse(why, -ENOMEM, "no memory");
	p->board = *board;
	p->rules = *rules;
	if (!p->rules.step)
		p->rules.step = board->nr_tpcs / 3 > 2 ? board->nr_tpcs / 3 : 2;
	if (!p->rules.hysteresis)
		p->rules.hysteresis = 20;
	if (!p->rules.dwell)
		p->rules.dwell = 2;
	if (!p->rules.hold)
		p->rules.hold = 10;
	p->nr = nr;
	enlist(p, tenants);
	qos_find_held(p);
	qos_report_held(p);
	adopt(p);
	first_wants(p);
	share_out(p);
	report_changes(p, none, first);
	*policy = p;
	return 0;
}

void qos_policy_free(struct qos_policy *p)
{
	free(p);
}
