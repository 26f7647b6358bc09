// SPDX-License-Identifier: MIT
/*
 * Which uGPU a bound tenant gets, and which GPCs those that want them whole: the first, in
 * the order that gpupart.h promises, that leaves all others what they need at least. Knows
 * no TPC and nothing of what comes after.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plan.h"

#define NODE_STEPS	500		/* what a node costs, in steps of the innermost loop */
#define NR_DEAD		8192		/* a power of two */
#define SUM_WORDS	(GPUPART_MAX_TPCS / 64 + 1)

/* Bit s: a sum of s TPCs can be had. */
struct sums {
	uint64_t has[SUM_WORDS];
};

/*
 * What can be had of GPCs i.. of an order: [i], whether the uGPU of the i'th has been
 * touched, whether a GPC for the home is still wanted, how many more uGPUs are touched.
 */
typedef struct sums reach_table[PLAN_MAX_GPCS + 1][2][2][PLAN_MAX_UGPUS + 1];

/* A state from which these tenants were found not to fit. */
struct dead {
	uint32_t epoch, tenants;
	uint8_t left[PLAN_MAX_GPCS];	/* by GPC: of those alike, at the lowest */
};

/*
 * Prices of GPCs. Whatever they are, no set of a tenant's costs less than its cheapest one,
 * and all sets together cost no more than the GPCs that there are: a bound.
 */
#define NR_PRICES	48
#define PRICED_AFTER	(40 * NODE_STEPS)	/* what is easy is done before */

struct prices {
	unsigned int of[PLAN_MAX_GPCS];		/* by the lowest of those alike */
	unsigned int cheapest[PLAN_MAX_TENANTS];
	unsigned int others;	/* what those who share take at least */
};

struct search {
	const struct plan_ask *ask;
	struct plan_counts *counts;
	struct plan_left left;
	unsigned int nr_whole, nr_groups;
	bool only_ask;		/* whether there is a way, not which */
	/* Of a group: bit i for the tenant in it, for the group it is apart from. */
	uint32_t members[PLAN_MAX_TENANTS], apart[PLAN_MAX_TENANTS];
	unsigned int group_min[PLAN_MAX_TENANTS];
	int group_ugpu[PLAN_MAX_TENANTS];
	unsigned int promised[PLAN_MAX_UGPUS], size[PLAN_MAX_UGPUS], alike[PLAN_MAX_UGPUS];
	uint32_t epoch, steps, max_steps;
	uint32_t priced_at;		/* steps */
	unsigned int nr_prices;
	struct prices prices[NR_PRICES];
	struct dead dead[NR_DEAD];
	unsigned int tight[PLAN_MAX_TENANTS];	/* who wants whole GPCs, the hardest first */
	reach_table reach;
};

/* One tenant's choice of whole GPCs, while it is made. */
struct choice {
	unsigned int tenant, order[PLAN_MAX_GPCS];
	uint32_t skipped;		/* GPCs that are there and were not taken */
};

/* ------------------------------------------------------------------- sums */

static bool sums_have(const struct sums *sums, unsigned int sum)
{
	return sum < 64 * SUM_WORDS && sums->has[sum / 64] >> sum % 64 & 1;
}

/* Adds to @sums those of @from with @nr more. */
static void sums_add(struct sums *sums, const struct sums *from, unsigned int nr)
{
	unsigned int words = nr / 64, bits = nr % 64;

	for (int i = SUM_WORDS - 1; i >= (int)words; i--) {
		uint64_t word = from->has[i - words] << bits;

		if (bits && i > (int)words)
			word |= from->has[i - words - 1] >> (64 - bits);
		sums->has[i] |= word;
	}
}

/* Whether a tenant that wants whole GPCs may have this one. */
static bool may_take(const struct search *s, unsigned int tenant, unsigned int gpc)
{
	const struct plan_gpc *g = &s->ask->gpu.gpcs[gpc];
	int ugpu = s->counts->ugpu[tenant];

	return g->whole && g->nr && s->left.nr[gpc] == g->nr &&
	       (ugpu == PLAN_ANYWHERE || ugpu == (int)g->ugpu);
}

