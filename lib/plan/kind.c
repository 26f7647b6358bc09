// SPDX-License-Identifier: MIT
/*
 * Kinds of GPCs and questions about them. Must not know how an answer is found.
 */
#include <string.h>
#include "lib/plan/kind.h"

unsigned int plan_kind_places(const struct plan_kind *kind, unsigned int level)
{
	return level ? kind->nr_main >> level : kind->nr;
}

/* What of a GPC's largest virtual GPC can be told with these homes, a bit each. */
static unsigned int tell_main(const struct plan_kinds *k, unsigned int homes, unsigned int nr_main)
{
	unsigned int whole = 1;

	for (; homes; homes &= homes - 1)
		if ((homes & -homes) <= nr_main)
			whole = homes & -homes;
	/* Who has room for a home has it for two of half the size. */
	nr_main = k->levels ? nr_main >> k->first_level << k->first_level : 0;
	return nr_main > whole ? nr_main : whole;
}

static unsigned int find_kind(const struct plan_kinds *k, const struct plan_kind *kind)
{
	unsigned int at = 0;

	while (at < k->nr && memcmp(&k->kind[at], kind, sizeof(*kind)))
		at++;
	return at;
}

static void add_kind(struct plan_kinds *k, const struct plan_kind *kind)
{
	unsigned int at = k->nr++;

	for (; at > 0 && k->kind[at - 1].nr < kind->nr; at--)
		k->kind[at] = k->kind[at - 1];
	k->kind[at] = *kind;
}

static struct plan_kind kind_of(const struct plan_kinds *k, unsigned int homes,
				const struct plan_gpc *g)
{
	return (struct plan_kind){ g->nr, tell_main(k, homes, g->nr_main), g->ugpu };
}

void plan_kinds_find(struct plan_kinds *k, const struct plan_ask *ask)
{
	unsigned int homes = 0;

	*k = (struct plan_kinds){ .ask = ask, .nr_ugpus = ask->gpu.nr_ugpus,
				   .first_level = PLAN_MAX_LEVELS };
	for (unsigned int i = 0; i < ask->nr; i++) {
		const struct plan_tenant *t = &ask->tenants[i];

		k->nr_whole += t->whole;
		k->grouped[i] = t->same | t->apart;
		k->groups |= k->grouped[i];
		if (t->whole)
			homes |= t->home;
		if (t->whole || t->home < 2)
			continue;
		if (t->home < 1u << k->first_level)
			k->first_level = __builtin_ctz(t->home);
		while (t->home >> (k->levels + 1))
			k->levels++;
	}
	plan_room_clear(&k->broken, k->nr_ugpus);
	for (unsigned int i = 0; i < ask->gpu.nr_gpcs; i++) {
		const struct plan_gpc *g = &ask->gpu.gpcs[i];
		struct plan_kind kind = kind_of(k, homes, g);

		if (!g->whole)
			plan_room_add(&k->broken, kind.ugpu, g->nr, g->nr_main);
		else if (g->nr && find_kind(k, &kind) == k->nr)
			add_kind(k, &kind);
	}
	for (unsigned int i = 0; i < ask->gpu.nr_gpcs; i++) {
		struct plan_kind kind = kind_of(k, homes, &ask->gpu.gpcs[i]);

		k->of[i] = find_kind(k, &kind);
		if (ask->gpu.gpcs[i].whole && ask->gpu.gpcs[i].nr)
			k->there[k->of[i]]++;
	}
}

/* What is needed beyond @have; of what no GPU has one more than that. */
static unsigned int above(unsigned int need, unsigned int have, unsigned int level)
{
	unsigned int most = (GPUPART_MAX_TPCS >> level) + 1;

	need = need > have ? need - have : 0;
	return need < most ? need : most;
}

/* Who shares has first what nobody can have whole. */
static void find_pools(struct plan_question *q, const struct plan_kinds *k)
{
	memset(q->pool, 0, sizeof(q->pool));
	for (unsigned int level = 0; level <= k->levels; level++) {
		unsigned int all = 0, have = 0;

		for (unsigned int i = 0; i < q->nr_shares; i++) {
			unsigned int nr = level ? q->shares[i].home >> level : q->shares[i].nr;

			all += nr;
			if (q->shares[i].ugpu != PLAN_ANYWHERE)
				q->pool[level][q->shares[i].ugpu] += nr;
		}
		for (unsigned int u = 0; u < k->nr_ugpus; u++) {
			unsigned int broken = level ? k->broken.places[level][u] : k->broken.nr[u];

			q->pool[level][u] = above(q->pool[level][u], broken, level);
			have += broken;
		}
		q->pool[level][PLAN_ANY_UGPU] = above(all, have, level);
	}
}

