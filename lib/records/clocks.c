// SPDX-License-Identifier: MIT
/* Computes bounds of the offset between the CPU's clock and the GPU's clock. See clocks.h. */
#include <stdlib.h>
#include <string.h>
#include "lib/records/clocks.h"
#include "lib/records/records.h"

/* ------------------------------------------------------------------- the CPU's clock */

static struct state_clock cpu;	/* the scale is 0 until the rate is measured */

/* Reads the CPU's counter and the CPU's clock at nearly the same moment. */
static void cpu_look(uint64_t *counter, uint64_t *ns)
{
	uint64_t before, at, after, least = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		before = records_counter();
		at = clock_monotonic_ns();
		after = records_counter();
		if (after - before >= least)
			continue;
		least = after - before;
		*counter = before + least / 2;
		*ns = at;
	}
}

void clocks_measure(void)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	uint64_t counter, ns;

	if (cpu.scale)
		return;
	cpu_look(&cpu.counter, &cpu.ns);
	nanosleep(&pause, NULL);
	cpu_look(&counter, &ns);
	cpu.scale = ((__uint128_t)(ns - cpu.ns) << 32) / (counter - cpu.counter);
}

int64_t clocks_cpu_ns(uint64_t counter)
{
	return records_clock_ns(&cpu, counter);
}

/* ------------------------------------------------------------------- bounds of the offset */

void points_add(struct points *points, uint64_t end, int64_t cpu_time)
{
	/*
	 * The list is full. The points in the older half are old or redundant, so drop these
	 * points.
	 */
	if (points->nr == CLOCKS_MAX_POINTS) {
		points->nr /= 2;
		memmove(points->list, points->list + points->nr,
			points->nr * sizeof(points->list[0]));
	}
	points->list[points->nr++] = (struct point){
		end, points->sign * (int64_t)(end - cpu_time),
	};
}

static int by_end(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return (x->end > y->end) - (x->end < y->end);
}

int64_t points_hull_at(const struct points *points, uint64_t end)
{
	const struct point *first = points->hull, *last = first + points->nr_hull - 1, *middle;
	const struct point *p = end <= first->end ? first : last;
	int64_t far = end - p->end;

	if (end <= first->end || end >= last->end)
		return p->ahead - (far < 0 ? -far : far) / RECORDS_DRIFT_INVERSE;
	while (last - first > 1) {
		middle = first + (last - first) / 2;
		if (middle->end <= end)
			first = middle;
		else
			last = middle;
	}
	return first->ahead + (int64_t)((double)(last->ahead - first->ahead) *
					(end - first->end) / (last->end - first->end));
}

void points_hull(struct points *points, const struct points *than)
{
	unsigned int nr = 0;

	qsort(points->list, points->nr, sizeof(points->list[0]), by_end);
	for (unsigned int i = 0; i < points->nr; i++) {
		const struct point *p = &points->list[i], *h;

		if (than && p->ahead > -points_hull_at(than, p->end))
			continue;
		for (; nr > 1; nr--) {
			h = &points->hull[nr - 2];
			if ((double)(h[1].ahead - h->ahead) * (p->end - h->end) >
			    (double)(p->ahead - h->ahead) * (h[1].end - h->end))
				break;
		}
		if (nr && points->hull[nr - 1].end == p->end)
			nr -= p->ahead >= points->hull[nr - 1].ahead;
		if (!nr || points->hull[nr - 1].end != p->end)
			points->hull[nr++] = *p;
	}
	points->nr_hull = nr;
}

void points_forget(struct points *points, uint64_t age)
{
	unsigned int old = 0;

	while (points->nr && points->list[points->nr - 1].end - points->list[old].end > age)
		old++;
	points->nr -= old;
	memmove(points->list, points->list + old, points->nr * sizeof(points->list[0]));
}
