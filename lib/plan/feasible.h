/* SPDX-License-Identifier: MIT */
/*
 * Whether tenants that want GPCs whole, and those who share what these leave, all fit.
 * Knows kinds of GPCs, not which is which; nothing of what is best.
 */
#ifndef GPUPART_LIB_PLAN_FEASIBLE_H
#define GPUPART_LIB_PLAN_FEASIBLE_H

#include "lib/plan/kind.h"

struct plan_whole;

/* Of one question at a time, and of one thread. NULL: no memory. */
struct plan_whole *plan_whole_new(void);
void plan_whole_free(struct plan_whole *w);

/* From now on it is about @ask. */
void plan_whole_start(struct plan_whole *w, const struct plan_ask *ask, unsigned int max_steps);

/* What was done so far, and whether that is too much. A step takes some ns. */
unsigned int plan_whole_steps(const struct plan_whole *w);
bool plan_whole_spend(struct plan_whole *w, unsigned int steps);

/*
 * From now on the question is of @tenants (bits) alone, bound as @units say, on all GPCs or
 * on those of uGPU @only, and nothing is taken.
 */
void plan_whole_bind(struct plan_whole *w, uint32_t tenants, const struct plan_unit *units,
		     unsigned int nr_units, int only);

/* The question stays now, and more will be asked about parts of it. */
void plan_whole_settle(struct plan_whole *w);

/* GPCs are taken and put back, each once. */
void plan_whole_take(struct plan_whole *w, unsigned int gpc);
void plan_whole_put(struct plan_whole *w, unsigned int gpc);

/*
 * For when units may still be in several uGPUs. False only where the tenants cannot fit; the
 * second takes a closer look, which is worth as many steps as it says.
 */
bool plan_whole_may(struct plan_whole *w);
bool plan_whole_may_closely(struct plan_whole *w, unsigned int *steps);

/* For when each has one: whether @tenants, of those, fit: 0, -ENOSPC, -E2BIG not decided. */
int plan_whole_fit(struct plan_whole *w, uint32_t tenants);

/*
 * The same where @tenant, one of them, is to have exactly @sum more, with or without a home,
 * in @ugpus (bits; all: wherever).
 */
int plan_whole_fit_exactly(struct plan_whole *w, uint32_t tenants, unsigned int tenant,
			   unsigned int sum, bool home, uint64_t ugpus);

#endif
