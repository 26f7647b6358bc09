/* SPDX-License-Identifier: MIT */
/*
 * Sets of functions by their names. A function's name is asked for and matched at the begin of its
 * first launch, outside of the launch callback, which then finds the set as any function's.
 */
#ifndef GPUPART_LIB_CONFINE_RULES_H
#define GPUPART_LIB_CONFINE_RULES_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

#define RULES_MAX		32
#define RULES_PATTERN		256	/* with its end */
#define RULES_SEEN_BITS		13
#define RULES_SEEN_PROBES	8

/* Some GPU has rules: launches ask rules_known(). */
extern atomic_bool rules_used;

/* Functions that were matched, in a context, since the rules changed: their keys. */
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

/* Whether the function of @key was matched. Takes no lock. */
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
 * Matches @function, a CUfunction or CUkernel that is launched in @ctx, which is current, and which
 * rules_known() did not know by @key. Calls the driver.
 */
void rules_match(const struct cuda_api *cuda, void *function, void *ctx, uint64_t key);

/* The same for every kernel node of @graph that rules_known() does not know. */
void rules_match_graph(const struct cuda_api *cuda, void *graph);

/* A function's address may be another's from now on. Takes no lock. */
void rules_forget(void);

/*
 * Adds a rule, or changes or takes away (@set NULL) the one with that @pattern; @pattern NULL: all
 * of them. As gpupart_rule_set(), but for what attach.c looks at.
 */
int rules_set(struct gpupart *gp, struct gpupart_gpu *gpu, const char *pattern,
	      const struct gpupart_tpcset *set);

#endif