static void fill_reach(struct search *s, const struct choice *c)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	const struct plan_tenant *t = &s->ask->tenants[c->tenant];
	unsigned int most = s->counts->ugpu[c->tenant] == PLAN_ANYWHERE ? gpu->nr_ugpus : 1;
	struct sums (*reach)[2][2][PLAN_MAX_UGPUS + 1] = s->reach;

	for (int state = 0; state < 4; state++)
		memset(reach[gpu->nr_gpcs][state / 2][state % 2], 0,
		       (most + 1) * sizeof(struct sums));
	reach[gpu->nr_gpcs][0][0][0].has[0] = reach[gpu->nr_gpcs][1][0][0].has[0] = 1;
	for (int i = gpu->nr_gpcs - 1; i >= 0; i--) {
		unsigned int gpc = c->order[i];
		bool last = i + 1 == (int)gpu->nr_gpcs ||
			    gpu->gpcs[c->order[i + 1]].ugpu != gpu->gpcs[gpc].ugpu;
		bool takes = may_take(s, c->tenant, gpc);
		bool homely = gpu->gpcs[gpc].nr_main >= t->home;

		for (unsigned int touched = 0; touched < 2; touched++)
			for (unsigned int home = 0; home < 2; home++)
				for (unsigned int u = 0; u <= most; u++) {
					struct sums *sums = &reach[i][touched][home][u];

					*sums = reach[i + 1][touched && !last][home][u];
					if (takes && (touched || u))
						sums_add(sums, &reach[i + 1][!last][home && !homely]
							 [u - !touched], gpu->gpcs[gpc].nr);
				}
	}
}

/* ------------------------------------------------------- what cannot be met */

/* The fewest TPCs that whole GPCs make for @tenant, 0 none. */
static unsigned int least_cover(const struct search *s, unsigned int tenant)
{
	const struct plan_tenant *t = &s->ask->tenants[tenant];
	struct sums sums = { { 1 } }, more;
	bool homely = false;

	for (unsigned int gpc = 0; gpc < s->ask->gpu.nr_gpcs; gpc++) {
		if (!may_take(s, tenant, gpc))
			continue;
		homely |= s->ask->gpu.gpcs[gpc].nr_main >= t->home;
		more = sums;
		sums_add(&more, &sums, s->ask->gpu.gpcs[gpc].nr);
		sums = more;
	}
	for (unsigned int sum = t->min; homely && sum <= t->max; sum++)
		if (sums_have(&sums, sum))
			return sum;
	return 0;
}

/* ------------------------------------------------------------------ prices */

#define NO_PRICE 0x3ffffffu

/* Its cheapest set; adds what that has of each kind of GPC to @used. */
static unsigned int find_cheapest(const struct search *s, unsigned int tenant,
				  const struct prices *prices, int *used)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	const struct plan_tenant *t = &s->ask->tenants[tenant];
	/* A set that can do without a GPC is not the cheapest. */
	unsigned int most = t->min + gpu->largest, end;
	/* Without a GPC that holds its home, and with one. */
	unsigned int price[2][GPUPART_MAX_TPCS + 1], best = 0;
	uint32_t with[2][GPUPART_MAX_TPCS + 1] = { { 0 } };

	most = most < t->max ? most : t->max;
	end = most < GPUPART_MAX_TPCS ? most + 1 : GPUPART_MAX_TPCS + 1;
	for (unsigned int sum = 0; sum < end; sum++)
		price[0][sum] = price[1][sum] = NO_PRICE;
	price[0][0] = 0;
	for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++) {
		const struct plan_gpc *g = &gpu->gpcs[gpc];

		if (!g->whole || !g->nr || (s->counts->ugpu[tenant] != PLAN_ANYWHERE &&
					    s->counts->ugpu[tenant] != (int)g->ugpu))
			continue;
		for (unsigned int sum = end; sum-- > g->nr;)
			for (int has = 1; has >= 0; has--) {
				unsigned int to = has || g->nr_main >= t->home;
				unsigned int sold = price[has][sum - g->nr] + prices->of[g->alike];

				if (sold >= price[to][sum])
					continue;
				price[to][sum] = sold;
				with[to][sum] = with[has][sum - g->nr] | 1u << gpc;
			}
	}
	for (unsigned int sum = t->min; sum < end; sum++)
		if (!best || price[1][sum] < price[1][best])
			best = sum;
	for (unsigned int gpc = 0; gpc < gpu->nr_gpcs && price[1][best] < NO_PRICE; gpc++)
		used[gpu->gpcs[gpc].alike] += with[1][best] >> gpc & 1;
	return price[1][best] < NO_PRICE ? price[1][best] : NO_PRICE;
}

