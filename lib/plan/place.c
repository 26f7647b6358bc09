// SPDX-License-Identifier: MIT
/*
 * Places the tenants that share GPCs. For each tenant, this code chooses the number of TPCs, the
 * GPC of the home, and the number of TPCs in each GPC. It does not search, and it never undoes a
 * step. Before each step it calls plan_fits() to make sure that the other tenants still fit. The
 * answer of plan_fits() is exact.
 */
#include <string.h>
#include "lib/plan/plan.h"

/*
 * For a packed tenant, each choice of GPCs has a score. The score is the sum of these terms. The
 * lower 32 bits of the score identify the GPCs.
 */
#define SCORE_OTHERS	(1ll << 44)	/* this is added for each other tenant that already has
					 * TPCs in a chosen GPC */
#define SCORE_UGPU	(1ll << 38)	/* this is added for each uGPU of the choice */
#define SCORE_GPC	(1ll << 32)
#define NO_SCORE	(1ll << 61)

struct place {
	const struct plan_ask *ask;
	struct plan_counts *counts;
	/* number of TPCs that are left in each GPC */
	unsigned int nr[PLAN_MAX_GPCS], nr_main[PLAN_MAX_GPCS];
	struct plan_room room;		/* the room that is left in each uGPU */
	unsigned int first;		/* first tenant that shares GPCs */
	unsigned int rest[PLAN_MAX_TENANTS];	/* number of TPCs that each tenant still needs */
	bool packed[PLAN_MAX_GPCS];	/* a packed tenant is in the GPC */
};

static void find_room(struct place *p)
{
	plan_room_clear(&p->room, p->ask->gpu.nr_ugpus);
	for (unsigned int gpc = 0; gpc < p->ask->gpu.nr_gpcs; gpc++)
		plan_room_add(&p->room, p->ask->gpu.gpcs[gpc].ugpu, p->nr[gpc], p->nr_main[gpc]);
}

/* Reserves a home of @size TPCs. If @size is negative, releases a home of -@size TPCs. */
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

/*
 * Chooses the GPC with the fewest homes among the GPCs with room. If several GPCs have equally
 * few homes, chooses the first of them in the tenant's order. Returns false if no GPC has room.
 */
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

/*
 * Computes the number of TPCs that @tenant may take from each uGPU. The remaining TPCs must be
 * enough for the tenants that are bound to the uGPU.
 */
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

/*
 * Returns the score of GPC @gpc. The score depends on the number of the GPC and on the other
 * tenants in it. Returns 0 if @tenant is already in this GPC.
 */
static int64_t score(const struct place *p, unsigned int tenant, unsigned int gpc)
{
	int64_t sum = SCORE_GPC + (p->ask->gpu.gpcs[gpc].whole ? 0 : SCORE_OTHERS);

	if (p->counts->nr[tenant][gpc])
		return 0;
	for (unsigned int other = 0; other < p->ask->nr; other++)
		sum += p->counts->nr[other][gpc] ? SCORE_OTHERS : 0;
	return sum;
}

/*
 * Chooses GPCs with enough room for @tenant. If several choices are possible, returns the choice
 * with the lowest score. The result has a bit for each position in @order. In the score, each GPC
 * has a separate bit below all other terms. Each chosen GPC subtracts its bit from the score. So
 * the score identifies the GPCs. If choices are equally good, the choice with the first GPCs has
 * the lowest score.
 */
static uint32_t find_pack(const struct place *p, unsigned int tenant, const unsigned int *order,
			  const unsigned int *slack)
{
	int64_t total[GPUPART_MAX_TPCS + 1], best[GPUPART_MAX_TPCS + 1];
	unsigned int need = p->rest[tenant], nr = p->ask->gpu.nr_gpcs;

	for (unsigned int n = 0; n <= need; n++)
		total[n] = n ? NO_SCORE : 0;
	for (unsigned int i = 0; i < nr;) {
		unsigned int ugpu = p->ask->gpu.gpcs[order[i]].ugpu;
		unsigned int most = slack[ugpu] < need ? slack[ugpu] : need;
		int64_t touch = SCORE_UGPU;

		/*
		 * The element best[n] is the best choice of GPCs in this uGPU. Together, these GPCs
		 * have room for n TPCs.
		 */
		for (unsigned int n = 0; n <= need; n++)
			best[n] = n ? NO_SCORE : 0;
		for (; i < nr && p->ask->gpu.gpcs[order[i]].ugpu == ugpu; i++) {
			unsigned int room = p->nr[order[i]];
			int64_t with = score(p, tenant, order[i]);

			touch = with ? touch : 0;
			with -= 1ll << (PLAN_MAX_GPCS - 1 - i);
			for (unsigned int n = room ? need + 1 : 0; n-- > 0;)
				if (best[n > room ? n - room : 0] + with < best[n])
					best[n] = best[n > room ? n - room : 0] + with;
		}
		for (unsigned int n = need + 1; n-- > 0;) {
			int64_t sum = total[n] + best[0];

			for (unsigned int z = 1; z <= most && z <= n; z++)
				if (total[n - z] + best[z] + touch < sum)
					sum = total[n - z] + best[z] + touch;
			total[n] = sum;
		}
	}
	return -total[need];
}

static void place_packed(struct place *p, unsigned int tenant)
{
	unsigned int slack[PLAN_MAX_UGPUS], order[PLAN_MAX_GPCS];
	uint32_t set;

	find_slack(p, tenant, slack);
	plan_order(p->ask, p->counts, tenant, order);
	set = find_pack(p, tenant, order, slack);
	/*
	 * Fill the GPC of the home first, and then the other GPCs one by one. Then at most one of
	 * these GPCs keeps free TPCs.
	 */
	for (unsigned int turn = 0; turn < 2; turn++)
		for (unsigned int i = 0; i < p->ask->gpu.nr_gpcs; i++) {
			unsigned int gpc = order[i], nr = p->rest[tenant];
			unsigned int left = slack[p->ask->gpu.gpcs[gpc].ugpu];

			if (!(set << i >> (PLAN_MAX_GPCS - 1) & 1) ||
			    (!turn && !p->counts->nr[tenant][gpc]))
				continue;
			nr = nr < p->nr[gpc] ? nr : p->nr[gpc];
			take(p, tenant, gpc, nr < left ? nr : left, slack);
		}
	for (unsigned int gpc = 0; gpc < p->ask->gpu.nr_gpcs; gpc++)
		p->packed[gpc] |= p->counts->nr[tenant][gpc] > 0;
}

/*
 * Adds one TPC at a time to the tenant. Each TPC comes from the GPC in which the tenant has the
 * fewest TPCs. GPCs with packed tenants are avoided.
 */
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
	/* Packed tenants are placed before spread tenants. */
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
