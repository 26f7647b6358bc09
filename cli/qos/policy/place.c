// SPDX-License-Identifier: MIT
/*
 * Chooses the TPCs of each tenant for given numbers of TPCs. A tenant grows along GPCs. It first
 * gets the TPCs that it had before. It first gives up the TPCs that it needs least.
 */
#include <string.h>
#include "cli/qos/policy/internal.h"

/* Returns the position of a TPC if TPCs are sorted by uGPU, then by GPC, then by number. */
static unsigned int position(const struct qos_board *board, unsigned int tpc)
{
	return (unsigned int)board->ugpu[tpc] << 16 | (unsigned int)board->gpc[tpc] << 8 | tpc;
}

/* Guaranteed tenants start at the low end of the GPU, best-effort tenants at the high end. */
static uint64_t nearness(const struct qos_policy *p, const struct qos_actor *a, unsigned int tpc)
{
	unsigned int at = position(&p->board, tpc);

	return qos_guaranteed(a) ? (1u << 24) - at : at;
}

/* Returns the number of TPCs of @set in @place, a GPC, uGPU or virtual GPC. */
static unsigned int nr_in(const uint8_t *places, const struct gpupart_tpcset *set,
			  unsigned int place)
{
	unsigned int nr = 0;

	for (int t = gpupart_tpcset_next(set, 0); t >= 0; t = gpupart_tpcset_next(set, t + 1))
		nr += places[t] == place;
	return nr;
}

/*
 * Returns a larger value if @a prefers the free @tpc. Values are comparable for TPCs that @a last
 * had in the same epoch or never had. The present sets are in @hold.
 */
static uint64_t preference(const struct qos_policy *p, const struct gpupart_tpcset *hold,
			   unsigned int a, unsigned int tpc)
{
	unsigned int gpc = p->board.gpc[tpc], own, ugpu = 0, others = 0, i;

	own = nr_in(p->board.gpc, &hold[a], gpc);
	for (i = 0; i < p->nr && !own; i++)
		others += nr_in(p->board.gpc, &hold[i], gpc);
	if (p->actors[a].shape == QOS_SPREAD)
		own = GPUPART_MAX_TPCS - own;
	if (p->actors[a].shape != QOS_PACKED)
		ugpu = GPUPART_MAX_TPCS - nr_in(p->board.ugpu, &hold[a], p->board.ugpu[tpc]);
	return (uint64_t)own << 50 | (uint64_t)ugpu << 41 | (uint64_t)(256 - others) << 32 |
	       (uint64_t)!p->drains[tpc] << 31 | nearness(p, &p->actors[a], tpc);
}

/*
 * Finds the growing tenant that had @tpc most recently, and stores this tenant in @who. Returns 1 +
 * the last epoch in which this tenant had @tpc. If there is no such tenant, returns 0.
 */
static uint32_t missed_since(const struct qos_policy *p, const unsigned int *more,
			     unsigned int tpc, unsigned int *who)
{
	uint32_t last = 0;

	for (unsigned int i = 0; i < p->nr; i++)
		if (more[i] && p->actors[i].had[tpc] > last) {
			last = p->actors[i].had[tpc];
			*who = i;
		}
	return last;
}

/* Returns whether another tenant has TPCs in the GPC of @tpc. */
static bool is_shared(const struct qos_policy *p, const struct gpupart_tpcset *hold,
		      unsigned int a, unsigned int tpc)
{
	for (unsigned int i = 0; i < p->nr; i++)
		if (i != a && nr_in(p->board.gpc, &hold[i], p->board.gpc[tpc]))
			return true;
	return false;
}

/*
 * Decides the order in which @a gives up its TPCs. TPCs that other tenants had before and need now
 * are first. Among these, the TPCs that fit the set of @a least are first.
 */
