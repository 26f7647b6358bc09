// SPDX-License-Identifier: MIT
/*
 * Prices that show that not all fit: of kinds that are wanted more often than they are there
 * they rise, of others they fall, until all sets cost more than all GPCs. That is the dual of
 * dealing GPCs out in fractions of sets, by a subgradient method in whole numbers. Knows no
 * search.
 */
#include <string.h>
#include "lib/plan/price.h"

#define NO_PRICE	0x3fff	/* of what cannot be had: all GPCs cost less */
#define MAX_WORTH	15500	/* of all GPCs */
#define MIN_WORTH	4000
#define WORTH		8000
#define MAX_PRICE	4000
#define BITS		8	/* behind the point while prices are looked for */
#define FULL_STEP	16
#define PATIENCE	4	/* turns without a better one, then steps are smaller */
#define LANES		8

typedef int16_t lanes __attribute__((vector_size(2 * LANES)));

/* One look for prices. */
struct look {
	struct plan_prices *all;
	const struct plan_kinds *k;
	const struct plan_question *q;
	uint32_t tenants;
	struct plan_price *now;
	int at[PLAN_MAX_GPCS], way[PLAN_MAX_GPCS], used[PLAN_MAX_GPCS];
	struct plan_price_work *work;
};

/* ------------------------------------------------------------------- rows */

/* to[i] = min(from[i] + price, other[i]), and some more behind the last. */
static void cheaper(int16_t *to, const int16_t *from, const int16_t *other, unsigned int nr,
		    int16_t price)
{
	for (unsigned int i = 0; i < nr; i += LANES) {
		lanes a, b, less;

		memcpy(&a, from + i, sizeof(a));
		memcpy(&b, other + i, sizeof(b));
		a += price;
		less = a < b;
		a = (a & less) | (b & ~less);
		memcpy(to + i, &a, sizeof(a));
	}
}

/* What costs nothing at @sum, and nothing else is there. */
static void first_row(int16_t *row, unsigned int end, int sum)
{
	for (unsigned int i = 0; i < end + LANES; i++)
		row[i] = NO_PRICE;
	if (sum >= 0)
		row[sum] = 0;
}

static bool sold_in(const struct plan_kind *kind, unsigned int ugpu)
{
	return ugpu == PLAN_ANY_UGPU || ugpu == kind->ugpu;
}

/* One more GPC of @nr TPCs. Where the row without a home is not of interest, @two is false. */
static void add_gpc(struct plan_sale *s, unsigned int kind, unsigned int nr, bool two, bool holds,
		    int16_t price)
{
	unsigned int n = s->nr_gpcs++;
	int16_t (*from)[PLAN_ROW] = s->row[n], (*to)[PLAN_ROW] = s->row[n + 1];

	s->kind[n] = kind;
	s->gain[n] = nr;
	memcpy(to[1], from[1], nr * sizeof(**to));
	cheaper(to[1] + nr, from[1], from[1] + nr, s->end - nr, price);
	if (!two)
		return;
	if (holds) {
		memcpy(to[0], from[0], (s->end + LANES) * sizeof(**to));
		cheaper(to[1] + nr, from[0], to[1] + nr, s->end - nr, price);
		return;
	}
	memcpy(to[0], from[0], nr * sizeof(**to));
	cheaper(to[0] + nr, from[0], from[0] + nr, s->end - nr, price);
}

/* Sets in @ugpu, one GPC of which holds @home, by their sum below @end; the last row. */
static const int16_t *sell(struct plan_prices *all, const struct plan_price *p, struct plan_sale *s,
			   unsigned int ugpu, unsigned int home, unsigned int end)
{
	const struct plan_kinds *k = all->kinds;
	bool two = home > 1;

	s->nr_gpcs = 0;
	s->end = end;
	first_row(s->row[0][1], end, two ? -1 : 0);
	first_row(s->row[0][0], end, 0);
	for (unsigned int kind = 0; kind < k->nr; kind++)
		for (unsigned int i = 0; i < p->there[kind]; i++)
			if (sold_in(&k->kind[kind], ugpu) && k->kind[kind].nr < end)
				add_gpc(s, kind, k->kind[kind].nr, two,
					k->kind[kind].nr_main >= home, p->of[kind]);
	all->steps += (s->nr_gpcs + 1) * (4 + end / LANES) * (two ? 2 : 1);
	return s->row[s->nr_gpcs][1];
}

