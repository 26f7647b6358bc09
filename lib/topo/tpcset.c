// SPDX-License-Identifier: MIT
/* Sets of allowed TPCs: algebra, and how a set is written. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "lib/topo/topology.h"

struct gpupart_tpcset gpupart_tpcset_first(unsigned int nr)
{
	struct gpupart_tpcset set = { 0 };
	unsigned int tpc;

	for (tpc = 0; tpc < nr && tpc < GPUPART_MAX_TPCS; tpc++)
		gpupart_tpcset_add(&set, tpc);
	return set;
}

void gpupart_tpcset_add(struct gpupart_tpcset *set, unsigned int tpc)
{
	if (tpc < GPUPART_MAX_TPCS)
		set->allowed[tpc / 64] |= 1ull << (tpc % 64);
}

void gpupart_tpcset_del(struct gpupart_tpcset *set, unsigned int tpc)
{
	if (tpc < GPUPART_MAX_TPCS)
		set->allowed[tpc / 64] &= ~(1ull << (tpc % 64));
}

bool gpupart_tpcset_has(const struct gpupart_tpcset *set, unsigned int tpc)
{
	return tpc < GPUPART_MAX_TPCS && (set->allowed[tpc / 64] >> (tpc % 64) & 1);
}

#define SET_OPERATION(name, op) \
	struct gpupart_tpcset gpupart_tpcset_##name(const struct gpupart_tpcset *a, \
						    const struct gpupart_tpcset *b) \
	{ \
		struct gpupart_tpcset set; \
\
		for (unsigned int i = 0; i < GPUPART_TPCSET_WORDS; i++) \
			set.allowed[i] = a->allowed[i] op b->allowed[i]; \
		return set; \
	}

SET_OPERATION(and, &)
SET_OPERATION(or, |)
SET_OPERATION(andnot, & ~)

bool gpupart_tpcset_empty(const struct gpupart_tpcset *set)
{
	return gpupart_tpcset_next(set, 0) < 0;
}

bool gpupart_tpcset_equal(const struct gpupart_tpcset *a, const struct gpupart_tpcset *b)
{
	return !memcmp(a->allowed, b->allowed, sizeof(a->allowed));
}

bool gpupart_tpcset_subset(const struct gpupart_tpcset *a, const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset rest = gpupart_tpcset_andnot(a, b);

	return gpupart_tpcset_empty(&rest);
}

bool gpupart_tpcset_intersects(const struct gpupart_tpcset *a, const struct gpupart_tpcset *b)
{
	struct gpupart_tpcset common = gpupart_tpcset_and(a, b);

	return !gpupart_tpcset_empty(&common);
}

unsigned int gpupart_tpcset_count(const struct gpupart_tpcset *set)
{
	unsigned int i, nr = 0;

	for (i = 0; i < GPUPART_TPCSET_WORDS; i++)
		nr += __builtin_popcountll(set->allowed[i]);
	return nr;
}

int gpupart_tpcset_next(const struct gpupart_tpcset *set, unsigned int from)
{
	unsigned int word = from / 64;
	uint64_t bits;

	if (from >= GPUPART_MAX_TPCS)
		return -1;
	bits = set->allowed[word] & (~0ull << (from % 64));
	while (!bits) {
		if (++word == GPUPART_TPCSET_WORDS)
			return -1;
		bits = set->allowed[word];
	}
	return word * 64 + __builtin_ctzll(bits);
}

void topo_append(char *text, size_t len, size_t *at, const char *fmt, ...)
{
	va_list ap;
	int nr;

	va_start(ap, fmt);
	nr = vsnprintf(*at < len ? text + *at : NULL, *at < len ? len - *at : 0, fmt, ap);
	va_end(ap);
	*at += nr;
}

int gpupart_tpcset_format_list(const struct gpupart_tpcset *set, char *text, size_t len)
{
	int first, last;
	size_t at = 0;

	topo_append(text, len, &at, "%s", "");
	for (first = gpupart_tpcset_next(set, 0); first >= 0;
	     first = gpupart_tpcset_next(set, last + 1)) {
		for (last = first; gpupart_tpcset_has(set, last + 1); last++)
			;
		topo_append(text, len, &at, "%s%d", at ? "," : "", first);
		if (last > first)
			topo_append(text, len, &at, "-%d", last);
	}
	return at < len ? (int)at : -ENOSPC;
}

int gpupart_tpcset_format_hex(const struct gpupart_tpcset *set, char *text, size_t len)
{
	int word = GPUPART_TPCSET_WORDS - 1;
	size_t at = 0;

	while (word > 0 && !set->allowed[word])
		word--;
	topo_append(text, len, &at, "0x%llx", (unsigned long long)set->allowed[word]);
	while (word-- > 0)
		topo_append(text, len, &at, "%016llx", (unsigned long long)set->allowed[word]);
	return at < len ? (int)at : -ENOSPC;
}
