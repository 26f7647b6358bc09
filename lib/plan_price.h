/* SPDX-License-Identifier: MIT */
/*
 * Prices of kinds of GPCs. Whatever they are, no tenant's set costs less than its cheapest
 * one, and all sets together no more than all GPCs: what tells quickly that not all fit.
 */
#ifndef GPUPART_LIB_PLAN_PRICE_H
#define GPUPART_LIB_PLAN_PRICE_H

#include "plan.h"

#define PLAN_MAX_KEYS	(2 * PLAN_MAX_TENANTS)
#define PLAN_NR_PRICES	32
#define PLAN_ANY_UGPU	PLAN_MAX_UGPUS
#define PLAN_NO_PRICE	0x3fffu		/* of what cannot be had; and the most there is */

/* GPCs between which no demand tells. */
struct plan_kind {
	unsigned int nr, nr_main, ugpu;
};

/* What tenants may share: where they may be and the home that they need. */
struct plan_key {
	unsigned int ugpu, home;
};

/* Of whom the question is. */
struct plan_market {
	unsigned int nr_kinds, nr_keys, nr_tenants;
	struct plan_kind kinds[PLAN_MAX_GPCS];
	uint8_t there[PLAN_MAX_GPCS];		/* of each kind */
	struct plan_key keys[PLAN_MAX_KEYS];
	/* Who wants whole GPCs; min is 0 of one of whom the question is not. */
	unsigned int min[PLAN_MAX_TENANTS], max[PLAN_MAX_TENANTS], key[PLAN_MAX_TENANTS];
	/* TPCs that the others need: in a uGPU, and then in all of them. */
	unsigned int nr_ugpus, shares_at[PLAN_MAX_UGPUS], shares;
	unsigned int end;	/* sums below this are of interest */
};

struct plan_price {
	uint16_t of[PLAN_MAX_GPCS];		/* a GPC of the kind */
	uint16_t least[PLAN_MAX_TENANTS];	/* its cheapest set */
	unsigned int shares;
};

struct plan_prices {
	unsigned int nr, last;
	struct plan_price price[PLAN_NR_PRICES];
};

void plan_prices_find(const struct plan_market *m, struct plan_prices *prices);

/* False only where sets of @tenants cost more than what is @left. */
bool plan_prices_allow(const struct plan_market *m, struct plan_prices *prices,
		       const uint8_t *left, uint32_t tenants);

#endif