static bool gives_up_first(const struct qos_policy *p, const struct gpupart_tpcset *hold,
			   const unsigned int *more, unsigned int a, unsigned int tpc,
			   unsigned int than)
{
	unsigned int who;
	uint32_t missed[2] = {
		missed_since(p, more, tpc, &who), missed_since(p, more, than, &who),
	};
	unsigned int own[2] = {
		nr_in(p->board.gpc, &hold[a], p->board.gpc[tpc]),
		nr_in(p->board.gpc, &hold[a], p->board.gpc[than]),
	};

	/* During the measurement of a shape, keep the shape even if other tenants need its TPCs. */
	if (p->actors[a].shape == QOS_PACKED && !p->actors[a].edge && missed[0] != missed[1])
		return missed[0] > missed[1];
	/* The tenant was slower because of its TPCs in GPCs of other tenants. */
	if (p->actors[a].edge && is_shared(p, hold, a, tpc) != is_shared(p, hold, a, than))
		return is_shared(p, hold, a, tpc);
	/*
	 * A spread set first gives up TPCs in the fullest GPCs. GPCs with just enough TPCs for a
	 * cluster are an exception.
	 */
	for (unsigned int i = 0; i < 2 && p->actors[a].shape == QOS_SPREAD; i++)
		own[i] = own[i] == p->board.cluster_tpcs ? GPUPART_MAX_TPCS :
			 GPUPART_MAX_TPCS - own[i];
	if (own[0] != own[1])
		return own[0] < own[1];
	return nearness(p, &p->actors[a], tpc) < nearness(p, &p->actors[a], than);
}

/* Removes @tpc. Until @tpc has drained, blocks of @a may run on it. */
static void remove_tpc(struct qos_policy *p, struct gpupart_tpcset *hold, unsigned int a,
		       unsigned int tpc)
{
	gpupart_tpcset_del(&hold[a], tpc);
	p->drains[tpc] = p->actors[a].state == QOS_GONE ? 0 : a + 1;
	p->actors[a].had[tpc] = p->epoch + 1;
}

static void remove_all(struct qos_policy *p, struct gpupart_tpcset *hold, unsigned int a,
		       const struct gpupart_tpcset *lost)
{
	for (unsigned int t = 0; t < p->board.nr_tpcs; t++)
		if (gpupart_tpcset_has(lost, t))
			remove_tpc(p, hold, a, t);
}

/* Removes TPCs of @a until it has at most its new number of TPCs. */
static void shrink(struct qos_policy *p, struct gpupart_tpcset *hold, const unsigned int *counts,
		   unsigned int a)
{
	unsigned int more[QOS_MAX_TENANTS], who, nr;

	for (unsigned int i = 0; i < p->nr; i++) {
		nr = gpupart_tpcset_count(&hold[i]);
		more[i] = counts[i] > nr ? counts[i] - nr : 0;
	}
	while (gpupart_tpcset_count(&hold[a]) > counts[a]) {
		int t = gpupart_tpcset_next(&hold[a], 0), tpc = t;

		for (; t >= 0; t = gpupart_tpcset_next(&hold[a], t + 1))
			if (gives_up_first(p, hold, more, a, t, tpc))
				tpc = t;
		/*
		 * Some of these TPCs belonged to another tenant. Give up as many of them as the
		 * other tenant can get back.
		 */
		if (missed_since(p, more, tpc, &who))
			more[who]--;
		remove_tpc(p, hold, a, tpc);
	}
}

/*
 * Adds TPCs of @pool to @a until it has its new number of TPCs. First adds the TPCs that @a gave
 * up most recently.
 */
static void grow(struct qos_policy *p, struct gpupart_tpcset *hold, const unsigned int *counts,
		 unsigned int a, struct gpupart_tpcset *pool)
{
	while (gpupart_tpcset_count(&hold[a]) < counts[a]) {
		uint64_t best = 0, now;
		int t, tpc = -1;

		for (t = gpupart_tpcset_next(pool, 0); t >= 0;
		     t = gpupart_tpcset_next(pool, t + 1)) {
			if (tpc >= 0 && p->actors[a].had[t] < p->actors[a].had[tpc])
				continue;
			now = preference(p, hold, a, t);
			if (tpc < 0 || p->actors[a].had[t] > p->actors[a].had[tpc] || now > best) {
				best = now;
				tpc = t;
			}
		}
		if (tpc < 0)
			return;
		gpupart_tpcset_del(pool, tpc);
		gpupart_tpcset_add(&hold[a], tpc);
	}
}

/*
 * Returns whether @set has enough TPCs of one virtual GPC for a cluster. If the whole @set is too
 * small for a cluster, also returns true.
 */
static bool holds_cluster(const struct qos_board *board, const struct gpupart_tpcset *set)
{
	bool held = gpupart_tpcset_count(set) < board->cluster_tpcs;

	for (int t = gpupart_tpcset_next(set, 0); t >= 0 && !held;
	     t = gpupart_tpcset_next(set, t + 1))
		held = nr_in(board->vgpc, set, board->vgpc[t]) >= board->cluster_tpcs;
	return held;
}

