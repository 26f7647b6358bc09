/* SPDX-License-Identifier: MIT */
/*
 * Assigns a set to each function whose name matches a rule. At the start of a function's first
 * launch, outside the launch callback, this code reads the name of the function and compares it
 * with the rules. The launch callback then finds the set of the matching rule like a set that the
 * program gave to the function.
 */
#ifndef GPUPART_LIB_CONFINE_RULES_H
#define GPUPART_LIB_CONFINE_RULES_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

#define RULES_MAX		32
#define RULES_PATTERN		256	/* including the terminating 0 */
#define RULES_SEEN_BITS		13
#define RULES_SEEN_PROBES	8

/* True if at least one GPU has rules. Then launches call rules_known(). */
extern atomic_bool rules_used;

/*
 * The keys of functions that were matched since the last change of the rules. A key stands for a
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

/* Returns true if the function with this key was matched. Takes no lock. */
static inline bool rules_known(uint64_t key)
{
	const _Atomic uint64_t *seen = atomic_load_explicit(&rules_seen, memory_order_acquire);
	uint64_t at = key >> (64 - RULES_SEEN_BITS);

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
 * Matches @function with the rules. @function is a CUfunction or CUkernel that is launched in
 * @ctx, which is the current context. rules_known() must have returned false for @key. The
 * function calls the driver.
 */
void rules_match(const struct cuda_api *cuda, void *function, void *ctx, uint64_t key);

/* Does the same for every kernel node of @graph for which rules_known() returns false. */
void rules_match_graph(const struct cuda_api *cuda, void *graph);

/* Called when function addresses may be reused from now on. The function takes no lock. */
void rules_forget(void);

/*
 * Adds a rule with @pattern, or changes the set of the rule with @pattern. If @set is NULL, the
 * function removes this rule. If @pattern is NULL, the function removes all rules. The function
 * works like gpupart_rule_set(), but without the checks in attach.c.
 */
int rules_set(struct gpupart *gp, struct gpupart_gpu *gpu, const char *pattern,
	      const struct gpupart_tpcset *set);

#endif
