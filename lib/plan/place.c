// SPDX-License-Identifier: MIT
/*
 * Who shares GPCs: how many TPCs each gets, in which GPC its clusters fit, and how many of
 * each GPC. Nothing here searches: what is taken is asked of plan_fits() first, which is
 * exact, so that there is no way back to go. Knows no TPC.
 */
#include <string.h>
#include "lib/plan/plan.h"

#define NO_SCORE (~0u)
#define SCORE_OTHERS	(1u << 12)	/* a tenant more in a GPC of its own */
#define SCORE_UGPU	(1u << 6)	/* a uGPU more */
#define SCORE_GPC	1u

struct place {
	const struct plan_ask *ask;
	struct plan_counts *counts;
	unsigned int nr[PLAN_MAX_GPCS], nr_main[PLAN_MAX_GPCS];	/* that GPCs have left */
	struct plan_room room;		/* the same by uGPU */
	unsigned int first;		/* of those who share */
	unsigned int rest[PLAN_MAX_TENANTS];	/* TPCs each is still to get */
	bool packed[PLAN_MAX_GPCS];	/* has one in it that packs */
};

static void find_room(struct place *p)
{
	plan_room_clear(&p->room, p->ask->gpu.nr_ugpus);
	for (unsigned int gpc = 0; gpc < p->ask->gpu.nr_gpcs; gpc++)
		plan_room_add(&p->room, p->ask->gpu.gpcs[gpc].ugpu, p->nr[gpc], p->nr_main[gpc]);
}

/* ------------------------------------------------------------------- homes */

/* Gives a home, and a negative @size takes it back. */
static void give_home(struct place *p, unsigned int tenant, unsigned int gpc, int size)
{
	p->counts->home[tenant] = size > 0 ? (int)gpc : -1;
	p->counts->nr[tenant][gpc] += size;
	p->nr[gpc] -= size;
	p->nr_main[gpc] -= size;
	p->rest[tenant] -= size;
}

static bool home_leaves_room(struct place *p, unsigned int tenant, unsigned int gpc)
{
	const struct plan_tenant *t = p->ask->tenants;
	struct plan_need needs[PLAN_MAX_TENANTS];
	unsigned int nr = 0;

	if (p->nr_main[gpc] < t[tenant].home)
		return false;
	give_home(p, tenant, gpc, t[tenant].home);
	find_room(p);
	for (unsigned int i = p->first; i < p->ask->nr; i++)
		needs[nr++] = (struct plan_need){
			p->rest[i], p->counts->home[i] >= 0 || t[i].home < 2 ? 0 : t[i].home,
			p->counts->ugpu[i] };
	give_home(p, tenant, gpc, -(int)t[tenant].home);
	return plan_fits(&p->room, needs, nr);
}

/* Where the fewest have theirs, then the tenant's order of GPCs. False: there is none. */
static bool place_home(struct place *p, unsigned int tenant)
{
	unsigned int order[PLAN_MAX_GPCS], homes[PLAN_MAX_GPCS] = { 0 };
	int best = -1;

	for (unsigned int i = p->first; i < tenant; i++)
		if (p->counts->home[i] >= 0)
			homes[p->counts->home[i]]++;
	plan_order(p->ask, p->counts, tenant, order);
	for (unsigned int i = 0; i < p->ask->gpu.nr_gpcs; i++) {
		int ugpu = p->counts->ugpu[tenant];

		if ((ugpu == PLAN_ANYWHERE || ugpu == (int)p->ask->gpu.gpcs[order[i]].ugpu) &&
		    (best < 0 || homes[order[i]] < homes[best]) &&
		    home_leaves_room(p, tenant, order[i]))
			best = order[i];
	}
	if (best < 0)
		return false;
	give_home(p, tenant, best, p->ask->tenants[tenant].home);
	return true;
}

/* -------------------------------------------------------------------- sets */

/* How much of each uGPU @tenant may take so that those bound to it still get theirs. */
static void find_slack(const struct place *p, unsigned int tenant, unsigned int *slack)
{
	unsigned int ugpus = p->ask->gpu.nr_ugpus;

	memset(slack, 0, ugpus * sizeof(*slack));
	for (unsigned int gpc = 0; gpc < p->ask->gpu.nr_gpcs; gpc++)
		slack[p->ask->gpu.gpcs[gpc].ugpu] += p->nr[gpc];
	for (unsigned int i = p->first; i < p->ask->nr; i++)
		if (i != tenant && p->counts->ugpu[i] != PLAN_ANYWHERE)
			slack[p->counts->ugpu[i]] -= p->rest[i];
	for (unsigned int u = 0; u < ugpus; u++)
		if (p->counts->ugpu[tenant] != PLAN_ANYWHERE && p->counts->ugpu[tenant] != (int)u)
			slack[u] = 0;
}

