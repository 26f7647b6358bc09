// SPDX-License-Identifier: MIT
/*
 * Prices that show that not all fit: those of the most wanted kinds rise, of others fall, and
 * each turn is kept. Knows no search.
 */
#include <string.h>
#include "plan_price.h"

#define TPC_PRICE 16

/* The cheapest ways of all sums: without a GPC that holds the home, with one. */
struct sale {
	uint16_t price[2][GPUPART_MAX_TPCS + 1];
	uint32_t with[2][GPUPART_MAX_TPCS + 1];		/* of what, by unit */
	unsigned int nr_units, kind[PLAN_MAX_GPCS];
};

static void offer(const struct plan_market *m, const struct plan_key *key, unsigned int kind,
		  unsigned int unit, unsigned int price, struct sale *sale)
{
	unsigned int nr = m->kinds[kind].nr;
	bool holds = m->kinds[kind].nr_main >= key->home;

	for (unsigned int sum = m->end; sum-- > nr;)
		for (int has = 1; has >= 0; has--) {
			unsigned int to = has || holds, sold = sale->price[has][sum - nr] + price;

			if (sold >= sale->price[to][sum])
				continue;
			sale->price[to][sum] = sold;
			sale->with[to][sum] = sale->with[has][sum - nr] | 1u << unit;
		}
}

static void sell(const struct plan_market *m, unsigned int key, const struct plan_price *price,
		 struct sale *sale)
{
	sale->nr_units = 0;
	for (unsigned int sum = 0; sum < m->end; sum++) {
		sale->price[0][sum] = sale->price[1][sum] = PLAN_NO_PRICE;
		sale->with[0][sum] = sale->with[1][sum] = 0;
	}
	sale->price[0][0] = 0;
	for (unsigned int kind = 0; kind < m->nr_kinds; kind++)
		for (unsigned int i = 0; i < m->there[kind]; i++) {
			unsigned int unit = sale->nr_units++;

			sale->kind[unit] = kind;
			if (m->keys[key].ugpu == PLAN_ANY_UGPU ||
			    m->keys[key].ugpu == m->kinds[kind].ugpu)
				offer(m, &m->keys[key], kind, unit, price->of[kind], sale);
		}
}

/* Its cheapest set; adds what that has of each kind to @used. */
static void find_least(const struct plan_market *m, unsigned int tenant, const struct sale *sale,
		       struct plan_price *price, int *used)
{
	unsigned int best = m->min[tenant];

	for (unsigned int sum = best; sum < m->end && sum <= m->max[tenant]; sum++)
		if (sale->price[1][sum] < sale->price[1][best])
			best = sum;
	price->least[tenant] = sale->price[1][best];
	for (unsigned int unit = 0; unit < sale->nr_units; unit++)
		used[sale->kind[unit]] += sale->with[1][best] >> unit & 1;
}

/* Buys the cheapest @need TPCs in @ugpu of what is not @sold yet, of GPCs sold in parts. */
static void buy(const struct plan_market *m, struct plan_price *price, unsigned int ugpu,
		unsigned int need, unsigned int *sold)
{
	while (need) {
		int best = -1;
		unsigned int nr;

		for (unsigned int kind = 0; kind < m->nr_kinds; kind++)
			if (sold[kind] < m->there[kind] * m->kinds[kind].nr &&
			    (ugpu == PLAN_ANY_UGPU || ugpu == m->kinds[kind].ugpu) &&
			    (best < 0 || price->of[kind] * m->kinds[best].nr <
			     price->of[best] * m->kinds[kind].nr))
				best = kind;
		if (best < 0)
			return;
		nr = m->there[best] * m->kinds[best].nr - sold[best];
		nr = nr < need ? nr : need;
		price->shares += price->of[best] * nr / m->kinds[best].nr;
		sold[best] += nr;
		need -= nr;
	}
}

static void find_price(const struct plan_market *m, struct plan_price *price, int *used)
{
	unsigned int sold[PLAN_MAX_GPCS] = { 0 };
	struct sale sale;

	sale.nr_units = 0;
	memset(used, 0, PLAN_MAX_GPCS * sizeof(*used));
	for (unsigned int key = 0; key < m->nr_keys; key++) {
		bool sold_already = false;

		for (unsigned int i = 0; i < m->nr_tenants; i++) {
			if (!m->min[i] || m->key[i] != key)
				continue;
			if (!sold_already)
				sell(m, key, price, &sale);
			sold_already = true;
			find_least(m, i, &sale, price, used);
		}
	}
	price->shares = 0;
	for (unsigned int u = 0; u < m->nr_ugpus; u++)
		buy(m, price, u, m->shares_at[u], sold);
	buy(m, price, PLAN_ANY_UGPU, m->shares, sold);
	for (unsigned int kind = 0; kind < m->nr_kinds; kind++)
		used[kind] += sold[kind] / m->kinds[kind].nr;
}

void plan_prices_find(const struct plan_market *m, struct plan_prices *prices)
{
	int used[PLAN_MAX_GPCS];

	memset(prices->price[0].least, 0, sizeof(prices->price[0].least));
	prices->last = 0;
	for (unsigned int kind = 0; kind < m->nr_kinds; kind++)
		prices->price[0].of[kind] = TPC_PRICE * m->kinds[kind].nr;
	for (prices->nr = 0; prices->nr < PLAN_NR_PRICES; prices->nr++) {
		struct plan_price *now = &prices->price[prices->nr];
		int step = 2 * TPC_PRICE / (2 + (int)prices->nr / 3);

		find_price(m, now, used);
		if (prices->nr + 1 == PLAN_NR_PRICES)
			continue;
		memset(now[1].least, 0, sizeof(now[1].least));
		for (unsigned int kind = 0; kind < m->nr_kinds; kind++) {
			int price = now->of[kind] + step * (used[kind] - m->there[kind]) /
				    (m->there[kind] ? m->there[kind] : 1);

			/* All that there is costs less than what cannot be had. */
			price = price > 0 ? price : 0;
			now[1].of[kind] = price < 500 ? price : 500;
		}
	}
}

static bool allows(const struct plan_market *m, const struct plan_price *price,
		   const uint8_t *left, uint32_t tenants)
{
	unsigned int cost = price->shares, worth = 0;

	for (; tenants; tenants &= tenants - 1)
		cost += price->least[__builtin_ctz(tenants)];
	for (unsigned int kind = 0; kind < m->nr_kinds; kind++)
		worth += left[kind] * price->of[kind];
	return cost <= worth;
}

bool plan_prices_allow(const struct plan_market *m, struct plan_prices *prices,
		       const uint8_t *left, uint32_t tenants)
{
	/* What showed it the last time often does again. */
	if (!allows(m, &prices->price[prices->last], left, tenants))
		return false;
	for (unsigned int i = 0; i < prices->nr; i++)
		if (!allows(m, &prices->price[i], left, tenants)) {
			prices->last = i;
			return false;
		}
	return true;
}