/*
 * Returns a TPC of @a outside @vgpc. This TPC is exchanged for a TPC of @vgpc. If @a has no TPC
 * outside @vgpc, returns -1.
 */
static int find_exchange(const struct qos_policy *p, const struct gpupart_tpcset *hold,
			 unsigned int a, unsigned int vgpc)
{
	static const unsigned int no_more[QOS_MAX_TENANTS];
	int tpc = -1;

	for (int t = gpupart_tpcset_next(&hold[a], 0); t >= 0;
	     t = gpupart_tpcset_next(&hold[a], t + 1))
		if (p->board.vgpc[t] != vgpc &&
		    (tpc < 0 || gives_up_first(p, hold, no_more, a, t, tpc)))
			tpc = t;
	return tpc;
}

/* Returns whether @a uses @tpc and cannot give it up before it gets another TPC. */
static bool needs_now(const struct qos_policy *p, const struct gpupart_tpcset *hold, unsigned int a,
		      unsigned int tpc)
{
	struct gpupart_tpcset both = gpupart_tpcset_or(&hold[a], &p->actors[a].set);

	return gpupart_tpcset_has(&p->actors[a].set, tpc) &&
	       gpupart_tpcset_count(&both) <= p->actors[a].least;
}

/*
 * Exchanges TPCs of @a for TPCs of @vgpc in *hold until a cluster fits there. First uses free TPCs.
 * If @others is true, then uses TPCs of other tenants. The sets of these tenants must keep room for
 * a cluster.
 */
static bool exchange(const struct qos_policy *p, struct gpupart_tpcset *hold, unsigned int a,
		     unsigned int vgpc, bool others)
{
	for (unsigned int t = 0; t < p->board.nr_tpcs; t++) {
		unsigned int owner = 0;
		int gives;

		if (p->board.vgpc[t] != vgpc || gpupart_tpcset_has(&hold[a], t) ||
		    gpupart_tpcset_has(&p->held, t))
			continue;
		while (owner < p->nr && !gpupart_tpcset_has(&hold[owner], t))
			owner++;
		gives = find_exchange(p, hold, a, vgpc);
		if (gives < 0 || (owner < p->nr && !others))
			continue;
		/* Each of the two tenants would wait for the other one. */
		if (owner < p->nr && needs_now(p, hold, owner, t) && needs_now(p, hold, a, gives))
			continue;
		if (owner < p->nr) {
			struct gpupart_tpcset was = hold[owner];

			gpupart_tpcset_del(&hold[owner], t);
			gpupart_tpcset_add(&hold[owner], gives);
			if (holds_cluster(&p->board, &was) &&
			    !holds_cluster(&p->board, &hold[owner])) {
				hold[owner] = was;
				continue;
			}
		}
		gpupart_tpcset_del(&hold[a], gives);
		gpupart_tpcset_add(&hold[a], t);
		if (nr_in(p->board.vgpc, &hold[a], vgpc) >= p->board.cluster_tpcs)
			return true;
	}
	return false;
}

/*
 * Changes the set of @a so that a cluster fits in it. Makes as few exchanges as possible. Avoids
 * TPCs of other tenants.
 */
static void hold_cluster(struct qos_policy *p, struct gpupart_tpcset *hold, unsigned int a)
{
	struct gpupart_tpcset trial[QOS_MAX_TENANTS], lost;

	for (unsigned int has = p->board.cluster_tpcs; has-- > 0;)
		for (unsigned int way = 0; way < 2 * (QOS_UNKNOWN_PLACE + 1); way++) {
			if (nr_in(p->board.vgpc, &hold[a], way / 2) != has)
				continue;
			memcpy(trial, hold, p->nr * sizeof(*hold));
			if (exchange(p, trial, a, way / 2, way % 2))
				goto found;
		}
	return;
found:
	for (unsigned int i = 0; i < p->nr; i++) {
		lost = gpupart_tpcset_andnot(&hold[i], &trial[i]);
		lost = gpupart_tpcset_and(&lost, &p->actors[i].set);
		remove_all(p, hold, i, &lost);
		p->actors[i].moved |= !gpupart_tpcset_empty(&lost);
		hold[i] = trial[i];
	}
}

static struct gpupart_tpcset draining(const struct qos_policy *p)
{
	struct gpupart_tpcset set = { 0 };

