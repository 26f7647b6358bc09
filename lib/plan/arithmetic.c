// SPDX-License-Identifier: MIT
/*
 * Contains the planner's arithmetic. The functions decide whether the tenants' needs fit, decide
 * which tenant gets the next TPC, and sort GPCs. A home is a place for one cluster of a tenant.
 */
#include <stdlib.h>
#include <string.h>
#include "lib/plan/plan.h"

/*
 * The sizes of homes are powers of two, which makes this test exact.
 *
 * The test first handles the homes that are bound to a uGPU. It begins with the largest homes. A
 * home uses the same number of places of each smaller size in every GPC of the uGPU. So the homes
 * fit if and only if the following is true for every size. The uGPU must have enough places of this
 * size for all homes of this size and of larger sizes.
 *
 * Then the test handles the homes that are not bound. Such a home needs a place in which all
 * smaller places, down to single TPCs, are free. The home uses the same number of places of each
 * size in every uGPU. So the test can add up the places of all uGPUs for each size.
 */
static bool homes_fit(const struct plan_room *room, const struct plan_need *needs,
		      unsigned int nr, const unsigned int *spare, unsigned int homes)
{
	unsigned int count[PLAN_MAX_UGPUS];	/* number of places of the current size;
						 * at first the number of TPCs */

	memcpy(count, spare, room->nr_ugpus * sizeof(*count));
	for (unsigned int level = 1; level < PLAN_MAX_LEVELS && homes >> level; level++) {
		unsigned int places[PLAN_MAX_UGPUS], wanted = 0, there = 0;

		memcpy(places, room->places[level], room->nr_ugpus * sizeof(*places));
		for (unsigned int i = 0; i < nr; i++) {
			unsigned int takes = needs[i].home >> level;

			if (needs[i].ugpu == PLAN_ANYWHERE)
				wanted += takes;
			else if (places[needs[i].ugpu] < takes)
				return false;
			else
				places[needs[i].ugpu] -= takes;
		}
		for (unsigned int u = 0; u < room->nr_ugpus; u++) {
			count[u] = places[u] < count[u] / 2 ? places[u] : count[u] / 2;
			there += count[u];
		}
		if (wanted > there)
			return false;
	}
	return true;
}

bool plan_fits(const struct plan_room *room, const struct plan_need *needs, unsigned int nr)
{
	unsigned int spare[PLAN_MAX_UGPUS], anywhere = 0, all = 0, homes = 0;

	memcpy(spare, room->nr, room->nr_ugpus * sizeof(*spare));
	for (unsigned int i = 0; i < nr; i++) {
		homes |= needs[i].home;
		if (needs[i].ugpu == PLAN_ANYWHERE)
			anywhere += needs[i].nr;
		else if (spare[needs[i].ugpu] < needs[i].nr)
			return false;
		else
			spare[needs[i].ugpu] -= needs[i].nr;
	}
	for (unsigned int u = 0; u < room->nr_ugpus; u++)
		all += spare[u];
	return anywhere <= all && homes_fit(room, needs, nr, spare, homes);
}

void plan_room_clear(struct plan_room *room, unsigned int nr_ugpus)
{
	room->nr_ugpus = nr_ugpus;
	memset(room->nr, 0, nr_ugpus * sizeof(*room->nr));
	for (unsigned int level = 0; level < PLAN_MAX_LEVELS; level++)
		memset(room->places[level], 0, nr_ugpus * sizeof(*room->nr));
}

void plan_room_add(struct plan_room *room, unsigned int ugpu, unsigned int nr,
		   unsigned int nr_main)
{
	room->nr[ugpu] += nr;
	for (unsigned int level = 1; level < PLAN_MAX_LEVELS; level++)
		room->places[level][ugpu] += nr_main >> level;
}

void plan_deal(const struct plan_ask *ask, unsigned int first, const int *ugpu,
	       const struct plan_room *room, bool homes, unsigned int *nr)
{
	const struct plan_tenant *t = ask->tenants;
	struct plan_need needs[PLAN_MAX_TENANTS];
	bool done[PLAN_MAX_TENANTS] = { false };

	for (unsigned int i = first; i < ask->nr; i++)
		needs[i] = (struct plan_need){ nr[i], homes && t[i].home > 1 ? t[i].home : 0,
					       ugpu[i] };
	for (;;) {
		int least = -1;

		for (unsigned int i = first; i < ask->nr; i++) {
			if (done[i])
				continue;
			if (nr[i] >= t[i].max)
				done[i] = true;
			else if (least < 0 || nr[i] * t[least].weight < nr[least] * t[i].weight)
				least = i;
		}
		if (least < 0)
			return;
		needs[least].nr = ++nr[least];
		/*
		 * If a tenant does not fit now, it will not fit later either, because the room only
		 * becomes smaller.
		 */
		if (!plan_fits(room, needs + first, ask->nr - first)) {
			needs[least].nr = --nr[least];
			done[least] = true;
		}
	}
}

void plan_order(const struct plan_ask *ask, const struct plan_counts *counts,
		unsigned int tenant, unsigned int *order)
{
	unsigned int crowd[PLAN_MAX_UGPUS] = { 0 };

	for (unsigned int i = 0; i < ask->nr; i++) {
		bool there[PLAN_MAX_UGPUS] = { false };

		for (unsigned int gpc = 0; gpc < ask->gpu.nr_gpcs && i != tenant; gpc++)
			there[ask->gpu.gpcs[gpc].ugpu] |= counts->nr[i][gpc] > 0;
		for (unsigned int u = 0; u < ask->gpu.nr_ugpus; u++)
			crowd[u] += there[u];
	}
	for (unsigned int c = 0; c < ask->nr; c++)
		for (unsigned int u = 0; u < ask->gpu.nr_ugpus; u++)
			for (unsigned int gpc = 0; gpc < ask->gpu.nr_gpcs && crowd[u] == c; gpc++)
				if (ask->gpu.gpcs[gpc].ugpu == u)
					*order++ = gpc;
}

unsigned int plan_home(const struct plan_gpu *gpu, unsigned int cluster)
{
	unsigned int home = 1;

	while (home * gpu->sms_per_tpc < cluster)
		home *= 2;
	return home;
}

static int compare(const void *left, const void *right)
{
	const struct plan_tenant *a = left, *b = right;
	int form_a = a->whole ? 0 : a->spread ? 2 : 1;
	int form_b = b->whole ? 0 : b->spread ? 2 : 1;

	if (form_a != form_b)
		return form_a - form_b;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->min != b->min)
		return a->min > b->min ? -1 : 1;
	if (a->home != b->home)
		return a->home > b->home ? -1 : 1;
	return strcmp(a->name, b->name);
}

void plan_rank(struct plan_ask *ask)
{
	qsort(ask->tenants, ask->nr, sizeof(*ask->tenants), compare);
}
