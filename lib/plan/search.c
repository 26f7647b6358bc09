// SPDX-License-Identifier: MIT
/*
 * Finds the uGPU of each bound tenant, and the GPCs of each tenant that wants whole GPCs. The
 * search tries the solutions in the order that gpupart_manage.h documents. It chooses the first
 * solution that leaves enough TPCs for the minimums of all other tenants.
 *
 * The function fits() decides whether tenants fit into the remaining room. It caches the answers,
 * so it need not search for a cached answer. The functions that bind tenants and choose GPCs call
 * fits() before each step. If no demand distinguishes two GPCs, the GPCs are interchangeable. The
 * search uses the first of several interchangeable GPCs. A case is a combination of a set of GPCs
 * and a group of remaining tenants. With 12 GPCs, there are a few thousand cases. For GPUs with
 * more GPCs, the number of steps is limited.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "lib/plan/plan.h"

#define NR_KNOWN	16384		/* a power of two */
#define SUM_WORDS	(GPUPART_MAX_TPCS / 64 + 1)
#define NO_TENANT		PLAN_MAX_TENANTS
#define NODE_STEPS	16		/* number of steps for a case without a cached
					 * answer; each GPC adds more steps */

/* If bit s is set, a sum of s TPCs is possible. */
struct sums {
	uint64_t has[SUM_WORDS];
};

/*
 * The member @any has the possible sums of all sets of GPCs. The member @homely has the possible
 * sums of the sets in which one GPC holds the home.
 */
struct reach {
	struct sums any, homely;
};

/*
 * A cached answer of fits(). It says whether @tenants fit into the GPCs in @left. The answer is for
 * the given binding of tenants to uGPUs.
 */
struct known {
	uint32_t epoch, left;
	uint16_t tenants;
	int8_t ugpu[PLAN_MAX_TENANTS];
	bool fits;
};

/*
 * Each GPC that can be taken whole has a position. Larger GPCs have lower positions. A set of
 * GPCs has a bit for each position. A set of tenants has a bit for each rank.
 */
struct plan_search {
	const struct plan_ask *ask;
	struct plan_counts *counts;
	unsigned int steps, max_steps;
	unsigned int nr_whole, nr_groups;
	unsigned int sum_words;				/* number of words of struct sums that
							 * these tenants need */
	unsigned int nr_gpcs;				/* number of GPCs that can be taken
							 * whole */
	const struct plan_gpc *gpcs[PLAN_MAX_GPCS];	/* by position */
	uint32_t in_ugpu[PLAN_MAX_UGPUS];
	uint32_t alike[PLAN_MAX_GPCS];		/* GPCs that no demand distinguishes */
	struct plan_room broken;		/* the GPCs that cannot be taken whole */
	unsigned int nr_broken;			/* number of TPCs in these GPCs */
	/*
	 * All tenants of a group use the same uGPU. If two tenants must be apart, their groups
	 * use different uGPUs.
	 */
	uint32_t members[PLAN_MAX_TENANTS], apart[PLAN_MAX_TENANTS];
	unsigned int group_min[PLAN_MAX_TENANTS];
	uint32_t bound, bound_to[PLAN_MAX_UGPUS];	/* sets of tenants */
	unsigned int free[PLAN_MAX_UGPUS];	/* number of TPCs that are not reserved
						 * for minimums */
	/* The following members keep their values from one search to the next. */
	uint32_t epoch;
	struct known known[NR_KNOWN];
};

const size_t plan_search_size = sizeof(struct plan_search);

static bool spend(struct plan_search *s, unsigned int steps)
{
	s->steps += steps;
	return s->steps <= s->max_steps;
}

static bool is_in(const struct plan_search *s, unsigned int tenant, unsigned int at)
{
	int ugpu = s->counts->ugpu[tenant];

	return ugpu == PLAN_ANYWHERE || ugpu == (int)s->gpcs[at]->ugpu;
}

