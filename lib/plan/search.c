// SPDX-License-Identifier: MIT
/*
 * Which uGPU a bound tenant gets, and which GPCs those that want them whole: the first, in
 * the order that gpupart.h promises, that leaves all others what they need at least. Each
 * step is taken when it is known that there is a way on. Knows no TPC and nothing of what
 * comes after.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "lib/plan/feasible.h"

#define LOOK_AT		3000		/* steps, before groups without a uGPU are priced */
#define MAX_CHOICES	8		/* of uGPUs that are asked about one by one */
#define NR_HOSTS	2048		/* a power of two */
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

/* Whether these tenants fit into a uGPU of these GPCs. */
struct host {
	uint32_t epoch;
	bool fits;
	uint8_t alike;
	uint16_t tenants;
};

struct plan_search {
	const struct plan_ask *ask;
	struct plan_counts *counts;
	unsigned int nr_whole, nr_groups;
	bool taken[PLAN_MAX_GPCS];
	/* Of a group: bit i for the tenant in it, for the group it is apart from. */
	uint32_t members[PLAN_MAX_TENANTS], apart[PLAN_MAX_TENANTS];
	unsigned int group_min[PLAN_MAX_TENANTS];
	int group_ugpu[PLAN_MAX_TENANTS];
	int way[PLAN_MAX_TENANTS];	/* the same in the last way that was found */
	unsigned int patience;		/* steps until groups without a uGPU are priced */
	unsigned int promised[PLAN_MAX_UGPUS], size[PLAN_MAX_UGPUS], alike[PLAN_MAX_UGPUS];
	/* From here on it stays from search to search. */
	struct plan_whole *whole;
	uint32_t epoch;
	struct host hosts[NR_HOSTS];
	reach_table reach;
};

/* What one is still to get. */
struct rest {
	unsigned int sum;
	bool home;		/* a GPC that holds its home is among it */
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
static bool may_take(const struct plan_search *s, unsigned int tenant, unsigned int gpc)
{
	const struct plan_gpc *g = &s->ask->gpu.gpcs[gpc];
	int ugpu = s->counts->ugpu[tenant];

	return g->whole && g->nr && !s->taken[gpc] &&
	       (ugpu == PLAN_ANYWHERE || ugpu == (int)g->ugpu);
}

static void fill_reach(struct plan_search *s, const struct choice *c)
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

/* ------------------------------------------------------------ whole GPCs */

static void take(struct plan_search *s, unsigned int tenant, unsigned int gpc)
{
	s->counts->nr[tenant][gpc] = s->ask->gpu.gpcs[gpc].nr;
	s->counts->total[tenant] += s->ask->gpu.gpcs[gpc].nr;
	s->taken[gpc] = true;
	plan_whole_take(s->whole, gpc);
}

static void put_back(struct plan_search *s, unsigned int tenant, unsigned int gpc)
{
	s->counts->total[tenant] -= s->counts->nr[tenant][gpc];
	s->counts->nr[tenant][gpc] = 0;
	s->taken[gpc] = false;
	plan_whole_put(s->whole, gpc);
}

/* The tenants from @first on, as bits. */
static uint32_t from_on(const struct plan_search *s, unsigned int first)
{
	return ((1u << s->ask->nr) - 1) & ~((1u << first) - 1);
}

/* In how many ways @nr of @of can be chosen; no more than matter. */
static unsigned int nr_choices(unsigned int of, unsigned int nr)
{
	unsigned int choices = nr <= of;

	for (unsigned int i = 0; i < nr && choices && choices <= MAX_CHOICES; i++)
		choices = choices * (of - i) / (i + 1);
	return choices;
}

/* The uGPUs after that of the @i'th GPC in its order. */
static unsigned int ugpus_after(const struct plan_search *s, const struct choice *c, unsigned int i,
				unsigned int *ugpus)
{
	unsigned int nr = 0;

	for (unsigned int at = i + 1; at < s->ask->gpu.nr_gpcs; at++) {
		unsigned int ugpu = s->ask->gpu.gpcs[c->order[at]].ugpu;

		if (ugpu != s->ask->gpu.gpcs[c->order[at - 1]].ugpu)
			ugpus[nr++] = ugpu;
	}
	return nr;
}

/* Whether there is a way on where it gets @sum more in @ugpus and @more of the @nr that follow. */
static int leaves_room_in(struct plan_search *s, unsigned int tenant, const struct rest *rest,
			  uint64_t ugpus, const unsigned int *next, unsigned int nr,
			  unsigned int more)
{
	int err = -ENOSPC;

	if (!more)
		return plan_whole_fit_exactly(s->whole, from_on(s, tenant), tenant, rest->sum,
					      rest->home, ugpus);
	for (unsigned int i = 0; i + more <= nr && err == -ENOSPC; i++)
		err = leaves_room_in(s, tenant, rest, ugpus | 1ull << next[i], next + i + 1,
				     nr - i - 1, more - 1);
	return err;
}

/*
 * Whether there is a way on where it gets @rest of GPCs after the @i'th, in the uGPU of that
 * and @more others. Where these could be many, whether there is one somewhere.
 */
static int leaves_room(struct plan_search *s, const struct choice *c, unsigned int i,
		       const struct rest *rest, unsigned int more)
{
	unsigned int next[PLAN_MAX_UGPUS], nr;

	if (!rest->sum)
		return plan_whole_fit(s->whole, from_on(s, c->tenant + 1));
	nr = ugpus_after(s, c, i, next);
	if (s->counts->ugpu[c->tenant] != PLAN_ANYWHERE || nr_choices(nr, more) > MAX_CHOICES)
		return leaves_room_in(s, c->tenant, rest, ~0ull, NULL, 0, 0);
	return leaves_room_in(s, c->tenant, rest, 1ull << s->ask->gpu.gpcs[c->order[i]].ugpu, next,
			      nr, more);
}

/*
 * Goes through the sets of GPCs i.. of exactly @rest in @ugpus more uGPUs, those with
 * the first GPCs of the order first: 0 and taken where one leaves the tenants after it what
 * they need, -ENOSPC none does, -E2BIG.
 */
static int pick(struct plan_search *s, const struct choice *before, unsigned int i,
		struct rest rest, unsigned int ugpus, bool touched)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	struct choice c = *before;
	unsigned int gpc = i < gpu->nr_gpcs ? c.order[i] : 0, nr;
	bool last = i + 1 >= gpu->nr_gpcs || gpu->gpcs[c.order[i + 1]].ugpu != gpu->gpcs[gpc].ugpu;
	int err;