/* The least that the TPCs of all who share can cost, were GPCs sold in parts. */
static unsigned int price_others(const struct search *s, const struct prices *prices)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	unsigned int need = 0, cost = 0;
	uint32_t sold = 0;

	for (unsigned int i = s->nr_whole; i < s->ask->nr; i++)
		need += s->ask->tenants[i].min;
	for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++)
		if (!gpu->gpcs[gpc].whole) {
			need -= need < gpu->gpcs[gpc].nr ? need : gpu->gpcs[gpc].nr;
			sold |= 1u << gpc;
		}
	while (need) {
		int best = -1;

		for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++)
			if (!(sold >> gpc & 1) && gpu->gpcs[gpc].nr &&
			    (best < 0 || prices->of[gpu->gpcs[gpc].alike] * gpu->gpcs[best].nr <
			     prices->of[gpu->gpcs[best].alike] * gpu->gpcs[gpc].nr))
				best = gpc;
		if (best < 0)
			return cost;
		sold |= 1u << best;
		if (need < gpu->gpcs[best].nr)
			return cost + prices->of[gpu->gpcs[best].alike] * need / gpu->gpcs[best].nr;
		cost += prices->of[gpu->gpcs[best].alike];
		need -= gpu->gpcs[best].nr;
	}
	return cost;
}

/* What more want than there are gets dearer, what is left over cheaper; each turn is kept. */
static void find_prices(struct search *s)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	struct prices next = { 0 };

	for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++)
		next.of[gpc] = 64 * gpu->gpcs[gpc].nr;
	for (s->nr_prices = 0; s->nr_prices < NR_PRICES; s->nr_prices++) {
		int used[PLAN_MAX_GPCS] = { 0 }, step = 128 / (2 + (int)s->nr_prices / 2);

		for (unsigned int i = 0; i < s->nr_whole; i++)
			next.cheapest[i] = find_cheapest(s, i, &next, used);
		next.others = price_others(s, &next);
		s->prices[s->nr_prices] = next;
		for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++)
			used[gpu->gpcs[gpc].alike] -= gpu->gpcs[gpc].whole;
		for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++) {
			int price = (int)next.of[gpc] + step * used[gpc];

			next.of[gpc] = price > 0 ? price : 0;
		}
	}
}

/* False only where these tenants' cheapest sets cost more than what is left. */
static bool may_pay(struct search *s, uint32_t tenants)
{
	const struct plan_gpu *gpu = &s->ask->gpu;

	if (s->steps - s->priced_at < PRICED_AFTER)
		return true;
	if (!s->nr_prices)
		find_prices(s);
	for (unsigned int k = 0; k < s->nr_prices; k++) {
		const struct prices *prices = &s->prices[k];
		unsigned int cost = prices->others, worth = 0;

		for (unsigned int i = 0; i < s->nr_whole; i++)
			cost += tenants >> i & 1 ? prices->cheapest[i] : 0;
		for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++)
			if (gpu->gpcs[gpc].whole && s->left.nr[gpc])
				worth += prices->of[gpu->gpcs[gpc].alike];
		if (cost > worth)
			return false;
	}
	return true;
}

/* From the larger homes down, each needs a GPC of its own that holds it. */
static bool homes_have_gpcs(const struct search *s, uint32_t tenants)
{
	const struct plan_gpu *gpu = &s->ask->gpu;

	for (unsigned int home = 1; home <= GPUPART_MAX_TPCS; home *= 2) {
		unsigned int wanted = 0, there = 0;

		for (unsigned int i = 0; i < s->nr_whole; i++)
			wanted += tenants >> i & 1 && s->ask->tenants[i].home >= home;
		if (!wanted)
			return true;
		for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++)
			there += gpu->gpcs[gpc].whole && gpu->gpcs[gpc].nr_main >= home &&
				 s->left.nr[gpc] == gpu->gpcs[gpc].nr;
		if (wanted > there)
			return false;
	}
	return true;
}