	for (unsigned int t = 0; t < p->board.nr_tpcs; t++)
		if (p->drains[t])
			gpupart_tpcset_add(&set, t);
	return set;
}

/*
 * Returns the TPCs that @a uses from now on, if it will have @hold after the swap. TPCs in @busy
 * are not available yet. So @a keeps TPCs that it will give up, until it has enough other TPCs and
 * room for a cluster. The floor is enough for a best-effort tenant, or if @a gives up TPCs of other
 * programs. If @relax is 1, the floor is enough for each tenant. If @relax is 2, the floor is
 * enough even without room for a cluster. First gives up TPCs in @wanted.
 */
static struct gpupart_tpcset in_force(const struct qos_policy *p, const struct qos_actor *a,
				      const struct gpupart_tpcset *hold,
				      const struct gpupart_tpcset *busy,
				      const struct gpupart_tpcset *wanted, unsigned int relax)
{
	unsigned int had = gpupart_tpcset_count(&a->set), will = gpupart_tpcset_count(hold);
	unsigned int need = least_of(had, will);
	bool clusters = relax < 2 && had && holds_cluster(&p->board, hold);
	struct gpupart_tpcset next = gpupart_tpcset_andnot(hold, busy), less;
	struct gpupart_tpcset old = gpupart_tpcset_andnot(&a->set, hold);

	if (!qos_guaranteed(a) || relax || gpupart_tpcset_intersects(&old, &p->held))
		need = least_of(need, a->least);
	if (gpupart_tpcset_count(&next) >= need && (!clusters || holds_cluster(&p->board, &next)))
		return next;
	next = gpupart_tpcset_or(&next, &old);
	for (unsigned int n = 0; n < 2 * p->board.nr_tpcs; n++) {
		unsigned int t = n % p->board.nr_tpcs;

		less = next;
		gpupart_tpcset_del(&less, t);
		if (gpupart_tpcset_has(&old, t) && gpupart_tpcset_count(&less) >= need &&
		    (n >= p->board.nr_tpcs || gpupart_tpcset_has(wanted, t)) &&
		    (!clusters || holds_cluster(&p->board, &less)))
			next = less;
	}
	if (gpupart_tpcset_count(&next) > (had > will ? had : will) ||
	    (clusters && !holds_cluster(&p->board, &next)))
		return a->set;
	return next;
}

/*
 * Adds TPCs to sets. If blocks of another tenant may still run on a TPC, adds the TPC after it has
 * drained. Adds all other TPCs at once. If tenants wait for TPCs of each other, ends the swap, so
 * they keep their present sets. If this happens again, asks less of the sets during the swap.
 */
static void add_when_drained(struct qos_policy *p, const struct gpupart_tpcset *hold)
{
	struct gpupart_tpcset busy = draining(p), wanted = { 0 }, used;
	unsigned int relax = 0, most, will;

	for (unsigned int i = 0; i < p->nr; i++)
		wanted = gpupart_tpcset_or(&wanted, &hold[i]);
	do {
		most = p->stuck;
		used = (struct gpupart_tpcset){ 0 };
		for (unsigned int i = 0; i < p->nr; i++) {
			struct qos_actor *a = &p->actors[i];

			a->set = in_force(p, a, &hold[i], &busy, &wanted, relax);
			will = gpupart_tpcset_count(&hold[i]);
			if (gpupart_tpcset_count(&a->set) <
			    (qos_guaranteed(a) ? will : least_of(will, 1)))
				most = 2;
			used = gpupart_tpcset_or(&used, &a->set);
		}
		p->swapping = !gpupart_tpcset_subset(&busy, &used);
	} while (!p->swapping && !gpupart_tpcset_empty(&busy) && relax < 2 && relax++ < most);
	if (!p->swapping) {
		p->stuck = gpupart_tpcset_empty(&busy) ? 0 : p->stuck + 1;
		memset(p->drains, 0, sizeof(p->drains));
	}
	for (unsigned int i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		a->coming = (struct gpupart_tpcset){ 0 };
		if (p->swapping)
			a->coming = gpupart_tpcset_andnot(&hold[i], &a->set);
		a->nr = gpupart_tpcset_count(p->swapping ? &hold[i] : &a->set);
		if (gpupart_tpcset_empty(&a->coming))
			a->pending_since = 0;
		else if (!a->pending_since)
			a->pending_since = p->epoch;
	}
}

