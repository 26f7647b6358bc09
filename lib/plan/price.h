/* SPDX-License-Identifier: MIT */
/*
 * Prices of kinds of GPCs. Whatever they are, no tenant's set costs less than its cheapest
 * one, and all sets together no more than all GPCs: what tells quickly that not all fit.
 */
#ifndef GPUPART_LIB_PLAN_PRICE_H
#define GPUPART_LIB_PLAN_PRICE_H

#include "lib/plan/kind.h"

#define PLAN_NR_PRICES	16

/* Rows of prices by sum are read in pieces; some room behind the last. */
#define PLAN_ROW	(GPUPART_MAX_TPCS + 24)

/* What is known of one choice of prices, for up to @there of each kind. */
struct plan_price {
	uint8_t there[PLAN_MAX_GPCS];
	int16_t of[PLAN_MAX_GPCS];		/* a GPC of the kind */
	/* Each tenant's cheapest set in a uGPU, or wherever. */
	int16_t least[PLAN_MAX_TENANTS][PLAN_ANY_UGPU + 1];
	/* The cheapest GPCs with so many TPCs, and at [level] places for homes. */
	int16_t cover[PLAN_MAX_LEVELS][PLAN_ANY_UGPU + 1][PLAN_ROW];
	/* The following is of the question @asked. */
	unsigned int asked;
	int pools;				/* what those who share need */
	int16_t now[PLAN_MAX_TENANTS];		/* its cheapest set */
	unsigned int exact_tenant;
	int exact_ugpu;
	bool has_exact[2];
	int16_t exact[2][PLAN_ROW];		/* its sets by sum: without a home, with one */
};

/* The cheapest ways to all sums, after so many GPCs: without the home, with it. */
struct plan_sale {
	unsigned int nr_gpcs, end;
	unsigned int kind[PLAN_MAX_GPCS], gain[PLAN_MAX_GPCS];
	int16_t row[PLAN_MAX_GPCS + 1][2][PLAN_ROW];
};

/* What prices are looked for in. */
struct plan_price_work {
	struct plan_price now;
	uint8_t uses[PLAN_MAX_TENANTS][PLAN_ANY_UGPU + 1][PLAN_MAX_GPCS];
	struct plan_sale sale;
};

struct plan_prices {
	const struct plan_kinds *kinds;
	unsigned int nr, next, last, asked;
	unsigned int steps;			/* spent here so far */
	struct plan_price price[PLAN_NR_PRICES];
	struct plan_price_work work;
};

void plan_prices_start(struct plan_prices *prices, const struct plan_kinds *kinds);

/* The question has changed, in more than in who wants what exactly. */
void plan_prices_ask(struct plan_prices *prices);

/*
 * False only where sets of @tenants and what the others need cost more than what is @left.
 * Where not all groups have their uGPU yet, @tenants are all.
 */
bool plan_prices_allow(struct plan_prices *prices, const struct plan_question *q,
		       const uint8_t *left, uint32_t tenants);

/* Looks for prices that forbid it, @turns times, and keeps the best. True: these do. */
bool plan_prices_find(struct plan_prices *prices, const struct plan_question *q,
		      const uint8_t *left, uint32_t tenants, unsigned int turns);

#endif