/* False only where these tenants cannot all have their least. */
static bool may_fit(const struct search *s, uint32_t tenants)
{
	struct plan_need needs[PLAN_MAX_TENANTS];
	unsigned int nr = 0;

	for (unsigned int i = 0; i < s->ask->nr; i++) {
		const struct plan_tenant *t = &s->ask->tenants[i];

		if (!(tenants >> i & 1))
			continue;
		needs[nr] = (struct plan_need){ t->min, t->home > 1 ? t->home : 0,
						s->counts->ugpu[i] };
		if (i < s->nr_whole) {
			needs[nr].home = 0;
			needs[nr].nr = least_cover(s, i);
			if (!needs[nr].nr)
				return false;
		}
		nr++;
	}
	return plan_fits(&s->ask->gpu, &s->left, needs, nr) && homes_have_gpcs(s, tenants);
}

static struct dead *dead_place(struct search *s, uint32_t tenants, struct dead *key)
{
	uint32_t hash = 2166136261u;

	memset(key, 0, sizeof(*key));
	key->epoch = s->epoch;
	key->tenants = tenants;
	for (unsigned int gpc = 0; gpc < s->ask->gpu.nr_gpcs; gpc++)
		if (s->left.nr[gpc])
			key->left[s->ask->gpu.gpcs[gpc].alike]++;
	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ ((const uint8_t *)key)[i]) * 16777619u;
	return &s->dead[(hash ^ hash >> 15) % NR_DEAD];
}

/* ------------------------------------------------------- whether it can be */

static int can_fit(struct search *s, uint32_t tenants);

/*
 * Goes through the sets of @tenant's that are no larger than they must be, of GPCs from the
 * @i'th of @order on, @sum TPCs being taken already, and asks whether the others fit then.
 * Larger ones leave the others less.
 */
static int cover(struct search *s, unsigned int tenant, const unsigned int *order, unsigned int i,
		 unsigned int sum, bool homely, uint32_t others)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	const struct plan_tenant *t = &s->ask->tenants[tenant];
	uint32_t skipped = 0;
	int err;

	if (++s->steps > s->max_steps)
		return -E2BIG;
	if (sum >= t->min && homely)
		return can_fit(s, others);
	for (; i < gpu->nr_gpcs; i++) {
		unsigned int gpc = order[i], nr = s->left.nr[gpc];
		bool holds = gpu->gpcs[gpc].nr_main >= t->home;

		if (!may_take(s, tenant, gpc) || sum + nr > t->max ||
		    skipped >> gpu->gpcs[gpc].alike & 1 || (sum >= t->min && !holds))
			continue;
		s->left.nr[gpc] = s->left.nr_main[gpc] = 0;
		err = cover(s, tenant, order, i + 1, sum + nr, homely || holds, others);
		s->left.nr[gpc] = nr;
		s->left.nr_main[gpc] = gpu->gpcs[gpc].nr_main;
		if (err != -ENOSPC)
			return err;
		skipped |= 1u << gpu->gpcs[gpc].alike;
	}
	return -ENOSPC;
}

/* GPCs by size, the largest first. */
static void order_sizes(const struct plan_gpu *gpu, unsigned int *order)
{
	for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++) {
		unsigned int at = gpc;

		for (; at > 0 && gpu->gpcs[order[at - 1]].nr < gpu->gpcs[gpc].nr; at--)
			order[at] = order[at - 1];
		order[at] = gpc;
	}
}

/* Whether these tenants fit into what is left: 0, -ENOSPC or -E2BIG. Changes nothing. */
static int can_fit(struct search *s, uint32_t tenants)
{
	unsigned int order[PLAN_MAX_GPCS], i = 0;
	struct dead key, *dead;
	int err;

	while (i < s->nr_whole && !(tenants >> s->tight[i] & 1))
		i++;
	dead = dead_place(s, tenants, &key);
	if (!memcmp(dead, &key, sizeof(key)))
		return -ENOSPC;
	s->steps += NODE_STEPS;
	if (!may_pay(s, tenants) || !may_fit(s, tenants))
		return -ENOSPC;
	if (i == s->nr_whole)
		return 0;
	order_sizes(&s->ask->gpu, order);
	err = cover(s, s->tight[i], order, 0, 0, false, tenants & ~(1u << s->tight[i]));
	if (err == -ENOSPC)
		*dead = key;
	return err;
}

