/* SPDX-License-Identifier: MIT */
/*
 * A bit for each number of GPCs of each kind that can be left: whether tenants fit into them.
 * For where that are few enough. Knows no search.
 */
#ifndef GPUPART_LIB_PLAN_TABLE_H
#define GPUPART_LIB_PLAN_TABLE_H

#include "lib/plan/kind.h"

#define PLAN_TABLE_WORDS	131072
#define PLAN_TABLE_PATTERNS	2048

struct plan_table {
	const struct plan_kinds *kinds;
	unsigned int steps;			/* spent here so far */
	uint32_t inside;			/* tenants that it is of */
	int ugpu[PLAN_MAX_TENANTS];		/* where these are bound */
	struct plan_view view;			/* theirs and that of those who share */
	unsigned int words;			/* 0: too many states */
	uint8_t there[PLAN_MAX_GPCS];		/* of a kind and all that look like it */
	bool low[PLAN_MAX_GPCS];		/* the number of a kind is told by bits */
	unsigned int stride[PLAN_MAX_GPCS];	/* of a kind, in bits or in words */
	uint64_t enough[PLAN_MAX_GPCS][64];	/* of low ones: where so many are left */
	unsigned int nr_shares;
	struct plan_need shares[PLAN_MAX_TENANTS];
	/* After the first, which is of those who share, of each more tenant: of all so far. */
	unsigned int nr_rows;
	uint32_t rows[PLAN_MAX_TENANTS];
	unsigned int nr_patterns;
	uint8_t patterns[PLAN_TABLE_PATTERNS][PLAN_MAX_GPCS];
	uint64_t bits[PLAN_MAX_TENANTS + 1][PLAN_TABLE_WORDS];
};

void plan_table_start(struct plan_table *t, const struct plan_kinds *kinds);

/*
 * Gets ready for tenants of this question, all groups of which have their uGPU: where @all
 * for all, where those have too many states for those bound nowhere, or those of them that
 * launch no clusters. About how many steps plan_table_fill() takes then; 0: it cannot be done.
 */
unsigned int plan_table_plan(struct plan_table *t, const struct plan_question *q, bool all);

/* Of the question it is ready for. What the last one had as well is not done again. */
void plan_table_fill(struct plan_table *t, const struct plan_question *q);

/* The row of just these, the last ones in rank order of those inside. */
int plan_table_find(const struct plan_table *t, uint32_t tenants);

/* Where the bit of a state is: [0] the word, [1] which; it moves by strides. */
void plan_table_seek(const struct plan_table *t, const uint8_t *left, unsigned int *at);
bool plan_table_fits(const struct plan_table *t, int row, const unsigned int *at);

#endif