	if (!plan_whole_spend(s->whole, 1))
		return -E2BIG;
	if (!sums_have(&s->reach[i][touched][rest.home][ugpus], rest.sum))
		return -ENOSPC;
	if (!rest.sum)
		return 0;
	nr = gpu->gpcs[gpc].nr;
	if (may_take(s, c.tenant, gpc)) {
		/* Of GPCs that are alike the first ones are taken: others make no difference. */
		if ((touched || ugpus) && nr <= rest.sum &&
		    !(c.skipped >> gpu->gpcs[gpc].alike & 1)) {
			struct rest less = rest;

			take(s, c.tenant, gpc);
			less.sum -= nr;
			less.home &= gpu->gpcs[gpc].nr_main < s->ask->tenants[c.tenant].home;
			err = leaves_room(s, &c, i, &less, ugpus - !touched);
			if (!err)
				err = pick(s, &c, i + 1, less, ugpus - !touched, !last);
			if (err != -ENOSPC)
				return err;
			put_back(s, c.tenant, gpc);
		}
		c.skipped |= 1u << gpu->gpcs[gpc].alike;
	}
	return pick(s, &c, i + 1, rest, ugpus, touched && !last);
}

/* The question behind a fair share. */
struct share {
	const struct plan_search *s;
	struct plan_room room;
	unsigned int first;	/* the tenants before have their sets */
};

static bool share_fits(void *arg, unsigned int tenant, const unsigned int *nr)
{
	const struct share *share = arg;
	const struct plan_search *s = share->s;
	struct plan_need needs[PLAN_MAX_TENANTS];
	unsigned int nr_needs = 0;

	(void)tenant;
	for (unsigned int i = share->first; i < s->ask->nr; i++)
		needs[nr_needs++] = (struct plan_need){ nr[i], 0, s->counts->ugpu[i] };
	return plan_fits(&share->room, needs, nr_needs);
}