static bool is_homely(const struct plan_search *s, unsigned int tenant, unsigned int at)
{
	return s->gpcs[at]->nr_main >= s->ask->tenants[tenant].home;
}

static bool sums_have(const struct sums *sums, unsigned int sum)
{
	return sums->has[sum / 64] >> sum % 64 & 1;
}

/*
 * Adds @nr to each sum in @from, and inserts the results into @sums. The pointers @from and @sums
 * may be equal.
 */
static void sums_add(struct sums *sums, const struct sums *from, unsigned int nr,
		     unsigned int nr_words)
{
	int words = nr / 64;
	unsigned int bits = nr % 64;

	for (int i = nr_words - 1; i >= words; i--) {
		uint64_t word = from->has[i - words] << bits;

		if (bits && i > words)
			word |= from->has[i - words - 1] >> (64 - bits);
		sums->has[i] |= word;
	}
}

/* One more GPC makes more sums possible. Adds these sums to the sums of @tenant. */
static void reach_add(const struct plan_search *s, unsigned int tenant, unsigned int at,
		      struct reach *reach)
{
	unsigned int nr = s->gpcs[at]->nr;

	if (!is_in(s, tenant, at))
		return;
	sums_add(&reach->homely, &reach->homely, nr, s->sum_words);
	if (is_homely(s, tenant, at))
		sums_add(&reach->homely, &reach->any, nr, s->sum_words);
	sums_add(&reach->any, &reach->any, nr, s->sum_words);
}

static bool fits(struct plan_search *s, uint32_t tenants, uint32_t left);

/*
 * Returns the largest useful number of TPCs of a tenant. If the tenant had more TPCs, one of its
 * GPCs would be unnecessary. For a balanced tenant, one GPC of each uGPU would be unnecessary.
 */
static unsigned int most_of_use(const struct plan_ask *ask, const struct plan_tenant *t)
{
	unsigned int most = t->min + ask->gpu.largest * (t->balanced ? ask->gpu.nr_bindable : 1);

	most = most < t->max ? most : t->max;
	return most < GPUPART_MAX_TPCS ? most : GPUPART_MAX_TPCS;
}

/* The possible sums of a tenant that uses the remaining GPCs. */
struct want {
	unsigned int nr, least, most;	/* number of sums, lowest sum, and largest useful sum */
	struct sums sums;
};

/* A case whose answer is unknown so far. */
struct node {
	uint32_t tenants, left;
	unsigned int spare;		/* number of TPCs of whole GPCs that remain
					 * after the minimums of all tenants */
	unsigned int next;		/* the tenant whose sets are tried next; NO_TENANT:
					 * no tenant wants whole GPCs */
	struct want wants[PLAN_MAX_TENANTS];
};

/* All tenants with the same home and uGPU have the same sums. */
static void find_sums(const struct plan_search *s, struct node *n, unsigned int tenant)
{
	struct reach reach = { .any = { { 1 } } };

	for (unsigned int i = 0; i < tenant; i++)
		if (n->tenants >> i & 1 && s->counts->ugpu[i] == s->counts->ugpu[tenant] &&
		    s->ask->tenants[i].home == s->ask->tenants[tenant].home) {
			n->wants[tenant].sums = n->wants[i].sums;
			return;
		}
	for (uint32_t left = n->left; left; left &= left - 1)
		reach_add(s, tenant, __builtin_ctz(left), &reach);
	n->wants[tenant].sums = reach.homely;
}

/*
 * Finds the tenant with the fewest sums. The search tries the sets of this tenant next. If a tenant
 * has no possible set, returns false.
 */
static bool find_want(const struct plan_search *s, struct node *n, unsigned int tenant)
{
	const struct plan_tenant *t = &s->ask->tenants[tenant];
	struct want *want = &n->wants[tenant];

	find_sums(s, n, tenant);
	want->nr = want->least = 0;
	want->most = most_of_use(s->ask, t);
	for (unsigned int sum = want->most; sum >= t->min; sum--)
		if (sums_have(&want->sums, sum)) {
			want->least = sum;
			want->nr++;
		}
	if (n->next == NO_TENANT || want->nr < n->wants[n->next].nr ||
	    (want->nr == n->wants[n->next].nr && want->least > n->wants[n->next].least))
		n->next = tenant;
	return want->nr;
}

