/* SPDX-License-Identifier: MIT */
/*
 * A set of allowed TPCs, a plain value. Included by gpupart.h; nothing of it is in the library.
 * @tpc is a logical TPC, 0 .. GPUPART_MAX_TPCS-1. Sets must be valid pointers. No function fails,
 * and each may be called by any thread for sets that no other thread changes meanwhile.
 */
#ifndef GPUPART_TPCSET_H
#define GPUPART_TPCSET_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/gpupart.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUPART_TPCSET_WORDS (GPUPART_MAX_TPCS / 64)

/* Bit (tpc % 64) of word (tpc / 64) allows that TPC. All zero is the empty set. */
struct gpupart_tpcset {
	uint64_t allowed[GPUPART_TPCSET_WORDS];
};

/* Adds @tpc; one above the range changes nothing. */
static inline void gpupart_tpcset_add(struct gpupart_tpcset *set, unsigned int tpc)
{
	if (tpc < GPUPART_MAX_TPCS)
		set->allowed[tpc / 64] |= (uint64_t)1 << (tpc % 64);
}

/* Removes @tpc; one above the range changes nothing. */
static inline void gpupart_tpcset_del(struct gpupart_tpcset *set, unsigned int tpc)
{
	if (tpc < GPUPART_MAX_TPCS)
		set->allowed[tpc / 64] &= ~((uint64_t)1 << (tpc % 64));
}

/* Whether @tpc is a member; false above the range. */
static inline bool gpupart_tpcset_has(const struct gpupart_tpcset *set, unsigned int tpc)
{
	return tpc < GPUPART_MAX_TPCS && (set->allowed[tpc / 64] >> (tpc % 64) & 1);
}

/* The set of TPCs 0 .. nr-1; @nr above GPUPART_MAX_TPCS is taken as that. */
static inline struct gpupart_tpcset gpupart_tpcset_first(unsigned int nr)
{
	struct gpupart_tpcset set = { { 0 } };
	unsigned int tpc;

	for (tpc = 0; tpc < nr && tpc < GPUPART_MAX_TPCS; tpc++)
		gpupart_tpcset_add(&set, tpc);
	return set;
}

/*
 * The smallest member that is at least @from, or -1. To walk a set:
 * for (t = gpupart_tpcset_next(&s, 0); t >= 0; t = gpupart_tpcset_next(&s, t + 1))
 */
static inline int gpupart_tpcset_next(const struct gpupart_tpcset *set, unsigned int from)
{
	unsigned int word = from / 64;
	uint64_t bits;

	if (from >= GPUPART_MAX_TPCS)
		return -1;
	bits = set->allowed[word] & (~(uint64_t)0 << (from % 64));
	while (!bits) {
		if (++word == GPUPART_TPCSET_WORDS)
			return -1;
		bits = set->allowed[word];
	}
	return (int)(word * 64) + __builtin_ctzll(bits);
}

/* How many members @set has. */
static inline unsigned int gpupart_tpcset_count(const struct gpupart_tpcset *set)
{
	unsigned int i, nr = 0;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		nr += (unsigned int)__builtin_popcountll(set->allowed[i]);
	return nr;
}

/* The members of both. */
static inline struct gpupart_tpcset gpupart_tpcset_and(const struct gpupart_tpcset *a,
						       const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset set;
	unsigned int i;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set.allowed[i] = a->allowed[i] & b->allowed[i];
	return set;
}

/* The members of at least one. */
static inline struct gpupart_tpcset gpupart_tpcset_or(const struct gpupart_tpcset *a,
						      const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset set;
	unsigned int i;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set.allowed[i] = a->allowed[i] | b->allowed[i];
	return set;
}

/* The members of @a that @b has not. */
static inline struct gpupart_tpcset gpupart_tpcset_andnot(const struct gpupart_tpcset *a,
							  const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset set;
	unsigned int i;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set.allowed[i] = a->allowed[i] & ~b->allowed[i];
	return set;
}

/* Whether the set has no member. */
static inline bool gpupart_tpcset_empty(const struct gpupart_tpcset *set)
{
	return gpupart_tpcset_next(set, 0) < 0;
}

/* Whether each member of @a is one of @b. */
static inline bool gpupart_tpcset_subset(const struct gpupart_tpcset *a,
					 const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset rest = gpupart_tpcset_andnot(a, b);

	return gpupart_tpcset_empty(&rest);
}

/* Whether they have a member in common. */
static inline bool gpupart_tpcset_intersects(const struct gpupart_tpcset *a,
					     const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset common = gpupart_tpcset_and(a, b);

	return !gpupart_tpcset_empty(&common);
}

/* Whether they have the same members. */
static inline bool gpupart_tpcset_equal(const struct gpupart_tpcset *a,
					const struct gpupart_tpcset *b)
{
	return gpupart_tpcset_subset(a, b) && gpupart_tpcset_subset(b, a);
}

#ifdef __cplusplus
}
#endif

#endif /* GPUPART_TPCSET_H */