static void take(struct place *p, unsigned int tenant, unsigned int gpc, unsigned int nr,
		 unsigned int *slack)
{
	p->counts->nr[tenant][gpc] += nr;
	p->nr[gpc] -= nr;
	p->rest[tenant] -= nr;
	slack[p->ask->gpu.gpcs[gpc].ugpu] -= nr;
}

/* What a tenant that packs chooses from. */
struct pack {
	unsigned int nr, need, first_ugpu[PLAN_MAX_UGPUS + 1], nr_ugpus;
	unsigned int gpc[PLAN_MAX_GPCS], score[PLAN_MAX_GPCS], room[PLAN_MAX_GPCS];
	unsigned int slack[PLAN_MAX_UGPUS];	/* of the uGPUs in its order */
	bool known[PLAN_MAX_UGPUS];		/* it is there already */
	enum { FREE, TAKEN, LEFT } is[PLAN_MAX_GPCS];
};

static unsigned int plus(unsigned int a, unsigned int b)
{
	return a == NO_SCORE || b == NO_SCORE ? NO_SCORE : a + b;
}

/* best[n]: the lowest score of GPCs of the @u'th uGPU with room for n. */
static void score_ugpu(const struct pack *k, unsigned int u, unsigned int *best)
{
	unsigned int first = k->first_ugpu[u], end = k->first_ugpu[u + 1];

	best[0] = 0;
	for (unsigned int n = 1; n <= k->need; n++)
		best[n] = NO_SCORE;
	for (unsigned int i = first; i < end; i++) {
		if (k->is[i] == LEFT)
			continue;
		for (unsigned int n = k->need + 1; n-- > 0;) {
			unsigned int from = n > k->room[i] ? n - k->room[i] : 0;
			unsigned int with = plus(best[from], k->score[i]);

			if (with < best[n] || k->is[i] == TAKEN)
				best[n] = with;
		}
	}
}

/* The lowest score of GPCs that have room for all it needs, as far as those are free. */
static unsigned int score_all(const struct pack *k)
{
	unsigned int total[GPUPART_MAX_TPCS + 1], best[GPUPART_MAX_TPCS + 1];
	unsigned int sum[GPUPART_MAX_TPCS + 1];

	for (unsigned int n = 0; n <= k->need; n++)
		total[n] = n ? NO_SCORE : 0;
	for (unsigned int u = 0; u < k->nr_ugpus; u++) {
		unsigned int most = k->slack[u] < k->need ? k->slack[u] : k->need;
		unsigned int touch = k->known[u] ? 0 : SCORE_UGPU;

		score_ugpu(k, u, best);
		for (unsigned int n = 0; n <= k->need; n++) {
			/* A GPC that was taken for certain counts also where nothing is. */
			sum[n] = plus(total[n], best[0] ? plus(best[0], touch) : 0);
			for (unsigned int z = 1; z <= most && z <= n; z++) {
				unsigned int with = plus(plus(total[n - z], best[z]), touch);

				if (with < sum[n])
					sum[n] = with;
			}
		}
		memcpy(total, sum, (k->need + 1) * sizeof(*total));
	}
	return total[k->need];
}

static void describe_pack(const struct place *p, unsigned int tenant, const unsigned int *slack,
			  struct pack *k)
{
	unsigned int order[PLAN_MAX_GPCS];

	*k = (struct pack){ .need = p->rest[tenant], .nr = p->ask->gpu.nr_gpcs };
	plan_order(p->ask, p->counts, tenant, order);
	for (unsigned int i = 0; i < k->nr; i++) {
		unsigned int gpc = order[i], ugpu = p->ask->gpu.gpcs[gpc].ugpu;

		if (!i || p->ask->gpu.gpcs[order[i - 1]].ugpu != ugpu) {
			k->slack[k->nr_ugpus] = slack[ugpu];
			k->first_ugpu[k->nr_ugpus++] = i;
		}
		k->gpc[i] = gpc;
		k->room[i] = p->nr[gpc];
		k->is[i] = k->room[i] ? FREE : LEFT;
		k->score[i] = SCORE_GPC + (p->ask->gpu.gpcs[gpc].whole ? 0 : SCORE_OTHERS);
		for (unsigned int other = 0; other < p->ask->nr; other++)
			if (other != tenant && p->counts->nr[other][gpc])
				k->score[i] += SCORE_OTHERS;
		if (p->counts->nr[tenant][gpc]) {
			k->score[i] = 0;
			k->known[k->nr_ugpus - 1] = true;
		}
	}
	k->first_ugpu[k->nr_ugpus] = k->nr;
}