/*
 * The answer false means that it is impossible to meet all minimums. If no tenant wants whole GPCs,
 * the answer true is exact, too.
 */
static bool may_fit(struct plan_search *s, struct node *n)
{
	struct plan_need needs[PLAN_MAX_TENANTS];
	unsigned int nr = 0, wanted[2] = { 0 }, there = 0;
	struct plan_room room = s->broken;

	if (!spend(s, NODE_STEPS * (1 + __builtin_popcount(n->left))))
		return false;
	n->next = NO_TENANT;
	for (uint32_t left = n->left; left; left &= left - 1) {
		const struct plan_gpc *gpc = s->gpcs[__builtin_ctz(left)];

		plan_room_add(&room, gpc->ugpu, gpc->nr, gpc->nr_main);
		there += gpc->nr;
	}
	for (uint32_t left = n->tenants; left; left &= left - 1) {
		unsigned int i = __builtin_ctz(left), least;
		const struct plan_tenant *t = &s->ask->tenants[i];

		if (t->whole && !find_want(s, n, i))
			return false;
		least = t->whole ? n->wants[i].least : t->min;
		wanted[t->whole] += least;
		needs[nr++] = (struct plan_need){ least, t->home > 1 ? t->home : 0,
						  s->counts->ugpu[i] };
	}
	/* Tenants that share GPCs first use the GPCs that cannot be taken whole. */
	if (wanted[false] > s->nr_broken)
		wanted[true] += wanted[false] - s->nr_broken;
	if (wanted[true] > there || !plan_fits(&room, needs, nr))
		return false;
	n->spare = there - wanted[true];
	return true;
}

/* Returns whether @tenant may have these GPCs together. */
static bool is_shaped(const struct plan_search *s, unsigned int tenant, uint32_t set)
{
	unsigned int nr = s->ask->gpu.nr_bindable, each = __builtin_popcount(set & s->in_ugpu[0]);

	if (!s->ask->tenants[tenant].balanced)
		return true;
	for (unsigned int u = 1; u < nr; u++)
		if (__builtin_popcount(set & s->in_ugpu[u]) != (int)each)
			return false;
	return __builtin_popcount(set) == (int)(each * nr);
}

/* The state of the search through all sets of a tenant that have the same sum. */
struct cover {
	unsigned int tenant, sum;
	uint32_t others, all;		/* the other tenants; all GPCs that may be chosen */
	struct reach reach[PLAN_MAX_GPCS + 1];	/* for each position i: the possible
						 * sums of the GPCs at position i and at
						 * later positions */
};

/*
 * Tries to choose GPCs of @from that together have exactly @need TPCs. Returns true if the rest of
 * @left is then enough for the other tenants. If the home has no GPC yet, one of the chosen GPCs
 * must have room for the home.
 */
static bool cover(struct plan_search *s, const struct cover *c, uint32_t from, uint32_t left,
		  unsigned int need, bool home)
{
	if (!need)
		return !home && is_shaped(s, c->tenant, c->all & ~left) &&
		       fits(s, c->others, left);
	while (from && spend(s, 1)) {
		unsigned int at = __builtin_ctz(from), nr = s->gpcs[at]->nr;
		const struct reach *reach = &c->reach[at];

		if (!sums_have(home ? &reach->homely : &reach->any, need))
			return false;
		from &= from - 1;
		/* Later GPCs are smaller. Skip a set if its last GPC could be removed. */
		if (is_in(s, c->tenant, at) && nr <= need &&
		    (nr < need || home || s->ask->tenants[c->tenant].balanced ||
		     c->sum - nr < s->ask->tenants[c->tenant].min) &&
		    cover(s, c, from, left & ~(1u << at), need - nr,
			  home && !is_homely(s, c->tenant, at)))
			return true;
		from &= ~s->alike[at];
	}
	return false;
}