/* ------------------------------------------------------------ whole GPCs */

static void take(struct search *s, unsigned int tenant, unsigned int gpc)
{
	s->counts->nr[tenant][gpc] = s->left.nr[gpc];
	s->counts->total[tenant] += s->left.nr[gpc];
	s->left.nr[gpc] = s->left.nr_main[gpc] = 0;
}

static void put_back(struct search *s, unsigned int tenant, unsigned int gpc)
{
	s->left.nr[gpc] = s->counts->nr[tenant][gpc];
	s->left.nr_main[gpc] = s->ask->gpu.gpcs[gpc].nr_main;
	s->counts->total[tenant] -= s->left.nr[gpc];
	s->counts->nr[tenant][gpc] = 0;
}

/* The tenants from @first on, as bits. */
static uint32_t from_on(const struct search *s, unsigned int first)
{
	return ((1u << s->ask->nr) - 1) & ~((1u << first) - 1);
}

/*
 * Goes through the sets of GPCs i.. of exactly @sum TPCs in @ugpus more uGPUs, those with
 * the first GPCs of the order first: 0 and taken where one leaves the tenants after it what
 * they need, -ENOSPC none does, -E2BIG.
 */
static int pick(struct search *s, const struct choice *before, unsigned int i, unsigned int sum,
		unsigned int ugpus, bool touched, bool home)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	struct choice c = *before;
	unsigned int gpc = i < gpu->nr_gpcs ? c.order[i] : 0, nr;
	bool last = i + 1 >= gpu->nr_gpcs || gpu->gpcs[c.order[i + 1]].ugpu != gpu->gpcs[gpc].ugpu;
	bool home_left;
	int err;

	if (++s->steps > s->max_steps)
		return -E2BIG;
	if (!sums_have(&s->reach[i][touched][home][ugpus], sum))
		return -ENOSPC;
	if (!sum)
		return can_fit(s, from_on(s, c.tenant + 1));
	nr = gpu->gpcs[gpc].nr;
	if (may_take(s, c.tenant, gpc)) {
		/* Of GPCs that are alike the first ones are taken: others make no difference. */
		if ((touched || ugpus) && nr <= sum &&
		    !(c.skipped >> gpu->gpcs[gpc].alike & 1)) {
			take(s, c.tenant, gpc);
			home_left = home && gpu->gpcs[gpc].nr_main < s->ask->tenants[c.tenant].home;
			err = may_pay(s, from_on(s, c.tenant + 1)) ?
			      pick(s, &c, i + 1, sum - nr, ugpus - !touched, !last, home_left) :
			      -ENOSPC;
			if (err != -ENOSPC)
				return err;
			put_back(s, c.tenant, gpc);
		}
		c.skipped |= 1u << gpu->gpcs[gpc].alike;
	}
	return pick(s, &c, i + 1, sum, ugpus, touched && !last, home);
}

/* The question behind a fair share. */
struct share {
	const struct search *s;
	unsigned int first;	/* the tenants before have their sets */
};

static bool share_fits(void *arg, unsigned int tenant, const unsigned int *nr)
{
	const struct share *share = arg;
	const struct search *s = share->s;
	struct plan_need needs[PLAN_MAX_TENANTS];
	unsigned int nr_needs = 0;

	(void)tenant;
	for (unsigned int i = share->first; i < s->ask->nr; i++)
		needs[nr_needs++] = (struct plan_need){ nr[i], 0, s->counts->ugpu[i] };
	return plan_fits(&s->ask->gpu, &s->left, needs, nr_needs);
}

/* What @tenant would get of what is left were GPCs no matter. */
static unsigned int fair_share(const struct search *s, unsigned int tenant)
{
	struct share share = { s, tenant };
	unsigned int nr[PLAN_MAX_TENANTS];

	for (unsigned int i = 0; i < s->ask->nr; i++)
		nr[i] = s->ask->tenants[i].min;
	plan_deal(s->ask, tenant, nr, share_fits, &share);
	return nr[tenant];
}