/* GPCs in @ugpu with at least so many places; the last row. */
static const int16_t *sell_places(struct plan_prices *all, const struct plan_price *p,
				  struct plan_sale *s, unsigned int ugpu, unsigned int level,
				  unsigned int end)
{
	const struct plan_kinds *k = all->kinds;

	s->nr_gpcs = 0;
	s->end = end;
	first_row(s->row[0][1], end, 0);
	for (unsigned int kind = 0; kind < k->nr; kind++) {
		unsigned int nr = plan_kind_places(&k->kind[kind], level);

		if (!nr || !sold_in(&k->kind[kind], ugpu))
			continue;
		for (unsigned int i = 0; i < p->there[kind]; i++) {
			int16_t *to = s->row[s->nr_gpcs + 1][1];
			const int16_t *from = s->row[s->nr_gpcs][1];

			/* More than is needed is as good. */
			for (unsigned int n = 1; n < nr && n < end; n++)
				to[n] = p->of[kind] < from[n] ? p->of[kind] : from[n];
			to[0] = 0;
			if (nr < end)
				cheaper(to + nr, from, from + nr, end - nr, p->of[kind]);
			s->kind[s->nr_gpcs] = kind;
			s->gain[s->nr_gpcs++] = nr;
		}
	}
	all->steps += (s->nr_gpcs + 1) * (6 + end / LANES);
	return s->row[s->nr_gpcs][1];
}

static unsigned int cheapest_sum(const int16_t *row, unsigned int min, unsigned int max)
{
	unsigned int best = min;

	for (unsigned int sum = min + 1; sum <= max; sum++)
		if (row[sum] < row[best])
			best = sum;
	return best;
}

/* The GPCs of the cheapest set of @sum, by going back from the last row. */
static void find_used(const struct look *l, unsigned int sum, unsigned int home, uint8_t *uses)
{
	const struct plan_sale *s = &l->work->sale;
	unsigned int has = 1;

	memset(uses, 0, PLAN_MAX_GPCS);
	if (s->row[s->nr_gpcs][1][sum] >= NO_PRICE)
		return;
	for (unsigned int i = s->nr_gpcs; i-- > 0;) {
		unsigned int kind = s->kind[i], less = sum - s->gain[i];
		int price = s->row[i + 1][has][sum];

		if (s->row[i][has][sum] == price)
			continue;
		uses[kind]++;
		if (has && home > 1 && s->row[i][1][less] + l->now->of[kind] != price)
			has = 0;
		sum = less;
	}
}

/* ------------------------------------------------------------ what it costs */

/* The sums of interest end here; 0: it wants more than there is. */
static unsigned int end_of(const struct look *l, const struct plan_question *q,
			   unsigned int tenant)
{
	unsigned int max = plan_question_demand(q, l->k, tenant).max;

	return (max < GPUPART_MAX_TPCS ? max : GPUPART_MAX_TPCS) + 1;
}