/* Tries the sets of the next tenant. Begins with the sets that have the smallest sum. */
static bool branch(struct plan_search *s, const struct node *n)
{
	const struct want *want = &n->wants[n->next];
	struct cover c = { .tenant = n->next, .others = n->tenants & ~(1u << n->next),
			   .all = n->left };

	c.reach[s->nr_gpcs] = (struct reach){ .any = { { 1 } } };
	for (unsigned int at = s->nr_gpcs; at-- > 0;) {
		c.reach[at] = c.reach[at + 1];
		if (n->left >> at & 1)
			reach_add(s, n->next, at, &c.reach[at]);
	}
	for (c.sum = want->least; c.sum <= want->most && c.sum <= want->least + n->spare; c.sum++)
		if (sums_have(&want->sums, c.sum) &&
		    cover(s, &c, n->left, n->left, c.sum, true))
			return true;
	return false;
}

/*
 * First decides separately for the tenants of each uGPU. In most cases this is enough. If it is not
 * enough, decides for all tenants together.
 */
static bool search(struct plan_search *s, const struct node *n)
{
	uint32_t bound = 0, in;

	for (unsigned int u = 0; u < s->ask->gpu.nr_bindable; u++) {
		in = n->tenants & s->bound_to[u];
		bound |= in;
		if (in == n->tenants && !(n->left & ~s->in_ugpu[u]))
			return branch(s, n);
		if (in && !fits(s, in, n->left & s->in_ugpu[u]))
			return false;
	}
	return bound == n->tenants || branch(s, n);
}

/*
 * Returns the cache entry of a case. For interchangeable GPCs, the function compares their number.
 */
static struct known *find_known(struct plan_search *s, uint32_t tenants, uint32_t left,
				struct known *key)
{
	uint64_t hash, part;

	*key = (struct known){ .epoch = s->epoch, .tenants = tenants };
	while (left) {
		uint32_t alike = s->alike[__builtin_ctz(left)], first = alike;

		for (int nr = __builtin_popcount(left & alike); nr; nr--, first &= first - 1)
			key->left |= first & -first;
		left &= ~alike;
	}
	for (unsigned int i = 0; i < PLAN_MAX_TENANTS; i++)
		key->ugpu[i] = tenants >> i & 1 ? s->counts->ugpu[i] : PLAN_ANYWHERE;
	hash = ((uint64_t)tenants << 32 | key->left) * 0x9e3779b97f4a7c15ull;
	for (unsigned int i = 0; i < sizeof(key->ugpu); i += sizeof(part)) {
		memcpy(&part, key->ugpu + i, sizeof(part));
		hash = (hash ^ hash >> 29 ^ part) * 0xbf58476d1ce4e5b9ull;
	}
	return &s->known[(hash ^ hash >> 32) % NR_KNOWN];
}

/*
 * Returns true if @tenants fit. The tenants that want whole GPCs must fit into @left. The other
 * tenants must fit into all remaining GPCs: the rest of @left, and the GPCs that cannot be taken
 * whole.
 */
static bool fits(struct plan_search *s, uint32_t tenants, uint32_t left)
{
	struct known key, *known = find_known(s, tenants, left, &key);
	struct node n;

	if (known->epoch == key.epoch && known->left == key.left &&
	    known->tenants == key.tenants && !memcmp(known->ugpu, key.ugpu, sizeof(key.ugpu)))
		return known->fits;
	n.tenants = tenants;
	n.left = key.left;
	key.fits = may_fit(s, &n) && (n.next == NO_TENANT || search(s, &n));
	if (spend(s, 0))
		*known = key;
	return key.fits;
}

/*
 * Returns the number of TPCs that @tenant would get if the remaining TPCs were distributed one at a
 * time. Ignores the boundaries of GPCs.
 */