/* What @tenant would get of what is left were GPCs no matter. */
static unsigned int fair_share(const struct plan_search *s, unsigned int tenant)
{
	const struct plan_gpu *gpu = &s->ask->gpu;
	struct share share = { .s = s, .first = tenant };
	unsigned int nr[PLAN_MAX_TENANTS];

	plan_room_clear(&share.room, gpu->nr_ugpus);
	for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++)
		if (!s->taken[gpc])
			plan_room_add(&share.room, gpu->gpcs[gpc].ugpu, gpu->gpcs[gpc].nr, 0);
	for (unsigned int i = 0; i < s->ask->nr; i++)
		nr[i] = s->ask->tenants[i].min;
	plan_deal(s->ask, tenant, nr, share_fits, &share);
	return nr[tenant];
}

/* The sets of @sum TPCs in @ugpus uGPUs; @bad has the sums that leave no room. */
static int choose_sum(struct plan_search *s, const struct choice *c, unsigned int sum,
		      unsigned int ugpus, struct sums *bad)
{
	const struct rest rest = { sum, true };
	int err;

	if (!sums_have(&s->reach[0][0][1][ugpus], sum) || sums_have(bad, sum))
		return -ENOSPC;
	err = leaves_room_in(s, c->tenant, &rest, ~0ull, NULL, 0, 0);
	if (err == -ENOSPC)
		bad->has[sum / 64] |= 1ull << sum % 64;
	return err ? err : pick(s, c, 0, rest, ugpus, false);
}

/* Takes the best of its sets; see gpupart.h for what is best. */
static int choose(struct plan_search *s, unsigned int tenant)
{
	const struct plan_tenant *t = &s->ask->tenants[tenant];
	unsigned int share = fair_share(s, tenant), most = s->ask->gpu.nr_ugpus;
	unsigned int end = 2 * GPUPART_MAX_TPCS + s->ask->gpu.largest * most;
	struct choice c = { .tenant = tenant };
	struct sums bad = { { 0 } };

	if (s->counts->ugpu[tenant] != PLAN_ANYWHERE)
		most = 1;
	plan_order(s->ask, s->counts, tenant, c.order);
	fill_reach(s, &c);
	for (unsigned int cost = 0; cost <= end; cost++)
		for (unsigned int u = 1; u <= most; u++) {
			int off = (int)cost - (int)(s->ask->gpu.largest * (u - 1));

			if (off < 0)
				break;
			for (int side = 1; side >= -1 && off % 2 == 0; side -= 2) {
				int sum = (int)share + side * off / 2, err;

				if (sum < (int)t->min || sum > (int)t->max || (side < 0 && !off))
					continue;
				err = choose_sum(s, &c, sum, u, &bad);
				if (err != -ENOSPC)
					return err;
			}
		}
	return -ENOSPC;
}

/* ----------------------------------------------------------------- uGPUs */

/* Those who are to be in one uGPU, and who not with whom. In rank order of their first. */
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
		unsigned int group = s->nr_groups;

		if (of[i] != i || !(t[i].same | t[i].apart))
			continue;
		for (unsigned int j = i; j < nr; j++)
			if (of[j] == i) {
				in[j] = group;
				s->members[group] |= 1u << j;
				s->group_min[group] += t[j].min;
			}
		s->nr_groups++;
	}
	for (unsigned int i = 0; i < nr; i++)
		for (unsigned int j = 0; j < nr; j++)
			if (t[i].apart >> t[j].given & 1)
				s->apart[in[i]] |= 1u << in[j];
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

/* ------------------------------------------------------- groups to uGPUs */

static void bind(struct plan_search *s, unsigned int group, int ugpu)
{
	if (s->group_ugpu[group] != PLAN_ANYWHERE)
		s->promised[s->group_ugpu[group]] -= s->group_min[group];
	if (ugpu != PLAN_ANYWHERE)
		s->promised[ugpu] += s->group_min[group];
	s->group_ugpu[group] = ugpu;
	for (unsigned int i = 0; i < s->ask->nr; i++)
		if (s->members[group] >> i & 1)
			s->counts->ugpu[i] = ugpu;
}