/* Of all tenants with this one's home that may be in @ugpu. */
static void price_sets(struct look *l, const struct plan_question *q, unsigned int ugpu,
		       unsigned int home, uint32_t tenants)
{
	unsigned int end = 0;
	const int16_t *row;

	for (uint32_t left = tenants; left; left &= left - 1)
		if (end_of(l, q, __builtin_ctz(left)) > end)
			end = end_of(l, q, __builtin_ctz(left));
	row = sell(l->all, l->now, &l->work->sale, ugpu, home, end);
	for (uint32_t left = tenants; left; left &= left - 1) {
		unsigned int i = __builtin_ctz(left), sum;
		struct plan_demand d = plan_question_demand(q, l->k, i);

		sum = cheapest_sum(row, d.min, end_of(l, q, i) - 1);
		l->now->least[i][ugpu] = row[sum];
		find_used(l, sum, home, l->work->uses[i][ugpu]);
	}
}

static uint64_t ugpus_of(const struct plan_question *q, const struct plan_unit *unit)
{
	int ugpu;

	if (unit->ugpus)
		return unit->ugpus;
	ugpu = plan_question_ugpu(q, __builtin_ctz(unit->members));
	return 1ull << (ugpu == PLAN_ANYWHERE ? PLAN_ANY_UGPU : (unsigned int)ugpu);
}

/* Each tenant that is asked about in each uGPU where it may be. */
static void price_tenants(struct look *l, const struct plan_question *q, uint32_t tenants)
{
	uint32_t in[PLAN_ANY_UGPU + 1] = { 0 };

	for (unsigned int i = 0; i < q->nr_units; i++)
		for (uint64_t left = ugpus_of(q, &q->units[i]); left; left &= left - 1)
			in[__builtin_ctzll(left)] |= q->units[i].members & tenants;
	for (unsigned int u = 0; u <= PLAN_ANY_UGPU; u++)
		while (in[u]) {
			unsigned int first = __builtin_ctz(in[u]);
			unsigned int home = plan_question_demand(q, l->k, first).home;
			uint32_t alike = 0;

			for (uint32_t left = in[u]; left; left &= left - 1)
				if (plan_question_demand(q, l->k, __builtin_ctz(left)).home ==
				    home)
					alike |= left & -left;
			price_sets(l, q, u, home, alike);
			in[u] &= ~alike;
		}
}

/* Of these uGPUs, a unit goes where all of it is cheapest. */
static unsigned int cheapest_ugpu(const struct plan_price *p, const struct plan_unit *unit,
				  uint64_t ugpus, uint32_t tenants, int *cost)
{
	unsigned int best = PLAN_ANY_UGPU;

	*cost = -1;
	for (uint64_t left = ugpus; left; left &= left - 1) {
		unsigned int u = __builtin_ctzll(left);
		int sum = 0;

		for (uint32_t m = unit->members & tenants; m; m &= m - 1)
			sum += p->least[__builtin_ctz(m)][u];
		if (*cost >= 0 && *cost <= sum)
			continue;
		*cost = sum;
		best = u;
	}
	return best;
}

static void use(struct look *l, const uint8_t *uses)
{
	for (unsigned int kind = 0; kind < l->k->nr; kind++)
		l->used[kind] += uses[kind];
}

static int price_units(struct look *l)
{
	int all = 0, cost;

	for (unsigned int i = 0; i < l->q->nr_units; i++) {
		const struct plan_unit *unit = &l->q->units[i];
		uint32_t members = unit->members & l->tenants;
		unsigned int ugpu;

		if (!members)
			continue;
		ugpu = cheapest_ugpu(l->now, unit, ugpus_of(l->q, unit), l->tenants, &cost);
		all += cost;
		for (; members; members &= members - 1)
			use(l, l->work->uses[__builtin_ctz(members)][ugpu]);
	}
	return all;
}

/* The costliest of what is needed in @ugpu, TPCs or homes of a size. */
static int price_pool(struct look *l, unsigned int ugpu, uint8_t *uses)
{
	int cost = 0;

	memset(uses, 0, PLAN_MAX_GPCS);
	for (unsigned int level = 0; level <= l->k->levels; level++) {
		unsigned int need = l->q->pool[level][ugpu], n = need;
		struct plan_sale *s = &l->work->sale;
		const int16_t *row;

		if (!need)
			continue;
		row = sell_places(l->all, l->now, s, ugpu, level, need + 1);
		if (row[need] <= cost)
			continue;
		cost = row[need];
		memset(uses, 0, PLAN_MAX_GPCS);
		for (unsigned int i = s->nr_gpcs; i-- > 0;)
			if (s->row[i + 1][1][n] != s->row[i][1][n]) {
				uses[s->kind[i]]++;
				n = n > s->gain[i] ? n - s->gain[i] : 0;
			}
	}
	return cost;
}