static unsigned int fair_share(const struct plan_search *s, unsigned int tenant, uint32_t left)
{
	struct plan_room room = s->broken;
	unsigned int nr[PLAN_MAX_TENANTS];

	for (; left; left &= left - 1) {
		const struct plan_gpc *gpc = s->gpcs[__builtin_ctz(left)];

		plan_room_add(&room, gpc->ugpu, gpc->nr, gpc->nr_main);
	}
	for (unsigned int i = 0; i < s->ask->nr; i++)
		nr[i] = s->ask->tenants[i].min;
	plan_deal(s->ask, tenant, s->counts->ugpu, &room, false, nr);
	return nr[tenant];
}

/* The state of the choice for one tenant. */
struct choice {
	unsigned int tenant, share, nr;
	unsigned int order[PLAN_MAX_GPCS];	/* positions of the GPCs that the tenant may
						 * have */
	uint32_t left, after;		/* the GPCs for this tenant and later tenants; the GPCs for
					 * later tenants only */
	unsigned int best;		/* rank of the best set so far */
	uint32_t set;
};

/* The set that is being built. */
struct part {
	uint32_t set, may;		/* the set; the GPCs that may still be added */
	unsigned int sum, rest;		/* TPCs in the set, and TPCs in the GPCs that may be
					 * added */
	uint64_t ugpus;
	bool home;			/* the set holds the home */
};

/*
 * Returns the rank of a set. A lower rank is better. The set differs from the tenant's share by
 * @off TPCs.
 */
static unsigned int rank_set(const struct plan_search *s, unsigned int off, unsigned int nr_ugpus,
			     unsigned int sum)
{
	unsigned int cost = 2 * off + (nr_ugpus - 1) * s->ask->gpu.largest;

	return (cost * 64 + nr_ugpus) * 512 + 511 - sum;
}

static unsigned int distance(unsigned int a, unsigned int b)
{
	return a < b ? b - a : a - b;
}

/* Returns true if no set that contains @p can be better than the best set so far. */
static bool is_beaten(const struct plan_search *s, const struct choice *c, const struct part *p)
{
	unsigned int most = p->sum + p->rest, off = 0;

	if (p->sum > c->share)
		off = p->sum - c->share;
	else if (most < c->share)
		off = c->share - most;
	return rank_set(s, off, p->ugpus ? __builtin_popcountll(p->ugpus) : 1, most) >= c->best;
}

/*
 * Enumerates the sets that contain @p. Sets that contain the first GPCs of the order come first.
 */
static void choose_more(struct plan_search *s, struct choice *c, unsigned int i, struct part p)
{
	const struct plan_tenant *t = &s->ask->tenants[c->tenant];

	if (p.sum >= t->min && p.home && is_shaped(s, c->tenant, p.set)) {
		unsigned int rank = rank_set(s, distance(p.sum, c->share),
					     __builtin_popcountll(p.ugpus), p.sum);

		if (rank < c->best) {
			c->best = rank;
			c->set = p.set;
		}
	}
	for (; i < c->nr && spend(s, 1) && !is_beaten(s, c, &p); i++) {
		unsigned int at = c->order[i], nr = s->gpcs[at]->nr;
		struct part more;
		uint32_t alike;

		if (!(p.may >> at & 1))
			continue;
		p.may &= ~(1u << at);
		p.rest -= nr;
		more = p;
		more.set |= 1u << at;
		more.sum += nr;
		more.ugpus |= 1ull << s->gpcs[at]->ugpu;
		more.home |= is_homely(s, c->tenant, at);
		if (more.sum <= t->max && !is_beaten(s, c, &more) &&
		    fits(s, c->after, c->left & ~more.set))
			choose_more(s, c, i + 1, more);
		/* Try only the first of several interchangeable GPCs. */
		alike = p.may & s->alike[at] & s->in_ugpu[s->gpcs[at]->ugpu];
		p.rest -= nr * __builtin_popcount(alike);
		p.may &= ~alike;
	}
}