/* Takes the best of its sets; see gpupart.h for what is best. */
static int choose(struct search *s, unsigned int tenant)
{
	const struct plan_tenant *t = &s->ask->tenants[tenant];
	unsigned int share = fair_share(s, tenant), most = s->ask->gpu.nr_ugpus;
	unsigned int end = 2 * GPUPART_MAX_TPCS + s->ask->gpu.largest * most;
	struct choice c = { .tenant = tenant };
	const struct sums *reach;
	int err;

	if (s->counts->ugpu[tenant] != PLAN_ANYWHERE)
		most = 1;
	plan_order(s->ask, s->counts, tenant, c.order);
	fill_reach(s, &c);
	for (unsigned int cost = 0; cost <= end; cost++)
		for (unsigned int u = 1; u <= most; u++) {
			int off = (int)cost - (int)(s->ask->gpu.largest * (u - 1));

			if (off < 0)
				break;
			reach = &s->reach[0][0][1][u];
			for (int side = 1; side >= -1 && off % 2 == 0; side -= 2) {
				int sum = (int)share + side * off / 2;

				if (sum < (int)t->min || sum > (int)t->max ||
				    !sums_have(reach, sum) || (side < 0 && !off))
					continue;
				err = pick(s, &c, 0, sum, u, false, true);
				if (err != -ENOSPC)
					return err;
			}
		}
	return -ENOSPC;
}

/* There is a way for all of them, and so there is one after each. */
static int place_whole(struct search *s)
{
	int err = can_fit(s, from_on(s, 0));

	for (unsigned int i = 0; i < s->nr_whole && !err && !s->only_ask; i++)
		err = choose(s, i);
	return err;
}

/* ----------------------------------------------------------------- uGPUs */

/* Those who are to be in one uGPU, and who not with whom. In rank order of their first. */
static void find_groups(struct search *s)
{
	const struct plan_tenant *t = s->ask->tenants;
	unsigned int of[PLAN_MAX_TENANTS], nr = s->ask->nr;

	for (unsigned int i = 0; i < nr; i++)
		of[i] = i;
	for (unsigned int turn = 0; turn < nr; turn++)
		for (unsigned int i = 0; i < nr; i++)
			for (unsigned int j = 0; j < nr; j++)
				if (t[i].same >> t[j].given & 1 && of[j] < of[i])
					of[i] = of[j];
	for (unsigned int i = 0; i < nr; i++) {
		unsigned int group = s->nr_groups;

		if (of[i] != i || !(t[i].same | t[i].apart))
			continue;
		for (unsigned int j = i; j < nr; j++)
			if (of[j] == i) {
				s->members[group] |= 1u << j;
				s->group_min[group] += t[j].min;
			}
		s->nr_groups++;
	}
	for (unsigned int a = 0; a < s->nr_groups; a++)
		for (unsigned int b = 0; b < s->nr_groups; b++)
			for (unsigned int i = 0; i < nr * nr; i++)
				if (s->members[a] >> i / nr & 1 && s->members[b] >> i % nr & 1 &&
				    t[i / nr].apart >> t[i % nr].given & 1)
					s->apart[a] |= 1u << b;
}

/* The lowest uGPU that has GPCs just like this one's. */
static unsigned int lowest_alike(const struct plan_gpu *gpu, unsigned int ugpu)
{
	for (unsigned int other = 0; other < ugpu; other++) {
		bool alike = true;

		for (unsigned int i = 0; i < gpu->nr_gpcs && alike; i++) {
			int balance = 0;

			for (unsigned int j = 0; j < gpu->nr_gpcs; j++)
				if (gpu->gpcs[i].nr == gpu->gpcs[j].nr &&
				    gpu->gpcs[i].nr_main == gpu->gpcs[j].nr_main &&
				    gpu->gpcs[i].whole == gpu->gpcs[j].whole)
					balance += (gpu->gpcs[j].ugpu == ugpu) -
						   (gpu->gpcs[j].ugpu == other);
			alike = !balance;
		}
		if (alike)
			return other;
	}
	return ugpu;
}

