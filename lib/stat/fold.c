// SPDX-License-Identifier: MIT
/* Adds up pieces of work, a batch at a time: busy, idle and why, how deep the queue was. */
#include <stdlib.h>
#include <string.h>
#include "lib/stat/fold.h"

/*
 * A launch that takes this long with this much before it waits for room in the command
 * buffer: a launch takes 2 to 5 us, and the buffer holds about a thousand of them.
 */
#define BLOCKED_NS	20000
#define BLOCKED_DEPTH	256

#define EXACT_DEPTHS	16	/* each its own place; above, two a power of two */

/* Read by another process while it is written: each count whole. */
static void add(uint64_t *sum, int64_t ns)
{
	if (ns > 0)
		__atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + ns,
				 __ATOMIC_RELAXED);
}

static unsigned int place_of_depth(uint64_t depth)
{
	unsigned int log = 63 - __builtin_clzll(depth | 1), place;

	if (depth < EXACT_DEPTHS)
		return depth;
	place = EXACT_DEPTHS + 2 * (log - 4) + (depth >> (log - 1) & 1);
	return place < GPUPART_STAT_NR_DEPTHS ? place : GPUPART_STAT_NR_DEPTHS - 1;
}

uint64_t gpupart_stat_depth(unsigned int n)
{
	unsigned int log = 4 + (n - EXACT_DEPTHS) / 2;

	if (n < EXACT_DEPTHS)
		return n;
	return (1ull << log) + ((n - EXACT_DEPTHS) % 2 ? 1ull << (log - 1) : 0);
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int by_start(const void *a, const void *b)
{
	const struct stat_work *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* ----------------------------------------------------------------------- depth */

static void note_depth(struct gpupart_stat_gpu *sums, const struct stat_work *work, uint64_t depth)
{
	add(&sums->depth_sum, depth);
	add(&sums->depths[place_of_depth(depth)], 1);
	if (depth > sums->depth_max)
		__atomic_store_n(&sums->depth_max, depth, __ATOMIC_RELAXED);
	if (depth >= BLOCKED_DEPTH && work->submitted - work->asked >= BLOCKED_NS)
		add(&sums->blocked_ns, work->submitted - work->asked);
}

/*
 * What has ended before a submission was submitted before it: so what is left of those
 * before is their number less the ends up to then.
 */
static void fold_depths(struct stat_fold *fold)
{
	int64_t *ends = fold->scratch;
	unsigned int nr = fold->nr_ends, over = 0;

	memcpy(ends, fold->ends, nr * sizeof(ends[0]));
	for (unsigned int i = 0; i < fold->nr_work; i++)
		ends[nr++] = fold->work[i].end;
	qsort(ends, nr, sizeof(ends[0]), by_time);
	for (unsigned int i = 0; i < fold->nr_work; i++) {
		unsigned int before = fold->nr_ends + i;

		while (over < before && ends[over] <= fold->work[i].asked)
			over++;
		note_depth(fold->sums, &fold->work[i], before - over);
	}
	/* The last are kept. */
	if (nr - over > STAT_BATCH)
		over = nr - STAT_BATCH;
	memcpy(fold->ends, ends + over, (nr - over) * sizeof(ends[0]));
	fold->nr_ends = nr - over;
}

/* ------------------------------------------------------------------------ time */

/* Adds what [start, end) has after *known. */
static int64_t advance(int64_t *known, int64_t start, int64_t end)
{
	int64_t added;

	if (end <= *known)
		return 0;
	added = end - (start > *known ? start : *known);
	*known = end;
	return added;
}

/* How much of [start, end) the CPU waited. Waits may overlap: of several threads. */
static int64_t waited(const struct stat_fold *fold, int64_t start, int64_t end)
{
	int64_t known = start, sum = 0;

	for (unsigned int i = 0; i < fold->nr_waits && fold->waits[i].start < end; i++)
		sum += advance(&known, fold->waits[i].start,
			       fold->waits[i].end < end ? fold->waits[i].end : end);
	return sum;
}

/* Nothing ran from @fold->any to @end; the next was submitted at @submitted. */
static void fold_gap(struct stat_fold *fold, int64_t submitted, int64_t end)
{
	int64_t start = fold->any;
	int64_t until = submitted < start ? start : submitted > end ? end : submitted;

	add(&fold->sums->starved_ns, until - start);
	add(&fold->sums->both_ns, waited(fold, start, until));
	add(&fold->sums->held_ns, end - until);
}

static void fold_work(struct stat_fold *fold, const struct stat_work *work)
{
	struct gpupart_stat_gpu *sums = fold->sums;
	int64_t before = fold->any;

	if (work->start > fold->any)
		fold_gap(fold, work->submitted, work->start);
	add(&sums->busy_ns, advance(&fold->any, work->start, work->end));
	if (work->copy)
		add(&sums->copies_ns, advance(&fold->copy, work->start, work->end));
	else
		add(&sums->kernels_ns, advance(&fold->kernel, work->start, work->end));
	add(&sums->stretches_ns, fold->any - before);
}

/* Those that reach into what is not known yet stay. */
static void forget_waits(struct stat_fold *fold)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < fold->nr_waits; i++)
		if (fold->waits[i].end > fold->any)
			fold->waits[nr++] = fold->waits[i];
	fold->nr_waits = nr < STAT_BATCH ? nr : 0;
}

void stat_fold_batch(struct stat_fold *fold)
{
	if (fold->nr_work) {
		fold_depths(fold);
		qsort(fold->work, fold->nr_work, sizeof(fold->work[0]), by_start);
		qsort(fold->waits, fold->nr_waits, sizeof(fold->waits[0]), by_time);
		if (!fold->open)
			fold->any = fold->kernel = fold->copy = fold->work[0].start;
		fold->open = true;
		for (unsigned int i = 0; i < fold->nr_work; i++)
			fold_work(fold, &fold->work[i]);
		add(&fold->sums->timed, fold->nr_work);
		add(&fold->sums->untimed_over, fold->untimed_over - fold->sums->untimed_over);
		forget_waits(fold);
	}
	fold->nr_work = 0;
}

void stat_fold_end(struct stat_fold *fold, int64_t cut)
{
	stat_fold_batch(fold);
	if (fold->open && cut > fold->any) {
		add(&fold->sums->stretches_ns, cut - fold->any);
		fold_gap(fold, cut, cut);
	}
	fold->open = false;
	fold->nr_ends = fold->nr_waits = 0;
}