/* What those who share need: in each uGPU, or all together, whichever costs more. */
static int price_pools(struct look *l)
{
	uint8_t uses[PLAN_MAX_GPCS], together[PLAN_MAX_GPCS];
	int all, sum = 0;

	all = price_pool(l, PLAN_ANY_UGPU, together);
	if (!all)
		return 0;
	if (!l->k->groups) {
		use(l, together);
		return all;
	}
	memset(l->work->uses[0][0], 0, PLAN_MAX_GPCS);
	for (unsigned int u = 0; u < l->k->nr_ugpus; u++) {
		sum += price_pool(l, u, uses);
		for (unsigned int kind = 0; kind < l->k->nr; kind++)
			l->work->uses[0][0][kind] += uses[kind];
	}
	use(l, sum > all ? l->work->uses[0][0] : together);
	return sum > all ? sum : all;
}

static int worth_of(const struct plan_kinds *k, const struct plan_price *p, const uint8_t *left)
{
	int worth = 0;

	for (unsigned int kind = 0; kind < k->nr; kind++)
		worth += left[kind] * p->of[kind];
	return worth;
}

/* ------------------------------------------------------------ looking for them */

/* Between twins there is no difference. */
static void level_twins(struct look *l)
{
	const int *twin = l->q->view.twin;

	for (unsigned int kind = 0; kind < l->k->nr; kind++)
		for (int other = twin[kind]; other >= 0; other = twin[other]) {
			l->at[kind] = (l->at[kind] + l->at[other]) / 2;
			l->at[other] = l->at[kind];
		}
}

static void round_prices(struct look *l)
{
	int64_t worth = 0;

	for (unsigned int kind = 0; kind < l->k->nr; kind++)
		worth += (int64_t)l->at[kind] * l->now->there[kind];
	for (unsigned int kind = 0; kind < l->k->nr; kind++) {
		if (!worth)
			l->at[kind] = l->k->kind[kind].nr << BITS;
		else if (worth > MAX_WORTH << BITS || worth < MIN_WORTH << BITS)
			l->at[kind] = l->at[kind] * (int64_t)(WORTH << BITS) / worth;
		if (l->at[kind] > MAX_PRICE << BITS)
			l->at[kind] = MAX_PRICE << BITS;
		l->now->of[kind] = (l->at[kind] + (1 << (BITS - 1))) >> BITS;
	}
}

/* A step towards what is wanted more often than it is there, and on from the last step. */
static bool step_prices(struct look *l, int excess, int step)
{
	int64_t norm = 0, length = (int64_t)(WORTH / 64 - excess) * step / FULL_STEP;

	for (unsigned int kind = 0; kind < l->k->nr; kind++) {
		int *way = &l->way[kind];

		*way = *way / 2 + 256 * (l->used[kind] - l->now->there[kind]);
		if (!l->now->there[kind] || (!l->now->of[kind] && *way < 0))
			*way = 0;
		norm += (int64_t)*way * *way;
	}
	for (unsigned int kind = 0; kind < l->k->nr && norm; kind++) {
		l->at[kind] += length * (256 << BITS) * l->way[kind] / norm;
		if (l->at[kind] < 0)
			l->at[kind] = 0;
	}
	return norm;
}

static bool is_of(const struct plan_kinds *k, const struct plan_price *p, const uint8_t *left)
{
	for (unsigned int kind = 0; kind < k->nr; kind++)
		if (left[kind] > p->there[kind])
			return false;
	return true;
}