/* The GPCs of the lowest score; of several such the ones that are first in its order. */
static void place_packed(struct place *p, unsigned int tenant)
{
	unsigned int slack[PLAN_MAX_UGPUS], lowest, home = PLAN_MAX_GPCS;
	struct pack k;

	find_slack(p, tenant, slack);
	describe_pack(p, tenant, slack, &k);
	lowest = score_all(&k);
	for (unsigned int i = 0; i < k.nr; i++) {
		if (k.is[i] == LEFT)
			continue;
		k.is[i] = TAKEN;
		if (score_all(&k) != lowest)
			k.is[i] = LEFT;
		if (!k.score[i])
			home = i;
	}
	/* Its own GPC first, then each as far as it goes: one of them stays open at most. */
	for (int turn = home == PLAN_MAX_GPCS ? 0 : -1; turn < (int)k.nr; turn++) {
		unsigned int i = turn < 0 ? home : (unsigned int)turn;
		unsigned int nr = p->rest[tenant], ugpu = p->ask->gpu.gpcs[k.gpc[i]].ugpu;

		if (k.is[i] != TAKEN)
			continue;
		nr = nr < p->nr[k.gpc[i]] ? nr : p->nr[k.gpc[i]];
		nr = nr < slack[ugpu] ? nr : slack[ugpu];
		take(p, tenant, k.gpc[i], nr, slack);
	}
	for (unsigned int gpc = 0; gpc < k.nr; gpc++)
		p->packed[gpc] |= p->counts->nr[tenant][gpc] > 0;
}

/* One TPC after the other where it has the fewest, out of the way of those who pack. */
static void place_spread(struct place *p, unsigned int tenant)
{
	unsigned int slack[PLAN_MAX_UGPUS], order[PLAN_MAX_GPCS];
	const unsigned int *has = p->counts->nr[tenant];

	find_slack(p, tenant, slack);
	plan_order(p->ask, p->counts, tenant, order);
	while (p->rest[tenant]) {
		int best = -1;

		for (unsigned int i = 0; i < p->ask->gpu.nr_gpcs; i++) {
			unsigned int gpc = order[i];

			if (!p->nr[gpc] || !slack[p->ask->gpu.gpcs[gpc].ugpu])
				continue;
			if (best < 0 || (p->packed[gpc] != p->packed[best] ? p->packed[best] :
					 has[gpc] < has[best]))
				best = gpc;
		}
		if (best < 0)
			return;
		take(p, tenant, best, 1, slack);
	}
}

bool plan_place(const struct plan_ask *ask, struct plan_counts *counts)
{
	struct place p = { .ask = ask, .counts = counts };

	for (unsigned int gpc = 0; gpc < ask->gpu.nr_gpcs; gpc++) {
		p.nr[gpc] = ask->gpu.gpcs[gpc].nr;
		p.nr_main[gpc] = ask->gpu.gpcs[gpc].nr_main;
		p.packed[gpc] = !ask->gpu.gpcs[gpc].whole;
	}
	for (p.first = 0; p.first < ask->nr && ask->tenants[p.first].whole; p.first++)
		for (unsigned int gpc = 0; gpc < ask->gpu.nr_gpcs; gpc++)
			if (counts->nr[p.first][gpc])
				p.nr[gpc] = p.nr_main[gpc] = 0;
	find_room(&p);
	for (unsigned int i = p.first; i < ask->nr; i++)
		counts->total[i] = ask->tenants[i].min;
	plan_deal(ask, p.first, counts->ugpu, &p.room, true, counts->total);
	memcpy(p.rest, counts->total, sizeof(p.rest));
	for (unsigned int i = p.first; i < ask->nr; i++)
		if (ask->tenants[i].home > 1 && !place_home(&p, i))
			return false;
	/* Who packs comes before who spreads. */
	for (unsigned int i = p.first; i < ask->nr; i++)
		if (ask->tenants[i].spread)
			place_spread(&p, i);
		else
			place_packed(&p, i);
	for (unsigned int i = p.first; i < ask->nr; i++)
		if (p.rest[i])
			return false;
	return true;
}
