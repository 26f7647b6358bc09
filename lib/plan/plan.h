/* SPDX-License-Identifier: MIT */
/* Definitions that all parts of the planner use. The planner works with counts of TPCs in GPCs. */
#ifndef GPUPART_LIB_PLAN_PLAN_H
#define GPUPART_LIB_PLAN_PLAN_H

#include "lib/core/ctx.h"

#define PLAN_MAX_TENANTS GPUPART_PLAN_MAX_TENANTS
#define PLAN_MAX_GPCS	GPUPART_MAX_GPCS
/*
 * One more than there can be, for GPCs whose uGPU is unknown; no tenant is bound to that one.
 */
#define PLAN_MAX_UGPUS	(GPUPART_MAX_GPCS + 1)
#define PLAN_MAX_LEVELS	8	/* sizes of homes: 2^(level - 1) TPCs */
#define PLAN_ANYWHERE	(-1)	/* uGPU of a tenant that is bound to none */

/* The part of a GPC that can be planned with. */
struct plan_gpc {
	unsigned int ugpu;
	unsigned int nr;	/* TPCs */
	unsigned int nr_main;	/* of these in its largest virtual GPC, where clusters fit */
	bool whole;		/* all its TPCs can be used */
};

struct plan_gpu {
	unsigned int nr_gpcs, nr_ugpus, nr_bindable, largest, sms_per_tpc;
	struct plan_gpc gpcs[PLAN_MAX_GPCS];
};

/* A demand with all defaults filled in. */
struct plan_tenant {
	const char *name;
	unsigned int given;	/* its index in the caller's list */
	unsigned int min, max, weight;
	unsigned int cluster;	/* in blocks, as requested */
	unsigned int home;	/* TPCs in one virtual GPC that the cluster needs: a power of two */
	bool whole, spread;
	bool balanced;		/* whole GPCs, the same number of each uGPU */
	uint32_t same, apart;	/* bit i: index i of the caller's list; set in both tenants */
};

/* Tenants in order of rank. */
struct plan_ask {
	struct plan_gpu gpu;
	unsigned int nr;
	struct plan_tenant tenants[PLAN_MAX_TENANTS];
};

/* The result as counts. */
struct plan_counts {
	int ugpu[PLAN_MAX_TENANTS];	/* or PLAN_ANYWHERE */
	int home[PLAN_MAX_TENANTS];	/* GPC of the home; -1: none of its own */
	unsigned int nr[PLAN_MAX_TENANTS][PLAN_MAX_GPCS];
	unsigned int total[PLAN_MAX_TENANTS];
	unsigned int steps;		/* of the search */
};

/* The room in each uGPU: TPCs, and at [level] homes of 2^level TPCs. */
struct plan_room {
	unsigned int nr_ugpus, nr[PLAN_MAX_UGPUS];
	unsigned int places[PLAN_MAX_LEVELS][PLAN_MAX_UGPUS];
};

void plan_room_clear(struct plan_room *room, unsigned int nr_ugpus);
void plan_room_add(struct plan_room *room, unsigned int ugpu, unsigned int nr,
		   unsigned int nr_main);

/* What a tenant that shares GPCs still needs. */
struct plan_need {
	unsigned int nr;	/* TPCs, including those of its home */
	unsigned int home;	/* 0: it has one, or needs none */
	int ugpu;
};

/* Whether all these needs can be met; exact. */
bool plan_fits(const struct plan_room *room, const struct plan_need *needs, unsigned int nr);

/*
 * Distributes TPCs of @room one at a time, each to the tenant from @first on that has the
 * fewest for its weight (the first of equals), among those below their maximum for which one
 * more fits. @nr is what they have, before and after. @homes: leave room for homes.
 */
void plan_deal(const struct plan_ask *ask, unsigned int first, const int *ugpu,
	       const struct plan_room *room, bool homes, unsigned int *nr);

/*
 * A tenant's order of GPCs: uGPUs with the fewest tenants before it first (from @counts), then
 * by uGPU and number.
 */
void plan_order(const struct plan_ask *ask, const struct plan_counts *counts,
		unsigned int tenant, unsigned int *order);

/* A step takes about 5 ns. Finding the reasons why there is no plan may take fewer. */
#define PLAN_MAX_STEPS		100000000u
#define PLAN_MAX_WHY_STEPS	500000u

/* The working memory of a search, zero at first. Reusable; for one thread. */
struct plan_search;
extern const size_t plan_search_size;

/*
 * Assigns whole GPCs and the uGPUs of bound tenants: 0, -ENOSPC, or -E2BIG if it was not
 * decided within @max_steps. With @only_ask it only decides, and @counts is undefined.
 */
int plan_search(struct plan_search *s, const struct plan_ask *ask, unsigned int max_steps,
		bool only_ask, struct plan_counts *counts);

/* Places the other tenants in what plan_search() left. False: that was not such a result. */
bool plan_place(const struct plan_ask *ask, struct plan_counts *counts);

/*
 * Stores the error sentence: which demand does not fit, and what would fit; adds to @steps.
 * Returns -ENOSPC.
 */
int plan_explain(struct gpupart *gp, struct plan_search *search, const struct plan_ask *ask,
		 unsigned int *steps);

/* Recompute a tenant's @home and the ranks, after a change of its demand. */
unsigned int plan_home(const struct plan_gpu *gpu, unsigned int cluster);
void plan_rank(struct plan_ask *ask);

#endif