/* ---------------------------------------------------- prices of another question */

static void ask_pools(const struct plan_kinds *k, const struct plan_question *q,
		      struct plan_price *p)
{
	int by_ugpu = 0;

	p->pools = 0;
	for (unsigned int u = 0; u <= PLAN_ANY_UGPU; u++) {
		int most = 0;

		if ((u >= k->nr_ugpus || !k->groups) && u < PLAN_ANY_UGPU)
			continue;
		for (unsigned int level = 0; level <= k->levels; level++)
			if (p->cover[level][u][q->pool[level][u]] > most)
				most = p->cover[level][u][q->pool[level][u]];
		if (u == PLAN_ANY_UGPU)
			p->pools = most > by_ugpu ? most : by_ugpu;
		else
			by_ugpu += most;
	}
}

static void ask_price(struct plan_prices *all, const struct plan_question *q, struct plan_price *p)
{
	if (p->asked == all->asked)
		return;
	p->asked = all->asked;
	p->exact_tenant = PLAN_NOBODY;
	for (unsigned int i = 0; i < q->nr_units; i++) {
		uint32_t members = q->units[i].members & ((1u << all->kinds->nr_whole) - 1);
		unsigned int ugpu;
		int cost;

		members &= q->tenants;
		ugpu = cheapest_ugpu(p, &q->units[i], q->units[i].ugpus ? q->units[i].ugpus :
				     1ull << PLAN_ANY_UGPU, members, &cost);
		for (; members; members &= members - 1)
			p->now[__builtin_ctz(members)] = p->least[__builtin_ctz(members)][ugpu];
	}
	ask_pools(all->kinds, q, p);
	all->steps += 8 * q->nr_units;
}

static int exact_price(struct plan_prices *all, const struct plan_question *q,
		       struct plan_price *p)
{
	unsigned int i = q->exact_tenant;
	int ugpu = plan_question_ugpu(q, i);

	if (p->exact_tenant != i || p->exact_ugpu != ugpu)
		p->has_exact[0] = p->has_exact[1] = false;
	p->exact_tenant = i;
	p->exact_ugpu = ugpu;
	if (!p->has_exact[q->exact_home]) {
		const int16_t *row;

		row = sell(all, p, &all->work.sale, ugpu == PLAN_ANYWHERE ? PLAN_ANY_UGPU : ugpu,
			   q->exact_home ? all->kinds->ask->tenants[i].home : 1,
			   GPUPART_MAX_TPCS + 1);
		memcpy(p->exact[q->exact_home], row, sizeof(p->exact[0]));
		p->has_exact[q->exact_home] = true;
	}
	return p->exact[q->exact_home][q->exact_sum];
}

static int excess_of(struct plan_prices *all, const struct plan_question *q, struct plan_price *p,
		     const uint8_t *left, uint32_t tenants)
{
	int cost;

	ask_price(all, q, p);
	cost = p->pools - worth_of(all->kinds, p, left);
	for (; tenants; tenants &= tenants - 1) {
		unsigned int i = __builtin_ctz(tenants);

		cost += i == q->exact_tenant ? exact_price(all, q, p) : p->now[i];
	}
	return cost;
}

bool plan_prices_allow(struct plan_prices *all, const struct plan_question *q,
		       const uint8_t *left, uint32_t tenants)
{
	/* What showed it the last time often does again. */
	for (unsigned int i = 0; i < all->nr; i++) {
		unsigned int at = (all->last + i) % all->nr;
		struct plan_price *p = &all->price[at];

		if (!is_of(all->kinds, p, left) || excess_of(all, q, p, left, tenants) <= 0)
			continue;
		all->last = at;
		return false;
	}
	return true;
}

/* ---------------------------------------------------------------- the finding */

