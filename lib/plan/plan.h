/* SPDX-License-Identifier: MIT */
/* From demands to sets: what the parts of the planner share. They count TPCs of GPCs. */
#ifndef GPUPART_LIB_PLAN_PLAN_H
#define GPUPART_LIB_PLAN_PLAN_H

#include "lib/core/ctx.h"

#define PLAN_MAX_TENANTS GPUPART_PLAN_MAX_TENANTS
#define PLAN_MAX_GPCS	GPUPART_MAX_GPCS
/* One more than there are: where the uGPU is not told. Nobody is bound to that. */
#define PLAN_MAX_UGPUS	(GPUPART_MAX_GPCS + 1)
#define PLAN_MAX_LEVELS	8	/* room for clusters of 2^(level - 1) TPCs */
#define PLAN_ANYWHERE	(-1)	/* a tenant's uGPU where it is bound to none */

/* What can be planned with of one GPC. */
struct plan_gpc {
	unsigned int ugpu;
	unsigned int nr;	/* TPCs */
	unsigned int nr_main;	/* of these in its largest virtual GPC: where clusters fit */
	bool whole;		/* nothing of it is out of bounds */
};

struct plan_gpu {
	unsigned int nr_gpcs, nr_ugpus, nr_bindable, largest, sms_per_tpc;
	struct plan_gpc gpcs[PLAN_MAX_GPCS];
};

/* A demand, all of its defaults filled in. */
struct plan_tenant {
	const char *name;
	unsigned int given;	/* its place in the caller's list */
	unsigned int min, max, weight;
	unsigned int cluster;	/* as asked for, blocks */
	unsigned int home;	/* TPCs in one virtual GPC that this takes: a power of two */
	bool whole, spread;
	bool balanced;		/* whole GPCs, the same number of each uGPU */
	uint32_t same, apart;	/* bit i: the i'th of the caller's list; of both sides */
};

/* Tenants in rank order. */
struct plan_ask {
	struct plan_gpu gpu;
	unsigned int nr;
	struct plan_tenant tenants[PLAN_MAX_TENANTS];
};

/* The result in counts. */
struct plan_counts {
	int ugpu[PLAN_MAX_TENANTS];	/* or PLAN_ANYWHERE */
	int home[PLAN_MAX_TENANTS];	/* the GPC where its clusters fit, -1 none of its own */
	unsigned int nr[PLAN_MAX_TENANTS][PLAN_MAX_GPCS];
	unsigned int total[PLAN_MAX_TENANTS];
	unsigned int steps;		/* of the search */
};

/* What there is room for in each uGPU: TPCs, and at [level] homes of 2^level of them. */
struct plan_room {
	unsigned int nr_ugpus, nr[PLAN_MAX_UGPUS];
	unsigned int places[PLAN_MAX_LEVELS][PLAN_MAX_UGPUS];
};

void plan_room_clear(struct plan_room *room, unsigned int nr_ugpus);
void plan_room_add(struct plan_room *room, unsigned int ugpu, unsigned int nr,
		   unsigned int nr_main);

/* What one that shares GPCs still needs. */
struct plan_need {
	unsigned int nr;	/* TPCs, those of its home among them */
	unsigned int home;	/* 0: it has one, or needs none */
	int ugpu;
};

/* Whether these needs can all be met; exact. */
bool plan_fits(const struct plan_room *room, const struct plan_need *needs, unsigned int nr);

/*
 * Deals TPCs of @room one by one: each to the tenant from @first on with the least for its
 * weight, the first of equals, of those below their maximum for whom one more fits. @nr holds
 * what they have already, and then what they have; @homes: clusters need room, too.
 */
void plan_deal(const struct plan_ask *ask, unsigned int first, const int *ugpu,
	       const struct plan_room *room, bool homes, unsigned int *nr);

/*
 * A tenant's order of GPCs: uGPUs with the fewest of the tenants before it first (@counts
 * has them), then by uGPU and number.
 */
void plan_order(const struct plan_ask *ask, const struct plan_counts *counts,
		unsigned int tenant, unsigned int *order);

/* Some 5 ns a step. The reasons for there being no plan may take less. */
#define PLAN_MAX_STEPS		100000000u
#define PLAN_MAX_WHY_STEPS	500000u

/* What a search works in, zeroed at first; for one after the other, of one thread. */
struct plan_search;
extern const size_t plan_search_size;

/*
 * Who needs whole GPCs gets them, who is bound its uGPU: 0, -ENOSPC, -E2BIG not decided
 * within @max_steps. With @only_ask it says whether, and @counts is of no use.
 */
int plan_search(struct plan_search *s, const struct plan_ask *ask, unsigned int max_steps,
		bool only_ask, struct plan_counts *counts);

/* The others' TPCs, in what plan_search() left. False: that was no such thing. */
bool plan_place(const struct plan_ask *ask, struct plan_counts *counts);

/* Leaves the sentence of what does not fit and what would do, adds to @steps. -ENOSPC. */
int plan_explain(struct gpupart *gp, struct plan_search *search, const struct plan_ask *ask,
		 unsigned int *steps);

/* A tenant's @home and its rank, after a change of what it asks for. */
unsigned int plan_home(const struct plan_gpu *gpu, unsigned int cluster);
void plan_rank(struct plan_ask *ask);

#endif