/* Chooses the best set of GPCs in @left. The best set is defined in gpupart_manage.h. */
static uint32_t choose(struct plan_search *s, unsigned int tenant, uint32_t left)
{
	struct choice c = { .tenant = tenant, .left = left, .best = ~0u };
	struct part p = { .may = left };
	unsigned int order[PLAN_MAX_GPCS];

	c.share = fair_share(s, tenant, left);
	c.after = ((1u << s->ask->nr) - 1) & ~((2u << tenant) - 1);
	plan_order(s->ask, s->counts, tenant, order);
	for (unsigned int i = 0; i < s->ask->gpu.nr_gpcs; i++)
		for (unsigned int at = 0; at < s->nr_gpcs; at++)
			if (s->gpcs[at] == &s->ask->gpu.gpcs[order[i]] && left >> at & 1 &&
			    is_in(s, tenant, at)) {
				c.order[c.nr++] = at;
				p.rest += s->gpcs[at]->nr;
			}
	choose_more(s, &c, 0, p);
	for (uint32_t set = c.set; set; set &= set - 1) {
		const struct plan_gpc *gpc = s->gpcs[__builtin_ctz(set)];

		s->counts->nr[tenant][gpc - s->ask->gpu.gpcs] = gpc->nr;
		s->counts->total[tenant] += gpc->nr;
	}
	return left & ~c.set;
}

/*
 * Finds the groups of tenants that share a uGPU. Also finds which groups must be apart. The groups
 * are sorted by the rank of their first tenants.
 */
static void find_groups(struct plan_search *s)
{
	const struct plan_tenant *t = s->ask->tenants;
	unsigned int of[PLAN_MAX_TENANTS], in[PLAN_MAX_TENANTS], nr = s->ask->nr;

	for (unsigned int i = 0; i < nr; i++)
		of[i] = i;
	for (unsigned int turn = 0; turn < nr; turn++)
		for (unsigned int i = 0; i < nr; i++)
			for (unsigned int j = 0; j < nr; j++)
				if (t[i].same >> t[j].given & 1 && of[j] < of[i])
					of[i] = of[j];
	for (unsigned int i = 0; i < nr; i++) {
		if (!(t[i].same | t[i].apart))
			continue;
		in[i] = of[i] == i ? s->nr_groups++ : in[of[i]];
		s->members[in[i]] |= 1u << i;
		s->group_min[in[i]] += t[i].min;
		for (unsigned int j = 0; j < nr; j++)
			s->apart[in[i]] |= (t[i].apart >> t[j].given & 1) << j;
	}
}

/* Binds a group to a uGPU, or releases it. */
static void bind(struct plan_search *s, unsigned int group, unsigned int ugpu, bool bound)
{
	s->bound ^= s->members[group];
	s->bound_to[ugpu] ^= s->members[group];
	s->free[ugpu] += bound ? 0 - s->group_min[group] : s->group_min[group];
	for (unsigned int i = 0; i < s->ask->nr; i++)
		if (s->members[group] >> i & 1)
			s->counts->ugpu[i] = bound ? (int)ugpu : PLAN_ANYWHERE;
}

/*
 * Returns the uGPU with the most TPCs that are not reserved for minimums. Skips the uGPUs in
 * @tried.
 */
static unsigned int next_ugpu(const struct plan_search *s, uint64_t tried)
{
	unsigned int nr = s->ask->gpu.nr_bindable, best = nr;

	for (unsigned int u = 0; u < nr; u++)
		if (!(tried >> u & 1) && (best == nr || s->free[u] > s->free[best]))
			best = u;
	return best;
}

/*
 * Binds @group and each later group to a uGPU. Chooses the first uGPU with which all later
 * groups still fit.
 */