/* By what is quickly seen. */
static bool has_room(const struct plan_search *s, unsigned int group, unsigned int ugpu)
{
	if (s->promised[ugpu] + s->group_min[group] > s->size[ugpu] ||
	    s->apart[group] >> group & 1)
		return false;
	for (unsigned int other = 0; other < s->nr_groups; other++)
		if (s->group_ugpu[other] == (int)ugpu && s->apart[group] >> other & 1)
			return false;
	return true;
}

/* The next group to be bound: of empty uGPUs that are alike the first will do. */
static bool may_have(const struct plan_search *s, unsigned int group, unsigned int ugpu)
{
	if (!has_room(s, group, ugpu))
		return false;
	for (unsigned int u = 0; u < ugpu && !s->promised[ugpu]; u++)
		if (s->alike[u] == s->alike[ugpu] && !s->promised[u])
			return false;
	return true;
}

/* The question of @tenants, with groups where they are bound or, so far, may be. */
static void ask_whole(struct plan_search *s, uint32_t tenants, int only)
{
	struct plan_unit units[PLAN_MAX_TENANTS];

	for (unsigned int group = 0; group < s->nr_groups; group++) {
		units[group] = (struct plan_unit){ s->members[group], 0 };
		for (unsigned int u = 0; u < s->ask->gpu.nr_bindable; u++)
			if (s->group_ugpu[group] == (int)u ||
			    (s->group_ugpu[group] == PLAN_ANYWHERE && has_room(s, group, u)))
				units[group].ugpus |= 1ull << u;
	}
	plan_whole_bind(s->whole, tenants, units, s->nr_groups, only);
}

/* Whether those bound to @ugpu fit into it, whatever the others do: 0, -ENOSPC, -E2BIG. */
static int can_host(struct plan_search *s, unsigned int ugpu)
{
	uint32_t tenants = 0;
	struct host *host;
	int err;

	for (unsigned int group = 0; group < s->nr_groups; group++)
		if (s->group_ugpu[group] == (int)ugpu)
			tenants |= s->members[group];
	host = &s->hosts[(tenants * 2654435761u + s->alike[ugpu] * 40503u) >> 16 & (NR_HOSTS - 1)];
	if (host->epoch == s->epoch && host->alike == s->alike[ugpu] && host->tenants == tenants)
		return host->fits ? 0 : -ENOSPC;
	ask_whole(s, tenants, ugpu);
	err = plan_whole_fit(s->whole, tenants);
	if (err != -E2BIG)
		*host = (struct host){ s->epoch, !err, s->alike[ugpu], tenants };
	return err;
}

/* The uGPU with the most that is not promised, of those not @tried. */
static unsigned int next_ugpu(const struct plan_search *s, uint64_t tried)
{
	unsigned int nr = s->ask->gpu.nr_bindable, best = nr;

	for (unsigned int u = 0; u < nr; u++)
		if (!(tried >> u & 1) && (best == nr || s->size[u] - s->promised[u] >
					  s->size[best] - s->promised[best]))
			best = u;
	return best;
}

/* Of the groups @left the one with the fewest uGPUs, then the larger minimum. */
static unsigned int hardest_group(const struct plan_search *s, uint32_t left)
{
	unsigned int best = PLAN_MAX_TENANTS, fewest = 0;

	for (; left; left &= left - 1) {
		unsigned int group = __builtin_ctz(left), nr = 0;

		for (unsigned int u = 0; u < s->ask->gpu.nr_bindable; u++)
			nr += may_have(s, group, u);
		if (best == PLAN_MAX_TENANTS || nr < fewest ||
		    (nr == fewest && s->group_min[group] > s->group_min[best])) {
			best = group;
			fewest = nr;
		}
	}
	return best;
}

/* What has taken as long as that is looked at closely, the less often the less it helps. */
static bool may_fit(struct plan_search *s, unsigned int start)
{
	unsigned int steps;
	bool may;

	if (plan_whole_steps(s->whole) - start <= s->patience)
		return true;
	ask_whole(s, from_on(s, 0), PLAN_ANYWHERE);
	may = plan_whole_may_closely(s->whole, &steps);
	s->patience = may ? 2 * s->patience + steps : s->patience / 2;
	return may;
}

