/* SPDX-License-Identifier: MIT */
/*
 * Kinds of GPCs, between which no demand tells, and the question of whether tenants fit into
 * so many of each. Knows not which GPC is which, and no answer.
 */
#ifndef GPUPART_LIB_PLAN_KIND_H
#define GPUPART_LIB_PLAN_KIND_H

#include "lib/plan/plan.h"

#define PLAN_ANY_UGPU	PLAN_MAX_UGPUS
#define PLAN_NOBODY	PLAN_MAX_TENANTS

struct plan_kind {
	unsigned int nr, nr_main, ugpu;
};

/* Of all that can be asked about one plan_ask. */
struct plan_kinds {
	const struct plan_ask *ask;
	unsigned int nr_whole;			/* tenants; they are first */
	unsigned int nr_ugpus;
	unsigned int levels, first_level;	/* of homes of those who share */
	bool groups, grouped[PLAN_MAX_TENANTS];	/* there are such that are bound to a uGPU */
	unsigned int nr;
	struct plan_kind kind[PLAN_MAX_GPCS];	/* the larger ones first */
	uint8_t there[PLAN_MAX_GPCS];		/* of each, of which nothing is out of bounds */
	unsigned int of[PLAN_MAX_GPCS];		/* a GPC's kind */
	struct plan_room broken;		/* the rest, that nobody can have whole */
};

void plan_kinds_find(struct plan_kinds *kinds, const struct plan_ask *ask);

/* TPCs, and at a @level places of homes of 2^level, of a GPC. */
unsigned int plan_kind_places(const struct plan_kind *kind, unsigned int level);

/* Kinds between which some tenants cannot tell. */
struct plan_view {
	uint64_t ugpus;				/* that they tell from others */
	unsigned int homes;			/* bits: that they want whole GPCs for */
	unsigned int first[PLAN_MAX_GPCS];	/* of those the same as a kind */
	int twin[PLAN_MAX_GPCS];		/* the one before it; -1 */
};

/* Tenants that are to be in one uGPU of these; no bit: wherever, and each for itself. */
struct plan_unit {
	uint32_t members;
	uint64_t ugpus;
};

struct plan_question {
	uint32_t tenants;			/* those it is of */
	unsigned int nr_units;
	struct plan_unit units[PLAN_MAX_TENANTS];
	int ugpu[PLAN_MAX_TENANTS];		/* where that is one, or PLAN_ANYWHERE */
	unsigned int nr_shares;
	struct plan_need shares[PLAN_MAX_TENANTS];
	/* What these need of GPCs that could be had whole: by level, in a uGPU and in all. */
	unsigned int pool[PLAN_MAX_LEVELS][PLAN_ANY_UGPU + 1];
	struct plan_view view;			/* of all of it */
	/* One that is to have exactly so much, with a home or without; PLAN_NOBODY. */
	unsigned int exact_tenant, exact_sum;
	bool exact_home;
	uint64_t exact_ugpus;			/* where, of those where it may be */
};

/* @units: of each tenant that is bound to a uGPU the one it is in. */
void plan_question_set(struct plan_question *q, const struct plan_kinds *kinds, uint32_t tenants,
		       const struct plan_unit *units, unsigned int nr_units);

/* What a tenant is to have now. */
struct plan_demand {
	unsigned int min, max, home;
};

/* What of these, of whom the question is, and those who share is between kinds. */
void plan_question_view(const struct plan_question *q, const struct plan_kinds *kinds,
			uint32_t tenants, struct plan_view *view);
void plan_view_find(const struct plan_kinds *kinds, struct plan_view *view);

/* The uGPU a tenant is bound to now, PLAN_ANYWHERE none. */
int plan_question_ugpu(const struct plan_question *q, unsigned int tenant);

struct plan_demand plan_question_demand(const struct plan_question *q,
					const struct plan_kinds *kinds, unsigned int tenant);

#endif