static bool may_have(const struct search *s, unsigned int group, unsigned int ugpu)
{
	if (s->promised[ugpu] + s->group_min[group] > s->size[ugpu])
		return false;
	if (s->apart[group] >> group & 1)
		return false;
	for (unsigned int other = 0; other < group; other++)
		if (s->group_ugpu[other] == (int)ugpu && s->apart[group] >> other & 1)
			return false;
	/* Of empty uGPUs that are alike the first will do. */
	for (unsigned int u = 0; u < ugpu && !s->promised[ugpu]; u++)
		if (s->alike[u] == s->alike[ugpu] && !s->promised[u])
			return false;
	return true;
}

static void bind(struct search *s, unsigned int group, int ugpu)
{
	s->group_ugpu[group] = ugpu;
	for (unsigned int i = 0; i < s->ask->nr; i++)
		if (s->members[group] >> i & 1)
			s->counts->ugpu[i] = ugpu;
}

/* The groups from @group on: each first where most is not promised yet. */
static int place_groups(struct search *s, unsigned int group)
{
	unsigned int nr = s->ask->gpu.nr_bindable, best;
	uint64_t tried = 0;
	int err;

	if (group == s->nr_groups) {
		s->epoch++;
		s->nr_prices = 0;
		s->priced_at = s->steps;
		return place_whole(s);
	}
	for (unsigned int turn = 0; turn < nr; turn++) {
		best = nr;
		for (unsigned int u = 0; u < nr; u++)
			if (!(tried >> u & 1) && (best == nr || s->size[u] - s->promised[u] >
						  s->size[best] - s->promised[best]))
				best = u;
		tried |= 1ull << best;
		if (!may_have(s, group, best))
			continue;
		s->steps += NODE_STEPS / 10;
		if (s->steps > s->max_steps)
			return -E2BIG;
		bind(s, group, best);
		s->promised[best] += s->group_min[group];
		err = place_groups(s, group + 1);
		s->promised[best] -= s->group_min[group];
		if (err != -ENOSPC)
			return err;
		bind(s, group, PLAN_ANYWHERE);
	}
	return -ENOSPC;
}

/* Who has the fewest sets to choose from comes first: little room, then many TPCs. */
static void order_tight(struct search *s)
{
	const struct plan_tenant *t = s->ask->tenants;

	for (unsigned int i = 0; i < s->nr_whole; i++) {
		unsigned int at = i;

		for (; at > 0; at--) {
			const struct plan_tenant *before = &t[s->tight[at - 1]];
			bool narrow = t[i].max - t[i].min < s->ask->gpu.largest;
			bool before_narrow = before->max - before->min < s->ask->gpu.largest;

			if (narrow != before_narrow ? before_narrow : before->min >= t[i].min)
				break;
			s->tight[at] = s->tight[at - 1];
		}
		s->tight[at] = i;
	}
}

int plan_search(const struct plan_ask *ask, unsigned int max_steps, bool only_ask,
		struct plan_counts *counts)
{
	struct search *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	memset(counts, 0, sizeof(*counts));
	s->ask = ask;
	s->max_steps = max_steps;
	s->only_ask = only_ask;
	s->counts = counts;
	for (unsigned int gpc = 0; gpc < ask->gpu.nr_gpcs; gpc++) {
		s->left.nr[gpc] = ask->gpu.gpcs[gpc].nr;
		s->left.nr_main[gpc] = ask->gpu.gpcs[gpc].nr_main;
		s->size[ask->gpu.gpcs[gpc].ugpu] += ask->gpu.gpcs[gpc].nr;
	}
	for (unsigned int u = 0; u < ask->gpu.nr_ugpus; u++)
		s->alike[u] = lowest_alike(&ask->gpu, u);
	for (unsigned int i = 0; i < ask->nr; i++) {
		counts->ugpu[i] = PLAN_ANYWHERE;
		counts->home[i] = -1;
		s->nr_whole += ask->tenants[i].whole;
	}
	find_groups(s);
	order_tight(s);
	err = place_groups(s, 0);
	counts->steps = s->steps;
	free(s);
	return err;
}