static void add_unit(struct plan_question *q, const struct plan_unit *unit)
{
	bool one = unit->ugpus && !(unit->ugpus & (unit->ugpus - 1));

	q->units[q->nr_units++] = *unit;
	for (uint32_t left = unit->members; left; left &= left - 1)
		q->ugpu[__builtin_ctz(left)] = one ? __builtin_ctzll(unit->ugpus) : PLAN_ANYWHERE;
}

void plan_view_find(const struct plan_kinds *k, struct plan_view *v)
{
	for (unsigned int kind = 0; kind < k->nr; kind++) {
		const struct plan_kind *of = &k->kind[kind];

		v->first[kind] = kind;
		v->twin[kind] = -1;
		for (unsigned int other = 0; other < kind; other++) {
			const struct plan_kind *before = &k->kind[other];

			if (before->nr != of->nr || (before->ugpu != of->ugpu &&
			    (v->ugpus >> of->ugpu & 1 || v->ugpus >> before->ugpu & 1)) ||
			    tell_main(k, v->homes, before->nr_main) !=
			    tell_main(k, v->homes, of->nr_main))
				continue;
			v->first[kind] = v->first[other];
			v->twin[kind] = other;
		}
	}
}

/* Where those who share are bound to a uGPU and need more there than nobody can have whole. */
static uint64_t shares_tell(const struct plan_question *q, const struct plan_kinds *k)
{
	uint64_t ugpus = 0;

	for (unsigned int i = 0; i < q->nr_shares; i++)
		if (q->shares[i].ugpu != PLAN_ANYWHERE &&
		    (k->levels || q->pool[0][q->shares[i].ugpu]))
			ugpus |= 1ull << q->shares[i].ugpu;
	return ugpus;
}

void plan_question_view(const struct plan_question *q, const struct plan_kinds *k,
			uint32_t tenants, struct plan_view *v)
{
	v->homes = 0;
	v->ugpus = shares_tell(q, k);
	for (tenants &= (1u << k->nr_whole) - 1; tenants; tenants &= tenants - 1) {
		unsigned int i = __builtin_ctz(tenants);

		v->homes |= k->ask->tenants[i].home;
		if (i == q->exact_tenant && q->exact_ugpus != ~0ull)
			v->ugpus |= q->exact_ugpus;
		if (q->ugpu[i] != PLAN_ANYWHERE)
			v->ugpus |= 1ull << q->ugpu[i];
	}
}

void plan_question_set(struct plan_question *q, const struct plan_kinds *k, uint32_t tenants,
		       const struct plan_unit *units, unsigned int nr_units)
{
	q->tenants = tenants;
	q->nr_units = q->nr_shares = 0;
	q->exact_tenant = PLAN_NOBODY;
	for (unsigned int i = 0; i < nr_units; i++)
		if (units[i].members & tenants)
			add_unit(q, &units[i]);
	for (unsigned int i = 0; i < k->ask->nr; i++) {
		const struct plan_tenant *t = &k->ask->tenants[i];

		if (!(tenants >> i & 1))
			continue;
		if (!k->grouped[i])
			add_unit(q, &(struct plan_unit){ 1u << i, 0 });
		if (!t->whole)
			q->shares[q->nr_shares++] = (struct plan_need){
				t->min, t->home > 1 ? t->home : 0, q->ugpu[i] };
	}
	find_pools(q, k);
	plan_question_view(q, k, tenants, &q->view);
	for (unsigned int i = 0; i < nr_units; i++)
		q->view.ugpus |= units[i].ugpus;
	plan_view_find(k, &q->view);
}

int plan_question_ugpu(const struct plan_question *q, unsigned int tenant)
{
	if (tenant == q->exact_tenant && !(q->exact_ugpus & (q->exact_ugpus - 1)))
		return __builtin_ctzll(q->exact_ugpus);
	return q->ugpu[tenant];
}

struct plan_demand plan_question_demand(const struct plan_question *q,
					const struct plan_kinds *k, unsigned int tenant)
{
	const struct plan_tenant *t = &k->ask->tenants[tenant];
	struct plan_demand d = { t->min, t->max, t->home };

	if (tenant == q->exact_tenant)
		return (struct plan_demand){ q->exact_sum, q->exact_sum,
					     q->exact_home ? t->home : 1 };
	/* What has more than that can do without a GPC. */
	if (d.max > d.min + k->ask->gpu.largest)
		d.max = d.min + k->ask->gpu.largest;
	return d;
}