static void keep_cover(struct look *l, int16_t *to, unsigned int ugpu, unsigned int level)
{
	unsigned int end = (GPUPART_MAX_TPCS >> level) + 2;

	memcpy(to, sell_places(l->all, l->now, &l->work->sale, ugpu, level, end),
	       end * sizeof(*to));
}

/* All that may be asked of these prices later. */
static void keep_price(struct look *l)
{
	struct plan_prices *all = l->all;
	struct plan_price *p = &all->price[all->next];
	const struct plan_kinds *k = l->k;
	struct plan_question any = { .exact_tenant = PLAN_NOBODY };
	uint64_t bindable = (1ull << (k->nr_ugpus - 1)) - 1;

	for (unsigned int i = 0; i < k->nr_whole; i++) {
		any.units[any.nr_units++] = (struct plan_unit){ 1u << i,
								k->grouped[i] ? bindable : 0 };
		any.ugpu[i] = PLAN_ANYWHERE;
	}
	price_tenants(l, &any, (1u << k->nr_whole) - 1);
	memcpy(p->there, l->now->there, sizeof(p->there));
	memcpy(p->of, l->now->of, sizeof(p->of));
	memcpy(p->least, l->now->least, sizeof(p->least));
	for (unsigned int level = 0; level <= k->levels; level++)
		for (unsigned int u = 0; u <= PLAN_ANY_UGPU; u++)
			if ((u < k->nr_ugpus && k->groups) || u == PLAN_ANY_UGPU)
				keep_cover(l, p->cover[level][u], u, level);
	p->asked = 0;
	all->last = all->next;
	all->next = (all->next + 1) % PLAN_NR_PRICES;
	if (all->nr < PLAN_NR_PRICES)
		all->nr++;
}

/* From the best that is known for this, or from what a TPC costs everywhere. */
static void start_prices(struct look *l, const uint8_t *left)
{
	const struct plan_price *from = NULL;
	int best = 0;

	for (unsigned int i = 0; i < l->all->nr; i++) {
		struct plan_price *p = &l->all->price[i];
		int excess = excess_of(l->all, l->q, p, left, l->tenants);

		if (from && excess <= best)
			continue;
		from = p;
		best = excess;
	}
	for (unsigned int kind = 0; kind < l->k->nr; kind++)
		l->at[kind] = from ? from->of[kind] << BITS : (int)l->k->kind[kind].nr << BITS;
}

bool plan_prices_find(struct plan_prices *all, const struct plan_question *q,
		      const uint8_t *left, uint32_t tenants, unsigned int turns)
{
	struct look l = { .all = all, .k = all->kinds, .q = q, .tenants = tenants,
			  .work = &all->work, .now = &all->work.now };
	int16_t best[PLAN_MAX_GPCS];
	int most = 0, step = FULL_STEP;
	unsigned int stale = 0;

	memcpy(l.now->there, left, sizeof(l.now->there));
	start_prices(&l, left);
	for (unsigned int turn = 0; turn < turns; turn++) {
		int excess;

		level_twins(&l);
		round_prices(&l);
		memset(l.used, 0, sizeof(l.used));
		price_tenants(&l, q, tenants);
		excess = price_units(&l) + price_pools(&l) - worth_of(l.k, l.now, left);
		if (!turn || excess > most) {
			most = excess;
			stale = 0;
			memcpy(best, l.now->of, sizeof(best));
		} else if (++stale > PATIENCE) {
			step = step > 1 ? step * 3 / 4 : 1;
			stale = 0;
		}
		if (most > 0 || !step_prices(&l, excess, step))
			break;
	}
	memcpy(l.now->of, best, sizeof(best));
	keep_price(&l);
	return most > 0;
}

void plan_prices_ask(struct plan_prices *all)
{
	all->asked++;
}

void plan_prices_start(struct plan_prices *all, const struct plan_kinds *kinds)
{
	all->kinds = kinds;
	all->nr = all->next = all->last = all->steps = 0;
	all->asked++;
}