/* Whether there is a way for the groups @left and all others; notes it. */
static int groups_fit(struct plan_search *s, uint32_t left)
{
	unsigned int group, ugpu, nr = s->ask->gpu.nr_bindable, start;
	uint64_t tried = 0;
	int err = 0;

	ask_whole(s, from_on(s, 0), PLAN_ANYWHERE);
	if (!plan_whole_may(s->whole))
		return -ENOSPC;
	if (!left)
		return plan_whole_fit(s->whole, from_on(s, 0));
	if (!plan_whole_spend(s->whole, 0))
		return -E2BIG;
	start = plan_whole_steps(s->whole);
	group = hardest_group(s, left);
	for (unsigned int turn = 0; turn < nr; turn++) {
		ugpu = next_ugpu(s, tried);
		tried |= 1ull << ugpu;
		if (!may_have(s, group, ugpu))
			continue;
		if (turn && !may_fit(s, start))
			return -ENOSPC;
		bind(s, group, ugpu);
		err = can_host(s, ugpu);
		if (!err)
			err = groups_fit(s, left & ~(1u << group));
		bind(s, group, PLAN_ANYWHERE);
		if (!err)
			s->way[group] = ugpu;
		if (err != -ENOSPC)
			return err;
	}
	return -ENOSPC;
}

/* Binds @group to the first uGPU that leaves a way for those after it. */
static int place_group(struct plan_search *s, unsigned int group)
{
	uint32_t after = ((1u << s->nr_groups) - 1) & ~((2u << group) - 1);
	uint64_t tried = 0;
	int err;

	for (unsigned int turn = 0; turn < s->ask->gpu.nr_bindable; turn++) {
		unsigned int ugpu = next_ugpu(s, tried);

		tried |= 1ull << ugpu;
		if (!may_have(s, group, ugpu))
			continue;
		bind(s, group, ugpu);
		if (s->way[group] == (int)ugpu)
			return 0;
		err = can_host(s, ugpu);
		if (!err)
			err = groups_fit(s, after);
		if (err != -ENOSPC)
			return err;
		bind(s, group, PLAN_ANYWHERE);
	}
	return -ENOSPC;
}

static int search(struct plan_search *s, bool only_ask)
{
	int err = groups_fit(s, (1u << s->nr_groups) - 1);

	if (err || only_ask)
		return err;
	for (unsigned int group = 0; group < s->nr_groups && !err; group++)
		err = place_group(s, group);
	if (err)
		return err;
	ask_whole(s, from_on(s, 0), PLAN_ANYWHERE);
	plan_whole_settle(s->whole);
	for (unsigned int i = 0; i < s->nr_whole && !err; i++)
		err = choose(s, i);
	return err;
}

static void set_up(struct plan_search *s, const struct plan_ask *ask, struct plan_counts *counts)
{
	const struct plan_gpu *gpu = &ask->gpu;

	memset(s, 0, offsetof(struct plan_search, whole));
	memset(counts, 0, sizeof(*counts));
	s->ask = ask;
	s->counts = counts;
	s->patience = LOOK_AT;
	s->epoch++;
	for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++)
		s->size[gpu->gpcs[gpc].ugpu] += gpu->gpcs[gpc].nr;
	for (unsigned int i = 0; i < PLAN_MAX_TENANTS; i++) {
		s->counts->ugpu[i] = s->group_ugpu[i] = PLAN_ANYWHERE;
		s->counts->home[i] = -1;
	}
	for (unsigned int i = 0; i < s->ask->nr; i++)
		s->nr_whole += s->ask->tenants[i].whole;
	find_groups(s);
	for (unsigned int u = 0; u < gpu->nr_ugpus && s->nr_groups; u++)
		s->alike[u] = lowest_alike(gpu, u);
}

int plan_search(struct plan_search *s, const struct plan_ask *ask, unsigned int max_steps,
		bool only_ask, struct plan_counts *counts)
{
	int err;

	set_up(s, ask, counts);
	plan_whole_start(s->whole, ask, max_steps);
	err = search(s, only_ask);
	counts->steps = plan_whole_steps(s->whole);
	return err;
}

struct plan_search *plan_search_new(void)
{
	struct plan_search *s = calloc(1, sizeof(*s));

	if (s)
		s->whole = plan_whole_new();
	if (s && !s->whole) {
		free(s);
		return NULL;
	}
	return s;
}

void plan_search_free(struct plan_search *s)
{
	if (s)
		plan_whole_free(s->whole);
	free(s);
}