/*
 * Replaces the TPCs of @a by TPCs in its new shape. Takes free TPCs and TPCs of best-effort
 * tenants. If @a itself is a best-effort tenant, takes only TPCs of tenants with packed sets. If
 * a tenant would temporarily have fewer TPCs than its floor, @a keeps its old TPCs.
 */
static void arrange(struct qos_policy *p, struct gpupart_tpcset *hold, const unsigned int *counts,
		    unsigned int a)
{
	struct gpupart_tpcset lay[QOS_MAX_TENANTS] = { 0 }, lost[QOS_MAX_TENANTS], stays;
	struct gpupart_tpcset pool = gpupart_tpcset_first(p->board.nr_tpcs);
	uint32_t had[GPUPART_MAX_TPCS];
	unsigned int i;

	pool = gpupart_tpcset_andnot(&pool, &p->held);
	for (i = 0; i < p->nr; i++)
		if (i != a && (qos_guaranteed(&p->actors[i]) ||
			       (p->actors[i].shape != QOS_PACKED &&
				!qos_guaranteed(&p->actors[a])))) {
			lay[i] = hold[i];
			pool = gpupart_tpcset_andnot(&pool, &hold[i]);
		}
	memcpy(had, p->actors[a].had, sizeof(had));
	memset(p->actors[a].had, 0, sizeof(had));
	grow(p, lay, counts, a, &pool);
	for (i = 0; i < p->nr; i++) {
		lost[i] = i == a ? gpupart_tpcset_andnot(&hold[a], &lay[a]) :
				   gpupart_tpcset_and(&hold[i], &lay[a]);
		stays = gpupart_tpcset_andnot(&hold[i], &lost[i]);
		if (p->actors[i].nr && gpupart_tpcset_count(&stays) < p->actors[i].least)
			break;
	}
	if (i < p->nr) {
		memcpy(p->actors[a].had, had, sizeof(had));
		p->actors[a].shape = p->actors[a].was;
		return;
	}
	for (i = 0; i < p->nr; i++) {
		p->actors[i].moved |= !gpupart_tpcset_empty(&lost[i]);
		remove_all(p, hold, i, &lost[i]);
	}
	hold[a] = lay[a];
}

void qos_place(struct qos_policy *p, const unsigned int *counts)
{
	struct gpupart_tpcset hold[QOS_MAX_TENANTS], lost;
	struct gpupart_tpcset pool = gpupart_tpcset_first(p->board.nr_tpcs);
	unsigned int i;

	for (i = 0; i < p->nr; i++)
		hold[i] = p->actors[i].set;
	for (i = 0; i < p->nr; i++) {
		lost = gpupart_tpcset_and(&hold[i], &p->held);
		remove_all(p, hold, i, &lost);
	}
	for (i = 0; i < p->nr; i++)
		shrink(p, hold, counts, i);
	if (p->relay)
		arrange(p, hold, counts, p->relay - 1);
	p->relay = 0;
	qos_choose_curves(p);
	pool = gpupart_tpcset_andnot(&pool, &p->held);
	for (i = 0; i < p->nr; i++)
		pool = gpupart_tpcset_andnot(&pool, &hold[i]);
	for (i = 0; i < p->nr; i++)
		grow(p, hold, counts, i, &pool);
	for (i = 0; i < p->nr; i++)
		if (!holds_cluster(&p->board, &hold[i]))
			hold_cluster(p, hold, i);
	/*
	 * If a tenant has just given up a TPC, it can get the TPC back at once, because only its
	 * own blocks run there.
	 */
	for (unsigned int t = 0; t < p->board.nr_tpcs; t++)
		if (p->drains[t] && gpupart_tpcset_has(&hold[p->drains[t] - 1], t))
			p->drains[t] = 0;
	add_when_drained(p, hold);
}

void qos_give_drained(struct qos_policy *p, const bool *drained)
{
	struct gpupart_tpcset hold[QOS_MAX_TENANTS];

	for (unsigned int i = 0; i < p->nr; i++) {
		hold[i] = gpupart_tpcset_or(&p->actors[i].set, &p->actors[i].coming);
		for (unsigned int t = 0; t < p->board.nr_tpcs; t++) {
			if (p->drains[t] != i + 1)
				continue;
			gpupart_tpcset_del(&hold[i], t);
			if (drained[i] && !gpupart_tpcset_has(&p->actors[i].set, t))
				p->drains[t] = 0;
		}
	}
	add_when_drained(p, hold);
}
