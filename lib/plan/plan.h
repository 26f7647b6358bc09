/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the parts of the planner share. The planner works with the numbers of TPCs
 * in GPCs.
 */
#ifndef GPUPART_LIB_PLAN_PLAN_H
#define GPUPART_LIB_PLAN_PLAN_H

#include "lib/core/ctx.h"

#define PLAN_MAX_TENANTS GPUPART_PLAN_MAX_TENANTS
#define PLAN_MAX_GPCS	GPUPART_MAX_GPCS
/*
 * One more than the largest number of uGPUs. The additional uGPU is for GPCs whose uGPU is
 * unknown, and no tenant is bound to it.
 */
#define PLAN_MAX_UGPUS	(GPUPART_MAX_GPCS + 1)
#define PLAN_MAX_LEVELS	8	/* limit of the sizes of homes; a size is 2^(level - 1) TPCs */
#define PLAN_ANYWHERE	(-1)	/* uGPU of a tenant that is bound to no uGPU */

/* The part of a GPC that the planner can use. */
struct plan_gpc {
	unsigned int ugpu;
	unsigned int nr;	/* number of TPCs */
	unsigned int nr_main;	/* number of those TPCs in the GPC's largest virtual GPC,
				 * where clusters fit */
	bool whole;		/* all TPCs of the GPC can be used */
};

struct plan_gpu {
	unsigned int nr_gpcs, nr_ugpus, nr_bindable, largest, sms_per_tpc;
	struct plan_gpc gpcs[PLAN_MAX_GPCS];
};

/* A demand in which all defaults are filled in. */
struct plan_tenant {
	const char *name;
	unsigned int given;	/* index of the demand in the caller's list */
	unsigned int min, max, weight;
	unsigned int cluster;	/* in blocks, as requested */
	unsigned int home;	/* TPCs of one virtual GPC that the cluster needs: a power of
				 * two */
	bool whole, spread;
	bool balanced;		/* whole GPCs, with the same number of GPCs in each uGPU */
	uint32_t same, apart;	/* bit i: demand i of the caller's list; the bit is set in
				 * both tenants */
};

/* The tenants in order of rank. */
struct plan_ask {
	struct plan_gpu gpu;
	unsigned int nr;
	struct plan_tenant tenants[PLAN_MAX_TENANTS];
};

/* The result of the planner as numbers of TPCs. */
struct plan_counts {
	int ugpu[PLAN_MAX_TENANTS];	/* uGPU of each tenant, or PLAN_ANYWHERE */
	int home[PLAN_MAX_TENANTS];	/* GPC of the tenant's home; -1: the tenant has no
					 * separate home */
	unsigned int nr[PLAN_MAX_TENANTS][PLAN_MAX_GPCS];
	unsigned int total[PLAN_MAX_TENANTS];
	unsigned int steps;		/* number of steps of the search */
};

/*
 * The room in each uGPU: the number of TPCs, and at index [level] the number of homes of
 * 2^level TPCs.
 */
struct plan_room {
	unsigned int nr_ugpus, nr[PLAN_MAX_UGPUS];
	unsigned int places[PLAN_MAX_LEVELS][PLAN_MAX_UGPUS];
};

void plan_room_clear(struct plan_room *room, unsigned int nr_ugpus);
void plan_room_add(struct plan_room *room, unsigned int ugpu, unsigned int nr,
		   unsigned int nr_main);

/* The needs of a tenant that shares GPCs, as far as they are not met yet. */
struct plan_need {
	unsigned int nr;	/* number of TPCs, including those of the home */
	unsigned int home;	/* TPCs of the home; 0: the tenant has a home, or needs none */
	int ugpu;
};

/* Returns whether all these needs can be met. The answer is exact. */
bool plan_fits(const struct plan_room *room, const struct plan_need *needs, unsigned int nr);

/*
 * Distributes TPCs of @room one at a time. A tenant can get the next TPC if its rank is @first
 * or later, it is below its maximum, and one more TPC for it fits. The TPC goes to the tenant
 * of these that has the fewest TPCs for its weight, and to the first of them if several are
 * equal. @nr: the number of TPCs of each tenant, before and after. @homes: whether to leave
 * room for homes.
 */
void plan_deal(const struct plan_ask *ask, unsigned int first, const int *ugpu,
	       const struct plan_room *room, bool homes, unsigned int *nr);

/*
 * Computes a tenant's order of GPCs. The GPCs of the uGPUs with the fewest earlier tenants
 * (according to @counts) come first. GPCs that are equal in this respect are sorted by uGPU and
 * number.
 */
void plan_order(const struct plan_ask *ask, const struct plan_counts *counts,
		unsigned int tenant, unsigned int *order);

/*
 * Limits of the number of search steps. A step takes about 5 ns. The second limit is for
 * finding the reasons why there is no plan.
 */
#define PLAN_MAX_STEPS		100000000u
#define PLAN_MAX_WHY_STEPS	500000u

/*
 * The working memory of a search. The caller sets it to zero before the first search and can
 * use it again. Only one thread may use it.
 */
struct plan_search;
extern const size_t plan_search_size;

/*
 * Assigns the whole GPCs, and the uGPUs of the bound tenants. Returns 0, -ENOSPC, or -E2BIG if
 * the search did not decide within @max_steps. If @only_ask is true, it only decides whether
 * there is a plan, and @counts is undefined.
 */
int plan_search(struct plan_search *s, const struct plan_ask *ask, unsigned int max_steps,
		bool only_ask, struct plan_counts *counts);

/*
 * Places the other tenants in the room that plan_search() left. Returns false if @counts is not
 * a result of plan_search().
 */
bool plan_place(const struct plan_ask *ask, struct plan_counts *counts);

/*
 * Sets the error sentence: which demand does not fit, and what would fit. Adds the steps that
 * it needed to *steps. Returns -ENOSPC.
 */
int plan_explain(struct gpupart *gp, struct plan_search *search, const struct plan_ask *ask,
		 unsigned int *steps);

/*
 * These two functions recompute the @home of a tenant, and the ranks. They are called after a
 * change of a demand.
 */
unsigned int plan_home(const struct plan_gpu *gpu, unsigned int cluster);
void plan_rank(struct plan_ask *ask);

#endif