static bool bind_groups(struct plan_search *s, unsigned int group)
{
	struct node all = { .tenants = (1u << s->ask->nr) - 1,
			    .left = (1ull << s->nr_gpcs) - 1 };
	uint64_t tried = 0;

	if (!may_fit(s, &all) || !fits(s, s->bound, all.left))
		return false;
	if (group == s->nr_groups)
		return fits(s, all.tenants, all.left);
	for (unsigned int turn = 0; turn < s->ask->gpu.nr_bindable; turn++) {
		unsigned int ugpu = next_ugpu(s, tried);

		tried |= 1ull << ugpu;
		if (s->free[ugpu] < s->group_min[group] ||
		    s->apart[group] & (s->bound_to[ugpu] | s->members[group]))
			continue;
		bind(s, group, ugpu, true);
		if (bind_groups(s, group + 1))
			return true;
		bind(s, group, ugpu, false);
	}
	return false;
}

static void find_positions(struct plan_search *s)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	bool homes = false, ugpus = s->nr_groups;

	plan_room_clear(&s->broken, gpu->nr_ugpus);
	for (unsigned int i = 0; i < s->ask->nr; i++) {
		homes |= s->ask->tenants[i].home > 1;
		ugpus |= s->ask->tenants[i].balanced;
	}
	for (unsigned int i = 0; i < gpu->nr_gpcs; i++) {
		const struct plan_gpc *gpc = &gpu->gpcs[i];
		unsigned int at = s->nr_gpcs;

		s->free[gpc->ugpu] += gpc->nr;
		if (!gpc->whole || !gpc->nr) {
			plan_room_add(&s->broken, gpc->ugpu, gpc->nr, gpc->nr_main);
			s->nr_broken += gpc->nr;
			continue;
		}
		for (s->nr_gpcs++; at > 0 && s->gpcs[at - 1]->nr < gpc->nr; at--)
			s->gpcs[at] = s->gpcs[at - 1];
		s->gpcs[at] = gpc;
	}
	for (unsigned int i = 0; i < s->nr_gpcs; i++)
		for (unsigned int j = 0; j < s->nr_gpcs; j++) {
			const struct plan_gpc *a = s->gpcs[i], *b = s->gpcs[j];

			if (a->nr == b->nr && (!homes || a->nr_main == b->nr_main) &&
			    (!ugpus || a->ugpu == b->ugpu))
				s->alike[i] |= 1u << j;
		}
	for (unsigned int i = 0; i < s->nr_gpcs; i++)
		s->in_ugpu[s->gpcs[i]->ugpu] |= 1u << i;
}

static void set_up(struct plan_search *s, const struct plan_ask *ask, struct plan_counts *counts)
{
	memset(s, 0, offsetof(struct plan_search, epoch));
	memset(counts, 0, sizeof(*counts));
	s->ask = ask;
	s->counts = counts;
	s->epoch++;
	for (unsigned int i = 0; i < PLAN_MAX_TENANTS; i++)
		counts->ugpu[i] = counts->home[i] = PLAN_ANYWHERE;
	for (; s->nr_whole < ask->nr && ask->tenants[s->nr_whole].whole; s->nr_whole++) {
		const struct plan_tenant *t = &ask->tenants[s->nr_whole];
		unsigned int words = most_of_use(ask, t) / 64 + 1;

		s->sum_words = words > s->sum_words ? words : s->sum_words;
	}
	find_groups(s);
	find_positions(s);
}

int plan_search(struct plan_search *s, const struct plan_ask *ask, unsigned int max_steps,
		bool only_ask, struct plan_counts *counts)
{
	uint32_t left;
	bool fit;

	set_up(s, ask, counts);
	s->max_steps = max_steps;
	fit = bind_groups(s, 0);
	left = (1ull << s->nr_gpcs) - 1;
	for (unsigned int i = 0; i < s->nr_whole && fit && !only_ask; i++)
		left = choose(s, i, left);
	counts->steps = s->steps;
	if (!spend(s, 0))
		return -E2BIG;
	return fit ? 0 : -ENOSPC;
}
