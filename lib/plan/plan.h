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
 * The maximum number of uGPUs, plus 1. The additional uGPU contains the GPCs whose uGPU is unknown.
 * No tenant is bound to the additional uGPU.
 */
#define PLAN_MAX_UGPUS	(GPUPART_MAX_GPCS + 1)
#define PLAN_MAX_LEVELS	8	/* maximum number of sizes of homes; the size at a level
				 * is 2^(level - 1) TPCs */
#define PLAN_ANYWHERE	(-1)	/* a tenant whose uGPU has this value may be in any uGPU */

/* The part of a GPC that the planner can use. */
struct plan_gpc {
	unsigned int ugpu;
	unsigned int nr;	/* number of TPCs */
	unsigned int nr_main;	/* number of these TPCs that are in the GPC's largest virtual GPC;
				 * the home of a cluster uses these TPCs */
	bool whole;		/* the planner can use all TPCs of the GPC */
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
	unsigned int cluster;	/* requested size of a cluster in blocks */
	unsigned int home;	/* number of TPCs that the cluster needs in one virtual GPC; a
				 * power of two */
	bool whole, spread;
	bool balanced;		/* the tenant wants whole GPCs, and the same number of them in
				 * each uGPU */
	uint32_t same, apart;	/* Tenants that must share this tenant's uGPU, and tenants that must
				 * use other uGPUs. Bit i stands for demand i of the caller's
				 * list. */
};

/* The tenants in order of rank. */
struct plan_ask {
	struct plan_gpu gpu;
	unsigned int nr;
	struct plan_tenant tenants[PLAN_MAX_TENANTS];
};

/* The result of the planner. It contains only numbers of TPCs. */
struct plan_counts {
	int ugpu[PLAN_MAX_TENANTS];	/* uGPU of each tenant, or PLAN_ANYWHERE */
	int home[PLAN_MAX_TENANTS];	/* GPC of the tenant's home; -1: no separate home */
	unsigned int nr[PLAN_MAX_TENANTS][PLAN_MAX_GPCS];
	unsigned int total[PLAN_MAX_TENANTS];
	unsigned int steps;		/* number of steps of the search */
};

/*
 * The room in each uGPU. The member @nr is the number of TPCs. The element @places[level] is the
 * number of homes of 2^level TPCs that fit.
 */
struct plan_room {
	unsigned int nr_ugpus, nr[PLAN_MAX_UGPUS];
	unsigned int places[PLAN_MAX_LEVELS][PLAN_MAX_UGPUS];
};

void plan_room_clear(struct plan_room *room, unsigned int nr_ugpus);
void plan_room_add(struct plan_room *room, unsigned int ugpu, unsigned int nr,
		   unsigned int nr_main);

/* The remaining needs of a tenant that shares GPCs. */
struct plan_need {
	unsigned int nr;	/* number of TPCs, including those of the home */
	unsigned int home;	/* number of TPCs of the home; 0: the tenant already has
				 * a home or needs no home */
	int ugpu;
};

/* Returns whether all these needs can be met. The answer is exact. */
bool plan_fits(const struct plan_room *room, const struct plan_need *needs, unsigned int nr);

/*
 * Distributes TPCs of @room one at a time. A candidate for the next TPC has the rank @first or a
 * later rank, and has fewer TPCs than its maximum. One more TPC of the candidate must fit. The
 * candidate with the fewest TPCs relative to its weight gets the TPC. If several candidates are
 * equal, the first candidate gets the TPC. The array @nr contains the number of TPCs of each
 * tenant, and the function increases these numbers. If @homes is true, the function leaves room for
 * homes.
 */
void plan_deal(const struct plan_ask *ask, unsigned int first, const int *ugpu,
	       const struct plan_room *room, bool homes, unsigned int *nr);

/*
 * Sorts the GPCs for a tenant. In @counts, earlier tenants may already use uGPUs. The GPCs of the
 * uGPU with the fewest earlier tenants are first. If uGPUs have equally many earlier tenants, their
 * GPCs are sorted by uGPU and number.
 */
void plan_order(const struct plan_ask *ask, const struct plan_counts *counts,
		unsigned int tenant, unsigned int *order);

/*
 * Maximum numbers of search steps. A step takes about 5 ns. The first number applies to the search
 * for a plan. If there is no plan, the second number applies to the searches for the reasons.
 */
#define PLAN_MAX_STEPS		100000000u
#define PLAN_MAX_WHY_STEPS	500000u

/*
 * The working memory of a search. The caller fills the memory with zeros before the first
 * search. It can use the same memory for further searches. Only one thread may use it.
 */
struct plan_search;
extern const size_t plan_search_size;

/*
 * Assigns whole GPCs to tenants, and assigns uGPUs to the bound tenants. Returns 0 on success, or
 * -ENOSPC if there is no plan. If @max_steps steps were not enough to decide, returns -E2BIG. If
 * @only_ask is true, the function decides whether there is a plan, but does not fill in @counts.
 */
int plan_search(struct plan_search *s, const struct plan_ask *ask, unsigned int max_steps,
		bool only_ask, struct plan_counts *counts);

/*
 * Places the other tenants in the room that plan_search() left. Returns false if @counts is not
 * a result of plan_search().
 */
bool plan_place(const struct plan_ask *ask, struct plan_counts *counts);

/*
 * Sets the error message. The message says which demand does not fit and which smaller demands
 * would fit. The function adds the number of search steps to *steps. Returns -ENOSPC.
 */
int plan_explain(struct gpupart *gp, struct plan_search *search, const struct plan_ask *ask,
		 unsigned int *steps);

/*
 * After a change of a demand, plan_home() computes the new @home of the tenant, and plan_rank()
 * computes the new ranks.
 */
unsigned int plan_home(const struct plan_gpu *gpu, unsigned int cluster);
void plan_rank(struct plan_ask *ask);

#endif
