/* SPDX-License-Identifier: MIT */
/*
 * Defines a set of allowed TPCs as a plain struct, and inline functions for such sets. gpupart.h
 * includes this file. The library exports nothing from this file. @tpc is a logical TPC, 0 to
 * GPUPART_MAX_TPCS-1. Pointers to sets must be valid. No function can fail. Several threads may
 * read a set at the same time; while a thread changes a set, no other thread may use it.
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

/*
 * A set bit allows a TPC. Bit (tpc % 64) of word (tpc / 64) belongs to TPC number tpc. The empty
 * set has all bits 0.
 */
struct gpupart_tpcset {
	uint64_t allowed[GPUPART_TPCSET_WORDS];
};

/* Adds @tpc. Does nothing if @tpc is out of range. */
static inline void gpupart_tpcset_add(struct gpupart_tpcset *set, unsigned int tpc)
{
	if (tpc < GPUPART_MAX_TPCS)
		set->allowed[tpc / 64] |= (uint64_t)1 << (tpc % 64);
}

/* Removes @tpc. Does nothing if @tpc is out of range. */
static inline void gpupart_tpcset_del(struct gpupart_tpcset *set, unsigned int tpc)
{
	if (tpc < GPUPART_MAX_TPCS)
		set->allowed[tpc / 64] &= ~((uint64_t)1 << (tpc % 64));
}

/*
 * Returns true if @tpc is a member of @set. Returns false if @tpc is not a member or is out of
 * range.
 */
static inline bool gpupart_tpcset_has(const struct gpupart_tpcset *set, unsigned int tpc)
{
	return tpc < GPUPART_MAX_TPCS && (set->allowed[tpc / 64] >> (tpc % 64) & 1);
}

/*
 * Returns the set of TPCs 0 to @nr - 1. If @nr is larger than GPUPART_MAX_TPCS, the function
 * returns the set of all GPUPART_MAX_TPCS TPCs.
 */
static inline struct gpupart_tpcset gpupart_tpcset_first(unsigned int nr)
{
	struct gpupart_tpcset set = { { 0 } };
	unsigned int tpc;

	for (tpc = 0; tpc < nr && tpc < GPUPART_MAX_TPCS; tpc++)
		gpupart_tpcset_add(&set, tpc);
	return set;
}

/*
 * Returns the smallest member that is at least @from, or -1 if there is no such member.
 * A loop over all members has this form:
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

/* Returns the number of members of @set. */
static inline unsigned int gpupart_tpcset_count(const struct gpupart_tpcset *set)
{
	unsigned int i, nr = 0;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		nr += (unsigned int)__builtin_popcountll(set->allowed[i]);
	return nr;
}

/* Returns the TPCs that are in both sets. */
static inline struct gpupart_tpcset gpupart_tpcset_and(const struct gpupart_tpcset *a,
						       const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset set;
	unsigned int i;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set.allowed[i] = a->allowed[i] & b->allowed[i];
	return set;
}

/* Returns the TPCs that are in at least one of the sets. */
static inline struct gpupart_tpcset gpupart_tpcset_or(const struct gpupart_tpcset *a,
						      const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset set;
	unsigned int i;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set.allowed[i] = a->allowed[i] | b->allowed[i];
	return set;
}

/* Returns the TPCs of @a that are not in @b. */
static inline struct gpupart_tpcset gpupart_tpcset_andnot(const struct gpupart_tpcset *a,
							  const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset set;
	unsigned int i;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set.allowed[i] = a->allowed[i] & ~b->allowed[i];
	return set;
}

/* Returns true if @set has no members. */
static inline bool gpupart_tpcset_empty(const struct gpupart_tpcset *set)
{
	return gpupart_tpcset_next(set, 0) < 0;
}

/* Returns true if each member of @a is a member of @b. */
static inline bool gpupart_tpcset_subset(const struct gpupart_tpcset *a,
					 const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset rest = gpupart_tpcset_andnot(a, b);

	return gpupart_tpcset_empty(&rest);
}

/* Returns true if the sets have a member in common. */
static inline bool gpupart_tpcset_intersects(const struct gpupart_tpcset *a,
					     const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset common = gpupart_tpcset_and(a, b);

	return !gpupart_tpcset_empty(&common);
}

/* Returns true if the sets have the same members. */
static inline bool gpupart_tpcset_equal(const struct gpupart_tpcset *a,
					const struct gpupart_tpcset *b)
{
	return gpupart_tpcset_subset(a, b) && gpupart_tpcset_subset(b, a);
}

#ifdef __cplusplus
}
#endif

#endif /* GPUPART_TPCSET_H */
