/* SPDX-License-Identifier: MIT */
/*
 * Gives a set to each function whose name matches a rule. When a function is launched for the
 * first time, this code compares its name with the rules. This code runs before the launch
 * callback. The launch callback finds the set of a rule in the same table as sets that the
 * program gave to functions.
 */
#ifndef GPUPART_LIB_CONFINE_RULES_H
#define GPUPART_LIB_CONFINE_RULES_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

#define RULES_MAX		32
#define RULES_PATTERN		256	/* including the terminating 0 */
#define RULES_SEEN_BITS		13
#define RULES_SEEN_PROBES	8

/* If true, some GPU has or had rules, and launches call rules_known(). */
extern atomic_bool rules_used;

/*
 * The keys of functions that were matched after the last change of the rules. A key identifies a
 * function in a context.
 */
extern _Atomic uint64_t *_Atomic rules_seen;
extern atomic_uint rules_generation;

static inline uint64_t rules_key(const void *function, const void *ctx)
{
	uint64_t key = (uintptr_t)function * 0x9e3779b97f4a7c15ull +
		       (uintptr_t)ctx * 0xc2b2ae3d27d4eb4full +
		       atomic_load_explicit(&rules_generation, memory_order_acquire);

	key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9ull;
	return (key ^ key >> 32) | 1;
}

/* Returns true if @function was already matched in @ctx. Takes no lock. */
static inline bool rules_known(const void *function, const void *ctx)
{
	const _Atomic uint64_t *seen = atomic_load_explicit(&rules_seen, memory_order_acquire);
	uint64_t key = rules_key(function, ctx), at = key >> (64 - RULES_SEEN_BITS);

	for (unsigned int n = 0; n < RULES_SEEN_PROBES; n++, at++) {
		uint64_t found = atomic_load_explicit(&seen[at], memory_order_relaxed);

		if (__builtin_expect(found == key, 1))
			return true;
		if (!found)
			break;
	}
	return false;
}

/*
 * Compares the name of @function with the rules. Argument @function is a CUfunction or CUkernel
 * that is being launched in the current context @ctx. Before this call, rules_known() must have
 * returned false for them. This code calls the driver.
 */
void rules_match(const struct cuda_api *cuda, void *function, void *ctx);

/*
 * Calls rules_match() for the kernel nodes of @graph, except for nodes whose functions were
 * already matched.
 */
void rules_match_graph(const struct cuda_api *cuda, void *graph);

/* Called when function addresses may be reused. Takes no lock. */
void rules_forget(void);

/*
 * Adds a rule with @pattern. If there is already a rule with @pattern, changes the set of that
 * rule. If @set is NULL, removes the rule. If @pattern is NULL, removes all rules. The function
 * gpupart_rule_set() makes additional checks before it calls rules_set().
 */
int rules_set(struct gpupart *gp, struct gpupart_gpu *gpu, const char *pattern,
	      const struct gpupart_tpcset *set);

#endif
